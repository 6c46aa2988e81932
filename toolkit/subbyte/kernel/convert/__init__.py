"""Kernels that change the form of a tensor on the device: values to packed words, words to values, reals to words.

They have a plan, a TIRx emitter and cached machine code like every kernel, but no family: there is one of each, with
nothing to tune. They are here because they need the emitters' room (``tirx``) below and are what kernels run between.
"""

from subbyte.kernel.convert.build import Conversion, convertible, packing, quantizing, unpacking

__all__ = ["Conversion", "convertible", "packing", "quantizing", "unpacking"]

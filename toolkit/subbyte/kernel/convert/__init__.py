"""Kernels that convert a tensor on the device: values to packed words, words to values, real numbers to words.

They have a plan, a TIRx emitter and cached machine code like every kernel, but no family: there is one of each, with
nothing to tune. They are in this package because they need the emitters of ``tirx`` and run between kernels.
"""

from subbyte.kernel.convert.build import Conversion, convertible, packing, quantizing, unpacking

__all__ = ["Conversion", "convertible", "packing", "quantizing", "unpacking"]

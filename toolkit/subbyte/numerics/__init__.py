"""Operands as numpy arrays: int4 packing, memory layouts, requantization, the exact reference."""

from subbyte.numerics.float_requant import float_words
from subbyte.numerics.int4 import check_int4, pack_words, unpack_words
from subbyte.numerics.layout import (
    from_hwnc_words,
    from_nhwc_words,
    from_nhwcnc,
    relayout,
    to_hwnc_words,
    to_nhwc_words,
    to_nhwcnc,
)
from subbyte.numerics.quantize import quantize, scale_for
from subbyte.numerics.reference import accumulator_bound, reference
from subbyte.numerics.requant import Requantization

__all__ = [
    "Requantization",
    "accumulator_bound",
    "check_int4",
    "float_words",
    "from_hwnc_words",
    "from_nhwc_words",
    "from_nhwcnc",
    "pack_words",
    "quantize",
    "reference",
    "relayout",
    "scale_for",
    "to_hwnc_words",
    "to_nhwc_words",
    "to_nhwcnc",
    "unpack_words",
]

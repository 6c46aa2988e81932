"""Operands as numpy arrays: int4 packing, memory layouts, prepared weights, requantization, the exact reference."""

from subbyte.data.float_requant import float_words
from subbyte.data.int4 import check_int4, pack_words, unpack_words
from subbyte.data.layout import (
    from_hwnc_words,
    from_nhwc_words,
    from_nhwcnc,
    relayout,
    to_hwnc_words,
    to_nhwc_words,
    to_nhwcnc,
)
from subbyte.data.quantize import quantize, scale_for
from subbyte.data.reference import accumulator_bound, reference
from subbyte.data.requant import Requantization
from subbyte.data.warpgroup_weights import prepare_warpgroup_weights
from subbyte.data.weights import prepare_weights

__all__ = [
    "Requantization",
    "accumulator_bound",
    "check_int4",
    "float_words",
    "from_hwnc_words",
    "from_nhwc_words",
    "from_nhwcnc",
    "pack_words",
    "prepare_warpgroup_weights",
    "prepare_weights",
    "quantize",
    "reference",
    "relayout",
    "scale_for",
    "to_hwnc_words",
    "to_nhwc_words",
    "to_nhwcnc",
    "unpack_words",
]

"""Operands as numpy arrays: values, packing and memory layouts by type, requantization, thresholds, and the exact
reference."""

from subbyte.numerics.bit_layer import LayerResult, layer_reference, pooled, pooled_ranks
from subbyte.numerics.bit_products import BitProducts, bit_products, border_classes, range_reason, sums_by_popcounts
from subbyte.numerics.float_requant import begun_words, float_words, threshold_words
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
from subbyte.numerics.planes import BIT_LAYOUTS, PlaneWords, pack_planes, planes_of, values_of
from subbyte.numerics.quantize import quantize, scale_for
from subbyte.numerics.reference import accumulator_bound, reference
from subbyte.numerics.requant import Requantization
from subbyte.numerics.residual import from_residual, to_residual
from subbyte.numerics.thresholds import Thresholds, random_output
from subbyte.numerics.values import check_values, decode, encode, random_values
from subbyte.numerics.words import Storage, pack, register_storage, storage_of, storages, unpack, unregister_storage

__all__ = [
    "BIT_LAYOUTS",
    "BitProducts",
    "LayerResult",
    "PlaneWords",
    "Requantization",
    "Storage",
    "Thresholds",
    "accumulator_bound",
    "begun_words",
    "bit_products",
    "border_classes",
    "check_int4",
    "check_values",
    "decode",
    "encode",
    "float_words",
    "from_hwnc_words",
    "from_nhwc_words",
    "from_nhwcnc",
    "from_residual",
    "layer_reference",
    "pack",
    "pack_planes",
    "pack_words",
    "planes_of",
    "pooled",
    "pooled_ranks",
    "quantize",
    "random_output",
    "random_values",
    "range_reason",
    "reference",
    "register_storage",
    "relayout",
    "scale_for",
    "storage_of",
    "storages",
    "sums_by_popcounts",
    "threshold_words",
    "to_hwnc_words",
    "to_nhwc_words",
    "to_nhwcnc",
    "to_residual",
    "unpack",
    "unpack_words",
    "unregister_storage",
    "values_of",
]

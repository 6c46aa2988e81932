"""Operands as numpy arrays: values, packing and memory layouts by type, requantization, the exact reference."""

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
from subbyte.numerics.values import check_values, decode, encode, random_values
from subbyte.numerics.words import Storage, pack, register_storage, storage_of, storages, unpack, unregister_storage

__all__ = [
    "Requantization",
    "Storage",
    "accumulator_bound",
    "check_int4",
    "check_values",
    "decode",
    "encode",
    "float_words",
    "from_hwnc_words",
    "from_nhwc_words",
    "from_nhwcnc",
    "pack",
    "pack_words",
    "quantize",
    "random_values",
    "reference",
    "register_storage",
    "relayout",
    "scale_for",
    "storage_of",
    "storages",
    "to_hwnc_words",
    "to_nhwc_words",
    "to_nhwcnc",
    "unpack",
    "unpack_words",
    "unregister_storage",
]

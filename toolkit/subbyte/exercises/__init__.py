"""Exercises of the notebooks: each checks a reader's answer and says that it is right, or which mistake it looks
like."""

from subbyte.exercises.bits import (
    check_combine,
    check_corner,
    check_dot,
    check_instructions,
    check_load,
    check_threshold,
    check_word,
)
from subbyte.exercises.convolution_as_gemm import check_datum, check_tiling, check_waste
from subbyte.exercises.data_layout import check_byte, check_chunk, check_sectors
from subbyte.exercises.duplicates import check_genuine_map, check_loads, check_tile
from subbyte.exercises.feedback import Feedback
from subbyte.exercises.first_steps import check_block, check_pixels, check_rate, check_waves
from subbyte.exercises.hopper import check_grid, check_operands, check_price, check_tap_start
from subbyte.exercises.networks import check_class, check_largest_sum, check_residual
from subbyte.exercises.own_layer import check_padding, check_quantize, check_requantize
from subbyte.exercises.packing import Warp, check_address, check_gather, check_pack
from subbyte.exercises.results import check_fair_share, check_floors, check_verdict
from subbyte.exercises.search import check_accept, check_keep, check_random_trials
from subbyte.exercises.sparse_kernels import check_from_shared, check_live, check_nibble, check_pair
from subbyte.exercises.sparsity import check_column, check_core, check_ohmma, check_sides

__all__ = [
    "Feedback",
    "Warp",
    "check_accept",
    "check_address",
    "check_block",
    "check_byte",
    "check_chunk",
    "check_class",
    "check_column",
    "check_combine",
    "check_core",
    "check_corner",
    "check_datum",
    "check_dot",
    "check_fair_share",
    "check_floors",
    "check_from_shared",
    "check_gather",
    "check_genuine_map",
    "check_grid",
    "check_instructions",
    "check_keep",
    "check_largest_sum",
    "check_live",
    "check_load",
    "check_loads",
    "check_nibble",
    "check_ohmma",
    "check_operands",
    "check_pack",
    "check_padding",
    "check_pair",
    "check_pixels",
    "check_price",
    "check_quantize",
    "check_random_trials",
    "check_rate",
    "check_requantize",
    "check_residual",
    "check_sectors",
    "check_sides",
    "check_tap_start",
    "check_threshold",
    "check_tile",
    "check_tiling",
    "check_verdict",
    "check_waste",
    "check_waves",
    "check_word",
]

"""The value lists of the kinds of spaces.

``paper`` has the six knobs with TVM's values (Choi et al. 2022, section 4.1), for every workload. ``extended`` includes
them all and adds knobs. The additions depend on the shape, so that the space is large where there is something to
choose and can still be measured as a whole: a layer with few channels has many pixels, which can be tiled in many ways;
a deep layer has few pixels and a long reduction, which can be split and prefetched.

``min_blocks`` is not a knob of a space: of 168 measured pairs with 0 and with 2, half were within 0.5 % of each other,
and more than half of the pairs examined have the same machine code.
"""

from __future__ import annotations

from subbyte.arguments import checked
from subbyte.workload import ConvWorkload

Values = tuple[int, ...]
KINDS = ("paper", "extended")
DEEP_BLOCKS = 8
"""A layer with at least this many blocks of 32 input channels counts as deep."""

_PAPER: dict[str, Values] = {
    "blk_row_warps": (1, 2, 4),
    "blk_col_warps": (1, 2, 4),
    "warp_row_tiles": (1, 2, 4, 8, 16),
    "warp_col_tiles": (1, 2, 4, 8, 16),
    "chunk": (1, 2, 4, 8),
    "reorder_inner": (0, 1),
}
_SHALLOW: dict[str, Values] = {
    **_PAPER,
    "blk_row_warps": (1, 2, 4, 7, 8),
    "blk_col_warps": (1, 2, 4, 8),
    "warp_row_tiles": (1, 2, 4, 7, 8, 14, 16, 28),
    "tile_height": (0, 1, 2, 4, 7, 8, 14, 28),
    "stages": (2, 3, 4),
    "split_channels": (1, 2, 4),
    "unroll": (1, 2),
}
_DEEP: dict[str, Values] = {
    **_PAPER,
    "warp_row_tiles": (1, 2, 4, 7, 8, 14, 16),
    "tile_height": (0, 2, 4),
    "stages": (2, 4),
    "split_channels": (1, 2, 4),
}


@checked
def value_lists(kind: str, workload: ConvWorkload) -> dict[str, Values]:
    """The values of every knob of a kind of space (one of ``KINDS``), in the order of a configuration's index."""
    if kind == "paper":
        return dict(_PAPER)
    return dict(_DEEP if workload.channel_blocks >= DEEP_BLOCKS else _SHALLOW)

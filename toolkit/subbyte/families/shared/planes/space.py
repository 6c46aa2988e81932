"""The knobs and values that the space of a layer varies."""

from __future__ import annotations

from subbyte.families.shared.planes.config import KNOBS
from subbyte.workload.conv import ConvWorkload, ceil_div
from subbyte.workload.operand import BLOCK_BITS

CHUNKS = (1, 2, 4, 8)


def value_lists(workload: ConvWorkload) -> dict[str, tuple[int, ...]]:
    """The value lists for a layer."""
    blocks = ceil_div(workload.c, BLOCK_BITS)
    chunks = tuple(chunk for chunk in CHUNKS if blocks % chunk == 0)
    lists = (1, 2, 4), (1, 2, 4), (2, 4, 8), (4, 8), chunks, (0, 1) if workload.r > 1 else (0,)
    return dict(zip(KNOBS, lists, strict=True))

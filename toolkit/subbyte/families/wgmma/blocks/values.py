"""The value lists of the space of kernels on weights with blocks of zeros: those of the pipeline without what such a
kernel lacks, and the length of a loop body."""

from __future__ import annotations

from subbyte.families.wgmma.blocks.config import BlocksConfig
from subbyte.families.wgmma.pipeline.config import PIXELS
from subbyte.families.wgmma.values import Values, searched_values, value_lists
from subbyte.workload import ConvWorkload

WITHOUT = ("cluster_split_k", "tiles_m", "m_iterations", "channel_groups", "row_reuse", "unroll")
"""Knobs whose other values no such kernel has (:func:`subbyte.families.wgmma.blocks.rules.meaningless`)."""


def block_values(workload: ConvWorkload) -> dict[str, Values]:
    """The values of every knob that the estimate chooses among, in the order of a configuration's index."""
    return _of_blocks(value_lists(workload))


def searched_block_values(workload: ConvWorkload) -> dict[str, Values]:
    """The same for searches, with what the estimate does not look at."""
    return _of_blocks(searched_values(workload))


def _of_blocks(lists: dict[str, Values]) -> dict[str, Values]:
    kept = {name: values for name, values in lists.items() if name in BlocksConfig.rows and name not in WITHOUT}
    whole = tuple(value for value in kept.pop("pixels", ()) if not tuple(PIXELS.values())[value][2])
    if len(whole) > 1:
        kept["pixels"] = whole
    return {**kept, "live_pairs": (1, 2, 3, 4)}

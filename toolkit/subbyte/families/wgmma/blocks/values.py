"""The value lists of the space for block-sparse weights: those of the pipeline without the knobs that its kernel
lacks, plus the length of a loop body."""

from __future__ import annotations

from subbyte.families.wgmma.blocks.config import BlocksConfig
from subbyte.families.wgmma.pipeline.config import PIXELS
from subbyte.families.wgmma.values import Values, searched_values, value_lists
from subbyte.workload import ConvWorkload

WITHOUT = ("cluster_split_k", "tiles_m", "m_iterations", "channel_groups", "row_reuse", "unroll")
"""Knobs for which such a kernel has only one value (:func:`subbyte.families.wgmma.blocks.rules.meaningless`)."""


def block_values(workload: ConvWorkload) -> dict[str, Values]:
    """The values of every knob among which the estimate chooses, in the order of a configuration's index."""
    return _of_blocks(value_lists(workload))


def searched_block_values(workload: ConvWorkload) -> dict[str, Values]:
    """The same for searches, including values that the estimate ignores."""
    return _of_blocks(searched_values(workload))


def _of_blocks(lists: dict[str, Values]) -> dict[str, Values]:
    kept = {name: values for name, values in lists.items() if name in BlocksConfig.rows and name not in WITHOUT}
    whole = tuple(value for value in kept.pop("pixels", ()) if not tuple(PIXELS.values())[value][2])
    if len(whole) > 1:
        kept["pixels"] = whole
    return {**kept, "live_pairs": (1, 2, 3, 4)}

"""The kernels that skip zeros in weights: the weights that each supports, its rules, and the values of its knobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from subbyte.families.wgmma.blocks import rules as block_rules
from subbyte.families.wgmma.blocks.config import BlocksConfig
from subbyte.families.wgmma.blocks.values import block_values, searched_block_values
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.rules import Rule
from subbyte.families.wgmma.sparse import rules as sparse_rules
from subbyte.families.wgmma.sparse.config import SparseConfig
from subbyte.families.wgmma.sparse.values import searched_sparse_values, sparse_values
from subbyte.families.wgmma.values import Values
from subbyte.workload import ConvWorkload
from subbyte.workload.operand import BLOCKS


@dataclass(frozen=True)
class Skipping:
    """One of these kernels."""

    kind: type[PipelineConfig]
    sparsity: str
    """The sparsity of its weights, as ``--sparsity`` names it; for blocks, any fraction."""
    space: str
    """The kind of its space."""
    weights: str
    """Its weights in words."""
    other_weights: Callable[[ConvWorkload], str | None]
    """Why a workload's weights do not suit the kernel; None when they do."""
    weights_rule: Rule
    """The same as one of its rules."""
    rules: tuple[Rule, ...]
    values: Callable[[ConvWorkload], dict[str, Values]]
    """Values of every knob among which the estimate chooses,"""
    searched: Callable[[ConvWorkload], dict[str, Values]]
    """and among which a search does."""


SKIPPING = (
    Skipping(
        SparseConfig, "2:4", "wgmma-2of4", "2:4", sparse_rules.other_weights, sparse_rules.weights,
        sparse_rules.RULES, sparse_values, searched_sparse_values,
    ),
    Skipping(
        BlocksConfig, BLOCKS, "wgmma-blocks", "live block", block_rules.other_weights, block_rules.weights,
        block_rules.RULES, block_values, searched_block_values,
    ),
)  # fmt: skip
BY_SPACE = {one.space: one for one in SKIPPING}
BY_KIND = {one.kind: one for one in SKIPPING}


def skipping(workload: ConvWorkload) -> Skipping | None:
    """The kernel for the zeros of a workload's weights, if there is one."""
    return next((one for one in SKIPPING if one.other_weights(workload) is None), None)

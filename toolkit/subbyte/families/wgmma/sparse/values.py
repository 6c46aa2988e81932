"""The value lists of the space for 2:4 weights: those of the pipeline without the knobs that its kernel lacks, plus
where weights are kept."""

from __future__ import annotations

from subbyte.families.wgmma.sparse.config import SparseConfig
from subbyte.families.wgmma.values import Values, searched_values, value_lists
from subbyte.workload import ConvWorkload

WITHOUT = ("cluster_split_k", "tiles_m")
"""Knobs for which a 2:4 kernel has only one value (:func:`subbyte.families.wgmma.sparse.rules.meaningless`)."""


def sparse_values(workload: ConvWorkload) -> dict[str, Values]:
    """The values of every knob among which the estimate chooses, in the order of a configuration's index."""
    return _of_sparse(workload, value_lists(workload))


def searched_sparse_values(workload: ConvWorkload) -> dict[str, Values]:
    """The same for searches, including values that the estimate ignores: two producers and, if each tile iteration
    loads rows anew, fetching the weights of all kernel rows ahead."""
    lists = _of_sparse(workload, searched_values(workload))
    if workload.r > 1:
        lists["producers"] = (1, 2)
        if {0, 3} & set(lists.get("row_reuse", ())):
            lists["resident"] = (*lists["resident"], 2)
    return lists


def _of_sparse(workload: ConvWorkload, lists: dict[str, Values]) -> dict[str, Values]:
    kept = {name: values for name, values in lists.items() if name in SparseConfig.rows and name not in WITHOUT}
    return {**kept, "resident": (0, 1) if workload.r > 1 or workload.c <= 512 else (0,)}

"""The same workload with weights of which a pattern is 0: what ``sparsity="2:4"`` asks for."""

from __future__ import annotations

from dataclasses import replace

from subbyte.arguments import one_of
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.operand import DENSE
from subbyte.workload.precision import INT4, Precision

SPARSITIES = (DENSE, "2:4")
"""Of weights: any value may differ from 0, or two of four neighbouring input channels."""


def with_sparsity(workload: ConvWorkload, sparsity: str) -> ConvWorkload:
    """The workload with weights of this sparsity, named after it; as it is for ``dense``. Raises InvalidInput."""
    if one_of(sparsity, "sparsity", SPARSITIES) == DENSE:
        return workload
    types = _sparse(workload.precision, sparsity)
    name = workload.name and f"{workload.name.partition(':')[0]}:{types.text}"
    return replace(workload, precision=types, name=name)


def text_with_sparsity(text: str, sparsity: str) -> str:
    """The same of the text of a workload or a network. Raises InvalidInput."""
    if one_of(sparsity, "sparsity", SPARSITIES) == DENSE:
        return text
    what, colon, types = text.partition(":")
    return f"{what}:{_sparse(Precision.of(types) if colon else INT4, sparsity).text}"


def _sparse(types: Precision, sparsity: str) -> Precision:
    return replace(types, weights=replace(types.weights, sparsity=sparsity))

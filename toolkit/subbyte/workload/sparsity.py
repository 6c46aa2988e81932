"""The same workload with weights of which a pattern is 0, what ``sparsity="2:4"`` or ``"blocks:0.25"`` asks for; or
with zeros anywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from subbyte.arguments import one_of
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.operand import BLOCKS, DENSE, Operand
from subbyte.workload.precision import INT4, Precision

FOUND = "condense"
"""Zeros stand anywhere in both operands, and a kernel finds them while it runs: the types of the operands are those of
dense ones, so that this asks for a kind of kernel alone."""
SPARSITIES = (DENSE, "2:4", f"{BLOCKS}:0.25", FOUND)
"""Any value may differ from 0; of weights two of four neighbouring input channels, or those of a share (any whole
hundredths) of the blocks of 64 filters x 32 channels of a tap; zeros anywhere."""


def checked_sparsity(given: Any) -> str:
    """A sparsity. Raises InvalidInput with those there are."""
    if isinstance(given, str) and given.startswith(BLOCKS):
        return Operand(4, sparsity=given).sparsity
    return str(one_of(given, "sparsity", SPARSITIES))


def with_sparsity(workload: ConvWorkload, sparsity: str) -> ConvWorkload:
    """The workload with weights of this sparsity, named after it; as it is for ``dense`` and for zeros anywhere. Raises
    InvalidInput."""
    if checked_sparsity(sparsity) in (DENSE, FOUND):
        return workload
    types = _sparse(workload.precision, sparsity)
    name = workload.name and f"{workload.name.partition(':')[0]}:{types.text}"
    return replace(workload, precision=types, name=name)


def text_with_sparsity(text: str, sparsity: str) -> str:
    """The same of the text of a workload or a network. Raises InvalidInput."""
    if checked_sparsity(sparsity) in (DENSE, FOUND):
        return text
    what, colon, types = text.partition(":")
    return f"{what}:{_sparse(Precision.of(types) if colon else INT4, sparsity).text}"


def _sparse(types: Precision, sparsity: str) -> Precision:
    return replace(types, weights=replace(types.weights, sparsity=sparsity))

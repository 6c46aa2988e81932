"""The same workload with sparse weights, as ``sparsity="2:4"`` or ``"blocks:0.25"`` requests, or with zeros
anywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from subbyte.arguments import one_of
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.operand import BLOCKS, DENSE, Operand
from subbyte.workload.precision import INT4, Precision

FOUND = "condense"
"""Zeros may be anywhere in both operands, and the kernel finds them at run time. The operand types stay dense, so this
only selects a kind of kernel."""
SPARSITIES = (DENSE, "2:4", f"{BLOCKS}:0.25", FOUND)
"""Dense; two of four neighbouring input channels of the weights; a fraction (any multiple of 0.01) of the weights'
blocks of 64 filters x 32 channels of one tap; zeros anywhere."""


def checked_sparsity(given: Any) -> str:
    """The sparsity, checked. Raises InvalidInput that lists the allowed ones."""
    if isinstance(given, str) and given.startswith(BLOCKS):
        return Operand(4, sparsity=given).sparsity
    return str(one_of(given, "sparsity", SPARSITIES))


def with_sparsity(workload: ConvWorkload, sparsity: str) -> ConvWorkload:
    """The workload with weights of this sparsity, named accordingly; unchanged for ``dense`` and for zeros anywhere.
    Raises InvalidInput for an unknown sparsity."""
    if checked_sparsity(sparsity) in (DENSE, FOUND):
        return workload
    types = _sparse(workload.precision, sparsity)
    name = workload.name and f"{workload.name.partition(':')[0]}:{types.text}"
    return replace(workload, precision=types, name=name)


def text_with_sparsity(text: str, sparsity: str) -> str:
    """The same for the text of a workload or network. Raises InvalidInput for an unknown sparsity."""
    if checked_sparsity(sparsity) in (DENSE, FOUND):
        return text
    what, colon, types = text.partition(":")
    return f"{what}:{_sparse(Precision.of(types) if colon else INT4, sparsity).text}"


def _sparse(types: Precision, sparsity: str) -> Precision:
    return replace(types, weights=replace(types.weights, sparsity=sparsity))

"""Weights to Tensor Cores, of both kernels: a fragment's words become two operands, and a wgmma takes one of them."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES, Atom
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import registers


def unpacked(plan: WgmmaPlan, held: Any, fragment: int) -> list[Any]:
    """The operands of a fragment, whose words are ``held``: one for each half of its channels."""
    operands = []
    for half in range(plan.halves):
        operand = registers("operand", 4)
        for i in range(4):
            word = held[4 * fragment + i]
            op.mask(operand[i], word << T.uint32(4) if half == 0 else word, LOW_NIBBLES)
        operands.append(operand)
    return operands


def wgmma(plan: WgmmaPlan, atom: Atom, sums: list[Any], operand: Any, pixels: Any, started: Any, row: int) -> None:
    """One instruction. ``pixels`` is the lower word of their descriptor; ``started`` says of every fragment row whether
    its sums hold anything yet."""
    high = T.cast(T.uint32(plan.descriptor_high), "uint64") << T.uint64(32)
    words, adds = [operand[i] for i in range(4)], T.ptx.pred(started[row])
    op.emit(T.ptx[atom.ptx](*sums, *words, high | T.cast(pixels, "uint64"), adds))
    T.buffer_store(started, T.uint32(1), [row])

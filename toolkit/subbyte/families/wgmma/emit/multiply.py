"""Weights to Tensor Cores, for both kernels: a fragment's words become two operands, each taken by a wgmma."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES, Atom
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import registers


def unpacked(plan: WgmmaPlan, held: Any, fragment: int) -> list[Any]:
    """The operands of a fragment with words ``held``: one for each half of its channels."""
    if plan.knobs.sparse:
        return [_compressed(plan, held, fragment)]
    if plan.whole_weights:
        return [_whole(plan, held, fragment)]
    return [unpacked_half(plan, held, fragment, half) for half in range(plan.halves)]


def unpacked_half(plan: WgmmaPlan, held: Any, fragment: int, half: int) -> Any:
    """The operand of one half of a fragment's channels: the low or the high nibbles of its words."""
    operand = registers("operand", 4)
    for i in range(4):
        word = held[plan.fragment_registers * fragment + i]
        op.mask(operand[i], word << T.uint32(4) if half == 0 else word, LOW_NIBBLES)
    return operand


def _whole(plan: WgmmaPlan, held: Any, fragment: int) -> Any:
    """The operand of a fragment of 8-bit weights, which are fetched inverted: the assembler would merge a plain copy
    with the load of the next fragment, and wait before it."""
    operand = registers("operand", 4)
    for i in range(4):
        op.invert(operand[i], held[plan.fragment_registers * fragment + i])
    return operand


def _compressed(plan: WgmmaPlan, held: Any, fragment: int) -> Any:
    """The operand of a 2:4 fragment: four registers of values, and its metadata. Fetched metadata is inverted,
    and inverted again here: the assembler would merge a copy with the load of the next, and wait before it."""
    operand, first = registers("operand", 5), 3 * fragment
    for i in range(4):
        word = held[first + i // 2]
        op.mask(operand[i], word << T.uint32(4) if i % 2 == 0 else word, LOW_NIBBLES)
    op.invert(operand[4], held[first + 2])
    return operand


def wgmma(
    plan: WgmmaPlan, atom: Atom, sums: list[Any], operand: Any, pixels: Any, started: Any, row: int, above: Any = None
) -> None:
    """One instruction. ``pixels`` is the lower word of their descriptor, ``above`` the upper one if it is not the
    same for all; ``started`` says for every fragment row whether its sums hold anything yet."""
    high = T.cast(T.uint32(plan.descriptor_high) if above is None else above, "uint64") << T.uint64(32)
    words, adds = [operand[i] for i in range(4)], T.ptx.pred(started[row])
    if plan.knobs.sparse:
        op.sparse_wgmma(atom.ptx, sums, words, high | T.cast(pixels, "uint64"), operand[4], started[row])
        T.buffer_store(started, T.uint32(1), [row])
        return
    op.emit(T.ptx[atom.ptx](*sums, *words, high | T.cast(pixels, "uint64"), adds))
    T.buffer_store(started, T.uint32(1), [row])

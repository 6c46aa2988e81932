"""Operands of PTX instructions as C++ expressions, and what every emitter is."""

from __future__ import annotations

import re
from collections.abc import Callable

from subbyte.errors import Unsupported

Number = Callable[[str], int]
"""Gives an instruction its number in the trace."""
Emit = Callable[[str, list[str], Number], str]
"""The C++ statements of one instruction, from its opcode, its operands and the numbering."""
Emitters = tuple[tuple[str, Emit], ...]

_SPECIAL = {"%cluster_ctarank": 0, "%cluster_nctarank": 1, "%laneid": 2, "%warpid": 3}


def value(text: str) -> str:
    """A PTX operand as a C++ expression: %0, a register name, a special register or an immediate."""
    if re.fullmatch(r"%\d+", text):
        return f"operand_{text[1:]}"
    if text in _SPECIAL:
        return f"emulator::special_register({_SPECIAL[text]})"
    if re.fullmatch(r"[%A-Za-z_$][\w$]*", text):
        return "register_" + re.sub(r"\W", "_", text)
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
        return text
    raise Unsupported(f"the emulator cannot read the PTX operand {text!r}")


def members(text: str) -> list[str]:
    """The members of a vector operand ``{a, b}``, or the single operand."""
    inner = text[1:-1] if text.startswith("{") else text
    return [value(part.strip()) for part in inner.split(",")]


def address(opcode: str, text: str) -> str:
    """A memory operand ``[a+8]`` as a pointer; with ``shared::cluster`` in the opcode, it may point into another
    block."""
    base, _, offset = text.strip("[] ").partition("+")
    place = "of_cluster" if "shared::cluster" in opcode else "generic"
    pointer = f"emulator::{place}({value(base.strip())})"
    return f"emulator::offset_by({pointer}, {offset.strip()})" if offset else pointer


def shared_offset(text: str) -> str:
    """A shared memory operand as a byte offset in the shared window."""
    base, _, offset = text.strip("[] ").partition("+")
    return f"uint32_t({value(base.strip())}){'+' + offset.strip() if offset else ''}"


def array(name: str, values: list[str]) -> str:
    """A C++ array of words."""
    return f"const uint32_t {name}[] = {{{', '.join(f'uint32_t({text})' for text in values)}}};"


def flag(condition: object) -> str:
    """A C++ truth value."""
    return "true" if condition else "false"


def call(template: str) -> Emit:
    """An emitter that substitutes the operands for ``{0}``, ``{1}``, ... and the instruction's number for ``{n}``."""

    def emit(opcode: str, operands: list[str], number: Number) -> str:
        return template.format(*[value(text) for text in operands], n=number(opcode) if "{n}" in template else 0)

    return emit

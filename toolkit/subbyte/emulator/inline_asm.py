"""Inline assembly in the CUDA text: finds each ``asm`` statement and passes its PTX to a translator."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from subbyte.errors import Unsupported

_ASM = re.compile(r"\b(?:asm|__asm__)\b(?:\s*(?:volatile|__volatile__)\b)?\s*\(")
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[(\[{]|[)\]}]', re.DOTALL)
_OPERAND = re.compile(r'\s*"([=+]?)(?:&?)([a-z])"\s*\((.*)\)\s*$', re.DOTALL)


@dataclass(frozen=True)
class Operand:
    """One constraint of an ``asm`` statement, for example ``"=r"(d)``: direction, letter, C++ expression."""

    direction: str
    letter: str
    expression: str


@dataclass(frozen=True)
class AsmStatement:
    """The PTX text of one ``asm`` statement and its operands, numbered %0, %1, ... in this order."""

    ptx: str
    operands: tuple[Operand, ...]


def closing(text: str, start: int) -> int:
    """Index of the bracket that closes the one at ``start``; string literals are skipped."""
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text, start):
        if match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth -= 1
            if depth == 0:
                return match.start()
    raise Unsupported(f"the CUDA text has an unclosed bracket: {text[start : start + 60]!r}")


def split_outside(text: str, separator: str) -> list[str]:
    """Split at ``separator``, except inside brackets and string literals."""
    parts, begin, i = [], 0, 0
    while i < len(text):
        char = text[i]
        if char == '"':
            i += 1
            while text[i] != '"':
                i += 2 if text[i] == "\\" else 1
        elif char in "([{":
            i = closing(text, i)
        elif char == separator:
            parts.append(text[begin:i])
            begin = i + 1
        i += 1
    parts.append(text[begin:])
    return parts


def _parse(body: str) -> AsmStatement:
    sections = split_outside(body, ":")
    literals = re.findall(r'"((?:[^"\\]|\\.)*)"', sections[0])
    ptx = "".join(literals).replace("\\n", "\n").replace("\\t", " ").replace("%%", "%")
    operands = []
    for section in sections[1:3]:
        for text in split_outside(section, ","):
            if not text.strip():
                continue
            match = _OPERAND.match(text)
            if match is None:
                raise Unsupported(f"the emulator cannot read the asm operand {text.strip()!r}")
            operands.append(Operand(*match.groups()))
    return AsmStatement(ptx, tuple(operands))


def replace_asm(text: str, translate: Callable[[AsmStatement], str]) -> str:
    """``text`` with every ``asm`` statement replaced by ``translate(statement)``; line numbers do not change."""
    pieces, position = [], 0
    while match := _ASM.search(text, position):
        opening = match.end() - 1
        end = closing(text, opening)
        finish = text.index(";", end) + 1
        pieces.append(text[position : match.start()])
        pieces.append(translate(_parse(text[opening + 1 : end])))
        pieces.append("\n" * text.count("\n", match.start(), finish))
        position = finish
    pieces.append(text[position:])
    return "".join(pieces)

"""One ``asm`` statement as a C++ block."""

from __future__ import annotations

import re

from subbyte.emulator.inline_asm import AsmStatement, split_outside
from subbyte.emulator.ptx import arithmetic, barriers, bulk, mbarrier, memory, warp, wgmma
from subbyte.emulator.ptx.operands import Emitters, value
from subbyte.errors import Unsupported

FIXED_INSTRUCTIONS = ("bar.sync", "bar.warp.sync", "shfl.sync (intrinsic)", "", "", "", "", "")
_REGISTER_TYPES = {"pred": "bool", "16": "uint16_t", "32": "uint32_t", "64": "uint64_t"}
_LETTER_TYPES = {"r": "uint32_t", "h": "uint16_t", "f": "float"}
_EMITTERS: Emitters = (
    *wgmma.EMITTERS, *warp.EMITTERS, *barriers.EMITTERS, *mbarrier.EMITTERS, *bulk.EMITTERS, *memory.EMITTERS,
    *arithmetic.EMITTERS,
)  # fmt: skip


class PtxTranslator:
    """Translates asm statements and numbers the distinct instructions it has seen (``instructions``)."""

    def __init__(self) -> None:
        """Start with the instructions that CUDA intrinsics compile to."""
        self.instructions: list[str] = list(FIXED_INSTRUCTIONS)
        self._statements = 0

    def statement(self, asm: AsmStatement) -> str:
        """C++ block with the effect of ``asm``; inputs are read first and outputs written last, as in hardware.

        The registers of a wgmma are passed by reference: it uses them later.
        """
        self._statements += 1
        instructions = _instructions(asm.ptx)
        if not instructions:
            return "{}"  # a compiler barrier, which reads nothing
        in_place = {number for text in instructions for number in wgmma.registers_of(text)}
        before, after = [], []
        for number, operand in enumerate(asm.operands):
            name = f"operand_{number}"
            ctype = _LETTER_TYPES.get(operand.letter, "auto")
            if number in in_place:
                before.append(f"auto&& {name} = {operand.expression};")
                continue
            if operand.direction == "=":
                ctype = {"l": "uint64_t"}.get(operand.letter, ctype)
                before.append(f"{ctype} {name};")
            elif ctype == "auto":
                before.append(f"auto {name} = {operand.expression};")
            else:
                before.append(f"{ctype} {name} = ({ctype})({operand.expression});")
            if operand.direction:
                after.append(f"{operand.expression} = {name};")
        middle = [self._instruction(text) for text in instructions]
        return "{ " + " ".join(before + middle + after) + " }"

    def _number(self, opcode: str) -> int:
        if opcode not in self.instructions:
            self.instructions.append(opcode)
        return self.instructions.index(opcode)

    def _label(self, name: str) -> str:
        return f"label_{self._statements}_{re.sub(r'[^A-Za-z0-9]', '_', name)}"

    def _instruction(self, text: str) -> str:
        if text.startswith(".reg"):
            return _registers(text)
        label = re.match(r"([A-Za-z_$%][\w$%=]*)\s*:(?!:)\s*", text)
        if label:
            rest = text[label.end() :]
            return f"{self._label(label[1])}: ; {self._instruction(rest) if rest else ''}"
        guard = re.match(r"@(!?)\s*(%?\w+)\s+", text)
        if guard:
            condition = guard.group(1) + value(guard.group(2))
            return f"if ({condition}) {{ {self._instruction(text[guard.end() :])} }}"
        jump = re.match(r"bra(?:\.uni)?\s+(\S+)$", text)
        if jump:
            return f"emulator::step(); goto {self._label(jump[1])};"
        match = re.match(r"[^\s{\[]+", text)
        if match is None:
            raise Unsupported(f"the emulator cannot read the PTX text {text!r}")
        opcode, rest = match[0], text[match.end() :]
        operands = [part.strip() for part in split_outside(rest, ",") if part.strip()]
        for pattern, emit in _EMITTERS:
            if re.match(pattern, opcode):
                return emit(opcode, operands, self._number)
        raise Unsupported(
            f"the emulator does not know the PTX instruction {opcode!r}; it covers integer mma.sync and wgmma, "
            "mbarrier, cp.async and its bulk form, barriers of warps, blocks and clusters, shuffles, ldmatrix, ld, st "
            "and integer arithmetic. Run this kernel on a GPU"
        )


def _instructions(ptx: str) -> list[str]:
    """The instructions of a PTX text, without comments and scoping braces."""
    ptx = re.sub(r"//[^\n]*|/\*.*?\*/", " ", ptx, flags=re.DOTALL)
    ptx = re.sub(r"\s+", " ", ptx).strip()
    found = []
    for text in ptx.split(";"):
        text = text.strip()
        while text.startswith(("{", "}")):
            text = text[1:].strip()
        if text:
            found.append(text)
    trailing = found[-1:] and re.fullmatch(r"([A-Za-z_$%][\w$%=]*)\s*:\s*\}*", found[-1])
    if trailing:
        found[-1] = f"{trailing[1]}:"
    return found


def _registers(text: str) -> str:
    match = re.match(r"\.reg\s+\.(pred|[busf]?(16|32|64))\s+(.*)$", text)
    if match is None:
        raise Unsupported(f"the emulator cannot read the PTX declaration {text!r}")
    ctype = _REGISTER_TYPES[match.group(2) or "pred"]
    return " ".join(f"{ctype} {value(name.strip())};" for name in match.group(3).split(","))

"""wgmma: the asynchronous matrix instruction of a warpgroup, and its fence, groups and wait."""

from __future__ import annotations

import re

from subbyte.emulator.inline_asm import split_outside
from subbyte.emulator.ptx.operands import Emitters, Number, call, flag, members, value
from subbyte.errors import Unsupported

_MULTIPLY = re.compile(
    r"wgmma\.mma_async(\.sp)?\.sync\.aligned\.m64n(\d+)k(\d+)\.s32\.([su]8|b1)\.([su]8|b1)(\.and\.popc)?$"
)
COLUMNS = (8, 16, 24, *range(32, 257, 16))
"""Values of N for the integer and one-bit instructions (PTX ISA, table "Matrix Shape" of wgmma)."""


def registers_of(text: str) -> list[int]:
    """Numbers of the asm operands that a wgmma uses as registers: accumulators, A, and the metadata of a sparse one."""
    if not text.startswith("wgmma.mma_async"):
        return []
    opcode, _, rest = text.partition(" ")
    lists = [part.strip() for part in split_outside(rest, ",")]
    used = [part for part in lists if part.startswith("{")] + (lists[3:4] if ".sp." in opcode else [])
    return [int(number) for part in used for number in re.findall(r"%(\d+)", part)]


def _multiply(opcode: str, operands: list[str], number: Number) -> str:
    match = _MULTIPLY.match(opcode)
    if match is None:
        raise Unsupported(f"the emulator does not know the matrix instruction {opcode!r}; it covers s8, u8 and b1")
    sparse, n, k = match[1] is not None, int(match[2]), int(match[3])
    a_type, b_type, logic = match.group(4, 5, 6)
    bits = 1 if a_type == "b1" else 8
    depth = 256 if bits == 1 else 64 if sparse else 32
    if n not in COLUMNS or k != depth or (b_type == "b1") != (bits == 1) or (logic is None) == (bits == 1):
        raise Unsupported(f"the matrix instruction {opcode!r} does not exist in the PTX ISA")
    d, a, b, *metadata, adds = operands
    from_registers = a.startswith("{")
    sums, left = members(d), members(a) if from_registers else []
    if sparse and (bits == 1 or len(metadata) != 2 or int(metadata.pop(), 0) != 0):
        raise Unsupported(f"{opcode}: the emulator covers a word of metadata and the selector 0")
    if len(sums) != n // 2 or len(left) not in (0, 4):
        raise Unsupported(f"{opcode} takes {n // 2} accumulators and 4 registers of A; got {len(sums)} and {len(left)}")
    flags = ", ".join(map(flag, (a_type[0] == "s", b_type[0] == "s", from_registers, sparse)))
    left += [value(text) for text in metadata]
    shape = f"{{{n}, {bits}, {flags}}}"
    descriptor = "0" if from_registers else f"uint64_t({value(a)})"
    return (
        f"{{ {_registers('d_', sums)} {_registers('a_', left or ['0u'])} emulator::wgmma_multiply({number(opcode)}, "
        f"{shape}, d_, a_, {descriptor}, uint64_t({value(b)}), bool({value(adds)})); }}"
    )


def _registers(name: str, values: list[str]) -> str:
    operands = ", ".join(f"emulator::register_operand({text})" for text in values)
    return f"const emulator::RegisterOperand {name}[] = {{{operands}}};"


EMITTERS: Emitters = (
    (r"wgmma\.mma_async\.", _multiply),
    (r"wgmma\.fence\.sync\.aligned$", call("emulator::wgmma_fence();")),
    (r"wgmma\.commit_group\.sync\.aligned$", call("emulator::wgmma_commit();")),
    (r"wgmma\.wait_group\.sync\.aligned$", call("emulator::wgmma_wait({0});")),
)

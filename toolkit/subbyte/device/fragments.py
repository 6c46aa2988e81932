"""Which lane and register holds which element of a matrix instruction, and which GPUs have the instruction.

Source: PTX ISA, sections "Matrix Fragments for mma.m8n8k32 / m16n8k32 / m16n8k64 / m8n8k128 / m16n8k256". All of them
follow one rule. With ``g = lane >> 2``, ``t = lane & 3`` and ``e`` elements in a 32-bit register:

* A (row-major): register ``i`` of ``M/8`` row groups and ``K/(4e)`` column groups holds row ``g + 8*(i % (M/8))`` and
  the ``e`` columns from ``4e*(i / (M/8)) + e*t``, the lowest bits first.
* B (column-major): register ``i`` holds column ``g`` and the ``e`` rows from ``4e*i + e*t``.
* C and D (int32): register ``i`` holds row ``g + 8*(i / 2)`` and column ``2t + i % 2``.

A warpgroup instruction (wgmma) belongs to four warps. Warp ``w`` holds the rows ``16w`` to ``16w + 15`` of A, C and D
by the same rule, with registers ``4j`` to ``4j + 3`` of C for the columns from ``8j``. B is no register operand: it
lies in shared memory, where a descriptor says how (:mod:`subbyte.device.shared_operand`).

Support was read off the machine code that ptxas 13.0 makes of a one-instruction kernel: a single ``IMMA``/``BMMA``
(``IGMMA``/``BGMMA``) of that shape is native, a call to a routine is emulated, a refusal is absent. The maps themselves
gave the right product of random matrices on an H200, for every instruction here but m8n8k128.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from subbyte.arguments import checked
from subbyte.device.shared_operand import PIECE_BYTES, SWIZZLES, SharedOperand
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.info_record import InfoRecord, Table, columns_text, grid_text

LANES = 32
WARPS = 4
"""Warps of a warpgroup."""
Place = tuple[int, int]
Map = tuple[tuple[tuple[Place, ...], ...], ...]
"""Matrix position (row, column) by [lane][register][element]."""


@dataclass(frozen=True)
class Support:
    """Whether one architecture runs an operation: ``native``, ``emulated`` (much slower) or ``absent``."""

    arch: str
    operation: str
    status: str


@dataclass(frozen=True)
class Fragments(InfoRecord):
    """The operand fragments of one instruction: D[M,N] = A[M,K] * B[K,N] + C[M,N]."""

    instruction: str
    m: int
    n: int
    k: int
    dtype: str
    bits: int
    """Bits of one element of A and B."""
    a: Map
    b: Map
    c: Map
    """C and D share one map."""
    support: tuple[Support, ...]
    shared: tuple[SharedOperand, ...] = ()
    """The layout of B in shared memory, for each swizzle that a warpgroup instruction accepts; empty for other
    instructions. The map ``b`` then has 16-byte pieces of the first layout in place of lanes."""

    @property
    def warps(self) -> int:
        """Warps that execute the instruction together."""
        return len(self.a) // LANES

    @property
    def name(self) -> str:
        """The instruction with its family: ``mma.m16n8k32.s8`` or ``wgmma.m64n8k32.s8``."""
        return self.instruction if self.shared else f"mma.{self.instruction}"

    def address(self, k: int, column: int, swizzle: int = 0) -> int:
        """Byte offset of B[k,column] from the start of an operand in shared memory. Raises InvalidInput for other
        instructions and outside the matrix."""
        found = next((layout for layout in self.shared if layout.swizzle == swizzle), None)
        if found is None:
            raise InvalidInput(
                f"{self.instruction} with swizzle {swizzle}: "
                + (f"allowed swizzles: {', '.join(map(str, SWIZZLES))}" if self.shared else "B lies in registers")
            )
        self.owner("b", k, column)
        return found.address(column, k * self.bits // 8)

    def owner(self, operand: str, row: int, column: int) -> tuple[int, int, int]:
        """(lane, register, element) that holds an element of operand ``a``, ``b``, ``c`` or ``d``.

        Elements are counted from the lowest bits of the register. Raises InvalidInput outside the matrix.
        """
        shape = self.shape(operand)
        if not (0 <= row < shape[0] and 0 <= column < shape[1]):
            raise InvalidInput(
                f"{operand}[{row},{column}]: operand {operand} of {self.instruction} is {shape[0]}x{shape[1]}"
            )
        for lane, registers in enumerate(self.map(operand)):
            for register, elements in enumerate(registers):
                if (row, column) in elements:
                    return lane, register, elements.index((row, column))
        raise InvalidInput(f"{operand}[{row},{column}]: no lane of {self.instruction} holds it; the map is broken")

    def element(self, operand: str, lane: int, register: int, index: int = 0) -> Place:
        """(row, column) of an element of a lane's register. Raises InvalidInput where there is none."""
        table = self.map(operand)
        size = (len(table), len(table[0]), len(table[0][0]))
        if not all(0 <= i < limit for i, limit in zip((lane, register, index), size, strict=True)):
            raise InvalidInput(
                f"operand {operand} of {self.instruction} has {size[0]} lanes, {size[1]} registers, {size[2]} "
                f"elements; got lane {lane}, register {register}, element {index}"
            )
        return table[lane][register][index]

    def map(self, operand: str) -> Map:
        """The map of operand ``a``, ``b``, ``c`` or ``d``: (row, column) by [lane][register][element]."""
        maps = {"a": self.a, "b": self.b, "c": self.c, "d": self.c}
        if operand.lower() not in maps:
            raise InvalidInput(f"unknown operand {operand!r}: allowed: a, b, c, d")
        return maps[operand.lower()]

    def shape(self, operand: str) -> tuple[int, int]:
        """Rows and columns of an operand."""
        self.map(operand)
        return {"a": (self.m, self.k), "b": (self.k, self.n)}.get(operand.lower(), (self.m, self.n))

    def title(self) -> str:
        """One line that names the instruction."""
        a, b, d = (f"[{rows},{columns}]" for rows, columns in map(self.shape, "abd"))
        return f"fragments of {self.name}: D{d} = A{a} * B{b} + C"

    def table(self) -> Table:
        """One row per lane, register and operand, with the first and last element held."""
        rows = [
            (operand, lane, register, len(elements), elements[0], elements[-1])
            for operand in "abc"
            for lane, registers in enumerate(self.map(operand))
            for register, elements in enumerate(registers)
        ]
        return Table(("operand", "lane", "register", "elements", "first (row,col)", "last (row,col)"), tuple(rows))

    def support_table(self) -> Table:
        """Where the instruction runs on the Tensor Cores, where it is emulated, where it does not exist."""
        return Table(
            ("architecture", "operation", "status"), tuple((s.arch, s.operation, s.status) for s in self.support)
        )

    def text(self) -> str:
        """One grid per operand, with lane.register of each group of elements, and the support table."""
        lanes = "lanes 0 to 127 are the four warps; B: pieces of 16 bytes of shared memory" if self.shared else ""
        what = "each cell is lane.register; A and B cells stand for all elements of one register"
        parts = [self.title(), f"{what}\n{lanes}".strip()]
        per = 32 // self.bits
        for operand, rows, columns in (
            ("a", [(r,) for r in range(self.m)], range(0, self.k, per)),
            ("b", [(r,) for r in range(0, self.k, len(self.b[0][0]))], range(self.n)),
            ("c", [(r,) for r in range(self.m)], range(self.n)),
        ):
            cells = [[self._cell(operand, row, column) for column in columns] for (row,) in rows]
            top = [f"col {c}" for c in columns]
            left = [f"row {r}" for (r,) in rows]
            name = "C and D" if operand == "c" else operand.upper()
            parts.append(f"{name} {self.shape(operand)[0]}x{self.shape(operand)[1]}\n{grid_text(top, left, cells)}")
        parts += [columns_text(layout.table()) for layout in self.shared]
        return "\n\n".join([*parts, columns_text(self.support_table())])

    def _cell(self, operand: str, row: int, column: int) -> str:
        lane, register, _ = self.owner(operand, row, column)
        return f"{lane}.{register}"


_AMPERE_ON = ("sm_80", "sm_86", "sm_89")
_NAMES = ("sm_75", *_AMPERE_ON, "sm_90a")


@dataclass(frozen=True)
class _Instruction:
    m: int
    k: int
    dtype: str
    bits: int
    operations: tuple[tuple[str, str, str, str], ...]
    """(operation, status on sm_75, on the architectures between, on sm_90a)."""
    n: int = 8


INSTRUCTIONS = {
    "m8n8k32.s4": _Instruction(8, 32, "s4", 4, (("mma", "native", "native", "emulated"),)),
    "m16n8k32.s4": _Instruction(16, 32, "s4", 4, (("mma", "absent", "native", "emulated"),)),
    "m16n8k64.s4": _Instruction(16, 64, "s4", 4, (("mma", "absent", "native", "emulated"),)),
    "m16n8k32.s8": _Instruction(16, 32, "s8", 8, (("mma", "absent", "native", "native"),)),
    "m8n8k128.b1": _Instruction(
        8, 128, "b1", 1, (("xor.popc", "native", "native", "emulated"), ("and.popc", "absent", "native", "native"))
    ),
    "m16n8k256.b1": _Instruction(
        16, 256, "b1", 1, (("xor.popc", "absent", "native", "emulated"), ("and.popc", "absent", "native", "native"))
    ),
}
"""The instructions of one warp (mma.sync)."""
WARPGROUP_INSTRUCTIONS = {
    "wgmma.m64n8k32.s8": _Instruction(64, 32, "s8", 8, (("mma", "absent", "absent", "native"),)),
    "wgmma.m64n8k256.b1": _Instruction(64, 256, "b1", 1, (("and.popc", "absent", "absent", "native"),)),
}
"""The instructions of a warpgroup with their smallest n; wider ones repeat its pattern every eight columns."""
EVERY_PATTERN = (*INSTRUCTIONS, *WARPGROUP_INSTRUCTIONS)
"""One instruction of each pattern."""
COLUMNS = (8, 16, 24, *range(32, 257, 16))
"""Columns n that a warpgroup instruction can have (PTX ISA, table "Matrix Shape" of wgmma)."""


@checked
def fragments(instruction: str) -> Fragments:
    """The fragments of an instruction such as ``m16n8k32.s8`` or ``wgmma.m64n128k32.s8``.

    An atom's name (``s8.m16n8k32``, ``s8.wgmma.m64n128k32``) is accepted too. Raises InvalidInput with the known
    instructions.
    """
    return _fragments(*_chosen(instruction))


@lru_cache(64)
def _fragments(name: str, chosen: _Instruction) -> Fragments:
    """The fragments of a known instruction, cached: explanations ask for the same ones for every byte."""
    a, c = _register_maps(chosen)
    per = 32 // chosen.bits
    steps = chosen.k // (4 * per)
    lanes = [(lane >> 2, lane & 3) for lane in range(LANES)]
    b = tuple(tuple(tuple((4 * per * i + per * t + e, g) for e in range(per)) for i in range(steps)) for g, t in lanes)
    shared: tuple[SharedOperand, ...] = ()
    if chosen.m == 16 * WARPS:
        shared = tuple(SharedOperand.of(chosen.n, swizzle) for swizzle in SWIZZLES)
        held = PIECE_BYTES * 8 // chosen.bits
        b = tuple((tuple((held * half + e, n) for e in range(held)),) for n, half in shared[0].pieces())
    support = tuple(
        Support(arch, operation, status)
        for operation, turing, ampere, hopper in chosen.operations
        for arch, status in zip(_NAMES, (turing, ampere, ampere, ampere, hopper), strict=True)
    )
    return Fragments(name, chosen.m, chosen.n, chosen.k, chosen.dtype, chosen.bits, a, b, c, support, shared)


@checked
def narrowest(instruction: str) -> str:
    """The instruction with the fewest columns that has the same pattern; wider ones repeat it every eight columns.

    Raises InvalidInput with the known instructions.
    """
    name, chosen = _chosen(instruction)
    return name.replace(f"n{chosen.n}k", "n8k")


def _register_maps(chosen: _Instruction) -> tuple[Map, Map]:
    """The maps of A and of C: by the rule for one warp, for each warp in turn."""
    per, groups = 32 // chosen.bits, min(2, chosen.m // 8)
    steps = chosen.k // (4 * per)
    warps = max(1, chosen.m // 16)
    lanes = [(16 * warp + (lane >> 2), lane & 3) for warp in range(warps) for lane in range(LANES)]
    a = tuple(
        tuple(
            tuple((g + 8 * (i % groups), 4 * per * (i // groups) + per * t + e) for e in range(per))
            for i in range(groups * steps)
        )
        for g, t in lanes
    )
    columns = range(chosen.n // 8)
    c = tuple(
        tuple(((g + 8 * (i // 2), 8 * j + 2 * t + i % 2),) for j in columns for i in range(2 * groups))
        for g, t in lanes
    )
    return a, c


def _chosen(instruction: str) -> tuple[str, _Instruction]:
    """The instruction's name as listed, and what is known about it."""
    text = str(instruction).lower().strip().removeprefix("mma.").removeprefix("sync.aligned.")
    first, _, rest = text.partition(".")
    name = f"{rest}.{first}" if first in ("s4", "s8", "b1") else text
    found = re.fullmatch(r"(?:wgmma\.)?(?:mma_async\.sync\.aligned\.)?m64n(\d+)k(32|256)\.(s8|b1)", name)
    if found and int(found[1]) in COLUMNS and (found[2] == "256") == (found[3] == "b1"):
        smallest = WARPGROUP_INSTRUCTIONS[f"wgmma.m64n8k{found[2]}.{found[3]}"]
        return f"wgmma.m64n{found[1]}k{found[2]}.{found[3]}", replace(smallest, n=int(found[1]))
    if found and int(found[1]) not in COLUMNS:
        raise InvalidInput(f"instruction {instruction!r}: n of a wgmma is one of {', '.join(map(str, COLUMNS))}")
    if name not in INSTRUCTIONS:
        raise InvalidInput(f"unknown instruction {instruction!r}: {did_you_mean(name, EVERY_PATTERN)}")
    return name, INSTRUCTIONS[name]

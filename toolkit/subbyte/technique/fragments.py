"""Which lane and register holds which matrix element of an mma instruction, and which GPUs have the instruction.

Source: PTX ISA, sections "Matrix Fragments for mma.m8n8k32 / m16n8k32 / m16n8k64 / m16n8k256". All of them follow one
rule. With ``g = lane >> 2``, ``t = lane & 3`` and ``e`` elements in a 32-bit register:

* A (row-major): register ``i`` of ``M/8`` row groups and ``K/(4e)`` column groups holds row ``g + 8*(i % (M/8))`` and
  the ``e`` columns from ``4e*(i / (M/8)) + e*t``, the lowest bits first.
* B (column-major): register ``i`` holds column ``g`` and the ``e`` rows from ``4e*i + e*t``.
* C and D (int32): register ``i`` holds row ``g + 8*(i / 2)`` and column ``2t + i % 2``.

Support was read off the machine code that ptxas 13.0 makes of a one-instruction kernel: a single ``IMMA``/``BMMA`` of
that shape is native, a call to a routine is emulated, a refusal is absent. The maps themselves gave the right product
of random matrices on an H200, for every instruction here.
"""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.errors import InvalidInput, did_you_mean
from subbyte.technique.record import InfoRecord, Table, columns_text, grid_text

LANES = 32
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

    def owner(self, operand: str, row: int, column: int) -> tuple[int, int, int]:
        """(lane, register, element) that holds an element of operand ``a``, ``b``, ``c`` or ``d``.

        The element counts from the lowest bits of the register. Raises InvalidInput outside the matrix.
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
        size = (LANES, len(table[0]), len(table[0][0]))
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
        return f"fragments of mma.{self.instruction}: D{d} = A{a} * B{b} + C"

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
        """One grid per operand with lane.register of each group of elements, and the support."""
        parts = [self.title(), "each cell is lane.register; A and B cells stand for all elements of one register"]
        per = 32 // self.bits
        for operand, rows, columns in (
            ("a", [(r,) for r in range(self.m)], range(0, self.k, per)),
            ("b", [(r,) for r in range(0, self.k, per)], range(self.n)),
            ("c", [(r,) for r in range(self.m)], range(self.n)),
        ):
            cells = [[self._cell(operand, row, column) for column in columns] for (row,) in rows]
            top = [f"col {c}" for c in columns]
            left = [f"row {r}" for (r,) in rows]
            name = "C and D" if operand == "c" else operand.upper()
            parts.append(f"{name} {self.shape(operand)[0]}x{self.shape(operand)[1]}\n{grid_text(top, left, cells)}")
        return "\n\n".join([*parts, columns_text(self.support_table())])

    def _cell(self, operand: str, row: int, column: int) -> str:
        lane, register, _ = self.owner(operand, row, column)
        return f"{lane}.{register}"


_AMPERE_ON = ("sm_80", "sm_86", "sm_89")


@dataclass(frozen=True)
class _Instruction:
    m: int
    k: int
    dtype: str
    bits: int
    operations: tuple[tuple[str, str, str], ...]
    """(operation, status on sm_75, status on sm_90a); native on the architectures between."""


INSTRUCTIONS = {
    "m8n8k32.s4": _Instruction(8, 32, "s4", 4, (("mma", "native", "emulated"),)),
    "m16n8k32.s4": _Instruction(16, 32, "s4", 4, (("mma", "absent", "emulated"),)),
    "m16n8k64.s4": _Instruction(16, 64, "s4", 4, (("mma", "absent", "emulated"),)),
    "m16n8k32.s8": _Instruction(16, 32, "s8", 8, (("mma", "absent", "native"),)),
    "m16n8k256.b1": _Instruction(
        16, 256, "b1", 1, (("xor.popc", "absent", "emulated"), ("and.popc", "absent", "native"))
    ),
}


def fragments(instruction: str) -> Fragments:
    """The fragments of an instruction such as ``m16n8k32.s8``; an atom's name ``s8.m16n8k32`` is accepted too.

    Raises InvalidInput with the known instructions.
    """
    name = _canonical(instruction)
    chosen = INSTRUCTIONS[name]
    per, groups = 32 // chosen.bits, chosen.m // 8
    steps = chosen.k // (4 * per)
    lanes = [(lane >> 2, lane & 3) for lane in range(LANES)]
    a = tuple(
        tuple(
            tuple((g + 8 * (i % groups), 4 * per * (i // groups) + per * t + e) for e in range(per))
            for i in range(groups * steps)
        )
        for g, t in lanes
    )
    b = tuple(tuple(tuple((4 * per * i + per * t + e, g) for e in range(per)) for i in range(steps)) for g, t in lanes)
    c = tuple(tuple(((g + 8 * (i // 2), 2 * t + i % 2),) for i in range(2 * groups)) for g, t in lanes)
    support = tuple(
        Support(arch, operation, status)
        for operation, turing, hopper in chosen.operations
        for arch, status in (("sm_75", turing), *((arch, "native") for arch in _AMPERE_ON), ("sm_90a", hopper))
    )
    return Fragments(name, chosen.m, 8, chosen.k, chosen.dtype, chosen.bits, a, b, c, support)


def _canonical(instruction: str) -> str:
    text = str(instruction).lower().strip().removeprefix("mma.").removeprefix("sync.aligned.")
    first, _, rest = text.partition(".")
    name = f"{rest}.{first}" if first in ("s4", "s8", "b1") else text
    if name not in INSTRUCTIONS:
        raise InvalidInput(f"unknown instruction {instruction!r}: {did_you_mean(name, INSTRUCTIONS)}")
    return name

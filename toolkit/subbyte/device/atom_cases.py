"""The instructions that are measured, and how much work one launch of each does."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.device.atom_texts import (
    COLUMNS,
    INPUT_WORDS,
    STEPS,
    THREADS,
    TILE,
    warp_text,
    warpgroup_bytes,
    warpgroup_text,
)
from subbyte.device.launch import Argument, Launch

_AMPERE = ("sm_80", "sm_86", "sm_89")
_ALL = ("sm_75", *_AMPERE, "sm_90a")


@dataclass(frozen=True)
class Case:
    """One instruction alone. ``atom`` is its name as in :mod:`subbyte.device.atoms`, followed by the variant.

    Whether an architecture has the instruction in hardware was read from machine code, as for the fragment maps; an
    emulated instruction is a routine of many instructions.
    """

    atom: str
    title: str
    opcode: str
    archs: tuple[str, ...]
    """Architectures that have the instruction."""
    native: tuple[str, ...]
    """Architectures that run it on their Tensor Cores."""
    products: int
    """Multiply-accumulate operations of one block in one iteration of its loop."""
    text: str
    shared_bytes: int = 0
    blocks_per_sm: tuple[int, ...] = (2, 3, 4)
    """Blocks per multiprocessor to try; the best counts."""

    def operations(self, blocks: int, turns: int) -> int:
        """Operations of a launch: two for each multiply-accumulate."""
        return 2 * self.products * blocks * turns

    def launch(self, blocks: int) -> Launch:
        """The launch of ``blocks`` blocks."""
        arguments = (
            Argument("In", "uint32", (INPUT_WORDS,), "in"),
            Argument("Out", "uint32", (blocks * THREADS,), "out"),
        )
        return Launch("atom_kernel", (blocks, 1, 1), (THREADS, 1, 1), self.shared_bytes, arguments)


def _warp(
    atom: str, title: str, kinds: str, registers: tuple[int, int, int], archs: tuple[str, ...],
    native: tuple[str, ...], logic: str = "", unpacked: bool = False,
) -> Case:  # fmt: skip
    shape = atom.split(".")[1]
    m, k = (int(text) for text in shape[1:].replace("n8k", " ").split())
    opcode = f"mma.sync.aligned.{shape}.row.col.s32.{kinds}.{kinds}.s32{logic}"
    products = THREADS // 32 * TILE * m * 8 * k * (2 if unpacked else 1)
    return Case(atom, title, opcode, archs, native, products, warp_text(opcode, *registers, unpacked))


def _warpgroup(atom: str, title: str, left: str) -> Case:
    shape = next(part for part in atom.split(".") if part.startswith("m64n"))
    columns, k = (int(text) for text in shape[4:].split("k"))
    kinds, sparse = "b1.b1.and.popc" if atom.startswith("b1") else "s8.s8", ".sp." in atom
    opcode = f"wgmma.mma_async{'.sp' if sparse else ''}.sync.aligned.{shape}.s32.{kinds}"
    products = THREADS // 128 * STEPS * 64 * columns * k
    text, shared = warpgroup_text(opcode, left, columns, sparse), warpgroup_bytes(left, columns, sparse)
    return Case(atom, title, opcode, ("sm_90a",), ("sm_90a",), products, text, shared, (1, 2))


def _sparse_ceilings() -> tuple[Case, ...]:
    """Sparse wgmma of many widths, with dense ones for comparison: A in shared memory, kept in registers, or
    streamed."""
    found = []
    for columns in (64, 96, 128, 192, 256):
        for kind, k, what in (("s8.wgmma.sp", 64, "s8, A 2:4"), ("s8.wgmma", 32, "s8, A")):
            sides = {
                "shared": "in shared memory",
                "registers": "in registers",
                "streamed": "fetched as s4 and unpacked",
            }
            for left, where in sides.items():
                if (columns, k) == (COLUMNS, 32) and left != "streamed":
                    continue  # already measured
                ending = "" if left == "registers" else f".{left}"
                found.append(_warpgroup(f"{kind}.m64n{columns}k{k}{ending}", f"{what} {where}", left))
    return tuple(found)


def cases(arch: str | None = None) -> tuple[Case, ...]:
    """Every case, or those that an architecture has."""
    from_80 = (*_AMPERE, "sm_90a")
    n = f"m64n{COLUMNS}"
    found = (
        _warp("s4.m8n8k32", "s4", "s4", (1, 1, 2), _ALL, _ALL[:-1]),
        _warp("s4.m16n8k64", "s4", "s4", (4, 2, 4), from_80, _AMPERE),
        _warp("s8.m8n8k16", "s8", "s8", (1, 1, 2), ("sm_75",), ("sm_75",)),
        _warp("s8.m16n8k32", "s8", "s8", (4, 2, 4), from_80, from_80),
        _warp("s8.m16n8k32.unpacked", "s8, both operands unpacked from s4 in every turn", "s8", (4, 2, 4), from_80,
              from_80, unpacked=True),
        _warp("b1.m8n8k128.xor", "b1, xor", "b1", (1, 1, 2), ("sm_75",), ("sm_75",), ".xor.popc"),
        _warp("b1.m16n8k256.and", "b1, and", "b1", (4, 2, 4), from_80, from_80, ".and.popc"),
        _warp("b1.m16n8k256.xor", "b1, xor", "b1", (4, 2, 4), from_80, _AMPERE, ".xor.popc"),
        _warpgroup(f"s8.wgmma.{n}k32.shared", "s8, A in shared memory", "shared"),
        _warpgroup(f"s8.wgmma.{n}k32", "s8, A in registers", "registers"),
        _warpgroup(f"s8.wgmma.{n}k32.unpacked", "s8, A unpacked from s4 in registers", "unpacked"),
        _warpgroup(f"b1.wgmma.{n}k256.shared", "b1, and, A in shared memory", "shared"),
        _warpgroup(f"b1.wgmma.{n}k256", "b1, and, A in registers", "registers"),
        *_sparse_ceilings(),
    )  # fmt: skip
    return tuple(case for case in found if arch is None or arch in case.archs)

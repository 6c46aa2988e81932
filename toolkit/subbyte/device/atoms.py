"""Matrix instructions as data: what one atom multiplies and how a fragment of packed int4 feeds it.

A *fragment* is one 8 x 32 block of packed int4 (8 images or 8 filters, 32 channels), one 32-bit word per lane:
lane ``4*row + j`` holds channels ``8j .. 8j+7`` of ``row``. That is at once the storage order of NHWCnc and the operand
order of the m8n8k32 instruction (PTX ISA, "Matrix Fragments for mma.m8n8k32"), so no instruction rearranges anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, did_you_mean


@dataclass(frozen=True)
class Atom:
    """One warp-level matrix instruction, D[M,8] += A[M,K] * B[K,8]."""

    name: str
    ptx: str
    pixels: int
    """Pixels (8 rows of A each) per instruction: M / 8."""
    blocks: int
    """Blocks of 32 channels per instruction, in int4 values."""
    unpacked: bool
    """Each word is split in registers into two words of signed bytes, ``w << 4`` and ``w``, masked with 0xF0F0F0F0: the
    values times 16, even channels first. The order of channels is permuted in the same way in A and B."""
    minimum_sm: int
    weights_unpacked: bool = False
    """Only the words of weights are split like this, each into bytes of two column tiles: activations are bytes in
    memory."""

    def with_activations(self, signed: bool, first: bool = True) -> Atom:
        """The same instruction for signed or unsigned activations, which are its ``first`` operand (A) or the second
        (B). Weights are signed."""
        if signed:
            return self
        head, a, b, tail = _TYPES.fullmatch(self.ptx).groups()  # type: ignore[union-attr]
        types = f".u{a}.s{b}" if first else f".s{a}.u{b}"
        return replace(self, ptx=f"{head}{types}{tail}")

    @property
    def registers(self) -> int:
        """Registers of one pixel's (or one column tile's) operand."""
        return 2 if self.unpacked else self.blocks

    @property
    def scale_log2(self) -> int:
        """The accumulators hold the sum times two to this power: 16 * 16 if both operands are unpacked, 16 if only the
        weights are."""
        return UNPACKED_LOG2 if self.unpacked else UNPACKED_LOG2 // 2 if self.weights_unpacked else 0

    @property
    def accumulators(self) -> int:
        """Accumulator registers per lane of one instruction."""
        return 2 * self.pixels


_TYPES = re.compile(r"(.*\.s32)\.s([48])\.s([48])((?:\.s32)?)")
"""The types of both operands in an instruction's name."""

ATOMS = {
    atom.name: atom
    for atom in (
        Atom("s4.m8n8k32", "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32", 1, 1, False, 75),
        Atom("s4.m16n8k32", "mma.sync.aligned.m16n8k32.row.col.s32.s4.s4.s32", 2, 1, False, 80),
        Atom("s4.m16n8k64", "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", 2, 2, False, 80),
        Atom("s8.m16n8k32", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 2, 1, True, 80),
    )
}

BYTE_ATOMS = {
    atom.name: atom
    for atom in (
        Atom("s8.m8n8k16", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", 1, 1, False, 75),
        Atom("s8.m16n8k16", "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", 2, 1, False, 80),
        Atom("s8.m16n8k32", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 2, 2, False, 80),
    )
}
"""For 8-bit activations, which are multiplied as they are in memory. A fragment is one 8 x 16 block of bytes: lane
``4*row + j`` holds channels ``4j .. 4j+3`` of ``row``, which again is both the storage order and the operand order."""

UNPACKED_LOG2 = 8
"""The values in the sums of an unpacked atom are times 16 on both sides: the sums are times two to this power."""

LOW_NIBBLES = 0xF0F0F0F0
"""The bits that an unpacked atom keeps of ``word << 4`` (the even channels of a packed word) and of ``word`` (the odd
ones)."""


def atom(name: str, arch: Arch) -> Atom:
    """The atom called ``name`` (``auto``: the default of ``arch``). Raises InvalidInput with the closest names."""
    try:
        return ATOMS[arch.default_atom if name == "auto" else name]
    except KeyError:
        raise InvalidInput(f"unknown atom {name!r}: {did_you_mean(name, ['auto', *ATOMS])}") from None


def byte_atom(arch: Arch, blocks: int, weight_bits: int) -> Atom:
    """The atom for ``blocks`` blocks of 16 channels of 8-bit activations, with weights of 4 or 8 bits."""
    name = "s8.m8n8k16" if int(arch.name[3:5]) < 80 else "s8.m16n8k16" if blocks % 2 else "s8.m16n8k32"
    return replace(BYTE_ATOMS[name], weights_unpacked=weight_bits == 4)

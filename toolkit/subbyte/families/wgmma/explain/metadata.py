"""What a thread holds of a 2:4 weight fragment: kept values in registers, and the metadata that locates them.

A fragment is 64 output channels times 64 input channels of one tap; of every four neighbouring input channels the
weights keep two. A thread's values belong to two output channels, its word of metadata to one of them, for a block of
32 channels. Rows g and g + 8 of the instruction are neighbouring output channels, and K has the first four of every
eight channels of a block of 32 before the last four, because an int4 word is unpacked in two steps and packed outputs
hold neighbours.

Source: PTX ISA, "wgmma: Sparse matrix storage"; CuTe's ELayout_64x64 for 8-bit operands.
"""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.wgmma.memory import SPARSE_VALUES
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.info_record import InfoRecord, Table
from subbyte.workload.conv import CHANNEL_BLOCK

THREADS, GROUP = 128, 4
INSTRUCTION = "wgmma.sp.m64nNk64.s8"
STEP = 2 * CHANNEL_BLOCK
"""Input channels per fragment."""


@dataclass(frozen=True)
class KeptRegister:
    """One operand register: four kept bytes, two from each of two groups of four ``channels`` (of the fragment's 64) of
    output channel ``filter`` (of its 64). They are the ``nibbles`` (low or high) of word ``word`` of the fragment.
    ``row`` and ``k`` (the first of eight) are those of the instruction."""

    register: int
    row: int
    k: int
    filter: int
    channels: tuple[int, ...]
    word: int
    nibbles: str


@dataclass(frozen=True)
class SparseFragment(InfoRecord):
    """One thread's part of a fragment, the same in every 2:4 kernel. Bits ``4*j`` to ``4*j + 3`` of its metadata
    describe the group of four channels starting at ``groups[j]``, of output channel ``filter``: two positions, the
    first in the lower bits. In memory, word ``word`` of the fragment is its inverse."""

    thread: int
    registers: tuple[KeptRegister, ...]
    row: int
    k: int
    filter: int
    groups: tuple[int, ...]
    word: int

    def title(self) -> str:
        """One line that names what the record shows."""
        held = "four registers of kept weights and a word of metadata"
        return f"2:4 fragment of thread {self.thread}: {held} ({INSTRUCTION})"

    def table(self) -> Table:
        """One row per register; the metadata register comes last."""
        names = ("register", "row", "k", "output channel", "input channels", "word", "what")
        rows = [
            (f"a{one.register}", one.row, f"{one.k}-{one.k + 7}", one.filter, _listed(one.channels), one.word,
             f"{one.nibbles} nibbles: 2 kept of each 4")
            for one in self.registers
        ]  # fmt: skip
        held = ", ".join(f"{first}-{first + GROUP - 1}" for first in self.groups)
        rows.append(("metadata", self.row, f"{self.k}-{self.k + 31}", self.filter, held, self.word, "4 bits a group"))
        return Table(names, tuple(rows))


def sparse_fragment(plan: WgmmaPlan | None = None, thread: int = 0) -> SparseFragment:
    """What a thread of a warpgroup holds, the same in every 2:4 kernel. Raises InvalidInput for another thread,
    Unsupported for the plan of a dense kernel."""
    if plan is not None and not plan.knobs.sparse:
        raise Unsupported(
            f"{plan.config.key} multiplies dense weights, which have no metadata; see a kernel of 2:4 weights, such as "
            "that of resnet50.stage3@256:w4a4:signed-2of4.signed"
        )
    if thread not in range(THREADS):
        raise InvalidInput(f"thread {thread!r}: a warpgroup has threads 0 to {THREADS - 1}")
    warp, g, q = thread // 32, thread % 32 // 4, thread % 4
    registers = []
    for i in range(4):
        first = 8 * q + CHANNEL_BLOCK * (i // 2)
        channels = tuple(channel for k in (first, first + GROUP) for channel in _channels(k))
        registers.append(
            KeptRegister(
                i, 16 * warp + g + 8 * (i % 2), first, 16 * warp + 2 * g + i % 2, channels, 2 * thread + i // 2,
                ("low", "high")[i % 2],
            )
        )  # fmt: skip
    first = CHANNEL_BLOCK * (q // 2)
    return SparseFragment(
        thread, tuple(registers), 16 * warp + g + 8 * (q % 2), first, 16 * warp + 2 * g + q % 2,
        tuple(_channels(first + GROUP * j)[0] for j in range(CHANNEL_BLOCK // GROUP)), SPARSE_VALUES + thread,
    )  # fmt: skip


def _channels(k: int) -> tuple[int, ...]:
    """The four input channels, of the fragment's 64, at k (a multiple of 4) to k + 3."""
    block, within = divmod(k, CHANNEL_BLOCK)
    half, eight = divmod(within, CHANNEL_BLOCK // 2)
    first = block * CHANNEL_BLOCK + 8 * (eight // GROUP) + GROUP * half
    return tuple(range(first, first + GROUP))


def _listed(channels: tuple[int, ...]) -> str:
    """Channels as text, such as ``0-3, 8-11``."""
    firsts = channels[::GROUP]
    return ", ".join(f"{first}-{first + GROUP - 1}" for first in firsts)

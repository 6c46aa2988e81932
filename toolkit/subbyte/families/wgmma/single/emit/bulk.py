"""Bulk copies of the weights of a block with a single tile iteration into shared memory.

One thread issues all of them, a loop body's worth (a chunk) at a time, and a barrier counts the bytes of each chunk.
Only the thread that multiplies a word waits for it; a load into a register would be waited for at the thread's next
fence. The blocks of a cluster that need the same weights each copy a share and multicast it to all of them (PTX ISA,
cp.async.bulk with .multicast::cluster), so that the L2 is read once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.memory import FRAGMENT_BYTES, FRAGMENT_WORDS
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, registers, when


@dataclass
class Bulk:
    """The consumers' weights: ``held`` are the registers of a loop body's fragments, ``start`` is where a chunk's
    fragments start in shared memory."""

    block: Block
    held: Any
    chunk: Any = None
    start: Any = None

    @classmethod
    def begin(cls, block: Block) -> Bulk:
        """Allocate registers."""
        return cls(block, registers("fetched", 4 * block.plan.held_fragments))

    def read_first(self) -> None:
        """Read the first fragments, which are read ahead."""
        ahead = self.block.plan.knobs.weights_ahead
        if ahead:
            self._read(self._await(T.uint32(0)), range(ahead))

    def begin_body(self, tap: Any, body_index: Any) -> None:
        """Wait for the weights of a loop body, and read this thread's; the first of them may have been read ahead."""
        plan, ahead = self.block.plan, self.block.plan.knobs.weights_ahead
        self.chunk = bind("chunk", T.cast(tap * (plan.steps // plan.unroll) + body_index, "uint32"))
        if not ahead:
            self._read(self._await(self.chunk), range(plan.ahead))
        elif ahead < plan.ahead:
            self.start = self._start(self.chunk)

    def end_fragment(self, fragment: int) -> None:
        """A fragment of the loop body is unpacked: read one ahead, possibly of the next loop body; after the last one,
        reread some of the last one, which is not used."""
        plan, ahead = self.block.plan, self.block.plan.knobs.weights_ahead
        if not ahead:
            return
        following = fragment + ahead
        if following == plan.ahead:
            last = T.uint32(plan.weight_chunks - 1)
            self.start = self._await(bind("next_chunk", T.min(self.chunk + T.uint32(1), last)))
        self._read(self.start, [following % plan.ahead])

    def _await(self, chunk: Any) -> Any:
        """Wait for a chunk; returns where its fragments begin."""
        self.block.wait(self.block.weight_barrier(chunk), T.uint32(0))
        return self._start(chunk)

    def _start(self, chunk: Any) -> Any:
        block, plan = self.block, self.block.plan
        start = block.base + T.cast(_place(block, block.m) + block.member * 16, "uint32")
        return bind("weights_at", start + chunk * T.uint32(plan.ahead * FRAGMENT_BYTES))

    def _read(self, start: Any, places: Iterable[int]) -> None:
        for place in places:
            op.load_shared16(self.held, start + T.uint32(place * FRAGMENT_BYTES), 4 * place)


def issue(block: Block, first: int, end: int) -> None:
    """One thread starts copying this block's share of the chunks ``first`` to ``end``."""
    plan, config = block.plan, block.plan.knobs
    whole = plan.ahead * FRAGMENT_BYTES
    share = whole // plan.multicast_blocks
    first_byte, ranks = block.multicast_rank * share, None
    if plan.multicast_blocks > 1:
        everyone = sum(1 << rank * config.cluster_split_k for rank in range(plan.multicast_blocks))
        ranks = T.uint32(everyone) << T.cast(block.rank, "uint32")
    if plan.odd_places:
        own = T.uint32(1) << T.cast(block.multicast_rank * config.cluster_split_k + block.rank, "uint32")
        ranks = T.Select(block.unpaired, own, ranks)
        share = bind("share", T.Select(block.unpaired, T.int32(whole), T.int32(share)))
        first_byte = T.Select(block.unpaired, T.int32(0), first_byte)
    if ranks is not None:
        ranks = bind("ranks", T.cast(ranks, "uint16"))
    with when(block.thread == 128 * config.consumers), loop("chunk", end - first, T.serial) as index:
        chunk = bind("chunk", index + first)
        mine = bind("mine", chunk * whole + first_byte)
        barrier = block.weight_barrier(T.cast(chunk, "uint32"))
        for m in range(config.consumers_m):
            start = plan.fragment_word(block.filter_block * config.consumers_m + m, block.rank)
            pointer = block.weights.ptr_to([start + mine // (FRAGMENT_BYTES // FRAGMENT_WORDS)])
            target = block.base + T.cast(_place(block, m) + mine, "uint32")
            op.bulk_copy(target, pointer, share, barrier, ranks)


def _place(block: Block, m: Any) -> Any:
    """Byte in shared memory where the weights of tile ``m`` begin."""
    return block.plan.weight_base + m * (block.plan.fragments * FRAGMENT_BYTES)

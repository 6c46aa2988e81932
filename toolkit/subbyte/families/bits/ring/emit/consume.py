"""The warpgroups that multiply: activations go to registers, where their bits are counted, weights stay in shared
memory.

The products of a stage run while the activations of the next one are loaded; when they are complete, the stage before
is released to every block of the cluster that copies into it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.block import TilePlace
from subbyte.families.bits.emit.epilogue import Epilogue
from subbyte.families.bits.emit.multiply import descriptor
from subbyte.families.bits.ring.emit.block import RingBlock, RingPlace, tile_of
from subbyte.families.bits.ring.plan import FRAGMENT_WORDS
from subbyte.families.bits.tiles import CORE_BYTES, PIECE_BYTES, TILE_PIXELS
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, registers, when

_ADDRESS = 0x3FFF
"""Bits of an address, in units of 16 bytes, that a descriptor can hold."""
_LEADER = 1
"""Index of the named barrier at which the other warpgroups wait for the first one to get ahead."""


class RingEpilogue(Epilogue):
    """The epilogue of a tile whose activation bits were counted in registers."""

    def __init__(self, block: RingBlock, bits: Any) -> None:
        super().__init__(block)
        self.bits = bits
        self.four: Any = None

    def _store_four(self, store: Any, channel: Any, first: int, sums: list[Any]) -> None:
        """Two lanes exchange four sums each, so that they write 32 contiguous bytes at a time: otherwise a kernel for
        deep products would wait for half-sector writes from all multiprocessors at once."""
        if first == 0:
            self.four = registers("four", 4)
            for i, value in enumerate(sums):
                T.buffer_store(self.four, value, [i])
            return
        upper = bind("upper_lane", self.q % 2 == 1)
        others, sent = registers("others", 4), registers("sent", 4)
        rest = registers("rest", 4)
        for i, value in enumerate(sums):
            T.buffer_store(rest, value, [i])
            T.buffer_store(sent, T.Select(upper, self.four[i], rest[i]), [i])
            op.exchange(others[i], sent[i], 1)
        place = bind("pair_channel", channel - self.q * 8 + self.q // 2 * 16 + self.q % 2 * 4)
        store(place, [T.Select(upper, others[i], self.four[i]) for i in range(4)])
        store(place + 8, [T.Select(upper, rest[i], others[i]) for i in range(4)])

    def _own_bits(self, counts: list[Any], plane: int, half: int) -> Any:
        return self.bits[2 * plane + half]


@dataclass
class Consumer:
    """A warpgroup."""

    block: RingBlock
    warpgroup: Any
    counts: list[Any]
    """A register array of counts for each plane of activations."""
    fragments: list[Any]
    """Activations of a stage and of the one before."""
    bits: Any
    """How many bits of each plane of the thread's two pixels are 1, [planes][2]."""
    place: RingPlace
    before: Any
    """Slot of the preceding stage."""
    turn: Any = None

    @classmethod
    def begin(cls, block: RingBlock) -> Consumer:
        """Allocate registers."""
        plan = block.plan
        counts = [registers(f"counts{plane}", plan.sums) for plane in range(plan.planes)]
        fragments = [registers(f"pixels{index}", plan.fragments) for index in range(min(2, plan.tile_stages))]
        bits = registers("bits", 2 * plan.planes)
        warpgroup = bind("warpgroup", block.warp // 4)
        return cls(block, warpgroup, counts, fragments, bits, RingPlace.begin(), registers("before", 1))

    def tile(self) -> None:
        """All stages of a tile; returns its sums."""
        plan = self.block.plan
        if plan.form.per_pixel:
            for i in range(2 * plan.planes):
                T.buffer_store(self.bits, T.uint32(0), [i])
        last = plan.tile_stages - 1
        short = plan.stage_pieces(True) != plan.config.depth
        full = last - 1 if short else last  # stages between the first and a short last one
        self._stage(0, T.int32(0), last == 0)
        if full // 2:
            with loop("pair", full // 2, T.serial) as pair:
                self._stage(1, pair * 2 + 1, False)
                self._stage(0, pair * 2 + 2, False)
        for stage in range(1 + full // 2 * 2, last + 1):
            self._stage(stage % 2, T.int32(stage), stage == last)
        self._count_over()
        op.wgmma_wait(0)
        self._release(self.before[0])

    def _stage(self, which: int, number: Any, last: bool) -> None:
        """Start the products of a stage, and release the one before."""
        plan, block = self.block.plan, self.block
        first = isinstance(number, T.IntImm) and int(number) == 0
        slot = bind("at_slot", self.place.slot[0])
        block.await_phase(block.full(slot), self.place.parity[0])
        start = bind("stage_at", block.stage(slot))
        held = self.fragments[which % len(self.fragments)]
        self._load(held, start, last)
        weights = bind("weights_at", ((start + T.uint32(plan.weight_base)) >> T.uint32(4)) & T.uint32(_ADDRESS))
        op.wgmma_fence()
        for step in range(plan.stage_steps(last)):
            for plane in range(plan.planes):
                into = self.counts[plane]
                words = [held[(step * plan.planes + plane) * FRAGMENT_WORDS + i] for i in range(FRAGMENT_WORDS)]
                piece = plan.n * PIECE_BYTES
                right = descriptor(weights, step * 2 * piece, piece, CORE_BYTES)
                adds = T.ptx.pred(T.uint32(0 if first and step == 0 else 1))
                op.emit(T.ptx[plan.atom.ptx](*[into[i] for i in range(plan.sums)], *words, right, adds))
        op.wgmma_commit()
        if not first:
            op.wgmma_wait(1)
            self._release(self.before[0])
        T.buffer_store(self.before, slot, [0])
        self.place.advance(plan.config.stages)
        self._lead(number)

    def _load(self, held: Any, start: Any, last: bool) -> None:
        """The thread's words of a stage: its image, two pixels, a quarter of every 128 channels. Missing
        channel blocks have zero weights, and their bits are not counted."""
        plan, block = self.block.plan, self.block
        pitch, pieces = plan.pixel_stage_bytes(False), plan.stage_pieces(last)
        pixel = self.warpgroup * TILE_PIXELS + block.warp % 4 * 2
        own = bind("own_words", start + T.cast(pixel * pitch + block.lane * 4, "uint32"))
        for step in range(plan.stage_steps(last)):
            for plane in range(plan.planes):
                for i in range(FRAGMENT_WORDS):
                    at = (step * plan.planes + plane) * FRAGMENT_WORDS + i
                    piece, half = 2 * step + i // 2, i % 2
                    if piece >= pieces:
                        T.buffer_store(held, T.uint32(0), [at])
                        continue
                    offset = half * pitch + (piece * plan.planes + plane) * CORE_BYTES
                    op.load_shared4(held, at, own + T.uint32(offset))
                    if plan.form.per_pixel:
                        ones = registers("ones_of_word", 1)
                        op.count_bits(ones[0], held[at])
                        bits = 2 * plane + half
                        T.buffer_store(self.bits, self.bits[bits] + ones[0], [bits])

    def _count_over(self) -> None:
        """Add up the counts of an image's four lanes, each of a quarter of its bits."""
        plan = self.block.plan
        if not plan.form.per_pixel:
            return
        other = registers("other_bits", 1)
        for i in range(2 * plan.planes):
            for mask in (1, 2):
                op.exchange(other[0], self.bits[i], mask)
                T.buffer_store(self.bits, self.bits[i] + other[0], [i])

    def _release(self, slot: Any) -> None:
        """Signal to every block of the cluster that this warp no longer reads a stage."""
        block, cluster = self.block, self.block.plan.cluster
        T.evaluate(T.cuda.warp_sync())
        with when(block.lane < cluster):
            if cluster == 1:
                op.barrier_arrive(block.empty(slot))
            else:
                remote = registers("remote", 1)
                op.remote_address(remote[0], block.empty(slot), T.cast(block.lane, "uint32"))
                op.remote_arrive(remote[0])

    def wait_for_leader(self) -> None:
        """All warpgroups but the first start when that one is some stages ahead."""
        config = self.block.plan.config
        if config.lead:
            with when(self.warpgroup > 0):
                op.named_barrier(_LEADER, 128 * config.consumers, wait=True)

    def _lead(self, number: Any) -> None:
        """After the stage with which the first warpgroup is ahead, once: release the others."""
        config = self.block.plan.config
        static = isinstance(number, T.IntImm)
        if not config.lead or (static and int(number) != config.lead - 1):
            return
        reached = T.And(self.warpgroup == 0, self.turn == 0)
        with when(reached if static else T.And(reached, number == config.lead - 1)):
            op.named_barrier(_LEADER, 128 * config.consumers, wait=False)


def consume(block: RingBlock) -> None:
    """All tiles of a warpgroup."""
    plan = block.plan
    consumer = Consumer.begin(block)
    consumer.wait_for_leader()
    with loop("turn", plan.turns, T.serial) as turn:
        exists, first, slice_ = tile_of(block, turn)
        consumer.turn = turn
        with when(exists):
            consumer.tile()
            place = bind("table_place", turn % plan.tables)
            at = replace(block, slice_=slice_, first_pixel=first, table_place=place)
            epilogue = RingEpilogue(at, consumer.bits)
            column = bind("column", first + consumer.warpgroup * TILE_PIXELS)
            pixels = epilogue.pixels(TilePlace(T.int32(0), column))
            epilogue.tile(consumer.counts, pixels, None, 0)

"""Accumulators to global memory: requantization, packing and stores into NHWCnc, or the raw sums.

A thread of a wgmma holds, for every pixel, rows ``g`` and ``g + 8`` (``g = lane // 4``) and images ``2q`` and
``2q + 1`` (``q = lane % 4``). The prepared weights make rows g and g + 8 neighbouring output channels, so two sums pack
into one byte, and two pixels fill a register: ``[image][pixel]`` bytes. ``stmatrix.trans`` turns four such registers of
the warp from channels-by-images to images-by-channels on their way into shared memory; a lane then reads all 16 channels
of two pixels of one image with one load: twice 8 bytes of the next layer's input.

The sums are requantized in floating point, because a 64-bit integer multiplication takes 21 cycles of a scheduler
beside wgmma: see :mod:`subbyte.data.float_requant` for why that is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.kernel.tirx.emit import bind, every, loop, registers, when
from subbyte.kernel.tirx.epilogue import requantize
from subbyte.kernel.tirx.warpgroup import instructions as op
from subbyte.kernel.tirx.warpgroup.block import Block
from subbyte.schedule.warpgroup_plan import GROUP_BYTES, GROUP_PIXELS
from subbyte.workload.conv import ceil_div

SIGNS = 0x88888888
"""The upper bit of every int4 value: the difference between v and v + 8."""


def epilogue(block: Block, sums: Any, row: Any, count: Any, filter_pass: Any) -> None:
    """Emit everything between the multiplications of a pass and the next pass."""
    plan = block.plan
    if plan.parameter_channels:
        block.wait(block.parameters_barrier, T.uint32(0))
    target = Target(block, row, count, filter_pass)
    pixels = plan.config.tile_rows * plan.config.tile_width
    if plan.config.split == 1:
        target.store(sums, 0, pixels)
        return
    op.cluster_wait()  # every block of the cluster has begun: its shared memory may be written
    share = plan.exchange_pixels
    for other in range(plan.config.split):
        with when(block.rank != other):
            _send(block, sums, other, share)
    op.cluster_arrive()
    op.cluster_wait()
    for rank in range(plan.config.split):
        with when(block.rank == rank):
            _add(block, sums, rank, share)
            target.store(sums, rank * share, share)


def _exchange_offset(block: Block, source: Any, pixel: Any) -> Any:
    """Byte offset of a thread's four partial sums of a pixel from block ``source``."""
    plan = block.plan
    threads = plan.config.consumers * 128
    return plan.exchange_base + ((source * plan.exchange_pixels + pixel) * threads + block.thread) * 16


def _send(block: Block, sums: Any, other: int, share: int) -> None:
    """Write the sums that block ``other`` finishes into its shared memory."""
    address = registers("address", 1)
    offset = _exchange_offset(block, block.rank, 0)
    op.peer_address(address[0], block.base + T.cast(offset, "uint32"), T.uint32(other))
    pitch = 16 * 128 * block.plan.config.consumers
    with loop("pixel", share) as pixel:
        first = (other * share + pixel) * 4
        place = address[0] + T.cast(pixel * pitch, "uint32")
        op.store_peer16(place, [sums[first + i] for i in range(4)])


def _add(block: Block, sums: Any, rank: int, share: int) -> None:
    """Add what the other blocks have sent."""
    part = registers("part", 4)
    for source in range(block.plan.config.split):
        if source == rank:
            continue
        with loop("pixel", share) as pixel:
            op.load_shared16(part, block.base + T.cast(_exchange_offset(block, source, pixel), "uint32"))
            with loop("i", 4) as i:
                place = (rank * share + pixel) * 4 + i
                T.buffer_store(sums, sums[place] + part[i], [place])


class Target:
    """Where the results of one pass go."""

    def __init__(self, block: Block, row: Any, count: Any, filter_pass: Any) -> None:
        self.block, self.row, self.count = block, row, count
        plan = block.plan
        self.warp = bind("warp", block.member // 32)
        self.local_channel = (filter_pass * plan.config.groups_m + block.m) * 64 + self.warp * 16 + block.lane // 4 * 2
        self.channel_block = bind("channel_block", block.tile(filter_pass) * 2 + self.warp // 2)
        self.first_col = bind("first_col", (block.tile_x * plan.config.groups_x + block.x) * plan.config.tile_width)

    def store(self, sums: Any, first: int, pixels: int) -> None:
        """Requantize, pack and store ``pixels`` of the pass from ``first``."""
        plan = self.block.plan
        exists: Any = True
        if plan.padded_tiles * 2 > plan.workload.filter_blocks:
            exists = self.channel_block < plan.workload.filter_blocks
        with when(exists):
            if plan.output == "int32":
                self._store_raw(sums, first, pixels)
            else:
                self._store_packed(sums, list(_groups(plan.config.tile_width, first, pixels)))

    # ---- int4 ---------------------------------------------------------------------------------------------------

    def _store_packed(self, sums: Any, groups: list[Group]) -> None:
        """All pixels into shared memory, then all of them out again: nothing waits for its own last step."""
        plan, lane = self.block.plan, self.block.lane
        parameters = [self._parameters(parity) for parity in range(2)]
        warp = self.block.warpgroup * 4 + self.warp
        staged = self.block.base + T.cast(plan.staging_base + warp * plan.staging_bytes + lane * 16, "uint32")
        place = bind("staged", staged)
        packed = registers("packed", 4)
        for index, group in enumerate(groups):
            for pair in range(ceil_div(group.pixels, 2)):
                self._pack(sums, group, 2 * pair, packed, pair, parameters)
            words = [packed[min(i, ceil_div(group.pixels, 2) - 1)] for i in range(group.matrices)]
            op.store_transposed(place + T.uint32(index * GROUP_BYTES), words)
        op.emit(T.cuda.warp_sync())
        read = registers("read", 4 * len(groups))
        for index, group in enumerate(groups):
            with when(True if group.matrices == 4 else lane < 8 * group.matrices):
                op.load_shared16(read, place + T.uint32(index * GROUP_BYTES), 4 * index)
        op.emit(T.cuda.warp_sync())  # all have read: the next pass may write
        for index, group in enumerate(groups):
            self._store_group(group, [read[4 * index + i] for i in range(4)])

    def _store_group(self, group: Group, read: list[Any]) -> None:
        """Two pixels of a lane: their bytes take turns in what it read."""
        words = registers("words", 2)
        for odd, selector in enumerate((0x6420, 0x7531)):
            col = bind("col", group.col + self.block.lane // 8 * 2 + odd)
            last = group.col + group.pixels
            with when(self._inside(group.row, col, last if group.pixels < GROUP_PIXELS else None)):
                for half in range(2):
                    op.permute_bytes(words[half], read[2 * half], read[2 * half + 1], T.uint32(selector))
                    T.buffer_store(words, self._finished(words[half]), [half])
                target = self._word(group.row, col, self.block.lane % 8) + self.warp % 2 * 2
                with loop("i", 2, T.vectorized) as i:
                    T.buffer_store(self.block.output, words[i], [target + i])

    def _parameters(self, parity: int) -> list[Any]:
        """The parameters of the thread's even or odd channel."""
        plan = self.block.plan
        base = plan.parameter_base // 4
        words = [
            T.cast(self.block.shared[base + row * plan.parameter_channels + self.local_channel + parity], "int32")
            for row in range(3)
        ]
        if plan.requant == "fixed":
            added, *factors = words
            floats = [T.reinterpret("float32", word) for word in factors]
            return [bind(name, v) for name, v in zip(("added", "factor", "offset"), (added, *floats), strict=True)]
        return [bind(name, word) for name, word in zip(("bias", "multiplier", "shift"), words, strict=True)]

    def _pack(self, sums: Any, group: Group, start: int, packed: Any, place: int, parameters: list[list[Any]]) -> None:
        """Two pixels of the thread's two channels and two images, from the group's pixel ``start`` on, into a
        register."""
        T.buffer_store(packed, T.uint32(0), [place])
        for image in reversed(range(2)):
            for odd in reversed(range(2)):
                pixel = group.first + min(start + odd, group.pixels - 1)
                low, high = (
                    bind(name, self._requantized(self._sum(sums, pixel * 4 + parity * 2 + image), parameters[parity]))
                    for parity, name in enumerate(("low", "high"))
                )
                op.pack_int4(packed[place], high, low, signed=self.block.plan.requant != "fixed")

    def _requantized(self, value: Any, parameters: list[Any]) -> Any:
        """The int4 value of a sum, or with the fixed form that value plus 8, both not yet saturated."""
        plan = self.block.plan
        if plan.requant != "fixed":
            return requantize(plan, value, parameters)
        added, factor, offset = parameters
        product = registers("product", 1, "float32")
        op.multiply_add(product[0], T.reinterpret("float32", value + added), factor, offset)
        result = T.reinterpret("int32", product[0])
        low, high = plan.clip
        if plan.clip == (0, 7):
            return result  # done for eight values at a time: see _finished
        if low > -8:
            result = T.max(result, T.int32(low + 8))
        return T.min(result, T.int32(high + 8)) if high < 7 else result

    def _finished(self, word: Any) -> Any:
        """Eight packed values as they are stored."""
        plan = self.block.plan
        if plan.requant != "fixed":
            return word
        if plan.clip != (0, 7):
            return word ^ T.uint32(SIGNS)
        positive = bind("positive", word & T.uint32(SIGNS))  # v + 8 has its upper bit where v >= 0
        return word & (positive - (positive >> T.uint32(3)))

    def _inside(self, row: int, col: Any, end: int | None) -> Any:
        """The output has column ``col`` of fragment row ``row``; ``end``: where the columns of this group end."""
        plan, w = self.block.plan, self.block.plan.workload
        conditions = [] if end is None else [col < end]
        if any(count <= row for _, count in plan.passes):
            conditions.append(row < self.count)
        if plan.flat and w.p * w.q % plan.width_covered:
            conditions.append((self.row + row) * plan.width_covered + self.first_col + col < w.p * w.q)
        elif not plan.flat and w.q % plan.width_covered:
            conditions.append(self.first_col + col < w.q)
        return every(conditions)

    def _word(self, row: int, col: Any, image: Any) -> Any:
        """First word of the 32 channels of an image and a pixel of the pass."""
        plan, block = self.block.plan, self.block
        return plan.output_word(block.group, self.row + row, self.first_col + col, self.channel_block, image)

    # ---- int32 --------------------------------------------------------------------------------------------------

    def _store_raw(self, sums: Any, first: int, pixels: int) -> None:
        """The sums of two channels and two images of every pixel."""
        plan, block = self.block.plan, self.block
        scale = T.int32(plan.atom.scale_log2)
        channel = self.warp % 2 * 16 + block.lane // 4 * 2
        for pixel in range(first, first + pixels):
            row, col = divmod(pixel, plan.config.tile_width)
            with when(self._inside(row, col, None)):
                for image in range(2):
                    word = self._word(row, col, block.lane % 4 * 2 + image)
                    pair = registers("pair", 2, "int32")
                    for parity in range(2):
                        value = self._sum(sums, pixel * 4 + parity * 2 + image) >> scale
                        T.buffer_store(pair, value, [parity])
                    with loop("i", 2, T.vectorized) as i:
                        T.buffer_store(block.output, pair[i], [word * 8 + channel + i])

    @staticmethod
    def _sum(sums: Any, register: Any) -> Any:
        return T.cast(sums[register], "int32")


@dataclass(frozen=True)
class Group:
    """Up to eight neighbouring pixels of one fragment row that go through shared memory together."""

    row: int
    col: int
    pixels: int
    first: int
    """Pixel of the pass whose sums are the first of the group."""

    @property
    def matrices(self) -> int:
        """8 x 8 matrices, two pixels each, that one instruction stores: 1, 2 or 4."""
        pairs = ceil_div(self.pixels, 2)
        return 4 if pairs == 3 else pairs


def _groups(width: int, first: int, pixels: int) -> Iterator[Group]:
    """The groups of ``pixels`` pixels of a pass from ``first`` on, row after row."""
    end = first + pixels
    while first < end:
        row, col = divmod(first, width)
        count = min(GROUP_PIXELS, width - col, end - first)
        yield Group(row, col, count, first)
        first += count

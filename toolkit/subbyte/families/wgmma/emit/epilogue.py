"""Accumulators to global memory: requantization, packing and stores into NHWCnc, or the raw sums.

A thread of a wgmma holds, for every pixel, rows ``g`` and ``g + 8`` (``g = lane // 4``) and images ``2q`` and ``2q +
1`` (``q = lane % 4``). The prepared weights make rows g and g + 8 neighbouring output channels, so two sums are packed
into one byte, and two pixels fill a register: ``[image][pixel]`` bytes. ``stmatrix.trans`` turns four such registers of
the warp from channels-by-images to images-by-channels on their way into shared memory; a lane then reads all 16
channels of two pixels of one image with one load: twice 8 bytes of the next layer's input.

The sums are requantized in floating point, because a 64-bit integer multiplication takes 21 cycles of a scheduler while
wgmma runs: see :mod:`subbyte.numerics.float_requant` for why that is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.emit.exchange import exchange
from subbyte.families.wgmma.emit.pack_shared import store_through_shared
from subbyte.families.wgmma.memory import GROUP_BYTES, GROUP_PIXELS
from subbyte.tirx import added
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, loop, registers, when
from subbyte.tirx.requantize import by_float, finished, requantized_code, signed_output
from subbyte.workload.conv import ceil_div
from subbyte.workload.operand import Operand
from subbyte.workload.precision import SUMS


def epilogue(block: Block, sums: Any, row: Any, count: Any, m_iteration: Any, own: Any = None) -> None:
    """Emit everything between the multiplications of one tile iteration and the next. ``own``: registers with the
    parameters of the thread's two channels, if these are not in shared memory."""
    plan = block.plan
    target = Target(block, row, count, m_iteration, own)
    pixels, first_pixel = plan.knobs.tile_rows * plan.row_pixels, 0
    if plan.knobs.cluster_split_k > 1:
        pixels = plan.exchange_pixels
        sums, first_pixel = exchange(block, sums)
    if plan.parameter_channels and own is None:
        block.wait(block.parameters_barrier, T.uint32(0))
    target.store(sums, first_pixel, pixels)


def channel_of_thread(block: Block, m_iteration: Any) -> Any:
    """The first of a thread's two neighbouring channels, among those of the block."""
    return (m_iteration * block.plan.knobs.consumers_m + block.m) * 64 + block.member // 32 * 16 + block.lane // 4 * 2


class Target:
    """The output destinations of one tile iteration's results."""

    added: Operand | None = None
    """The type of the values that are added to sums."""

    def __init__(self, block: Block, row: Any, count: Any, m_iteration: Any, own: Any = None) -> None:
        self.block, self.row, self.count, self.own = block, row, count, own
        plan = block.plan
        self.added = plan.added
        self.warp = bind("warp", block.member // 32)
        self.local_channel = channel_of_thread(block, m_iteration)
        tile = block.tile(m_iteration)
        mine = tile * 4 + self.warp if plan.bytes_out else tile * 2 + self.warp // 2
        self.channel_block = bind("channel_block", mine)
        self.first_col = bind("first_col", (block.tile_x * plan.knobs.consumers_n + block.x) * plan.knobs.tile_width)

    def store(self, sums: Any, first: Any, pixels: int) -> None:
        """Requantize, pack and store ``pixels`` of the tile iteration from ``first``; ``sums`` holds only theirs."""
        plan = self.block.plan
        exists: Any = True
        if plan.padded_tiles * 2 * plan.output_parts > plan.workload.filter_blocks:
            exists = self.channel_block < plan.workload.filter_blocks
        with when(exists):
            if plan.output == SUMS:
                self._store_raw(sums, first, pixels)
                return
            parameters = [self._parameters(parity) for parity in range(2)]
            if plan.knobs.register_packing:
                self._store_packed(sums, first, pixels, parameters)
            else:
                store_through_shared(self, sums, first, pixels, parameters)

    # ---- values -------------------------------------------------------------------------------------------------

    def _store_packed(self, sums: Any, first: Any, pixels: int, parameters: list[list[Any]]) -> None:
        """Store all pixels to shared memory, then read all of them back: no pixel waits for its own last step."""
        plan, lane = self.block.plan, self.block.lane
        warp = self.block.warpgroup * 4 + self.warp
        start = plan.packing_base + warp * (plan.packing_bytes // (4 * plan.knobs.consumers)) + lane * 16
        place = bind("place", self.block.base + T.cast(start, "uint32"))
        width = pixels if plan.knobs.cluster_split_k > 1 else plan.row_pixels
        groups = list(_groups(pixels, width, plan.group_pixels))
        packed = registers("packed", 4)
        for index, group in enumerate(groups):
            for register in range(group.registers):
                self._pack(sums, group, register, packed, parameters, first)
            words = [packed[min(i, group.registers - 1)] for i in range(group.matrices)]
            op.store_transposed(place + T.uint32(index * GROUP_BYTES), words)
        op.emit(T.cuda.warp_sync())
        read = registers("read", 4 * len(groups))
        for index, group in enumerate(groups):
            with when(True if group.matrices == 4 else lane < 8 * group.matrices):
                op.load_shared16(read, place + T.uint32(index * GROUP_BYTES), 4 * index)
        op.emit(T.cuda.warp_sync())  # all have read: the next iteration may write
        for index, group in enumerate(groups):
            self._store_group(group, first, [read[4 * index + i] for i in range(4)])

    def _store_group(self, group: Group, first: Any, read: list[Any]) -> None:
        """Two pixels of a lane, whose bytes are interleaved in the data it read. With 8-bit values it is one pixel,
        unchanged."""
        if self.block.plan.bytes_out:
            self._store_bytes(group, first, read)
            return
        words = registers("words", 2)
        end, ragged = first + group.first + group.pixels, group.pixels < GROUP_PIXELS
        for odd, selector in enumerate((0x6420, 0x7531)):
            pixel = bind("pixel", first + (group.first + odd) + self.block.lane // 8 * 2)
            row = group.first // self.block.plan.row_pixels if isinstance(first, int) else None
            with when(self.inside(pixel, end, ragged, row)):
                for half in range(2):
                    op.permute_bytes(words[half], read[2 * half], read[2 * half + 1], T.uint32(selector))
                    T.buffer_store(words, self.finished(words[half]), [half])
                target = self.word(pixel, self.block.lane % 8, row) + self.warp % 2 * 2
                with loop("i", 2, T.vectorized) as i:
                    T.buffer_store(self.block.output, words[i], [target + i])

    def _store_bytes(self, group: Group, first: Any, read: list[Any]) -> None:
        end, ragged = first + group.first + group.pixels, group.pixels < self.block.plan.group_pixels
        pixel = bind("pixel", first + group.first + self.block.lane // 8)
        row = group.first // self.block.plan.row_pixels if isinstance(first, int) else None
        with when(self.inside(pixel, end, ragged, row)):
            target = self.word(pixel, self.block.lane % 8, row)
            op.store16(self.block.output.ptr_to([target]), read)

    def _parameters(self, parity: int) -> list[Any]:
        """The parameters of the thread's even or odd channel; with a zero point also its contribution to sums, unless
        it is included in the first parameter."""
        plan = self.block.plan
        if self.own is None:
            base = plan.parameter_base // 4
            rows = range(plan.kept_rows)
            places = [base + row * plan.parameter_channels + self.local_channel + parity for row in rows]
            words = [T.cast(self.block.shared[place], "int32") for place in places]
        else:
            words = [T.cast(self.own[2 * row + parity], "int32") for row in range(plan.kept_rows)]
        more = [bind("correction", words.pop())] if plan.zero_point else []
        if plan.output == SUMS:
            return more
        if plan.by_line:
            added, *factors = words
            floats = [T.reinterpret("float32", word) for word in factors]
            added = added + more[0] if more else added
            return [bind(name, v) for name, v in zip(("added", "factor", "offset"), (added, *floats), strict=True)]
        names = ("bias", "multiplier", "shift", "residual_multiplier")
        return [bind(name, word) for name, word in zip(names, words, strict=False)] + more

    def _pack(
        self, sums: Any, group: Group, place: int, packed: Any, parameters: list[list[Any]], first: Any = 0
    ) -> None:
        """Two pixels of the thread's two channels and two images, or one pixel of 8-bit values, packed into a register:
        number ``place`` of the group; the sums are those of the tile iteration's pixels from ``first`` on."""
        together, pack = (1, op.pack_int8) if self.block.plan.bytes_out else (2, op.pack_int4)
        T.buffer_store(packed, T.uint32(0), [place])
        for image in reversed(range(2)):
            for odd in reversed(range(together)):
                pixel = group.first + min(together * place + odd, group.pixels - 1)
                more = self.residual(first + pixel, image)
                low, high = (
                    bind(name, self.requantized(sums, pixel * 4 + parity * 2 + image, parameters[parity], one))
                    for parity, (name, one) in enumerate(zip(("low", "high"), more, strict=True))
                )
                pack(packed[place], high, low, self.signed)

    @property
    def signed(self) -> bool:
        """Whether the result of :meth:`requantized` saturates to -8..7; else to 0..15: the values of a uint4 output, or
        with the fixed form those of an int4 output plus 8."""
        return not self.block.plan.by_line and signed_output(self.block.plan)

    def residual(self, pixel: Any, image: int) -> list[Any]:
        """The residual for the sums of the thread's two channels, for a pixel of the tile iteration and the first or
        second of its images; None twice without a residual."""
        plan, block = self.block.plan, self.block
        if self.added is None:
            return [None, None]
        held, channel = registers("added", 1), self.warp % 2 * 16 + block.lane // 4 * 2
        at, bit = added.place(plan, lambda one: self.added_word(pixel, one), channel, block.lane % 4 * 2 + image)
        T.buffer_store(held, T.uint32(0), [0])
        with when(self.inside(pixel, None, False)):
            T.buffer_store(held, block.residual[at], [0])
        return added.pair(plan, held[0], bit)

    def requantized(self, sums: Any, register: Any, parameters: list[Any], residual: Any = None) -> Any:
        """The requantized int32 of one accumulator, including the residual, before saturation: the value, or with the
        fixed form that of an int4 output plus 8."""
        plan, value = self.block.plan, self._sum(sums, register)
        if not plan.by_line:
            if plan.zero_point:
                *parameters, correction = parameters
                value = value + correction
            return requantized_code(plan, value, parameters, residual)
        added, factor, offset = parameters
        return by_float(plan, value if plan.sums_begun else value + added, factor, offset)

    def finished(self, word: Any) -> Any:
        """Eight packed values in their stored form."""
        return finished(self.block.plan, word) if self.block.plan.by_line else word

    def inside(self, pixel: Any, end: Any, ragged: bool, row: int | None = None) -> Any:
        """Whether this pixel of the tile iteration exists in the output (``row`` is its fragment row, if known)."""
        plan, w = self.block.plan, self.block.plan.workload
        row, col, group = self._position(pixel, row)
        conditions = [pixel < end] if ragged else []
        if plan.groups_overlap:
            conditions.append(group >= self.block.group_done)
        if plan.knobs.half_rows:
            conditions += self._in_half(row, col)
        if any(count < plan.knobs.tile_rows for _, count in plan.iterations):
            conditions.append(row < self.count)
        if plan.flat and plan.flat_pixels % plan.width_covered:
            conditions.append((self.row + row) * plan.width_covered + self.first_col + col < plan.flat_pixels)
        elif not plan.flat and w.q % plan.width_covered:
            conditions.append(self.first_col + col < w.q)
        return every(conditions)

    def word(self, pixel: Any, image: Any, row: int | None = None) -> Any:
        """First word of the block that holds the warp's channels for an image and a pixel of the tile iteration."""
        return self.block.plan.output_word(*self._place(pixel, row), self.channel_block, image)

    def added_word(self, pixel: Any, image: Any) -> Any:
        """The same for the 32 channels in a tensor of 4-bit values with the same shape."""
        plan, block = self.block.plan, self.channel_block
        return plan.added_word(*self._place(pixel, None), block // 2 if plan.bytes_out else block, image)

    def _place(self, pixel: Any, row: int | None) -> tuple[Any, Any, Any]:
        """Group of images, output row and column of a pixel of the tile iteration."""
        plan, block = self.block.plan, self.block
        row, col, group = self._position(pixel, row)
        if plan.knobs.half_rows:
            last = every([block.swapped, row == plan.knobs.tile_rows - 1])
            col = col + T.Select(last, T.int32(plan.knobs.tile_width - plan.narrow_columns), T.int32(0))
            row = block.fragment_place(row)
        return block.group + group, self.row + row, self.first_col + col

    def _in_half(self, row: Any, place: Any) -> list[Any]:
        """For half a row, whose instruction may be one pixel too wide: whether the pixel is in the half. With an odd
        width the left half includes the middle column."""
        plan, block = self.block.plan, self.block
        half, whole = plan.knobs.tile_width // 2, row < plan.knobs.tile_rows - 1
        if whole is True:
            return []
        first = T.Select(block.swapped, T.int32(plan.narrow_columns - half), T.int32(0))
        end = plan.narrow_columns if plan.knobs.tile_width % 2 else first + half
        return [T.Or(T.Or(whole, T.Not(block.narrow)), T.And(place >= first, place < end))]

    def _position(self, pixel: Any, row: int | None) -> tuple[Any, Any, Any]:
        """Fragment row, column and group of images of a pixel of the tile iteration."""
        width, groups = self.block.plan.row_pixels, self.block.plan.knobs.image_groups
        if self.block.plan.knobs.tile_rows == 1:
            row = 0
        row, place = (pixel // width, pixel % width) if row is None else (row, pixel - row * width)
        return (row, place, 0) if groups == 1 else (row, place // groups, place % groups)

    # ---- int32 --------------------------------------------------------------------------------------------------

    def _store_raw(self, sums: Any, first: Any, pixels: int) -> None:
        """The sums of two channels and two images of every pixel."""
        plan, block = self.block.plan, self.block
        scale = T.int32(plan.atom.scale_log2)
        corrections = [self._parameters(parity)[0] for parity in range(2)] if plan.zero_point else None
        channel = block.lane // 4 * 2 if plan.bytes_out else self.warp % 2 * 16 + block.lane // 4 * 2
        with loop("p", pixels) as p:
            pixel = first + p
            with when(self.inside(pixel, first + pixels, False)):
                for image in range(2):
                    word = self.word(pixel, block.lane % 4 * 2 + image)
                    pair = registers("pair", 2, "int32")
                    for parity in range(2):
                        value = self._sum(sums, p * 4 + parity * 2 + image)
                        value = value if corrections is None else value + corrections[parity]
                        T.buffer_store(pair, value >> scale, [parity])
                    with loop("i", 2, T.vectorized) as i:
                        T.buffer_store(block.output, pair[i], [word * plan.word_values + channel + i])

    @staticmethod
    def _sum(sums: Any, register: Any) -> Any:
        return T.cast(sums[register], "int32")


@dataclass(frozen=True)
class Group:
    """Up to eight neighbouring pixels of one fragment row (four for 8-bit values) that go through shared memory
    together: the first, counted from those that are stored."""

    first: int
    pixels: int
    most: int = GROUP_PIXELS

    @property
    def registers(self) -> int:
        """Registers that hold its pixels."""
        return ceil_div(4 * self.pixels, self.most)

    @property
    def matrices(self) -> int:
        """8 x 8 matrices, one register per lane each, that one instruction stores: 1, 2 or 4."""
        return 4 if self.registers == 3 else self.registers


def _groups(pixels: int, width: int, most: int) -> Iterator[Group]:
    """The groups of ``pixels`` pixels in rows of ``width``."""
    for row in range(0, pixels, width):
        for first in range(row, row + width, most):
            yield Group(first, min(most, row + width - first), most)

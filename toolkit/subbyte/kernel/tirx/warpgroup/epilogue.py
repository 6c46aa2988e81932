"""Accumulators to global memory: requantization, packing in registers and stores into NHWCnc, or the raw sums.

A thread of a wgmma holds, for every pixel, rows ``g`` and ``g + 8`` (``g = lane // 4``) and images ``2q`` and
``2q + 1`` (``q = lane % 4``). The prepared weights make rows g and g + 8 neighbouring output channels, so two sums pack
into one byte. Two pixels fill a register: ``[image][pixel]`` bytes. The transpose of the warp's 8 x 8 matrix of 16-bit
halves (movmatrix) turns channels-by-images into images-by-channels; a 4 x 4 transpose among the lanes of an image then
gives lane q all 16 channels of pixel q: 8 bytes of the next layer's input.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.kernel.tirx.emit import bind, every, loop, registers, when
from subbyte.kernel.tirx.epilogue import requantize
from subbyte.kernel.tirx.warpgroup import instructions as op
from subbyte.kernel.tirx.warpgroup.block import Block
from subbyte.kernel.tirx.warpgroup.exchange import exchange
from subbyte.kernel.tirx.warpgroup.pack_shared import store_through_shared
from subbyte.workload.conv import ceil_div

TOGETHER = 4
"""Pixels that are transposed together."""
BATCH = 8
"""Groups of four pixels that go through the steps side by side."""


def epilogue(block: Block, sums: Any, row: Any, count: Any, filter_pass: Any) -> None:
    """Emit everything between the multiplications of a pass and the next pass."""
    plan = block.plan
    target = Target(block, row, count, filter_pass)
    pixels, first_pixel = plan.config.tile_rows * plan.config.tile_width, 0
    if plan.config.split > 1:
        pixels = plan.exchange_pixels
        sums, first_pixel = exchange(block, sums)
    if plan.parameter_channels:
        block.wait(block.parameters_barrier, T.uint32(0))
    target.store(sums, first_pixel, pixels)


class Target:
    """Where the results of one pass go."""

    def __init__(self, block: Block, row: Any, count: Any, filter_pass: Any) -> None:
        self.block, self.row, self.count = block, row, count
        plan = block.plan
        self.warp = bind("warp", block.member // 32)
        self.local_channel = (filter_pass * plan.config.groups_m + block.m) * 64 + self.warp * 16 + block.lane // 4 * 2
        self.channel_block = bind("channel_block", block.tile(filter_pass) * 2 + self.warp // 2)
        self.first_col = bind("first_col", (block.tile_x * plan.config.groups_x + block.x) * plan.config.tile_width)

    def store(self, sums: Any, first: Any, pixels: int) -> None:
        """Requantize, pack and store ``pixels`` of the pass from ``first``; ``sums`` are theirs alone."""
        plan = self.block.plan
        exists: Any = True
        if plan.padded_tiles * 2 > plan.workload.filter_blocks:
            exists = self.channel_block < plan.workload.filter_blocks
        with when(exists):
            if plan.output == "int32":
                self._store_raw(sums, first, pixels)
            else:
                parameters = [self._parameters(parity) for parity in range(2)]
                if not plan.config.register_packing:
                    store_through_shared(self, sums, first, pixels, parameters)
                    return
                groups = ceil_div(pixels, TOGETHER)
                for start in range(0, groups, BATCH):
                    self._store_packed(sums, first, pixels, start, min(BATCH, groups - start), parameters)

    # ---- int4 ---------------------------------------------------------------------------------------------------

    def _parameters(self, parity: int) -> list[Any]:
        """The parameters of the thread's even or odd channel."""
        plan = self.block.plan
        base = plan.parameter_base // 4
        words = [
            T.cast(self.block.shared[base + row * plan.parameter_channels + self.local_channel + parity], "int32")
            for row in range(3)
        ]
        if plan.requant == "fixed":
            factor, low, high = words
            wide = (T.cast(high, "int64") << T.int64(32)) | (T.cast(low, "int64") & T.int64(0xFFFFFFFF))
            return [bind("factor", factor), bind("offset", wide)]
        return [bind(name, word) for name, word in zip(("bias", "multiplier", "shift"), words, strict=True)]

    def _store_packed(
        self, sums: Any, first: Any, pixels: int, start: int, groups: int, parameters: list[list[Any]]
    ) -> None:
        """Groups of four pixels, step by step for all of them, so that none waits for its own last step."""
        packed = registers("packed", 2 * groups)
        with loop("four", groups) as four:
            for pair in range(2):
                pixel = (start + four) * TOGETHER + pair * 2
                self._pack(sums, pixels, pixel, packed, four * 2 + pair, parameters)
        words = _exchange(packed, groups, self.block.lane)
        with loop("four", groups) as four:
            pixel = bind("pixel", first + (start + four) * TOGETHER + self.block.lane % TOGETHER)
            target = self.word(pixel, self.block.lane // 4) + self.warp % 2 * 2
            inside = self.inside(pixel, first + pixels, pixels % TOGETHER != 0)
            with when(inside), loop("i", 2, T.vectorized) as i:
                T.buffer_store(self.block.output, words[four * 2 + i], [target + i])

    def _pack(self, sums: Any, pixels: int, start: Any, packed: Any, place: Any, parameters: list[list[Any]]) -> None:
        """Two pixels of the thread's two channels and two images, from pixel ``start`` on, into one register."""
        T.buffer_store(packed, T.uint32(0), [place])
        for image in reversed(range(2)):
            for odd in reversed(range(2)):
                pixel = T.min(start + odd, pixels - 1)
                low, high = (
                    bind(name, self.requantized(sums, pixel * 4 + parity * 2 + image, parameters[parity]))
                    for parity, name in enumerate(("low", "high"))
                )  # fmt: skip
                op.pack_int4(packed[place], high, low)

    def inside(self, pixel: Any, end: Any, ragged: bool) -> Any:
        """The output has this pixel of the pass."""
        plan, w = self.block.plan, self.block.plan.workload
        row, col = pixel // plan.config.tile_width, pixel % plan.config.tile_width
        conditions = [pixel < end] if ragged else []
        if any(count < plan.config.tile_rows for _, count in plan.passes):
            conditions.append(row < self.count)
        if plan.flat and w.p * w.q % plan.width_covered:
            conditions.append((self.row + row) * plan.width_covered + self.first_col + col < w.p * w.q)
        elif not plan.flat and w.q % plan.width_covered:
            conditions.append(self.first_col + col < w.q)
        return every(conditions)

    def requantized(self, sums: Any, register: Any, parameters: list[Any]) -> Any:
        """The requantized int32 of one accumulator."""
        return requantize(self.block.plan, self._sum(sums, register), parameters)

    def word(self, pixel: Any, image: Any) -> Any:
        """First word of the 32 channels of an image and a pixel of the pass."""
        plan, block = self.block.plan, self.block
        row, col = pixel // plan.config.tile_width, pixel % plan.config.tile_width
        return plan.output_word(block.group, self.row + row, self.first_col + col, self.channel_block, image)

    # ---- int32 --------------------------------------------------------------------------------------------------

    def _store_raw(self, sums: Any, first: Any, pixels: int) -> None:
        """The sums of two channels and two images of every pixel."""
        plan, block = self.block.plan, self.block
        scale = T.int32(plan.atom.scale_log2)
        channel = self.warp % 2 * 16 + block.lane // 4 * 2
        with loop("p", pixels) as p:
            pixel = first + p
            row, col = pixel // plan.config.tile_width, pixel % plan.config.tile_width
            with when(self.inside(pixel, first + pixels, False)):
                for image in range(2):
                    word = plan.output_word(
                        block.group, self.row + row, self.first_col + col, self.channel_block,
                        block.lane % 4 * 2 + image,
                    )  # fmt: skip
                    pair = registers("pair", 2, "int32")
                    for parity in range(2):
                        value = self._sum(sums, p * 4 + parity * 2 + image) >> scale
                        T.buffer_store(pair, value, [parity])
                    with loop("i", 2, T.vectorized) as i:
                        T.buffer_store(block.output, pair[i], [word * 8 + channel + i])

    @staticmethod
    def _sum(sums: Any, register: Any) -> Any:
        return T.cast(sums[register], "int32")


def _exchange(packed: Any, groups: int, lane: Any) -> Any:
    """From [channel pair][image] bytes of four pixels to one lane's two words of a pixel's 16 channels, for several
    groups of four pixels."""
    turned, words = registers("turned", 2 * groups), registers("words", 2 * groups)
    received = registers("received", groups)
    upper, odd = bind("upper", lane // 2 % 2 == 1), bind("odd", lane % 2 == 1)
    with loop("i", 2 * groups) as i:
        op.transpose_halves(turned[i], packed[i])
    with loop("i", 2 * groups) as i:
        op.permute_bytes(turned[i], turned[i], T.uint32(0), T.uint32(0x3120))
    with loop("i", groups) as i:
        op.shuffle_xor(received[i], T.Select(upper, turned[2 * i], turned[2 * i + 1]), 2)
    with loop("i", groups) as i:
        left = bind("left_lane", T.Select(upper, received[i], turned[2 * i]))
        right = bind("right_lane", T.Select(upper, turned[2 * i + 1], received[i]))
        op.permute_bytes(words[2 * i], left, right, T.uint32(0x5410))
        op.permute_bytes(words[2 * i + 1], left, right, T.uint32(0x7632))
    with loop("i", groups) as i:
        op.shuffle_xor(received[i], T.Select(odd, words[2 * i], words[2 * i + 1]), 1)
    with loop("i", groups) as i:
        kept = bind("kept", T.Select(odd, words[2 * i + 1], words[2 * i]))
        op.permute_bytes(words[2 * i], kept, received[i], T.Select(odd, T.uint32(0x1054), T.uint32(0x5410)))
        op.permute_bytes(words[2 * i + 1], kept, received[i], T.Select(odd, T.uint32(0x3276), T.uint32(0x7632)))
    return words

"""One warp of a planned kernel: the addresses that its lanes use, from the plan's own index functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from subbyte.device.memory import WORD, bank_conflicts, sectors
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.families.mma.config import LAYOUTS
from subbyte.families.mma.explain.accesses import Access, Accesses
from subbyte.families.mma.plan import BLOCK_WORDS, COPY_WORDS, Plan
from subbyte.families.mma.rules import why_not
from subbyte.workload.conv import BATCH_GROUP, ceil_div

ALL_LAYOUTS = ("nhwc", "hwnc", "nhwcnc")
Lane = tuple[int, tuple[int, ...]] | None
"""Word index and place of what a lane moves; None if the lane is inactive."""


@dataclass(frozen=True)
class Warp:
    """Coordinates of a warp. ``plan.config.layout`` equals ``layout`` unless that is ``hwnc``, which no kernel uses."""

    plan: Plan
    layout: str
    block: tuple[int, int]
    number: int
    iteration: int

    @classmethod
    def of(cls, plan: Plan, layout: str | None, block: tuple[int, int], number: int, iteration: int) -> Warp:
        """The warp with these numbers. Raises InvalidInput."""
        wanted = str(plan.config.layout if layout is None else layout).lower()
        if wanted not in ALL_LAYOUTS:
            raise InvalidInput(f"unknown layout {layout!r}: {did_you_mean(wanted, ALL_LAYOUTS)}")
        if wanted in LAYOUTS and wanted != plan.config.layout:
            plan = replace(plan, config=replace(plan.config, layout=wanted))
        config = plan.config
        if reason := why_not(plan):
            raise InvalidInput(f"{plan.workload.label} with {config.key} on {plan.arch.name} cannot be built: {reason}")
        grid = plan.launch.grid
        for name, given, limit in (
            ("block's pixel tile", block[0], grid[0]),
            ("block's column block", block[1], grid[1]),
            ("warp", number, config.threads // 32),
            ("iteration", iteration, plan.iterations),
        ):
            if not 0 <= given < limit:
                raise InvalidInput(f"{name} {given}: this kernel has {limit} (0 to {limit - 1})")
        return cls(plan, wanted, block, number, iteration)

    # ---- coordinates, as the kernel computes them from its thread and block indices

    @property
    def row(self) -> int:
        """Index along the block's pixels."""
        return self.number % self.plan.config.blk_row_warps

    @property
    def col(self) -> int:
        """Index along the block's column tiles."""
        return self.number // self.plan.config.blk_row_warps % self.plan.config.blk_col_warps

    @property
    def split(self) -> int:
        """Index among the warps that share the input channels."""
        return self.number // (self.plan.config.blk_row_warps * self.plan.config.blk_col_warps)

    @property
    def origin(self) -> tuple[int, int, int]:
        """Batch group, first output row and first output column of the block tile."""
        height, width = self.plan.pixel_tiles
        tile = self.block[0]
        group = tile // (height * width)
        return group, tile // width % height * self.plan.tile[0], tile % width * self.plan.tile[1]

    def pixel(self, index: int) -> tuple[int, int]:
        """Row and column, within the block tile, of one of the warp's pixels."""
        first, wide = self.row * self.plan.config.warp_row_tiles, self.plan.warp_tile[1]
        return first // self.plan.tile[1] + index // wide, first % self.plan.tile[1] + index % wide

    # ---- accesses

    def all_accesses(self) -> Iterator[Access]:
        """The copies of the stage, the fragment loads of its first channel block, then the epilogue's accesses."""
        copy = "cp.async" if self.plan.arch.async_copy else "ld.global.v4"
        plan = self.plan
        axes = ("image", "row", "column", "channel block")
        yield from self._turns("activation load", copy, axes, plan.activation_copies, 16, self._activation)
        weight_axes = ("channel block", "tap", "8-channel tile", "first lane")
        yield from self._turns("weight load", copy, weight_axes, plan.weight_copies, 16, self._weight)
        yield from self._activation_fragments()
        yield from self._weight_fragments()
        if plan.config.register_packing:
            if self.split == 0:
                yield from self._packed_stores()
        else:
            yield from self._unpacked_epilogue()

    def tile_load(self) -> Access:
        """8 lanes that load one pixel's block of 8 images x 32 channels in 16-byte pieces."""
        lanes: list[Lane] = [(self._input_word(0, 0, 0, 0, image), (image, 0, 0, 0)) for image in range(BATCH_GROUP)]
        axes = ("image", "row", "column", "channel block")
        return _access("tile load", "16-byte copy", "global", 16, axes, [*lanes, *[None] * 24])

    def _turns(
        self, kind: str, instruction: str, axes: tuple[str, ...], copies: int, size: int, lane: Callable[[int], Lane]
    ) -> Iterator[Access]:
        threads = self.plan.config.threads
        for turn in range(ceil_div(copies, threads)):
            first = turn * threads + 32 * self.number
            if first < copies:
                lanes = [lane(first + i) if first + i < copies else None for i in range(32)]
                yield _access(kind, instruction, "global", size, axes, lanes)

    def _activation(self, copy: int) -> Lane:
        plan, w = self.plan, self.plan.workload
        slot, channel_block, image = plan.activation_copy(copy)
        down, right = plan.slot_pixel(slot)
        kernel_row, chunk = plan.step(self.iteration)
        group, row0, col0 = self.origin
        y = row0 * w.stride + kernel_row * w.dilation + down - w.pad
        x = col0 * w.stride + right - w.pad
        if not (0 <= y < w.h and 0 <= x < w.w):
            return None
        block = chunk * plan.config.chunk + channel_block
        return self._input_word(group, y, x, block, image), (group * BATCH_GROUP + image, y, x, block)

    def _input_word(self, group: int, y: int, x: int, block: int, image: int) -> int:
        if self.layout == "hwnc":
            w = self.plan.workload
            pixel = (y * w.w + x) * w.batch_groups * BATCH_GROUP + group * BATCH_GROUP + image
            return (pixel * w.channel_blocks + block) * COPY_WORDS
        word: int = self.plan.activation_word(group, y, x, block, image)
        return word

    def _weight(self, copy: int) -> Lane:
        plan = self.plan
        channel_block, tap, word = plan.weight_copy(copy)
        kernel_row, chunk = plan.step(self.iteration)
        block, tap = chunk * plan.config.chunk + channel_block, kernel_row * plan.workload.s + tap
        run = BLOCK_WORDS * plan.vector
        tile = self.block[1] * plan.column_tiles + word // run * plan.vector
        return plan.weight_word(block, tap, self.block[1]) + word, (block, tap, tile, word % run // plan.vector)

    def _activation_fragments(self) -> Iterator[Access]:
        """With full reuse each genuine fragment once; otherwise one fragment for each tap and pixel."""
        plan = self.plan
        if plan.config.duplicate_aware == "full":
            base = plan.slot(*self.pixel(0), 0, 0)
            slots = [base + plan.fragment_slot(row, col) for row, col in self._genuine()]
        else:
            slots = [
                plan.slot(*self.pixel(pixel), r, s)
                for r in range(plan.rows_staged)
                for s in range(plan.workload.s)
                for pixel in range(plan.config.warp_row_tiles)
            ]
        block = self.split * (plan.config.chunk // plan.config.split_channels)
        for slot in slots:
            first = (slot * plan.config.chunk + block) * BLOCK_WORDS
            lanes: list[Lane] = [(first + lane, (slot, block, lane)) for lane in range(32)]
            axes = ("slot", "channel block", "word")
            yield _access("activation fragment", "ld.shared.b32", "shared", 4, axes, lanes)

    def _genuine(self) -> list[tuple[int, int]]:
        plan = self.plan
        return [(row, col) for fresh in plan.fresh_rows for row in fresh for col in range(plan.warp_cols.count)]

    def _weight_fragments(self) -> Iterator[Access]:
        plan = self.plan
        block = self.split * (plan.config.chunk // plan.config.split_channels)
        groups = plan.config.warp_col_tiles // plan.vector
        size = 4 * plan.vector
        for tap in range(plan.taps_staged):
            run = (block * plan.taps_staged + tap) * plan.column_tiles * BLOCK_WORDS
            for group in range(self.col * groups, (self.col + 1) * groups):
                first = plan.activation_words + run + group * BLOCK_WORDS * plan.vector
                lanes: list[Lane] = [(first + lane * plan.vector, (block, tap, group)) for lane in range(32)]
                axes = ("channel block", "tap", "tile group")
                yield _access("weight fragment", f"ld.shared.b{8 * size}", "shared", size, axes, lanes)

    def _packed_stores(self) -> Iterator[Access]:
        """After register-level packing: lane l stores the word of tile l % 4, image l / 4."""
        config = self.plan.config
        columns = min(config.warp_col_tiles, 4)
        pixels = 4 // columns
        for p in range(ceil_div(config.warp_row_tiles, pixels)):
            for c in range(config.warp_col_tiles // columns):
                lanes = []
                for lane in range(32):
                    pixel, column = p * pixels + lane % 4 // columns, c * columns + lane % 4 % columns
                    inside = pixel < config.warp_row_tiles
                    tile = self.col * config.warp_col_tiles + column
                    lanes.append(self._output(*self.pixel(pixel), tile, lane // 4) if inside else None)
                yield _access("output store", "st.global.b32", "global", 4, _OUTPUT_AXES, lanes)

    def _output(self, row: int, col: int, tile: int, image: int) -> Lane:
        plan, w = self.plan, self.plan.workload
        group, row0, col0 = self.origin
        p, q = row0 + row, col0 + col
        if p >= w.p or q >= w.q:
            return None
        tile += self.block[1] * plan.column_tiles
        if self.layout == "hwnc":
            pixel = (p * w.q + q) * w.batch_groups * BATCH_GROUP + group * BATCH_GROUP + image
            word = pixel * w.filter_blocks * COPY_WORDS + tile
        else:
            word = plan.output_word(group, p, q, tile, image)
        return word, (group * BATCH_GROUP + image, p, q, tile)

    def _unpacked_epilogue(self) -> Iterator[Access]:
        """int32 sums through shared memory, then packed."""
        plan, config = self.plan, self.plan.config
        if self.split == 0:
            for pixel in range(config.warp_row_tiles):
                for column in range(config.warp_col_tiles):
                    yield self._spill(pixel, self.col * config.warp_col_tiles + column)
        words = config.pixels * BATCH_GROUP * plan.column_tiles
        for turn in range(ceil_div(words, config.threads)):
            first = turn * config.threads + 32 * self.number
            if first >= words:
                continue
            places = [self._unpacked_place(first + i) if first + i < words else None for i in range(32)]
            for i in (0, 4):  # eight neighbouring words: the compiler reads them with two 16-byte loads
                lanes: list[Lane] = [
                    None if at is None else (at[0] * plan.output_row_words + at[1] * 8 + i, at) for at in places
                ]
                yield _access("sum read", "ld.shared.v4", "shared", 16, ("pixel and image", "8-channel tile"), lanes)
            stores = [None if at is None else self._store_of(*at) for at in places]
            yield _access("output store", "st.global.b32", "global", 4, _OUTPUT_AXES, stores)

    def _spill(self, pixel: int, tile: int) -> Access:
        row, col = self.pixel(pixel)
        place = row * self.plan.tile[1] + col
        lanes: list[Lane] = []
        for lane in range(32):
            image, channel = lane // 4, tile * 8 + lane % 4 * 2
            word = (place * BATCH_GROUP + image) * self.plan.output_row_words + channel
            lanes.append((word, (place, image, channel)))
        return _access("sum spill", "st.shared.b64", "shared", 8, ("pixel", "image", "channel"), lanes)

    def _unpacked_place(self, index: int) -> tuple[int, int]:
        """Row of sums (pixel and image) and 8-channel tile of a word that is packed from shared memory."""
        tiles = self.plan.column_tiles
        together = min(tiles, 4)
        tile = index // (together * BATCH_GROUP) % (tiles // together) * together + index % together
        return index // (BATCH_GROUP * tiles) * BATCH_GROUP + index // together % BATCH_GROUP, tile

    def _store_of(self, row_of_sums: int, tile: int) -> Lane:
        pixel, image = divmod(row_of_sums, BATCH_GROUP)
        return self._output(pixel // self.plan.tile[1], pixel % self.plan.tile[1], tile, image)


_OUTPUT_AXES = ("image", "row", "column", "8-channel tile")


def _access(kind: str, instruction: str, memory: str, size: int, axes: tuple[str, ...], lanes: list[Lane]) -> Access:
    addresses = tuple(None if lane is None else WORD * lane[0] for lane in lanes)
    return Access(
        kind=kind,
        instruction=instruction,
        memory=memory,
        bytes_per_lane=size,
        addresses=addresses,
        axes=axes,
        places=tuple(None if lane is None else lane[1] for lane in lanes),
        sectors=sectors(addresses, size) if memory == "global" else None,
        banks=bank_conflicts(addresses, size) if memory == "shared" else None,
    )


def accesses(
    plan: Plan, layout: str | None = None, block: tuple[int, int] = (0, 0), warp: int = 0, iteration: int = 0
) -> Accesses:
    """What one warp of a plan's kernel reads and writes, and what each access costs; see
    :func:`subbyte.accesses`. Raises InvalidInput."""
    who = Warp.of(plan, layout, block, warp, iteration)
    return Accesses(
        workload=who.plan.workload,
        config=who.plan.config,
        arch=who.plan.arch.name,
        layout=who.layout,
        block=block,
        warp=warp,
        iteration=iteration,
        tile=who.tile_load(),
        accesses=tuple(who.all_accesses()),
    )

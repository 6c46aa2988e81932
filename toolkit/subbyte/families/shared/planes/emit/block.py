"""What the parts of the kernel share: a block's buffers, coordinates and registers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from subbyte.families.shared.planes.geometry import IMAGE_WORDS, WORD_BITS
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.tirx.emit import bind, registers


@dataclass
class Block:
    """Buffers and coordinates of one block. Every field but ``plan`` is a TIRx buffer or expression."""

    plan: PlanePlan
    activations: Any
    weights: Any
    parameters: Any
    output: Any
    shared: Any
    """Shared memory; None if it is not used."""
    counts: Any
    """Registers of all sets of counts."""
    ones: Any
    """Registers that count the activation bits; None if these are not needed."""
    ones_of: Callable[[Block, Any], Any]
    """Their contribution to every channel of a warp's pixel."""
    thread: Any
    lane: Any
    warp_row: Any
    """Index of the warp along the block's pixels."""
    warp_col: Any
    """Index of the warp along the block's channels."""
    group: Any
    """Group of 8 images."""
    row0: Any
    """First output row."""
    col0: Any
    """First output column."""
    split: Any
    """Index among the warps that compute the same outputs."""
    slice_: Any
    """Index among the blocks that share an input."""

    @property
    def image(self) -> Any:
        """Image, within the group, whose results the lane holds."""
        return self.lane // 4

    def tile_pixel(self, pixel: Any) -> tuple[Any, Any]:
        """Row and column, within the block tile, of a pixel of this thread's warp."""
        width, wide = self.plan.tile[1], self.plan.warp_tile[1]
        first = self.warp_row * self.plan.config.warp_row_tiles
        return first // width + pixel // wide, first % width + pixel % wide

    def input_pixel(self, row: Any, col: Any, r: Any, s: Any) -> tuple[Any, Any]:
        """Row and column of the image that an output pixel of the tile reads through a tap."""
        w = self.plan.view
        y = (self.row0 + row) * w.stride + r * w.dilation - w.pad
        return y, (self.col0 + col) * w.stride + s * w.dilation - w.pad


def coordinates(plan: PlanePlan, ones_of: Callable[[Block, Any], Any], buffers: tuple[Any, Any, Any, Any]) -> Block:
    """The block of a thread, from its indices in the grid, with all counts 0. ``buffers``: activations,
    weights, parameters, output."""
    config = plan.config
    place, slice_ = T.cta_id([plan.launch.grid[0], plan.launch.grid[1]])
    thread = T.thread_id([plan.threads])
    for name, value in (("place", place), ("slice", slice_), ("thread", thread)):
        IRBuilder.name(name, value)
    warp = thread // 32
    height, width = plan.pixel_tiles
    shared = None
    if plan.shared_bytes:
        shared = T.alloc_buffer((plan.shared_bytes // 4,), "uint32", scope="shared.dyn", align=128)
        IRBuilder.name("shared", shared)
    return Block(
        plan, *buffers, shared,
        counts=_zeros("counts", len(plan.factors) * plan.set_registers),
        ones=_zeros("ones", plan.ones_registers) if plan.ones_registers else None,
        ones_of=ones_of,
        thread=thread,
        lane=bind("lane", thread % 32),
        warp_row=bind("warp_row", warp % config.blk_row_warps),
        warp_col=bind("warp_col", warp // config.blk_row_warps % config.blk_col_warps),
        split=bind("split", warp // (config.blk_row_warps * config.blk_col_warps)),
        group=bind("group", place // (height * width)),
        row0=bind("row0", place // width % height * plan.tile[0]),
        col0=bind("col0", place % width * plan.tile[1]),
        slice_=slice_,
    )  # fmt: skip


def _zeros(name: str, count: int) -> Any:
    made = registers(name, count)
    with T.unroll(count) as i:
        T.buffer_store(made, T.uint32(0), [i])
    return made


def fill_word(plan: PlanePlan, block: Any, plane: Any, word: Any) -> Any:
    """The contents of a word of 32 channels for a pixel outside the image: the padding code's bit in the actual
    channels."""
    code = plan.counts.form.fill
    if not code:
        return T.uint32(0)
    whole: Any = T.uint32(0xFFFFFFFF)
    rest = plan.view.c - (plan.channel_blocks - 1) * IMAGE_WORDS * WORD_BITS
    if rest < IMAGE_WORDS * WORD_BITS:
        masks = [T.uint32((1 << max(0, min(WORD_BITS, rest - WORD_BITS * i))) - 1) for i in range(IMAGE_WORDS)]
        last = masks[-1]
        for i in range(IMAGE_WORDS - 1):
            last = T.Select(word == i, masks[i], last)
        whole = T.Select(block == plan.channel_blocks - 1, last, whole)
    if plan.planes == 1:
        return whole
    return whole * ((T.uint32(code) >> T.cast(plane, "uint32")) & T.uint32(1))

"""What the parts of the kernel share: a block's buffers, coordinates and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.tiles import TILE_PIXELS
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers


@dataclass
class Block:
    """Buffers and coordinates of one block. Every field but ``plan`` is a TIRx buffer or expression."""

    plan: BitsPlan
    activations: Any
    weights: Any
    parameters: Any
    output: Any
    residual: Any
    """What an earlier layer kept; None if nothing is added."""
    sums: Any
    """What is kept for a later layer; None if nothing is."""
    shared: Any
    base: Any
    """Byte address of the block's shared memory."""
    thread: Any
    warp: Any
    """Index of the warp, known to the compiler to be the same for all its lanes."""
    lane: Any
    slice_: Any
    """Index among the blocks that share the same input."""
    group: Any
    """Group of 8 images."""
    first_row: Any
    """First output row."""
    first_column: Any
    """First output column."""

    @property
    def units(self) -> Any:
        """The base in units of 16 bytes, as in descriptors: shared memory has fewer than 2^14 of them."""
        return self.base >> T.uint32(4)

    def row_span(self) -> tuple[Any, Any, Any]:
        """For each staged row: the first image column that it holds, the number of columns, and the number of padding
        pixels before them."""
        plan, w = self.plan, self.plan.view
        if plan.config.row_parts == 1:
            return 0, w.w, w.pad
        start = self.first_column * w.stride - w.pad
        first = bind("first_pixel", T.max(start, 0))
        return first, bind("pixels", T.min(start + plan.pitch, w.w) - first), bind("before", first - start)

    @property
    def first_input(self) -> Any:
        """The image row that is staged first; negative above the image."""
        return self.plan.stored_row(self.input_row(0))

    def input_row(self, row: Any) -> Any:
        """The image row where the window of an output row of the block begins."""
        w = self.plan.view
        return (self.first_row + row) * w.stride - w.pad

    def staged_row(self, row: Any) -> Any:
        """The staged row where the window of an output row of the block begins."""
        if not self.plan.paired_rows:
            return row * self.plan.view.stride
        if self.plan.config.turn_rows > 1:  # blocks and turns begin at an even row
            return (row * self.plan.view.stride + self.plan.view.pad % 2) // 2
        return self.plan.stored_row(self.input_row(row)) - self.first_input

    def row_barrier(self, row: Any) -> Any:
        """Byte address of the barrier of a staged row."""
        return self.base + T.uint32(self.plan.barrier_base) + row * T.uint32(8)

    @property
    def table(self) -> Any:
        """Index of the table's first word in shared memory."""
        return self.plan.table_base // 4

    @property
    def weight_barrier(self) -> Any:
        """Byte address of the barrier for weights and table."""
        return self.row_barrier(T.uint32(self.plan.staged_rows))

    def window_barrier(self, row: Any) -> Any:
        """Byte address of the barrier for an output row whose windows have been counted."""
        return self.row_barrier(row + T.uint32(self.plan.staged_rows + 1))

    def wait(self, address: Any) -> None:
        """Wait for the only phase of a barrier."""
        done = registers("done", 1)
        T.buffer_store(done, T.uint32(0), [0])
        with T.While(done[0] == T.uint32(0)):
            op.barrier_try_wait(done[0], address, T.uint32(0))


@dataclass
class TilePlace:
    """Output row and column, within the block, of a tile's first pixel."""

    row: Any
    column: Any
    origin: Any = 0
    """Output column where the block's part of the rows begins."""

    @classmethod
    def of(cls, plan: BitsPlan, tile: Any, origin: Any = 0) -> TilePlace:
        """The first tile of turn ``tile``."""
        if plan.config.run_on:
            first = bind("first", tile * TILE_PIXELS)
            row = bind("row", first // plan.pitch)
            return cls(row, bind("column", first - row * plan.pitch))
        row = bind("row", tile // plan.row_tiles)
        column = bind("column", (tile - row * plan.row_tiles) * TILE_PIXELS)
        return cls(row * plan.config.turn_rows, column, origin)

    def below(self, further: int) -> TilePlace:
        """The tile this many rows below."""
        return self if not further else TilePlace(self.row + further, self.column, self.origin)

    def first_input(self, block: Block) -> Any:
        """Index of the staged pixel at the top left of the tile's first window."""
        plan = block.plan
        return block.staged_row(self.row) * plan.pitch + self.column * plan.view.stride

    def pixel(self, plan: BitsPlan, further: Any) -> TilePlace:
        """The pixel ``further`` positions after the first, 0 to 7."""
        column = bind("column", self.column + further + self.origin)
        if not plan.config.run_on:
            return TilePlace(self.row, column)
        if plan.pitch < TILE_PIXELS:
            row = bind("row", self.row + column // plan.pitch)
            return TilePlace(row, bind("column", column % plan.pitch))
        beyond = bind("beyond", column >= plan.pitch)
        row = bind("row", T.Select(beyond, self.row + 1, self.row))
        return TilePlace(row, bind("column", T.Select(beyond, column - plan.pitch, column)))


class Walk:
    """A warpgroup's sequence of turns: each place is computed from the one before, without a division."""

    def __init__(self, block: Block, warpgroup: Any) -> None:
        self._plan = plan = block.plan
        self._origin = block.first_column
        self._at = registers("at", 2, "int32")
        first = TilePlace.of(plan, warpgroup)
        self._set(first.row // plan.config.turn_rows, first.column)

    def place(self) -> TilePlace:
        """The place of this turn."""
        row = bind("row", self._at[0]) * self._plan.config.turn_rows
        return TilePlace(row, bind("column", self._at[1]), self._origin)

    def on(self) -> None:
        """Advance to the warpgroup's next turn."""
        plan, consumers = self._plan, self._plan.config.consumers
        width = plan.pitch if plan.config.run_on else plan.row_tiles * TILE_PIXELS
        rows, columns = divmod(consumers * TILE_PIXELS, width)
        row, column = bind("row", self._at[0] + rows), bind("column", self._at[1] + columns)
        if not columns:
            self._set(row, column)
            return
        beyond = bind("beyond", column >= width)
        self._set(T.Select(beyond, row + 1, row), T.Select(beyond, column - width, column))

    def _set(self, row: Any, column: Any) -> None:
        T.buffer_store(self._at, row, [0])
        T.buffer_store(self._at, column, [1])


def indices(plan: BitsPlan) -> tuple[Any, Any, Any, Any]:
    """Block index, thread index, shared memory, and a one-word register array with the warp index, which the
    compiler knows to be the same for all lanes."""
    index, _ = T.cta_id([plan.launch.grid[0], 1])
    thread = T.thread_id([plan.threads])
    for name, value in (("index", index), ("thread", thread)):
        IRBuilder.name(name, value)
    shared = T.alloc_buffer((plan.shared_bytes // 4,), "uint32", scope="shared.dyn", align=1024)
    IRBuilder.name("shared", shared)
    warp = registers("warp_word", 1)
    op.first_lane(warp[0], T.cast(thread // 32, "uint32"))
    return index, thread, shared, warp


def coordinates(plan: BitsPlan, buffers: Mapping[str, Any]) -> Block:
    """The block of a thread, from its indices in the grid."""
    index, thread, shared, warp = indices(plan)
    whole, parts, first_column = bind("place", index // plan.slices), plan.config.row_parts, 0
    place = whole if parts == 1 else bind("rows_place", whole // parts)
    if parts > 1:
        part = whole % parts * (plan.row_tiles * TILE_PIXELS)
        first_column = bind("first_column", op.hidden("first_column", part))  # TVM would allow for bytes below 0
    return Block(
        plan, buffers["A"], buffers["Wt"], buffers.get("Prm"), buffers["Out"], buffers.get("Res"), buffers.get("Sum"),
        shared,
        base=bind("base", T.cuda.cvta_generic_to_shared(shared.ptr_to([0]))),
        thread=thread,
        warp=bind("warp", T.cast(warp[0], "int32")),
        lane=bind("lane", thread % 32),
        slice_=bind("slice", index % plan.slices),
        group=bind("group", place // plan.segments),
        first_row=bind("first_row", place % plan.segments * plan.config.tile_rows),
        first_column=first_column,
    )  # fmt: skip

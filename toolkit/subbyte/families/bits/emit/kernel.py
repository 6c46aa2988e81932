"""The TIRx function of a kernel: one warp copies, warpgroups take turns multiplying tiles of 8 pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.ahead import Ahead
from subbyte.families.bits.emit.block import Block, TilePlace, Walk, coordinates
from subbyte.families.bits.emit.counting import count_windows, wait_for_windows
from subbyte.families.bits.emit.epilogue import Epilogue
from subbyte.families.bits.emit.multiply import multiply
from subbyte.families.bits.emit.order import COUNTED_BORDER, READY, Stagger
from subbyte.families.bits.emit.rows import copy_rows, fill_border, set_up
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.tiles import TILE_PIXELS
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, registers, when
from subbyte.tirx.function import named_function


def bits_kernel(plan: BitsPlan) -> Any:
    """The TIRx function of a plan."""
    return named_function(plan, 1, _body)


def _body(plan: BitsPlan, buffers: Mapping[str, Any]) -> None:
    block = coordinates(plan, buffers)
    copier = 4 * plan.config.consumers
    leader = block.lane == 0
    with T.If(block.warp == copier):
        with T.Then():
            with when(leader):
                set_up(block)
            op.named_barrier(READY, plan.threads, wait=False)
            with when(leader):
                copy_rows(block)
        with T.Else():
            with when(block.warp < copier if plan.config.counted else True):
                fill_border(block)  # while the rows are in flight
                op.async_fence()
            op.named_barrier(READY, plan.threads, wait=True)
    if plan.config.counted:
        with T.If(block.warp >= copier):
            with T.Then():
                count_windows(block, copier)
            with T.Else():
                op.named_barrier(COUNTED_BORDER, 128 * plan.config.consumers + 32, wait=False)
                _consume(block)
    else:
        with when(block.warp < copier):
            _consume(block)


def _consume(block: Block) -> None:
    plan = block.plan
    block.wait(block.weight_barrier)
    epilogue = Epilogue(block)
    seen = registers("seen", 2)
    for i in range(2):
        T.buffer_store(seen, T.uint32(0), [i])
    warpgroup = bind("warpgroup", block.warp // 4)
    ahead = Ahead(plan, epilogue.shortcut, warpgroup)
    ahead.begin()
    consumers = plan.config.consumers
    turns = -(-plan.turns // consumers)
    walk = Walk(block, warpgroup)
    with loop("turn", turns, T.serial) as turn:
        tile = bind("tile", turn * consumers + warpgroup)
        order = Stagger(plan, turns, turn, warpgroup)
        exists = True if plan.turns % consumers == 0 else bind("exists", tile < plan.turns)
        with when(exists):
            place = walk.place()
            ahead.before(place, tile)
            _turn(block, epilogue, place, order, seen, tile, ahead)
        if plan.config.stagger and exists is not True:  # without a tile in the last turn it still keeps its place
            with when(T.Not(exists)):
                order.wait()
                order.arrive()
        walk.on()


def _turn(
    block: Block, epilogue: Epilogue, place: TilePlace, order: Stagger, seen: Any, tile: Any, ahead: Ahead
) -> None:
    """The tiles of a turn, from its rows to its outputs. Anything that does not depend on the products is computed
    while they run."""
    plan = block.plan
    last = plan.config.turn_rows - 1
    _wait_for_rows(block, place.below(last), seen)
    order.wait()
    counts = multiply(block, place)
    if plan.fusion.pool > 1:
        if plan.config.counted:
            wait_for_windows(block, place.below(last), seen)
        rows = [epilogue.pixels(place.below(further)) for further in range(last + 1)]
        op.wgmma_wait(0)
        order.arrive()
        epilogue.pooled(counts, rows)
        return
    ahead.during(tile)
    if plan.config.counted:
        wait_for_windows(block, place.below(last), seen)
    for further in range(last + 1):
        pixels = epilogue.pixels(place.below(further))
        added = ahead.added(place.below(further), further)
        op.wgmma_wait(last - further)
        if further == last:
            order.arrive()
        epilogue.tile(counts[further], pixels, added, further)
    ahead.end()


def _wait_for_rows(block: Block, place: TilePlace, seen: Any) -> None:
    """Wait for all staged rows up to the last one that a tile reads."""
    plan = block.plan
    last = place.row
    if plan.config.run_on:
        # between two rows there are non-existent pixels, whose windows extend into the next row
        beyond = max(0, (plan.view.s - 1) * plan.view.dilation - plan.view.pad)
        over = place.column + (TILE_PIXELS - 1 + beyond)
        last = T.min(last + over // plan.pitch, plan.config.tile_rows - 1)
    needed = bind("needed", T.cast(block.staged_row(last) + plan.window_rows, "uint32"))
    with T.While(seen[0] < needed):
        block.wait(block.row_barrier(seen[0]))
        T.buffer_store(seen, seen[0] + T.uint32(1), [0])

"""The TIRx function of a kernel: one warp begins the copies, then all warpgroups take tiles in turn."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.stem.emit.block import Block, coordinates
from subbyte.families.stem.emit.copies import copy_rows, set_up
from subbyte.families.stem.emit.epilogue import Epilogue
from subbyte.families.stem.emit.multiply import Places, begin_sums, multiply, places
from subbyte.families.stem.plan import StemPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, loop, when
from subbyte.tirx.function import kernel_function
from subbyte.workload.conv import ceil_div


def stem_kernel(plan: StemPlan) -> Any:
    """The TIRx function of a plan."""
    return kernel_function(plan, plan.config.min_blocks, _body)


def _body(plan: StemPlan, activations: Any, output: Any, parameters: Any, weights: Any) -> None:
    block = coordinates(plan, activations, output, parameters, weights)
    with when(block.thread == 0):
        set_up(block)
    if plan.config.dependent_launch:
        op.allow_next_launch()
        op.wait_for_previous_launch()
    with when(block.warp == 0):
        op.emit(T.cuda.warp_sync())
        copy_rows(block, block.first_rows, T.uint32(0), expect=False)
    T.evaluate(T.cuda.cta_sync())
    where, epilogue = places(block), Epilogue(block)
    if plan.begun:
        block.wait(block.barrier(T.uint32(0)), T.uint32(0))
        begin_sums(block)
    if plan.config.turns == 1:
        if not plan.begun:
            block.wait(block.barrier(T.uint32(0)), T.uint32(0))
        _turn(block, where, epilogue, T.uint32(0), block.first_rows)
        return
    with loop("turn", plan.config.turns, T.serial) as turn:
        rows = bind("rows", block.first_rows + turn)
        with when(_exists(plan, rows)):
            buffer = bind("buffer", T.cast(turn % 2, "uint32"))
            with when(every([block.warp == 0, turn + 1 < plan.config.turns, *_conditions(plan, rows + 1)])):
                copy_rows(block, rows + 1, T.uint32(1) - buffer)
            block.wait(block.barrier(buffer), T.cast(turn // 2 % 2, "uint32"))
            _turn(block, where, epilogue, buffer, rows)
        T.evaluate(T.cuda.cta_sync())  # all have read the buffer that the next turn's copies write


def _conditions(plan: StemPlan, rows: Any) -> list[Any]:
    return [rows < plan.row_groups] if plan.row_groups % plan.config.turns else []


def _exists(plan: StemPlan, rows: Any) -> Any:
    """The image has this group of output rows."""
    return every(_conditions(plan, rows))


def _turn(block: Block, where: Places, epilogue: Epilogue, buffer: Any, rows: Any) -> None:
    """All tiles of a group of output rows."""
    plan = block.plan
    consumers = plan.config.consumers
    with loop("step", ceil_div(plan.tiles, consumers), T.serial) as step:
        tile = bind("tile", step * consumers + block.warpgroup)
        inside = [tile < plan.tiles] if plan.tiles % consumers else []
        if plan.strips.units % plan.segment_units:
            inside.append(block.segment * plan.segment_units + tile // plan.strips.phases < plan.strips.units)
        with when(every(inside)):
            sums = multiply(block, where, buffer, tile)
            epilogue.store(sums, rows, tile)

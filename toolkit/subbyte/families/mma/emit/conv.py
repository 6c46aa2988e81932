"""The kernel: one convolution of packed 4-bit or 8-bit values on Tensor Cores, described by a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from subbyte.families.mma.emit.block import Block
from subbyte.families.mma.emit.epilogue import epilogue
from subbyte.families.mma.emit.multiply import begin_sums, multiply_stage
from subbyte.families.mma.emit.stage import load_parameters, load_stage
from subbyte.families.mma.plan import Plan
from subbyte.tirx.copies import commit, wait
from subbyte.tirx.emit import bind, loop, registers, when
from subbyte.tirx.function import named_function


def conv_kernel(plan: Plan) -> Any:
    """The TIRx function of a plan. Its buffers are flat; the plan's index maps give them meaning."""
    # Without a minimum number of blocks the compiler limits registers for occupancy, and spills.
    return named_function(plan, max(plan.config.min_blocks, 1), _body)


def _body(plan: Plan, buffers: Mapping[str, Any]) -> None:
    config = plan.config
    pixel_block, column_block = T.cta_id([plan.launch.grid[0], plan.launch.grid[1]])
    thread = T.thread_id([config.threads])
    for name, value in (("pixel_block", pixel_block), ("column_block", column_block), ("thread", thread)):
        IRBuilder.name(name, value)
    warp = thread // 32
    height, width = plan.pixel_tiles
    shared = T.alloc_buffer((plan.shared_bytes // 4,), "uint32", scope="shared.dyn", align=128)
    IRBuilder.name("shared", shared)
    block = Block(
        plan=plan,
        activations=buffers["A"],
        weights=buffers["Wt"],
        parameters=buffers.get("Prm"),
        output=buffers["Out"],
        residual=buffers.get("Res"),
        shared=shared,
        accumulators=registers("acc", plan.accumulators),
        thread=thread,
        lane=bind("lane", thread % 32),
        warp_row=bind("warp_row", warp % config.blk_row_warps),
        warp_col=bind("warp_col", warp // config.blk_row_warps % config.blk_col_warps),
        split=bind("split", warp // (config.blk_row_warps * config.blk_col_warps)),
        group=bind("group", pixel_block // (height * width)),
        row0=bind("row0", pixel_block // width % height * plan.tile[0]),
        col0=bind("col0", pixel_block % width * plan.tile[1]),
        column_block=column_block,
    )
    begin_sums(block)
    _main_loop(block)
    epilogue(block)


def _main_loop(block: Block) -> None:
    """A pipeline of stages: while one is multiplied, the next ``stages - 1`` are in flight."""
    stages, iterations = block.plan.stages, block.plan.iterations
    ahead = stages - 1
    for stage in range(max(ahead, 1)):
        load_stage(block, stage, stage)
        if stage == 0:
            load_parameters(block)
        commit(block.plan.arch)
    if iterations == 1:
        wait(block.plan.arch, 0)
        multiply_stage(block, 0)
        return
    with loop("k", iterations, T.serial) as k:
        wait(block.plan.arch, ahead - 1)
        with when(k + ahead < iterations):
            load_stage(block, (k + ahead) % stages, k + ahead)
        commit(block.plan.arch)
        multiply_stage(block, k % stages)

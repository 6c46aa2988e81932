"""The kernel: stage a chunk of K, transpose its activations, find the live positions, multiply these."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from subbyte.families.condense.emit.block import Block
from subbyte.families.condense.emit.epilogue import store
from subbyte.families.condense.emit.masks import find_live
from subbyte.families.condense.emit.multiply import multiply_chunk
from subbyte.families.condense.emit.stage import clear, load_activations, load_weights, transpose
from subbyte.families.condense.plan import CondensePlan
from subbyte.tirx.emit import bind, loop, registers, when
from subbyte.tirx.function import kernel_function


def condense_kernel(plan: CondensePlan) -> Any:
    """The TIRx function of a plan."""
    return kernel_function(plan, max(plan.config.min_blocks, 1), _body)


def _body(plan: CondensePlan, activations: Any, output: Any, parameters: Any, weights: Any) -> None:
    block = _coordinates(plan, activations, output, parameters, weights)
    with loop("i", plan.accumulators) as i:
        T.buffer_store(block.sums, T.uint32(0), [i])
    clear(block)
    load_activations(block, 0)
    load_weights(block, 0, 0)
    _commit()
    with loop("chunk", plan.chunks, T.serial) as chunk:
        buffer = bind("buffer", chunk % plan.buffers)
        _wait()
        transpose(block)
        T.evaluate(T.cuda.cta_sync())
        find_live(block, buffer)
        if plan.chunks > 1 and plan.buffers > 1:
            _load_next(block, chunk, activations=True, weights=True)
        T.evaluate(T.cuda.cta_sync())
        if plan.chunks > 1 and plan.buffers == 1:
            _load_next(block, chunk, activations=True, weights=False)
        multiply_chunk(block, buffer)
        if plan.chunks > 1 and plan.buffers == 1:
            T.evaluate(T.cuda.cta_sync())
            _load_next(block, chunk, activations=False, weights=True)
    store(block)


def _load_next(block: Block, chunk: Any, activations: bool, weights: bool) -> None:
    """Load the next chunk: activations after all threads have transposed the last ones, weights into an unused
    buffer."""
    plan = block.plan
    with when(chunk + 1 < plan.chunks):
        if activations:
            load_activations(block, chunk + 1)
        if weights:
            load_weights(block, chunk + 1, (chunk + 1) % plan.buffers)
    _commit()


def _commit() -> None:
    T.evaluate(T.ptx["cp.async.commit_group"]())


def _wait() -> None:
    T.evaluate(T.ptx["cp.async.wait_group"](0))
    T.evaluate(T.cuda.cta_sync())


def _coordinates(plan: CondensePlan, activations: Any, output: Any, parameters: Any, weights: Any) -> Block:
    rows, columns = T.cta_id([plan.launch.grid[0], plan.launch.grid[1]])
    thread = T.thread_id([plan.config.threads])
    for name, value in (("row_block", rows), ("column_block", columns), ("thread", thread)):
        IRBuilder.name(name, value)
    shared = T.alloc_buffer((plan.shared_bytes // 4,), "uint32", scope="shared.dyn", align=128)
    IRBuilder.name("shared", shared)
    warp = bind("warp", thread // 32)
    return Block(
        plan=plan, activations=activations, weights=weights, parameters=parameters, output=output, shared=shared,
        base=bind("base", T.cuda.cvta_generic_to_shared(shared.ptr_to([0]))),
        sums=registers("sums", plan.accumulators), thread=thread, lane=bind("lane", thread % 32), warp=warp,
        warp_row=bind("warp_row", warp % plan.config.row_warps),
        warp_col=bind("warp_col", warp // plan.config.row_warps),
        first_pixel=bind("first_pixel", rows * plan.block_pixels),
        first_panel=bind("first_panel", columns * plan.block_panels),
    )  # fmt: skip

"""Loading the pixels of a block's tile, and those around it that its taps read, into shared memory as bytes."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.image.emit.block import Block
from subbyte.families.image.plan import PIECE
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers, when


def load(block: Block) -> Any:
    """Read this thread's pieces; zeros for those outside the image."""
    plan, w = block.plan, block.plan.workload
    held = registers("pieces", 4 * plan.loads)
    for turn in range(plan.loads):
        index = bind("index", block.thread + turn * plan.config.threads)
        channel = index % plan.block_channels
        staged = bind("staged", index // plan.block_channels % plan.staged)
        phase = index // (plan.block_channels * plan.staged)
        place = bind("place", block.first + plan.place_of(staged))
        row = place // plan.pitch * w.stride + phase // plan.phases[1] - w.pad
        col = place % plan.pitch * w.stride + phase % plan.phases[1] - w.pad
        row, col = bind("row", row), bind("col", col)
        inside = T.And(T.And(row >= 0, row < w.h), T.And(col >= 0, col < w.w))
        if plan.pieces % plan.config.threads and turn == plan.loads - 1:
            inside = T.And(inside, index < plan.pieces)
        for i in range(4):
            T.buffer_store(held, T.uint32(0), [4 * turn + i])
        channel = block.rank * plan.block_channels + channel
        word = plan.word((w.h, w.w, w.channel_blocks), block.image, row, col, channel)
        with when(inside):
            op.load16(held, 4 * turn, block.activations.ptr_to([word]), "activations")
    return held


def store(block: Block, held: Any) -> None:
    """Unpack them and make them visible to wgmma: even channels in one plane, odd ones in the next."""
    plan = block.plan
    for turn in range(plan.loads):
        index = bind("index", block.thread + turn * plan.config.threads)
        channel = index % plan.block_channels
        staged = index // plan.block_channels % plan.staged
        phase = index // (plan.block_channels * plan.staged)
        plane = (phase * plan.block_channels + channel) * 2
        here = bind("here", block.base + T.cast(plane * plan.plane_bytes + staged * PIECE, "uint32"))
        words = [held[4 * turn + i] for i in range(4)]
        whole = plan.pieces % plan.config.threads == 0 or turn < plan.loads - 1
        with when(True if whole else index < plan.pieces):
            for half in range(2):
                values = [(word if half else word << T.uint32(4)) & T.uint32(LOW_NIBBLES) for word in words]
                op.store_shared16(here + T.uint32(half * plan.plane_bytes), values)
    op.async_fence()

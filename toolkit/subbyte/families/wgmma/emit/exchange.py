"""Partial sums between the blocks of a cluster: each block adds up and finishes a share of the pixels.

A sum goes straight from a register into the shared memory of the block that finishes it, where a
barrier counts its bytes (PTX ISA, st.async). Waiting for the bytes avoids a barrier of the whole cluster, whose release
would wait for all writes of the block to global memory too.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit.block import Block
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, registers, when


def exchange(block: Block, sums: Any) -> tuple[Any, Any]:
    """Send the sums of other blocks' pixels and add those that arrive; returns the finished sums of this block's share,
    and its first pixel. The barriers of all blocks of the cluster must have been initialized."""
    plan = block.plan
    share, split = plan.exchange_pixels, plan.knobs.cluster_split_k
    for other in range(split):
        with when(block.rank != other):
            _send(block, sums, other)
    finished = registers("finished", 4 * share)
    for rank in range(split):
        with when(block.rank == rank), loop("i", 4 * share) as i:
            T.buffer_store(finished, sums[rank * 4 * share + i], [i])
    block.wait(block.exchange_barrier(block.warpgroup), T.uint32(0))
    part = registers("part", 4)
    for step in range(1, split):
        source = bind("source", (block.rank + step) % split)
        start = bind("start", block.base + T.cast(_offset(block, source), "uint32"))
        with loop("pixel", share) as pixel:
            op.load_shared16(part, start + T.cast(pixel * _pitch(block), "uint32"))
            with loop("i", 4) as i:
                T.buffer_store(finished, finished[pixel * 4 + i] + part[i], [pixel * 4 + i])
    return finished, bind("first_pixel", block.rank * share)


def _pitch(block: Block) -> int:
    """Bytes of one pixel of all threads."""
    return 16 * 128 * block.plan.knobs.consumers


def _offset(block: Block, source: Any) -> Any:
    """Byte offset in shared memory of a thread's partial sums from block ``source``."""
    plan = block.plan
    return plan.exchange_base + source * (plan.exchange_pixels * _pitch(block)) + block.thread * 16


def _send(block: Block, sums: Any, other: int) -> None:
    """Write the sums that block ``other`` finishes into its shared memory."""
    place, barrier = registers("place", 1), registers("peer_barrier", 1)
    home = (
        T.uint32(other)
        if block.plan.multicast_blocks == 1
        else T.cast(block.multicast_rank * block.plan.knobs.cluster_split_k + other, "uint32")
    )
    op.remote_address(place[0], block.base + T.cast(_offset(block, block.rank), "uint32"), home)
    op.remote_address(barrier[0], block.exchange_barrier(block.warpgroup), home)
    share = block.plan.exchange_pixels
    with loop("pixel", share) as pixel:
        first = (other * share + pixel) * 4
        words = [sums[first + i] for i in range(4)]
        op.store_remote16(place[0] + T.cast(pixel * _pitch(block), "uint32"), words, barrier[0])

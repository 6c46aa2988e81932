"""Partial sums of the warpgroups that share input channels: each finishes some core matrices of pixels.

Within a block they go through shared memory; in a cluster directly to that of the block that finishes them, where a
barrier counts their bytes (PTX ISA, st.async).
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.image.emit.block import Block
from subbyte.families.image.plan import EXCHANGED_BYTES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, registers, when


def set_up(block: Block) -> None:
    """Initialize the barrier before any block sends."""
    plan, config = block.plan, block.plan.config
    if config.cluster_split_k == 1:
        return
    with when(block.thread == 0):
        op.barrier_init(block.barrier, 1)
        op.barrier_init_fence()
        count: Any = T.int32(0)
        for part in range(config.channel_warpgroups):
            way = block.rank * config.channel_warpgroups + part
            count = count + (plan.groups - way + config.ways - 1) // config.ways
        op.barrier_expect(block.barrier, count * (config.filter_warpgroups * config.ways * EXCHANGED_BYTES))
    op.emit(T.cuda.warp_sync())
    op.cluster_arrive(release=False)


def exchange(block: Block, sums: Any) -> Any:
    """The finished sums of this warpgroup's core matrices: ``way``, ``way + ways`` and so on."""
    plan, config = block.plan, block.plan.config
    if config.ways == 1:
        return sums
    if config.cluster_split_k > 1:
        op.cluster_wait()
    for group in range(plan.groups):
        _send(block, sums, group)
    if config.cluster_split_k > 1:
        _wait(block)
    else:
        T.evaluate(T.cuda.cta_sync())
    finished, part = registers("finished", 4 * plan.slots), registers("part", 4)
    for slot in range(plan.slots):
        exists = (slot + 1) * config.ways <= plan.groups or slot * config.ways + block.way < plan.groups
        with when(exists):
            for way in range(config.ways):
                start = bind("start", block.base + T.cast(_offset(block, slot, block.part, way), "uint32"))
                op.load_shared16(part, start)
                with loop("i", 4) as i:
                    earlier = finished[4 * slot + i] if way else T.uint32(0)
                    T.buffer_store(finished, earlier + part[i], [4 * slot + i])
    return finished


def _offset(block: Block, slot: int, part: Any, way: Any) -> Any:
    """Offset of this thread's sums of a core matrix, from a way, for the warpgroup of ``part``."""
    config = block.plan.config
    owner = (slot * config.channel_warpgroups + part) * config.filter_warpgroups + block.m
    return block.plan.exchange_base + (owner * config.ways + way) * EXCHANGED_BYTES + block.member * 16


def _send(block: Block, sums: Any, group: int) -> None:
    config = block.plan.config
    slot, owner = divmod(group, config.ways)
    rank, part = divmod(owner, config.channel_warpgroups)
    words = [sums[4 * group + i] for i in range(4)]
    here = bind("to", block.base + T.cast(_offset(block, slot, part, block.way), "uint32"))
    if config.cluster_split_k == 1:
        op.store_shared16(here, words)
        return
    place, barrier = registers("place", 1), registers("peer_barrier", 1)
    op.remote_address(place[0], here, T.uint32(rank))
    op.remote_address(barrier[0], block.barrier, T.uint32(rank))
    op.store_remote16(place[0], words, barrier[0])


def _wait(block: Block) -> None:
    done = registers("done", 1)
    T.buffer_store(done, T.uint32(0), [0])
    with T.While(done[0] == T.uint32(0)):
        op.barrier_try_wait(done[0], block.barrier, T.uint32(0))

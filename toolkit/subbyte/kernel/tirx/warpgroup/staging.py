"""Input rows by bulk copies: packed parts wait in staging slots in shared memory until a producer unpacks them.

A bulk copy takes no registers while it is on its way, so that several parts can be. In a cluster of blocks that compute
other output channels of the same pixels every block asks for its share of the pixels and sends them to all of them (PTX
ISA, cp.async.bulk with .multicast::cluster), which divides what has to come from the L2.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.kernel.tirx.emit import bind, every, loop, registers, when
from subbyte.kernel.tirx.warpgroup import instructions as op
from subbyte.kernel.tirx.warpgroup import produce as producer
from subbyte.kernel.tirx.warpgroup.block import Block
from subbyte.kernel.tirx.warpgroup.consume import consume
from subbyte.kernel.tirx.warpgroup.fetch import Fetch
from subbyte.schedule.warpgroup_memory import PACKED_BYTES, STAGED_AT_ONCE
from subbyte.workload.conv import ceil_div

LANES = 32


def staged(block: Block, fetch: Fetch) -> None:
    """Emit everything behind the coordinates."""
    config = block.plan.config
    consumer_registers, producer_registers = block.plan.registers
    uneven = consumer_registers != producer_registers
    consumes = block.warpgroup < config.consumers
    with when(consumes):
        fetch.start()  # weights do not depend on the launch before this one
    block.set_up_barriers()
    if config.share > 1:
        op.cluster_arrive(release=False)
        op.cluster_wait()  # copies and arrivals of the others need this block's barriers
    else:
        op.emit(T.cuda.cta_sync())
    if config.overlap:
        op.allow_next_launch()
        op.wait_for_previous_launch()
    with T.If(consumes):
        with T.Then():
            if uneven:
                op.set_registers(consumer_registers, more=True)
            if config.share > 1:
                op.cluster_arrive(release=False)  # it is the producers that reach into other blocks
            consume(block, fetch)
        with T.Else():
            if uneven:
                op.set_registers(producer_registers, more=False)
            _produce(block)
            if config.share > 1:
                op.cluster_arrive()
    if config.share > 1:
        op.cluster_wait()  # no block may end while another one arrives at its barriers


def _produce(block: Block) -> None:
    """A producer warpgroup: part after part, those behind on their way. Its first warp asks for them."""
    config = block.plan.config
    apart, slots = config.producers, config.staging
    first = 0 if apart == 1 else bind("first", block.warpgroup - config.consumers)
    copies = block.member < LANES
    with when(copies):
        for turn in range(slots // apart):
            part = first + turn * apart
            with when(part < block.parts):
                _copy(block, part)
    parameters = block.load_parameters()
    turns = bind("turns", (block.parts - first + (apart - 1)) // apart)
    with loop("turn", turns, T.serial) as turn:
        part = bind("part", first + turn * apart)
        _unpack(block, part)
        with when(turn == 0):
            block.keep_parameters(parameters)
        # a slot emptied a turn ago: the other blocks of the cluster have had time to do the same
        following = bind("following", part + (slots - apart))
        with when(every([copies, turn > 0, following < block.parts])):
            block.wait(block.unstaged(_stage(block, following)), _turn(block, following) ^ T.uint32(1))
            _copy(block, following)


def _stage(block: Block, part: Any) -> Any:
    """Staging slot of a part."""
    return T.cast(part, "uint32") % T.uint32(block.plan.config.staging)


def _turn(block: Block, part: Any) -> Any:
    """Parity of how often the part's staging slot was filled before."""
    return T.cast(part, "uint32") // T.uint32(block.plan.config.staging) % T.uint32(2)


def _address(block: Block, stage: Any) -> Any:
    """Byte address of a staging slot."""
    return block.base + T.uint32(block.plan.staging_base) + stage * T.uint32(block.plan.staging_slot_bytes)


def _copy(block: Block, part: Any) -> None:
    """One warp asks for this block's share of a part, a pixel for each lane, and says how many bytes will come."""
    plan, config, w = block.plan, block.plan.config, block.plan.workload
    width, size = plan.width_covered, plan.staged_pixel_bytes
    row, group, _ = producer.part_place(block, part)
    first = bind("first_pixel", row * width)
    stage = bind("stage", _stage(block, part))
    with when(block.lane == 0):
        op.barrier_expect(block.staged(stage), width * size)
    op.emit(T.cuda.warp_sync())
    channel0 = plan.tap_of(group)[0] * plan.channels
    image_group = block.group * (w.h * w.w * w.channel_blocks * plan.block_words)
    rank = block.filter_block % config.share if config.share > 1 else 0
    for turn in range(ceil_div(width, LANES * config.share)):
        pixel = bind("pixel", (block.lane + turn * LANES) * config.share + rank)
        with when(True if (turn + 1) * LANES * config.share <= width else pixel < width):
            place = bind("place", T.min(first + pixel, plan.flat_pixels - 1))  # slots are always filled
            if config.flatten:
                place = bind("input_place", producer.strided_pixel(plan, place))
            source = image_group + (place * w.channel_blocks + channel0) * plan.block_words
            target = _address(block, stage) + T.cast(pixel * size, "uint32")
            ranks = T.uint16((1 << config.share) - 1) if config.share > 1 else None
            op.bulk_copy(target, block.activations.ptr_to([source]), size, block.staged(stage), ranks)


def _unpack(block: Block, part: Any) -> None:
    """Wait for a part, unpack it into its slot of the ring, say so, and give its staging slot back."""
    plan = block.plan
    where = producer.Columns(0, 0, None)
    stage, slot = bind("stage", _stage(block, part)), bind("slot", block.slot(part))
    block.wait(block.staged(stage), _turn(block, part))
    with when(part >= plan.config.ring):
        block.wait(block.empty(slot), block.turn(part) ^ T.uint32(1))
    start = bind("staged_part", _address(block, stage) + T.cast(block.member % 8 * producer.PIECE, "uint32"))
    held = registers("staged_words", 4 * STAGED_AT_ONCE)
    for first in range(0, plan.copies, STAGED_AT_ONCE):
        turns = range(first, min(first + STAGED_AT_ONCE, plan.copies))
        for index, turn in enumerate(turns):
            block_index, column = plan.copy_place(turn, block.member // 8)
            if not producer.exact(block, turn, None):  # no condition around a load: its words would need local memory
                column = T.min(column, plan.columns_loaded - 1)
            offset = (column * plan.channels + block_index) * PACKED_BYTES
            op.load_shared16(held, start + T.cast(offset, "uint32"), 4 * index)
        producer.unpack_part(block, where, held, slot, turns=turns)
    op.async_fence()
    op.emit(T.cuda.warp_sync())
    block.arrive(block.full(slot))
    _give_back(block, stage)


def _give_back(block: Block, stage: Any) -> None:
    """Say to every block of the cluster that this warp has emptied a staging slot."""
    share = block.plan.config.share
    if share == 1:
        block.arrive(block.unstaged(stage))
        return
    with when(block.lane < share):
        peer = registers("peer", 1)
        op.peer_address(peer[0], block.unstaged(stage), T.cast(block.lane, "uint32"))
        op.barrier_arrive_peer(peer[0])

"""The kernel: one convolution of packed int4 on warpgroup matrix instructions, described by a plan."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from subbyte.families.wgmma.emit import instructions as op
from subbyte.families.wgmma.emit import produce as producer
from subbyte.families.wgmma.emit.at_once import at_once
from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.emit.consume import consume
from subbyte.families.wgmma.emit.fetch import Fetch
from subbyte.families.wgmma.emit.single import single
from subbyte.families.wgmma.emit.zeros import zero_padding
from subbyte.families.wgmma.plan import WarpgroupPlan
from subbyte.tirx.emit import bind, registers, when
from subbyte.tirx.function import kernel_function

SET_UP = 3
"""Named barriers of a lean start that say that the others are set up: one for each consumer, and one for the producer
itself."""


def warpgroup_kernel(plan: WarpgroupPlan) -> Any:
    """The TIRx function of a plan. Its buffers are flat; the plan's index maps give them meaning."""
    return kernel_function(plan, plan.config.blocks, _body)


def _body(plan: WarpgroupPlan, activations: Any, output: Any, parameters: Any, weights: Any) -> None:
    config = plan.config
    block = _coordinates(plan, activations, output, parameters, weights)
    if config.at_once or config.bulk_weights:
        at_once(block) if config.at_once else single(block)
        return
    fetch = Fetch.begin(block)
    lean = bool(config.lean_start)
    if config.overlap:
        if not lean:
            _first_weights(block, fetch)  # they do not depend on the launch before this one
        op.allow_next_launch()
        op.wait_for_previous_launch()
    where = producer.columns(block)
    held = producer.row_registers(block, "row_words")
    following = producer.row_registers(block, "next_row") if config.load_ahead == 2 else None
    producer.load_first(block, where, held, following)
    if lean:  # nobody waits for the whole block
        _first_weights(block, fetch)  # rows have the longer way to go
        with when(block.warpgroup < config.consumers):
            zero_padding(block, where)
        _roles(block, fetch, where, held, following, None)
        return
    if not config.overlap:
        _first_weights(block, fetch)
    block.set_up_barriers()
    if config.split > 1:
        op.cluster_arrive(release=False)  # says that the block has begun and that its barriers are set up
    op.emit(T.cuda.cta_sync())
    # all this happens while the first rows are on their way
    parameters_held = block.load_parameters()
    zero_padding(block, where)
    _roles(block, fetch, where, held, following, parameters_held)


def _first_weights(block: Block, fetch: Fetch) -> None:
    with when(block.warpgroup < block.plan.config.consumers):
        fetch.start()


def _roles(block: Block, fetch: Fetch, where: producer.Columns, held: Any, following: Any, parameters: Any) -> None:
    """What each warpgroup does from here on. The first part of every consumer is already in its registers."""
    config = block.plan.config
    consumer_registers, producer_registers = block.plan.registers
    uneven = consumer_registers != producer_registers
    with T.If(block.warpgroup < config.consumers):
        with T.Then():
            if uneven:
                op.set_registers(consumer_registers, more=True)
            _store_first(block, where, held)
            if config.split > 1:
                op.cluster_wait()  # far from its arrival and far from the exchange: it costs nothing here
            consume(block, fetch)
        with T.Else():
            if config.lean_start:
                block.set_up_barriers()
                for consumer in range(config.consumers):
                    op.named_barrier(SET_UP + consumer, 256, wait=False)
            if uneven:
                op.set_registers(producer_registers, more=False)
            if config.lean_start:
                if not config.producer_late:
                    producer.load_second(block, where, following)
                parameters = block.load_parameters()
                zero_padding(block, where)
                op.named_barrier(SET_UP + config.consumers, 128, wait=True)
            producer.produce(block, where, held, following, lambda: block.keep_parameters(parameters))
            if config.split > 1:
                op.cluster_wait()


def _store_first(block: Block, where: producer.Columns, held: Any) -> None:
    """Put a consumer's first part into its slot. In a lean start the barriers have to be set up only now."""
    lean, exists = block.plan.config.lean_start, block.warpgroup < block.parts
    with when(exists):
        producer.store_part(block, where, held, block.warpgroup, arrive=not lean)
    if lean:
        op.named_barrier(SET_UP + block.warpgroup, 256, wait=True)
        with when(exists):
            block.arrive(block.full(block.slot(block.warpgroup)))


def _coordinates(plan: WarpgroupPlan, activations: Any, output: Any, parameters: Any, weights: Any) -> Block:
    config = plan.config
    tile, place = T.cta_id(list(plan.grid))
    thread = T.thread_id([config.threads])
    for name, value in (("tile", tile), ("place", place), ("thread", thread)):
        IRBuilder.name(name, value)
    shared = T.alloc_buffer((plan.shared_bytes // 4,), "uint32", scope="shared.dyn", align=1024)
    IRBuilder.name("shared", shared)
    warpgroup = registers("warpgroup", 1)
    op.first_lane(warpgroup[0], T.cast(thread // 128, "uint32"))
    filter_block, place, peer, lonely = _neighbours(plan, tile, place)
    per_group = plan.x_tiles * config.segments
    alone = plan.image_groups == 1
    segment = bind("segment", place // plan.x_tiles if alone else place // plan.x_tiles % config.segments)
    first_row = bind("first_row", plan.segment_start(segment))
    end_row = bind("end_row", plan.segment_end(segment))
    first_staged, parts = _parts(plan, first_row, end_row)
    return Block(
        plan=plan,
        activations=activations,
        weights=weights,
        parameters=parameters,
        output=output,
        shared=shared,
        base=bind("base", T.cuda.cvta_generic_to_shared(shared.ptr_to([0]))),
        thread=thread,
        warpgroup=bind("wg", T.cast(warpgroup[0], "int32")),
        member=bind("member", thread % 128),
        lane=bind("lane", thread % 32),
        group=0 if alone else bind("group", _times(place // per_group, config.image_groups)),
        first_row=first_row,
        end_row=end_row,
        cut=plan.cut(segment) if config.half_rows else 0,
        tile_x=bind("tile_x", place % plan.x_tiles),
        filter_block=bind("filter_block", filter_block),
        rank=bind("rank", tile % config.split),
        peer=peer,
        lonely=lonely,
        first_staged=first_staged,
        parts=parts,
    )


def _neighbours(plan: WarpgroupPlan, tile: Any, place: Any) -> tuple[Any, Any, Any, Any]:
    """Block of output channels and place of a block, its index among those that share weights, and whether it is none
    of them after all."""
    split, peers = plan.config.split, plan.peers
    if peers == 1:
        return tile // split, place, 0, False
    peer = bind("peer", tile // split % peers)
    if not plan.odd_places:
        return tile // (split * peers), bind("my_place", place * peers + peer), peer, False
    pairs = plan.places // 2
    beyond = bind("beyond", place - plan.filter_blocks * pairs)
    lonely = bind("lonely", beyond >= 0)
    filter_block = T.Select(lonely, beyond * 2 + peer, place // pairs)
    return (
        filter_block,
        bind("my_place", T.Select(lonely, T.int32(plan.places - 1), place % pairs * 2 + peer)),
        peer,
        lonely,
    )


def _times(value: Any, factor: int) -> Any:
    return value if factor == 1 else value * factor


def _parts(plan: WarpgroupPlan, first_row: Any, end_row: Any) -> tuple[Any, Any]:
    """First staged row of the block's segment that the image has, and the number of parts the ring takes."""
    config = plan.config
    low, high = plan.row_range
    step, taps = plan.rows.pixel_step, (plan.tap_rows - 1) * plan.rows.tap_step
    first = bind("first_staged", T.max(first_row * step, low))
    if plan.keep_rows:
        last = T.min((end_row - 1) * step + taps, high)
        return first, bind("parts", (last - first + 1) * config.channel_groups)
    passes = (end_row - first_row + plan.rows_together - 1) // plan.rows_together * config.filter_passes
    parts = bind("parts", passes * plan.groups * plan.group_parts)
    if any(n & (n - 1) for n in (plan.group_parts, plan.groups, config.filter_passes)):
        # Where the range is known, NVVM 13.0 computes an index such as ``(turn + 2) % 3 * 16`` in 8 bits, as
        # ``16 * turn - 48 * ((turn + 2) / 3)``, and adds the 32 taken out of it to the address: it wrapped around.
        parts = op.hidden("parts_hidden", parts)
    return first, parts

"""A block that does a single pass and loads everything for it at once: input rows and weights, both unpacked in shared
memory before they are multiplied.

Nothing goes round: every row and every fragment has a place of its own, and wgmma takes both operands from shared
memory, so that the multiplying warpgroup issues one after the other without touching a register between them.

Stage ``t`` is what kernel row ``t`` needs beyond the stages before it: input rows and the row's weights. The consumers
load the first stage, which they wait for anyway, before anything else happens. What limits is how fast the caches of
the whole GPU answer, so the other warpgroups ask for the other stages only behind that, but for weights while the
launch before this one still runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.wgmma.emit import instructions as op
from subbyte.families.wgmma.emit import produce as producer
from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.emit.epilogue import epilogue
from subbyte.families.wgmma.emit.zeros import zero_columns
from subbyte.families.wgmma.memory import FRAGMENT_WORDS, OPERAND_BYTES, PIXEL_BYTES
from subbyte.families.wgmma.plan import WarpgroupPlan
from subbyte.tirx.emit import bind, registers, when

CORE_BYTES = 128
"""A core matrix: 8 rows of 16 bytes."""
OPERAND_LOW, OPERAND_HIGH = CORE_BYTES // 16 << 16, 2 * CORE_BYTES // 16
"""A descriptor of weights without the address: bytes/16 between the halves of K, and between groups of 8 channels."""


@dataclass
class Load:
    """An input row, or (``part`` None) one weight fragment; ``place``: its first word among those a thread holds."""

    place: int
    part: int | None = None
    tile: int = 0
    fragment: int = 0


Stages = list[tuple[int, list[Load]]]
"""The stages that a warpgroup fills, with the loads of each."""


def at_once(block: Block) -> None:
    """Emit everything behind the coordinates."""
    plan, config = block.plan, block.plan.config
    where = producer.columns(block)
    held = registers("held", 4 * plan.loads_at_once)
    work = _work(plan)
    first = work[: config.consumers]
    with when(block.warpgroup >= config.consumers):
        zero_columns(block, where)
        op.async_fence()
    if config.overlap:
        _each(block, work, lambda loads: _load_weights(block, held, loads))  # no launch before this one changes them
        op.allow_next_launch()
        op.wait_for_previous_launch()
    _each(block, first, lambda loads: _load_rows(block, where, held, loads))
    if not config.overlap:  # rows have the longer way to go
        _each(block, first, lambda loads: _load_weights(block, held, loads))
    block.set_up_barriers()
    if config.split > 1:
        op.cluster_arrive(release=False)  # says that the block has begun and that its barriers are set up
    op.emit(T.cuda.cta_sync())
    parameters = block.load_parameters()
    with T.If(block.warpgroup < config.consumers):
        with T.Then():
            _each(block, first, lambda loads: _fill(block, where, held, 0, loads))
            if config.split > 1:
                op.cluster_wait()
            sums = _multiply(block)
            count = bind("rows", block.end_row - block.first_row)
            epilogue(block, sums, block.first_row, count, 0)
        with T.Else():
            for warpgroup, stages in enumerate(work):
                if warpgroup >= config.consumers:
                    with when(block.warpgroup == warpgroup):
                        _other_stages(block, where, held, stages)
            with when(block.warpgroup == config.consumers):
                block.keep_parameters(parameters)
            if config.split > 1:
                op.cluster_wait()


def _other_stages(block: Block, where: producer.Columns, held: Any, stages: Stages) -> None:
    """Load and unpack what a warpgroup that only loads has to."""
    for _, loads in stages:
        if not block.plan.config.overlap:
            _load_weights(block, held, loads)
        _load_rows(block, where, held, loads)
    # a loop between loads and stores keeps the compiler from waiting for words among the loads
    block.wait(block.full(T.uint32(0)), T.uint32(0))
    for stage, loads in stages:
        _fill(block, where, held, stage, loads)


def _work(plan: WarpgroupPlan) -> list[Stages]:
    """For every warpgroup the stages it fills, with the loads of each."""
    config = plan.config
    work: list[Stages] = [[] for _ in range(config.consumers + config.at_once)]
    words = [0] * len(work)

    def give(warpgroup: int, stage: int, wanted: list[Load]) -> None:
        for load in wanted:
            load.place = words[warpgroup]
            words[warpgroup] += 4 if load.part is None else 4 * plan.copies
        work[warpgroup].append((stage, wanted))

    for stage, (parts, fragments) in enumerate(plan.stages):
        loads = [Load(0, part) for part in parts]
        loads += [Load(0, None, tile, fragment) for tile in range(config.groups_m) for fragment in fragments]
        if stage:
            give(config.consumers + (stage - 1) % config.at_once, stage, loads)
            continue
        for consumer in range(config.consumers):
            give(consumer, 0, loads[consumer :: config.consumers])
    return work


def _each(block: Block, work: list[Stages], emit: Callable[[list[Load]], None]) -> None:
    """``emit`` for the loads of every warpgroup, each inside its branch."""
    for warpgroup, stages in enumerate(work):
        with when(block.warpgroup == warpgroup):
            emit([load for _, loads in stages for load in loads])


def _load_weights(block: Block, held: Any, loads: list[Load]) -> None:
    plan = block.plan
    for load in loads:
        if load.part is None:
            tile = block.filter_block * plan.config.groups_m + load.tile
            start = plan.fragment_word(tile, block.rank) + block.member * 4
            pointer = block.weights.ptr_to([start + load.fragment * FRAGMENT_WORDS])
            op.load16(held, load.place, pointer, "weights")


def _load_rows(block: Block, where: producer.Columns, held: Any, loads: list[Load]) -> None:
    for load in loads:
        if load.part is not None:
            producer.load_part(block, where, held, load.part, load.place)


def _fill(block: Block, where: producer.Columns, held: Any, stage: int, loads: list[Load]) -> None:
    """Unpack a warpgroup's words of a stage, and say that they are there."""
    for load in loads:
        if load.part is None:
            _store_weights(block, held, load)
        else:
            producer.unpack_part(block, where, held, T.uint32(load.part), load.place)
    op.async_fence()
    op.emit(T.cuda.warp_sync())
    block.arrive(block.full(T.uint32(stage)))


def _store_weights(block: Block, held: Any, load: Load) -> None:
    """Unpack 16 bytes of a fragment: word ``i`` holds four bytes of a row of core matrix (i % 2, i // 2) of the warp's
    16 channels."""
    plan = block.plan
    operand = (load.tile * plan.fragments + load.fragment) * plan.halves
    start = block.base + T.cast(block.member // 32 * (4 * CORE_BYTES) + block.lane * 4, "uint32")
    for half in range(plan.halves):
        for i in range(4):
            word = held[load.place + i]
            value = (word << T.uint32(4) if half == 0 else word) & T.uint32(LOW_NIBBLES)
            core = i % 2 * 2 + i // 2
            place = plan.weight_base + (operand + half) * OPERAND_BYTES + core * CORE_BYTES
            op.store_shared4(start + T.uint32(place), value)


def _multiply(block: Block) -> Any:
    """All multiplications of a consumer."""
    plan = block.plan
    sums = registers("acc", plan.accumulators)
    weights = T.cast(plan.weight_base + block.m * (plan.fragments * plan.halves * OPERAND_BYTES), "uint32")
    pixels = T.cast(block.x * (plan.config.tile_width * plan.cols.pixel_step * PIXEL_BYTES), "uint32")
    left, right = registers("left", 1), registers("right", 1)
    op.describe(left[0], block.base + weights, OPERAND_LOW)
    op.describe(right[0], block.base + pixels, plan.descriptor_low)
    op.wgmma_fence()
    begun = False
    for tap in range(plan.workload.r):
        block.wait(block.full(T.uint32(tap)), T.uint32(0))
        for operand in range(plan.run * plan.halves):
            fragment, half = operand // plan.halves, operand % plan.halves
            step, column = fragment // plan.workload.s, fragment % plan.workload.s
            a = left[0] + T.uint32((tap * plan.run * plan.halves + operand) * (OPERAND_BYTES // 16))
            for row in range(plan.config.tile_rows):
                part = row * plan.rows.pixel_step + tap * plan.rows.tap_step
                plane = (step * plan.halves + half) * plan.pitch + column * plan.cols.tap_step
                b = right[0] + T.uint32((part * plan.slot_bytes + plane * PIXEL_BYTES) // 16)
                _wgmma(block, sums, row, a, b, begun)
            begun = True
        op.wgmma_commit()
    op.wgmma_wait(0)
    return sums


def _wgmma(block: Block, sums: Any, row: int, left: Any, right: Any, adds: bool) -> None:
    plan = block.plan
    count = 4 * plan.config.tile_width
    a, b = (
        T.cast(T.uint32(high), "uint64") << T.uint64(32) | T.cast(low, "uint64")
        for high, low in ((OPERAND_HIGH, left), (plan.descriptor_high, right))
    )
    op.emit(T.ptx[plan.atom.ptx](*[sums[row * count + i] for i in range(count)], a, b, T.ptx.pred(T.uint32(adds))))

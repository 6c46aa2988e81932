"""The TIRx function of a kernel: each warpgroup writes, multiplies and requantizes the windows of its turns."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.stem.emit.block import Block, Turn, coordinates, turn_of
from subbyte.families.stem.emit.channel_rows import ChannelRows
from subbyte.families.stem.emit.constants import begin_sums, set_up
from subbyte.families.stem.emit.epilogue import Epilogue
from subbyte.families.stem.emit.multiply import Multiplier
from subbyte.families.stem.emit.write import Writer
from subbyte.families.stem.plan import StemPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, loop, when
from subbyte.tirx.function import kernel_function


def stem_kernel(plan: StemPlan) -> Any:
    """The TIRx function of a plan."""
    return kernel_function(plan, plan.config.min_blocks, _body)


def _body(plan: StemPlan, activations: Any, output: Any, parameters: Any, weights: Any) -> None:
    block = coordinates(plan, activations, output, parameters, weights)
    with when(block.thread == 0):
        set_up(block)
    writer = Writer(block)
    early = bool(plan.config.ahead) or plan.config.turns == 1
    if plan.config.dependent_launch:
        op.allow_next_launch()
        op.wait_for_previous_launch()
    if early:  # load the first words while weights and parameters arrive
        _read(writer, block.first_turn)
    T.evaluate(T.cuda.cta_sync())
    block.wait()
    if plan.begun:
        begin_sums(block)
        op.async_fence()
        T.evaluate(T.cuda.cta_sync())
    multiplier, epilogue = Multiplier(block), (ChannelRows if plan.config.held_weights else Epilogue)(block)
    with loop("turn", plan.config.turns, T.serial) as count:
        number = bind("number", block.first_turn + count)
        with when(_exists(plan, number)):
            turn = turn_of(plan, number)
            buffer = T.cast(count % 2, "uint32") if plan.buffers > 1 else T.uint32(0)
            if not early:
                writer.read(turn)
            writer.write(buffer)
            if plan.config.ahead:
                with when(count + 1 < plan.config.turns):
                    _read(writer, number + 1)
            _tiles(block, multiplier, epilogue, buffer, turn)
            if plan.config.turns > plan.buffers == 1:
                block.meet()


def _exists(plan: StemPlan, number: Any) -> Any:
    """Whether the layer has a turn with this index."""
    whole = plan.config.turns * plan.config.consumers
    return every([number < plan.all_turns] if plan.all_turns % whole else [])


def _read(writer: Writer, number: Any) -> None:
    """Start reading the words of a turn, if it exists."""
    plan = writer.block.plan
    with when(_exists(plan, number)):
        writer.read(turn_of(plan, number))


def _tiles(block: Block, multiplier: Multiplier, epilogue: Epilogue | ChannelRows, buffer: Any, turn: Turn) -> None:
    """All tiles of a turn."""
    plan = block.plan
    rows = range(0, plan.config.turn_rows, plan.config.together)
    if plan.behind:
        both = [multiplier.sums() for _ in range(2)]
        groups = [(tile, row) for tile in range(plan.tiles) for row in rows]
        multiplier.multiply(both[0], buffer, *groups[0])
        for number, (tile, row) in enumerate(groups):
            more = groups[number + 1 : number + 2]
            for following in more:
                multiplier.multiply(both[(number + 1) % 2], buffer, *following)
            op.wgmma_wait(len(more))
            epilogue.store(both[number % 2], turn, tile, row)
        return
    # Where sums are not finished by instructions in a fixed order, the assembler begins the next row's products before
    # the last row's results are stored, in other registers for each row: for four rows one array keeps it from that.
    own = None if plan.begun or len(rows) <= 2 else multiplier.sums()
    with loop("tile", plan.tiles, T.serial) as tile:
        inside: list[Any] = []
        if plan.strings.units % plan.segment_units:
            inside.append(turn.segment * plan.segment_units + tile // plan.strings.phases < plan.strings.units)
        with when(every(inside)):
            for row in rows:
                sums = multiplier.sums() if own is None else own
                multiplier.multiply(sums, buffer, tile, row)
                op.wgmma_wait(0)
                epilogue.store(sums, turn, tile, row)

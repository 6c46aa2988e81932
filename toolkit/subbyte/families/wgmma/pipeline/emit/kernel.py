"""A block with a pipeline of input rows: producers load them, consumers multiply."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.emit.rows import Columns, columns, row_registers
from subbyte.families.wgmma.emit.zeros import zero_padding
from subbyte.families.wgmma.pipeline.emit import produce as producer
from subbyte.families.wgmma.pipeline.emit.consume import Iteration, consume
from subbyte.families.wgmma.pipeline.emit.fetch import Fetch
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import when

SET_UP = 3
"""First of the named barriers that signal, with a lean start, that the others are initialized: one for each consumer,
and one for the producer itself."""


def pipeline(block: Block, weights: type[Fetch] = Fetch, iteration: type[Iteration] = Iteration) -> None:
    """Emit everything after the coordinates; ``weights`` fetches them for tile iterations of type ``iteration``."""
    config = block.plan.knobs
    fetch = weights.begin(block)
    lean = bool(config.lean_start)
    if not lean:
        _first_weights(block, fetch)  # they do not depend on the preceding launch
    op.allow_next_launch()
    op.wait_for_previous_launch()
    where = columns(block)
    held = row_registers(block, "row_words")
    following = row_registers(block, "next_row") if config.load_ahead == 2 else None
    producer.load_first(block, where, held, following)
    if lean:  # nobody waits for the whole block
        _first_weights(block, fetch)  # rows take longer to arrive
        with when(block.warpgroup < config.consumers):
            zero_padding(block, where)
        _roles(block, fetch, iteration, where, held, following, None)
        return
    block.set_up_barriers()
    if config.cluster_split_k > 1:
        op.cluster_arrive(release=False)  # signals that the block runs and its barriers are initialized
    op.emit(T.cuda.cta_sync())
    # all this happens while the first rows are in flight
    parameters_held = block.load_parameters()
    zero_padding(block, where)
    _roles(block, fetch, iteration, where, held, following, parameters_held)


def _first_weights(block: Block, fetch: Fetch) -> None:
    if block.plan.knobs.holds_rows:
        return  # a thread only gets the registers they need later
    with when(block.warpgroup < block.plan.knobs.consumers):
        fetch.start()


def _roles(
    block: Block, fetch: Fetch, iteration: type[Iteration], where: Columns, held: Any, following: Any, parameters: Any
) -> None:
    """What each warpgroup does from here on. The first stage of every consumer is already in its registers."""
    config = block.plan.knobs
    consumer_registers, producer_registers = block.plan.registers
    uneven = consumer_registers != producer_registers
    with T.If(block.warpgroup < config.consumers):
        with T.Then():
            if uneven:
                op.set_registers(consumer_registers, more=True)
            if config.holds_rows:
                fetch.start()
            _store_first(block, where, held)
            if config.cluster_split_k > 1:
                op.cluster_wait()  # long after the arrival and long before the exchange: it costs nothing here
            consume(block, fetch, iteration)
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
            if config.cluster_split_k > 1:
                op.cluster_wait()


def _store_first(block: Block, where: Columns, held: Any) -> None:
    """Store a consumer's first stage into its buffer. With a lean start the barriers are only needed from now on."""
    lean, exists = block.plan.knobs.lean_start, block.warpgroup < block.stage_count
    if block.plan.direct:
        op.copies_wait(0)
    with when(exists):
        if block.plan.direct:
            producer.hand_over(block, block.buffer(block.warpgroup), arrive=not lean)
        else:
            producer.store_stage(block, where, held, block.warpgroup, arrive=not lean)
    if lean:
        op.named_barrier(SET_UP + block.warpgroup, 256, wait=True)
        with when(exists):
            block.arrive(block.full(block.buffer(block.warpgroup)))

"""The TIRx function of a kernel with a ring: one warpgroup copies stages, others multiply them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.ring.emit.block import RingBlock, coordinates
from subbyte.families.bits.ring.emit.consume import consume
from subbyte.families.bits.ring.emit.produce import produce
from subbyte.families.bits.ring.plan import COPIER_REGISTERS, RingPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import loop, when
from subbyte.tirx.function import named_function


def ring_kernel(plan: RingPlan) -> Any:
    """The TIRx function of a plan."""
    return named_function(plan, 1, _body)


def _body(plan: RingPlan, buffers: Mapping[str, Any]) -> None:
    block = coordinates(plan, buffers)
    copier = 4 * plan.config.consumers
    with when(T.And(block.warp == copier, block.lane == 0)):
        _set_up(block)
    _meet(block)
    with T.If(block.warp >= copier):
        with T.Then():
            if plan.moves_registers:
                op.set_registers(COPIER_REGISTERS, more=False)
            produce(block)
        with T.Else():
            if plan.moves_registers:
                op.set_registers(plan.granted, more=True)
            consume(block)
    if plan.cluster > 1:  # others may still send to this block
        _meet(block)


def _set_up(block: RingBlock) -> None:
    """Initialize barriers: a full stage needs the copier's arrival, an empty one that of every warp in the cluster that
    reads it."""
    plan = block.plan
    with loop("barrier", plan.config.stages) as barrier:
        op.barrier_init(block.full(T.cast(barrier, "uint32")), 1)
        op.barrier_init(block.empty(T.cast(barrier, "uint32")), 4 * plan.config.consumers * plan.cluster)
    op.barrier_init_fence()


def _meet(block: RingBlock) -> None:
    """Synchronize all threads of the block, or of the cluster."""
    if block.plan.cluster == 1:
        T.evaluate(T.cuda.cta_sync())
    else:
        op.cluster_arrive()
        op.cluster_wait()

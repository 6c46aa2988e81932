"""The kernel: a pipeline of operand stages; warps multiply fragments and keep all counts in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T

from subbyte.families.shared.planes.emit.block import Block, coordinates
from subbyte.families.shared.planes.emit.epilogue import add_splits, epilogue
from subbyte.families.shared.planes.emit.stage import Direct, Staged, load_stage
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.tirx.copies import commit, wait
from subbyte.tirx.emit import loop, when
from subbyte.tirx.function import kernel_function

Multiply = Callable[[Block, Staged | Direct], None]
"""Emits the products of one stage."""


def plane_kernel(plan: PlanePlan, multiply: Multiply, ones_of: Callable[[Block, Any], Any]) -> Any:
    """The TIRx function of a plan whose fragments ``multiply`` multiplies; ``ones_of`` is the activation bits'
    own contribution to a pixel."""

    def body(plan: PlanePlan, activations: Any, output: Any, parameters: Any, weights: Any) -> None:
        block = coordinates(plan, ones_of, (activations, weights, parameters, output))
        (_staged if plan.staged else _direct)(block, multiply)
        if plan.splits > 1:
            add_splits(block)
        epilogue(block)

    return kernel_function(plan, 1, body)


def _direct(block: Block, multiply: Multiply) -> None:
    with loop("k", block.plan.iterations, T.serial) as k:
        multiply(block, Direct(block, k))


def _staged(block: Block, multiply: Multiply) -> None:
    """While one stage is multiplied, the next ``stages - 1`` are in flight."""
    stages, iterations = block.plan.stages, block.plan.iterations
    ahead = stages - 1
    if iterations == 1 or not ahead:
        _one_by_one(block, multiply)
        return
    for stage in range(ahead):
        load_stage(block, stage, stage)
        commit(block.plan.arch)
    with loop("k", iterations, T.serial) as k:
        wait(block.plan.arch, ahead - 1)
        with when(k + ahead < iterations):
            load_stage(block, (k + ahead) % stages, k + ahead)
        commit(block.plan.arch)
        multiply(block, Staged(block, k % stages))


def _one_by_one(block: Block, multiply: Multiply) -> None:
    """A single buffer: a stage is loaded when all warps have multiplied the one before it."""
    with loop("k", block.plan.iterations, T.serial) as k:
        if block.plan.iterations > 1:
            with when(k > 0):
                T.evaluate(T.cuda.cta_sync())
        load_stage(block, 0, k)
        commit(block.plan.arch)
        wait(block.plan.arch, 0)
        multiply(block, Staged(block, 0))

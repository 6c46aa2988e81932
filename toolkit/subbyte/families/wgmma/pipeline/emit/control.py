"""Loops, cases and counters of a consumer warpgroup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.emit.block import Block
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import registers, when


class Counter:
    """How many stages this warp has passed, with the stage buffer and the phase parity of the next one."""

    def __init__(self, block: Block, name: str) -> None:
        self.stages = block.plan.stages
        self.count = registers(name, 1, "int32")
        self.buffer, self.phase = (registers(f"{name}_{what}", 1) for what in ("slot", "turn"))
        for state, zero in ((self.count, T.int32(0)), (self.buffer, T.uint32(0)), (self.phase, T.uint32(0))):
            T.buffer_store(state, zero, [0])

    def up_to(self, end: Any, each: Callable[[Any, Any], None]) -> None:
        """Advance to ``end``; ``each(buffer, phase)`` is emitted for every stage on the way."""
        with T.While(self.count[0] < end):
            each(self.buffer[0], self.phase[0])
            T.buffer_store(self.count, self.count[0] + 1, [0])
            T.buffer_store(self.buffer, self.buffer[0] + T.uint32(1), [0])
            with when(self.buffer[0] == T.uint32(self.stages)):
                T.buffer_store(self.buffer, T.uint32(0), [0])
                T.buffer_store(self.phase, self.phase[0] ^ T.uint32(1), [0])


def most(a: Any, b: Any) -> Any:
    """The larger one, of numbers or expressions."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else T.max(a, b)


def least(a: Any, b: Any) -> Any:
    """The smaller one, of numbers or expressions."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else T.min(a, b)


def first_that_fits(low: Any, high: Any, variants: list[tuple[int, int]], emit: Callable[[int, int], None]) -> None:
    """The body of the variant (low, high) that applies; the last one needs no test."""
    here, *others = variants
    if not others:
        emit(*here)
        return
    with T.If(T.And(low == here[0], high == here[1])):
        with T.Then():
            emit(*here)
        with T.Else():
            first_that_fits(low, high, others, emit)


@dataclass(frozen=True)
class Sums:
    """The accumulators of one of several tiles."""

    accumulators: Any
    first: int

    def __getitem__(self, index: Any) -> Any:
        return self.accumulators[self.first + index]


def release_unread(block: Block, ready: Counter, released: Counter) -> None:
    """The stages that only the other warpgroups still read: release each as soon as it has arrived."""

    def wait_and_release(buffer: Any, _: Any) -> None:
        ready.up_to(released.count[0] + 1, lambda here, phase: block.wait(block.full(here), phase))
        release_unmultiplied(block, buffer)

    released.up_to(block.stage_count, wait_and_release)


def release_unmultiplied(block: Block, buffer: Any) -> None:
    """Release a stage that was only waited for. There is no wgmma in between, at which the warp's lanes would converge:
    a lane that still waits would find the stage buffer refilled, and wait forever."""
    op.emit(T.cuda.warp_sync())
    block.arrive(block.empty(buffer))

"""What the parts of a warpgroup kernel share while it is emitted, and the addresses they have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.kernel.tirx.emit import bind, loop, when
from subbyte.kernel.tirx.warpgroup import instructions as op
from subbyte.schedule.warpgroup_plan import WarpgroupPlan


@dataclass
class Block:
    """Buffers and coordinates of one block. Every field but ``plan`` is a TIRx buffer or expression."""

    plan: WarpgroupPlan
    activations: Any
    weights: Any
    parameters: Any
    output: Any
    shared: Any
    base: Any
    """Byte address of the block's shared memory."""
    thread: Any
    warpgroup: Any
    """Index of the warpgroup, the producer last; the same for all lanes of a warp as the compiler sees it."""
    member: Any
    """Thread within the warpgroup."""
    lane: Any
    group: Any
    """Group of 8 images."""
    first_row: Any
    """First output row of the block's segment."""
    end_row: Any
    tile_x: Any
    """Index of the block along the output row."""
    filter_block: Any
    rank: Any
    """Index in the cluster."""
    first_staged: Any
    """First staged row that the block needs and the image has."""
    parts: Any
    """Parts that go through the ring."""

    # ---- position of a consumer ---------------------------------------------------------------------------------

    @property
    def m(self) -> Any:
        """Index of a consumer along the output channels."""
        return self.warpgroup % self.plan.config.groups_m

    @property
    def x(self) -> Any:
        """Index of a consumer along the output row."""
        return self.warpgroup // self.plan.config.groups_m % self.plan.config.groups_x

    @property
    def y(self) -> Any:
        """Index of a consumer among those that take passes in turn."""
        return self.warpgroup // (self.plan.config.groups_m * self.plan.config.groups_x)

    def tile(self, filter_pass: Any) -> Any:
        """Tile of 64 output channels of a consumer in a filter pass."""
        config = self.plan.config
        return (self.filter_block * config.filter_passes + filter_pass) * config.groups_m + self.m

    # ---- ring ---------------------------------------------------------------------------------------------------

    def full(self, part: Any) -> Any:
        """Byte offset of the barrier that says that a part is in its slot."""
        return self.plan.barrier_base + part % self.plan.config.ring * 8

    def empty(self, part: Any) -> Any:
        """Byte offset of the barrier that says that a part's slot may be written again."""
        return self.plan.barrier_base + self.plan.config.ring * 8 + part % self.plan.config.ring * 8

    def turn(self, part: Any) -> Any:
        """How often the part's slot was filled before."""
        return part // self.plan.config.ring

    def wait(self, offset: Any, parity: Any) -> None:
        """Wait at a barrier."""
        op.emit(T.cuda.mbarrier_wait(self.shared.ptr_to([offset // 4]), parity))

    def arrive(self, offset: Any) -> None:
        """Arrive at a barrier with one thread of the warp."""
        with when(self.lane == 0):
            op.barrier_arrive(self.base + T.cast(offset, "uint32"))

    def slot(self, part: Any) -> Any:
        """Byte offset of a part's slot."""
        return part % self.plan.config.ring * self.plan.slot_bytes

    # ---- set-up -------------------------------------------------------------------------------------------------

    def set_up_barriers(self) -> None:
        """One thread sets up the ring's barriers: a "full" one hears from every warp that fills, an "empty" one from
        every warp that reads."""
        config = self.plan.config
        readers = config.consumers if config.keep_rows else config.groups_m * config.groups_x
        with when(self.thread == 0):
            for slot in range(config.ring):
                op.barrier_init(self.base + T.uint32(self.full(slot)), 4)
                op.barrier_init(self.base + T.uint32(self.empty(slot)), 4 * readers)
            op.barrier_init_fence()

    def keep_parameters(self) -> None:
        """Copy the requantization parameters of the block's output channels to shared memory."""
        plan = self.plan
        channels, padded = plan.parameter_channels, plan.workload.filter_blocks * 32
        if not channels:
            return
        threads = plan.config.threads
        with loop("turn", -(-3 * channels // threads)) as turn:
            index = bind("index", turn * threads + self.thread)
            with when(3 * channels % threads == 0 or index < 3 * channels):
                channel = T.min(self.filter_block * channels + index % channels, padded - 1)
                value = self.parameters[index // channels * padded + channel]
                T.buffer_store(self.shared, T.cast(value, "uint32"), [plan.parameter_base // 4 + index])

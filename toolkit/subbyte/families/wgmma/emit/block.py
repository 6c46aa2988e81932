"""What the modules that emit a wgmma kernel share, and common addresses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.wgmma.memory import FRAGMENT_BYTES
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, loop, registers, when


@dataclass
class Block:
    """Buffers and coordinates of one block. Every field but ``plan`` is a TIRx buffer or expression."""

    plan: WgmmaPlan
    activations: Any
    weights: Any
    parameters: Any
    output: Any
    residual: Any
    """Values to be added, in the layout of the output; None if there are none."""
    shared: Any
    base: Any
    """Byte address of the block's shared memory."""
    thread: Any
    warpgroup: Any
    """Index of the warpgroup, the producer last; known to the compiler to be the same for all lanes of a warp."""
    member: Any
    """Thread within the warpgroup."""
    lane: Any
    group: Any
    """Group of 8 images; the first one if there are several."""
    first_row: Any
    """First output row of the block's segment."""
    end_row: Any
    tile_x: Any
    """Index of the block along the output row."""
    filter_block: Any
    rank: Any
    """Rank among the blocks that share the input channels."""
    multicast_rank: Any
    """Rank among the blocks of the cluster that share weights."""
    unpaired: Any
    """Whether the block's neighbour in the cluster needs other weights."""
    first_staged: Any
    """First staged row that the block needs and that exists in the image."""
    stage_count: Any
    """Stages that go through the pipeline."""
    group_done: Any = 0
    """How many of the groups of images that the block computes together are stored by another block."""
    cut: Any = 0
    """For half rows: 1 if the segment begins with the right half of a row, 0 if it ends with the left half of one,
    any other value if it has none."""

    # ---- position of a consumer ---------------------------------------------------------------------------------

    @property
    def m(self) -> Any:
        """Index of a consumer along the output channels."""
        return self.warpgroup % self.plan.knobs.consumers_m

    @property
    def x(self) -> Any:
        """Index of a consumer along the output row."""
        return self.warpgroup // self.plan.knobs.consumers_m % self.plan.knobs.consumers_n

    @property
    def y(self) -> Any:
        """Index of a consumer among those that alternate in tile iterations."""
        return self.warpgroup // (self.plan.knobs.consumers_m * self.plan.knobs.consumers_n)

    @property
    def swapped(self) -> Any:
        """Whether a consumer begins with half a row: it becomes its last fragment row, after those that follow it."""
        return T.And(self.cut == 1, self.y == 0)

    @property
    def narrow(self) -> Any:
        """Whether a consumer's last fragment row is half a row: the first one of two after a cut, the second before
        it."""
        return self.cut + self.y == 1

    def fragment_place(self, fragment: Any) -> Any:
        """The position of a fragment row among the rows of its consumer's tile iteration."""
        if not self.plan.knobs.half_rows:
            return fragment
        return T.Select(self.swapped, self.plan.knobs.tile_rows - 1 - fragment, fragment)

    def tile(self, m_iteration: Any) -> Any:
        """A consumer's tile of 64 output channels, among those it computes one after the other or together."""
        return (self.filter_block * self.plan.consumer_tiles + m_iteration) * self.plan.knobs.consumers_m + self.m

    # ---- pipeline -----------------------------------------------------------------------------------------------

    def buffer(self, stage: Any) -> Any:
        """The buffer of a stage."""
        return T.cast(stage, "uint32") % T.uint32(self.plan.stages)

    def phase(self, stage: Any) -> Any:
        """Phase parity: that of how many times the stage's buffer was filled before."""
        return T.cast(stage, "uint32") // T.uint32(self.plan.stages) % T.uint32(2)

    def buffer_address(self, buffer: Any) -> Any:
        """Byte address of a stage buffer."""
        return self.base + buffer * T.uint32(self.plan.buffer_bytes)

    def full(self, buffer: Any) -> Any:
        """Byte address of the barrier that signals that a stage buffer is full."""
        return self.base + T.uint32(self.plan.barrier_base) + buffer * T.uint32(8)

    def empty(self, buffer: Any) -> Any:
        """Byte address of the barrier that signals that a stage buffer may be overwritten."""
        return self.full(buffer) + T.uint32(8 * self.plan.stages)

    @property
    def parameters_barrier(self) -> Any:
        """Byte address of the barrier that signals that the requantization parameters are in shared memory."""
        return self.base + T.uint32(self.plan.barrier_base + 16 * self.plan.stages)

    def wait(self, address: Any, parity: Any) -> None:
        """Wait at a barrier until the phase with this parity has completed."""
        done = registers("done", 1)
        T.buffer_store(done, T.uint32(0), [0])
        with T.While(done[0] == T.uint32(0)):
            op.barrier_try_wait(done[0], address, parity)

    def arrive(self, address: Any) -> None:
        """Arrive at a barrier with one thread of the warp."""
        with when(self.lane == 0):
            op.barrier_arrive(address)

    # ---- set-up -------------------------------------------------------------------------------------------------

    def exchange_barrier(self, warpgroup: Any) -> Any:
        """Byte address of the barrier that counts the bytes of partial sums that have arrived for a consumer."""
        return self.parameters_barrier + T.uint32(8) + T.cast(warpgroup * 8, "uint32")

    def weight_barrier(self, chunk: Any) -> Any:
        """Byte address of the barrier that counts the bytes of a chunk of weights."""
        exchanged = 8 * self.plan.knobs.consumers if self.plan.knobs.cluster_split_k > 1 else 0
        return self.parameters_barrier + T.uint32(8 + exchanged) + chunk * T.uint32(8)

    def set_up_barriers(self) -> None:
        """One producer thread initializes the barriers: a "full" one counts every warp that fills, an "empty" one
        every warp that reads, the one for partial sums counts the bytes from the cluster's other blocks. If a
        block makes a single tile iteration, no buffer is filled again."""
        plan, config = self.plan, self.plan.knobs
        readers = config.consumers
        with when(self.thread == 128 * config.consumers):
            if config.multicast:
                for stage in range(plan.window):
                    op.barrier_init(self.full(T.uint32(stage)), 4)
            else:
                for buffer in range(plan.stages):
                    op.barrier_init(self.full(T.uint32(buffer)), 4)
                    op.barrier_init(self.empty(T.uint32(buffer)), 4 * readers)
            op.barrier_init(self.parameters_barrier, 4)
            if config.cluster_split_k > 1:
                for warpgroup in range(config.consumers):
                    op.barrier_init(self.exchange_barrier(warpgroup), 1)
            for chunk in range(plan.weight_chunks):
                op.barrier_init(self.weight_barrier(T.uint32(chunk)), 1)
            op.barrier_init_fence()
            weight_bytes = config.consumers_m * plan.ahead * FRAGMENT_BYTES
            for chunk in range(plan.weight_chunks):
                op.barrier_expect(self.weight_barrier(T.uint32(chunk)), weight_bytes)
            if config.cluster_split_k > 1:
                for warpgroup in range(config.consumers):
                    op.barrier_expect(self.exchange_barrier(warpgroup), plan.exchanged_bytes)

    def load_parameters(self) -> Any:
        """Read the producer's share of the requantization parameters of the block's output channels."""
        plan = self.plan
        channels, padded = plan.parameter_channels, plan.workload.padded_filters
        if not channels:
            return None
        held = registers("parameters", plan.parameter_loads)
        with when(self.warpgroup == plan.knobs.consumers), self._parameter_words() as (load, index):
            channel = T.min(self.filter_block * channels + index % channels, padded - 1)
            row, parameters = index // channels, plan.kept_rows - bool(plan.zero_point)
            if plan.zero_point:  # its contribution follows the weights
                with when(row == parameters):
                    T.buffer_store(held, self.weights[plan.weight_words + channel], [load])
            if parameters:
                with when(row < parameters if plan.zero_point else True):
                    T.buffer_store(held, T.cast(self.parameters[row * padded + channel], "uint32"), [load])
        return held

    def keep_parameters(self, held: Any) -> None:
        """Store them in shared memory, and signal that they are there."""
        if held is None:
            return
        config = self.plan.knobs
        with when(config.producers == 1 or self.warpgroup == config.consumers):
            with self._parameter_words() as (load, index):
                T.buffer_store(self.shared, held[load], [self.plan.parameter_base // 4 + index])
            op.emit(T.cuda.warp_sync())
            self.arrive(self.parameters_barrier)

    @contextmanager
    def _parameter_words(self) -> Iterator[tuple[Any, Any]]:
        count, threads = self.plan.kept_rows * self.plan.parameter_channels, 128
        with loop("turn", self.plan.parameter_loads) as load:
            index = bind("index", load * threads + self.member)
            with when(count % threads == 0 or index < count):
                yield load, index

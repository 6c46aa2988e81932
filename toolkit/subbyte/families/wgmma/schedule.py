"""What geometry, memory and emitter of the wgmma kernels need to know about a schedule, for any of the kernels.

A configuration has only the knobs that are meaningful for its kernel; a schedule adds what a kernel without a
knob does, so that shared code can ask a single object. A knob with several effects (``row_reuse``) appears here as
one field per effect.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """All choices; defaults mean "without it". Names are those of the configurations."""

    tile_width: int
    tile_rows: int = 1
    consumers_m: int = 1
    consumers_n: int = 1
    consumers_rows: int = 1
    segments: int = 1
    m_iterations: int = 1
    tiles_m: int = 1
    cluster_split_k: int = 1
    channel_groups: int = 1
    stages: int = 0
    """Stages of the pipeline; 0 = one for each row of the only tile iteration."""
    keep_rows: int = 1
    """A row stays in its stage for later tile iterations."""
    early_release: int = 0
    """A kept row is released when nobody reads it any more, not at the end of the tile iteration."""
    stage_per_iteration: int = 0
    """A stage holds all rows of a tile iteration instead of one."""
    load_ahead: int = 1
    unroll: int = 1
    in_flight: int = 1
    stagger: int = 0
    dependent_launch: int = 1
    flatten: int = 0
    """Pixels of a 1x1 kernel with a stride are treated as one sequence."""
    flat_batch: int = 0
    """Pixels of all groups of images are treated as one sequence: a flattened batch."""
    producers: int = 1
    image_groups: int = 1
    half_rows: int = 0
    producer_late: int = 0
    """The producer loads its first rows after those of the consumers have arrived."""
    lean_start: int = 0
    """No barrier of the whole block at the start."""
    producer_registers: int = 0
    operands_apart: int = 0
    """Each half of a fragment is unpacked just before its own products, not both before the first."""
    copies_ahead: int = 0
    """Stages that are copied ahead, packed, in shared memory; 0 = in flight in registers."""
    multicast: int = 0
    """Blocks that multicast weights to one another; 0 = weights are loaded into registers."""
    sparse: int = 0
    """Weights are 2:4: an instruction takes two blocks of 32 channels, whose pieces are adjacent."""
    listed: int = 0
    """Weights are block-sparse, with a list of live blocks."""
    live_pairs: int = 1
    """Pairs of live blocks per loop body."""
    resident: int = 0
    """Weights stay in registers."""
    rows_ahead: int = 0
    """Weights of all kernel rows of a channel group are fetched ahead, not just those of one loop body."""
    weights_ahead: int = 0
    late_parameters: int = 0
    early_parameters: int = 0
    early_start: int = 0
    duplicate_aware: str = "full"
    register_packing: bool = True
    layout: str = "nhwcnc"

    @property
    def consumers(self) -> int:
        """Warpgroups that multiply."""
        return self.consumers_m * self.consumers_n * self.consumers_rows

    @property
    def holds_rows(self) -> bool:
        """Whether a thread has registers for the weights of all kernel rows."""
        return bool(self.resident or self.rows_ahead)

    @property
    def threads(self) -> int:
        """Threads per block: the consumers, and the warpgroups that load rows."""
        return 128 * (self.consumers + self.producers)

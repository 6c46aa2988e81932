"""What geometry, memory and emitter of the wgmma kernels ask about a schedule, whichever kernel it is.

A configuration has only the knobs that mean something to its kernel; here stands beside them what a kernel without a
knob does, so that what the kernels share asks one thing. A knob with several meanings (``row_reuse``) stands here as
what each of them is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Every choice, with the value that means "without it" as default. The words are those of the configurations."""

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
    """Of the pipeline; 0 = one for each row of the only tile iteration."""
    keep_rows: int = 1
    """A row stays in its stage for later tile iterations."""
    early_release: int = 0
    """Until nobody reads it any more, not until the tile iteration ends."""
    stage_per_iteration: int = 0
    """A stage has all rows of a tile iteration, not one."""
    load_ahead: int = 1
    unroll: int = 1
    in_flight: int = 1
    stagger: int = 0
    dependent_launch: int = 1
    flatten: int = 0
    """Pixels of a 1x1 kernel with a stride follow one another."""
    flat_batch: int = 0
    """Those of all groups of images do: a flattened batch."""
    producers: int = 1
    image_groups: int = 1
    half_rows: int = 0
    producer_late: int = 0
    """The producer loads its first rows when those of the consumers have arrived."""
    lean_start: int = 0
    """Nobody waits for the whole block."""
    producer_registers: int = 0
    operands_apart: int = 0
    """Each half of a fragment is unpacked in front of its own products, not both in front of the first."""
    copies_ahead: int = 0
    """Stages that are copied ahead, in shared memory, packed; 0 = on their way in registers."""
    multicast: int = 0
    """Blocks that copy weights to one another; 0 = weights are loaded into registers."""
    sparse: int = 0
    """Weights are 2:4: an instruction takes two blocks of 32 channels, whose pieces lie side by side."""
    listed: int = 0
    """Weights have blocks of zeros, and a list says which are not."""
    live_pairs: int = 1
    """Pairs of the list's blocks in a loop body."""
    resident: int = 0
    """Weights stay in registers."""
    rows_ahead: int = 0
    """Weights of all kernel rows of a channel group are fetched ahead, not those of one loop body."""
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
        """A thread has registers for the weights of all kernel rows."""
        return bool(self.resident or self.rows_ahead)

    @property
    def threads(self) -> int:
        """Threads of a block: the consumers, and the warpgroups that load rows."""
        return 128 * (self.consumers + self.producers)

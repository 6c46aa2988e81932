"""The schedule of the kernel with a pipeline of input rows."""

from __future__ import annotations

from typing import ClassVar

from subbyte.families.wgmma.config import (
    CONSUMERS_M,
    CONSUMERS_N,
    IN_FLIGHT,
    LAYOUT,
    PACKING,
    SEGMENTS,
    SPLIT_K,
    SWITCH_VALUES,
    UNROLL,
    WIDTH,
    WgmmaConfig,
)
from subbyte.families.wgmma.schedule import Schedule
from subbyte.spaces.configuration import configuration
from subbyte.spaces.knob import choice, knob, named, switch, whole

ROW_REUSE = {0: (0, 0, 0), 1: (1, 0, 0), 2: (1, 1, 0), 3: (0, 0, 1)}
"""``row_reuse`` -> keep_rows, early_release, stage_per_iteration of the schedule."""
STARTS = {0: (0, 0), 1: (1, 0), 2: (0, 1), 3: (1, 1)}
"""``start`` -> producer_late, lean_start of the schedule."""
PIXELS = {
    "rows": (0, 1, 0), "flat": (1, 1, 0), "flat_batch": (2, 1, 0), "half_rows": (0, 1, 1),
    "two_groups": (0, 2, 0), "two_groups_half_rows": (0, 2, 1),
    "four_groups": (0, 4, 0), "four_groups_half_rows": (0, 4, 1),
}  # fmt: skip
"""Names of ``pixels`` -> flatten (2: flat_batch of the schedule), image_groups, half_rows."""
ROWS, FLAT, FLAT_BATCH, HALF_ROWS, TWO_GROUPS, TWO_GROUPS_HALF_ROWS, *_ = range(len(PIXELS))
"""Their values."""


@configuration
class PipelineConfig(WgmmaConfig):
    """A schedule of the wgmma kernel with a pipeline of input rows (sm_90a)."""

    prefix: ClassVar[str] = "wgp-"

    tile_width: int = knob("tw", whole(), WIDTH, default=28, always=True)
    tile_rows: int = knob(
        "tr", whole(), "fragment rows of a tile iteration; they share weights", default=1, always=True
    )
    consumers_m: int = knob("cm", whole(), CONSUMERS_M, default=1, always=True)
    consumers_n: int = knob("cn", whole(), CONSUMERS_N, default=1)
    consumers_rows: int = knob(
        "cr", whole(), "consumers that alternate in the tile iterations of a segment, or divide its rows", default=1
    )
    segments: int = knob("sg", whole(), SEGMENTS, default=1, always=True)
    m_iterations: int = knob(
        "mi", whole(), "tiles of output channels that a consumer computes one after the other from the same input",
        default=1,
    )  # fmt: skip
    tiles_m: int = knob(
        "tm", whole(), "tiles of 64 output channels that a consumer multiplies with the same pixels: 1, 2", default=1
    )
    cluster_split_k: int = knob("sk", whole(), SPLIT_K, default=1)
    channel_groups: int = knob(
        "cg", whole(), "groups into which a row's input channels are divided, one stage each", default=1
    )
    stages: int = knob("st", whole(), "stages of the pipeline", default=4, always=True)
    row_reuse: int = knob(
        "rr", whole(0, 3),
        "1 = a row stays in its stage until no later tile iteration needs it; 2 = the same, and it is released as soon "
        "as no later kernel row reads it; 0 = every tile iteration loads its own rows, and consumers_rows divide them; "
        "3 = the same, with all rows of an iteration in one stage",
        default=1,
    )  # fmt: skip
    load_ahead: int = knob("la", whole(), "stages whose loads a producer has in flight, in registers: 1, 2", default=2)
    unroll: int = knob("un", whole(), UNROLL, default=1)
    in_flight: int = knob("if", whole(), IN_FLIGHT, default=1)
    stagger: int = knob(
        "sta", whole(0, 2),
        "how one consumer's epilogue overlaps the other's multiplications: 1 = ping-pong: each starts an iteration "
        "when the other is two thirds through its own; 2 = skewed start: only the second one's first iteration "
        "starts late, by about an epilogue; 0 = both start together",
        default=1,
    )  # fmt: skip
    pixels: int = knob(
        "px", named(*PIXELS),
        "which output pixels form a fragment row. rows = those of one output row; half_rows = the same, but segments "
        "may end in the middle of a row: a block of whole rows and a half uses a narrower instruction for the half; "
        "two_groups, four_groups = the same pixels of several groups of 8 images (7 pixels of two groups are one "
        "width), also with half rows. For 1x1 kernels without padding: flat = pixels form one sequence, even with a "
        "stride; flat_batch = one sequence across all groups of images, whose borders tiles may cross",
        default=0,
    )  # fmt: skip
    producers: int = knob("pr", whole(), "warpgroups that load input rows, alternating: 1, 2", default=1)
    start: int = knob(
        "ls", whole(0, 3),
        "0 = a barrier of the whole block after the first loads; 1 = the same, and the producer loads its own first "
        "rows after those of the consumers have arrived; 2 = lean: no barrier of the whole block, and rows are loaded "
        "before weights; 3 = both",
        default=0,
    )  # fmt: skip
    producer_registers: int = knob(
        "preg", whole(0), "registers of a producer thread; 0 = its loads and a few more", default=0
    )
    operands_apart: int = knob(
        "oa", whole(0, 1),
        "1 = each half of a weight fragment's channels is unpacked just before its own multiplications, which leaves "
        "registers for 192 sums per thread; 0 = both before the first",
        default=0,
    )  # fmt: skip
    copies_ahead: int = knob(
        "ca", whole(0, 8),
        "stages that the producer has in flight in shared memory, packed, by asynchronous copies, instead of in "
        "registers; those of 8-bit activations go to their own stage buffers; 0 = in registers (load_ahead)",
        default=0,
    )  # fmt: skip
    duplicate_aware: str = switch(
        "dup.", choice(*SWITCH_VALUES["duplicate_aware"]),
        "full = an input pixel enters shared memory once and a tap is an address; none = the pixels of every tap are "
        "loaded and stored again",
        default="full",
    )  # fmt: skip
    register_packing: bool = switch("rp", choice(*SWITCH_VALUES["register_packing"]), PACKING, default=True)
    layout: str = switch("", choice(*SWITCH_VALUES["layout"]), LAYOUT, default="nhwcnc")

    @property
    def schedule(self) -> Schedule:
        """The same choices as geometry, memory and emitter need them."""
        keep_rows, early_release, stage_per_iteration = ROW_REUSE[self.row_reuse]
        producer_late, lean_start = STARTS[self.start]
        flatten, image_groups, half_rows = self.pixel_knobs
        return self.scheduled(
            keep_rows=keep_rows, early_release=early_release, stage_per_iteration=stage_per_iteration,
            producer_late=producer_late, lean_start=lean_start, flatten=int(flatten == 1),
            flat_batch=int(flatten == 2), image_groups=image_groups, half_rows=half_rows,
        )  # fmt: skip

    @property
    def pixel_knobs(self) -> tuple[int, int, int]:
        """The meaning of ``pixels``: flatten, image_groups and half_rows, which used to be separate knobs."""
        return tuple(PIXELS.values())[self.pixels]

    def former_value(self, name: str) -> object:
        """The value that a field of earlier versions would have."""
        return self.pixel_knobs[0] if name == "flatten" else super().former_value(name)

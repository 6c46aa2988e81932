"""The schedule of a kernel on one-bit warpgroup products."""

from __future__ import annotations

from typing import ClassVar

from subbyte.spaces.configuration import Configuration, configuration
from subbyte.spaces.knob import flag, knob, whole

PLAIN, PAIRS = "nhwcnc", "nb8r"
"""Layouts: a block holds 128 channels of a pixel, or 64 channels of a pixel and of the one below it."""


@configuration
class BitsConfig(Configuration):
    """A schedule of the bits family (wgmma b1, sm_90a)."""

    prefix: ClassVar[str] = "bits-"

    tile_rows: int = knob("tr", whole(), "output rows of a block", default=1, always=True)
    channels: int = knob("oc", whole(32, 256), "output channels of a block, and of an instruction", default=64,
                         always=True)  # fmt: skip
    consumers: int = knob("co", whole(1, 7), "warpgroups that multiply; they take tiles of 8 pixels in turn",
                          default=2, always=True)  # fmt: skip
    turn_rows: int = knob("tu", whole(1, 2), "output rows of a warpgroup's turn: vertically adjacent tiles", default=1)
    run_on: int = knob(
        "ro", flag(), "1 = tiles of 8 pixels run on from one output row into the next (stride 1); 0 = they end with it",
        default=0,
    )  # fmt: skip
    row_parts: int = knob(
        "rp", whole(1, 8), "blocks along an output row: each has its share of tiles, and copies their input",
        default=1,
    )  # fmt: skip
    doubled: int = knob(
        "db", flag(), "1 = one set of sums, doubled between planes of activations; 0 = a set for each plane", default=0
    )
    counted: int = knob(
        "ct", flag(), "1 = a warpgroup of its own counts the activations' bits, once for each window; 0 = columns of "
        "ones of the instruction do", default=0,
    )  # fmt: skip
    stagger: int = knob(
        "st", whole(0, 6), "warpgroups that multiply at a time, while the others compare; 0 = all of them", default=0
    )
    dependent_launch: int = knob("pdl", flag(), "1 = may start before the preceding kernel has ended", default=1)
    paired_rows: int = knob(
        "pr", flag(), "1 = layout nb8r: two rows share the 128 bits of up to 64 channels; 0 = nhwcnc", default=0
    )
    whole_values: int = knob(
        "wv", flag(), "1 = activations of 8 bits are multiplied whole, as bytes; 0 = as bit planes", default=0
    )

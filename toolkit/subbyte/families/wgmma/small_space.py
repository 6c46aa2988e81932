"""A part of the warpgroup space that is small enough to be measured whole: what recorded landscapes hold.

Its value lists are written out, the tile widths excepted, and do not follow those of the whole space, so that a
landscape keeps its meaning when that one grows. They are made for layers of few images, where many small blocks fill
the GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput
from subbyte.families.wgmma.space import WARPGROUP, WarpgroupSpace, held_switches, warpgroup_values
from subbyte.workload import ConvWorkload

SMALL = "warpgroup-small"
"""Kind of space."""
WARPGROUP_KINDS = (WARPGROUP, SMALL)
SEGMENTS = (1, 2, 4, 7, 8, 14, 28, 56)
LOW = 28
"""Rows of an output up to which a block computes one of them at a time, and one tile of its columns, and few of them:
larger blocks would be too few."""


def small_space(workload: ConvWorkload, arch: Arch, fixed: Mapping[str, Any] | None = None) -> WarpgroupSpace:
    """The small space of a workload; ``fixed`` are switches to turn off. Raises InvalidInput for a knob among them, and
    for a 1x1 kernel."""
    if workload.r == 1:
        raise InvalidInput(f"the {SMALL} space of {workload}: it is made for kernels of several rows; use {WARPGROUP}")
    return WarpgroupSpace(workload, arch, small_values(workload), SMALL, held_switches(fixed or {}))


def small_values(workload: ConvWorkload) -> dict[str, tuple[int, ...]]:
    """The values of every knob, in the order of a configuration's index."""
    w = workload
    return {
        "tile_width": warpgroup_values(w)["tile_width"],
        "tile_rows": (1, 2) if w.p > LOW else (1,),
        "groups_m": (1, 2),
        "groups_x": (1, 2) if w.p > LOW else (1,),
        "groups_y": (1, 2),
        "segments": tuple(n for n in SEGMENTS if n <= w.p)[-(4 if w.p > LOW else 2) :],
        "split": (1, 2, 4),
        "ring": (w.r, w.r + 1),
        "load_ahead": (2, 1),
        "unroll": (1, 2, 4),
        "in_flight": (1, 2, 3),
        "at_once": (0, 2),
        "bulk_weights": (0, 1, 2, 4),
        "stagger": (0,),
    }

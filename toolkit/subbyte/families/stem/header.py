"""What the C header of a kernel for few input channels needs: strips of activations, weights as bytes."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from subbyte.families.base import ExportParts
from subbyte.families.shared.header import sections_of
from subbyte.families.stem.plan import StemPlan
from subbyte.workload.conv import BATCH_GROUP

ORDER = (
    "Filter q * {slice} / 4 + 2 * j + e of a slice is column 8 * j + 2 * q + e",
    "Filter 16 * i + 2 * g + e of a slice is row 16 * i + 8 * e + g",
)
"""Where filters stand among the columns of an instruction; or its rows, where weights stay in registers."""
LINE = ("one % (slice / 4) / 2 * 8 + one / (slice / 4) * 2 + one % 2", "one / 16 * 16 + one % 2 * 8 + one % 16 / 2")
"""The same in C."""
PER_LINE = 20
"""Numbers per line of a table."""


def header_parts(plan: StemPlan) -> ExportParts:
    """What the header needs."""
    lay, form, slice_ = plan.strings, plan.strings.form, plan.config.filters
    places = [{tap: place for place, tap in lay.taps(phase).items()} for phase in range(lay.phases)]
    w, held = plan.workload, plan.config.held_weights
    taps = [str(one[r, s, c]) for one in places for r, s, c in product(range(w.r), range(w.s), range(w.c))]
    lines = [taps[first : first + PER_LINE] for first in range(0, len(taps), PER_LINE)]
    words = {
        "strip_rows": form.rows, "strip_words": form.words, "strip_channels": form.channels, "slice": slice_,
        "phases": lay.phases, "steps": lay.steps, "taps": ",\n".join("    " + ", ".join(line) for line in lines),
        "order": ORDER[held].format(slice=slice_), "line": LINE[held],
    }  # fmt: skip
    shape = (plan.slices, lay.phases, lay.steps, slice_ // 8, 2, 8, 4)
    shapes = {"A": (plan.workload.batch_groups, form.rows, form.words, BATCH_GROUP)}
    texts = sections_of(Path(__file__).with_name("strings.h"))
    return ExportParts(texts, shape, {name: str(value) for name, value in words.items()}, {}, shapes)

"""What the C header of a kernel of the stem family needs: strips of activations, weights as bytes."""

from __future__ import annotations

from pathlib import Path

from subbyte.families.base import ExportParts
from subbyte.families.shared.header import sections_of
from subbyte.families.stem.plan import StemPlan
from subbyte.workload.conv import BATCH_GROUP


def header_parts(plan: StemPlan) -> ExportParts:
    """What the header needs."""
    lay, form, slice_ = plan.strings, plan.strings.form, plan.config.filters
    kept = lay.odd_bytes
    words = {
        "strip_rows": form.rows, "strip_words": form.words, "strip_channels": form.channels, "slice": slice_,
        "phases": lay.phases, "steps": lay.steps, "row_words": lay.row_words, "advance": lay.advance,
        "string_words": len(lay.parts), "paired": int(len(kept) == 2), "second_odd": kept[-1],
    }  # fmt: skip
    shape = (plan.slices, lay.phases, lay.steps, slice_ // 8, 2, 8, 4)
    shapes = {"A": (plan.workload.batch_groups, form.rows, form.words, BATCH_GROUP)}
    texts = sections_of(Path(__file__).with_name("strings.h"))
    return ExportParts(texts, shape, {name: str(value) for name, value in words.items()}, {}, shapes)

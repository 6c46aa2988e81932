"""Where the C header of a kernel on fragments of bit planes stores weights and thresholds (``places.h``)."""

from __future__ import annotations

from pathlib import Path

from subbyte.families.base import ExportParts
from subbyte.families.shared.header import Forms, bit_parts, sections_of
from subbyte.families.shared.planes.plan import PlanePlan


def header_parts(plan: PlanePlan, lanes: bool) -> ExportParts:
    """What the header needs; ``lanes``: the order of 32 channels' words, by lanes of a warp or by channels."""
    texts = sections_of(Path(__file__).with_name("places.h"))
    forms = Forms(
        plan.config.layout, plan.config.layout, plan.column_blocks, plan.columns, plan.counts, plan.shift, "needed - 1"
    )
    chunk, columns, rows = plan.config.chunk, plan.view.s, plan.view.r
    of_row = f"((r * {plan.chunks} + block / {chunk}) * {columns} + s) * {chunk} + block % {chunk}"
    of_chunk = f"((block / {chunk} * {rows} + r) * {columns} + s) * {chunk} + block % {chunk}"
    words = {
        "place": of_row if plan.config.reorder_inner else of_chunk,
        "within": "(column % 8 * 4 + word) * 4 + column / 8" if lanes else "column * 4 + word",
        "block_words": str(plan.words),
    }
    return bit_parts(plan, plan, forms, [texts["weight"], texts["entry"]], words)

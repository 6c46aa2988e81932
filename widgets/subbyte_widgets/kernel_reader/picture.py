"""The picture of a kernel reading: where each class of instruction is in the machine code, and the numbers."""

from __future__ import annotations

from subbyte.technique.kernel_reading import CLASSES, KernelReading, Row
from subbyte_widgets.svg import element, text

LETTERS = {"matrix": "M", "copy": "C", "load": "L", "store": "S", "shuffle": "X", "barrier": "B"}
"""The letter for a class, shown beside its colour."""

WIDTH, LEFT, RIGHT, LANE = 760.0, 96.0, 700.0, 15.0


def reading_svg(reading: KernelReading) -> str:
    """Lanes of the machine code, one per class and kernel, and the facts below."""
    parts = [text(12, 20, f"Machine code of {reading.workload} on {reading.arch}", "h")]
    kernels = [("this" if reading.other else "kernel", reading.config, "-", reading.counts)]
    if reading.other is not None and reading.other_counts is not None:
        kernels.append(("other", reading.other, "+", reading.other_counts))
    y = 42.0
    for name, config, sign, counts in kernels:
        rows = [row for row in reading.rows["sass"] if row.sign in (" ", sign)]
        totals = {kind: sum(counts[kind].values()) for kind in CLASSES}
        parts += [text(12, y, f"{name}: {config}", "s"), *_lanes(rows, totals, y + 8)]
        y += 8 + LANE * len(CLASSES) + 26
    parts.append(text(LEFT, y - 6, "from the first instruction to the last; a loop's body stands here once", "s"))
    height = y + 14
    columns, per_column = reading.table().rows, -(-len(reading.facts) // 2)
    for place, cells in enumerate(columns):
        x, line = (12.0, place) if place < per_column else (392.0, place - per_column)
        parts += _fact(cells, x, y + 22 + 18 * line)
        height = max(height, y + 34 + 18 * line)
    return element("svg", parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
                   class_="sb-reader-svg", role="img", aria_label=in_words(reading))  # fmt: skip


def _lanes(rows: list[Row], totals: dict[str, int], top: float) -> list[str]:
    parts = []
    step = (RIGHT - LEFT) / max(len(rows), 1)
    for lane, (kind, letter) in enumerate(LETTERS.items()):
        y = top + lane * LANE
        parts.append(element("rect", x=LEFT, y=y + 1, width=RIGHT - LEFT, height=LANE - 2, class_="lane"))
        marks = "".join(
            f"M{LEFT + (i + 0.5) * step:.1f} {y + 1:.1f}v{LANE - 2:.0f}"
            for i, row in enumerate(rows)
            if row.kind == kind
        )
        parts.append(element("path", d=marks or "M0 0", class_=f"tick {letter}", data_kind=kind))
        parts.append(text(LEFT - 8, y + 12, f"{kind} {letter}", "e"))
        parts.append(text(RIGHT + 8, y + 12, totals[kind], "n"))
    return parts


def _fact(cells: tuple[str, ...], x: float, y: float) -> list[str]:
    name, value, *rest = cells
    other, change = rest or ["", ""]
    shown = f"{value} \u2192 {other}" if change else value
    return [
        text(x, y, name, "b" if change else "t"), text(x + 280, y, shown, "e b" if change else "e"),
        text(x + 292, y, change, "s"),
    ]  # fmt: skip


def in_words(reading: KernelReading) -> str:
    """The reading in words: every number, and what changes."""
    rows = reading.table().rows
    if reading.other is None:
        return f"{reading.title()}. " + ", ".join(f"{name} {value}" for name, value in rows) + "."
    changed = [f"{name} from {value} to {other}" for name, value, other, change in rows if change]
    same = [f"{name} {value}" for name, value, _, change in rows if not change]
    return f"{reading.title()}. Changed: {', '.join(changed) or 'nothing'}. The same: {', '.join(same) or 'nothing'}."

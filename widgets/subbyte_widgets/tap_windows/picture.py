"""A picture of :class:`~subbyte.technique.taps.TapAddresses`: one panel for each tap, its window over shared memory."""

from __future__ import annotations

from typing import Any

from subbyte.technique.taps import StoredRow, Tap, TapAddresses
from subbyte_widgets._base import StaticPicture
from subbyte_widgets.svg import OKABE_ITO, element, standalone, text

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; } text.h { font-weight: 600; font-size: 13px; }
text.s { fill: #57606a; font-size: 11px; }
.cell { fill: #d0d7de; } .zero { fill: none; stroke: #8c959f; stroke-dasharray: 1 1; stroke-width: 0.7; }
"""
WIDE, LEFT, TOP = 760, 12, 52
ROW, GAP, HEAD = 13, 26, 18


class TapWindows(StaticPicture):
    """Static picture of a record: rows of shared memory, and what each tap's descriptor reaches of them.

    Boxes are pixels (8 images x 32 channels), dashed ones zeros; the coloured window is one instruction's operand B.
    """

    def __init__(self, record: TapAddresses) -> None:
        self.record = record

    @property
    def alternative(self) -> str:  # type: ignore[override]
        """The picture in words."""
        first = self.record.taps[0]
        return (
            f"{self.record.title()}. {len(self.record.taps)} taps read {len(self.record.stored)} rows of shared "
            f"memory; tap ({first.r}, {first.s}) begins at byte {first.start}."
        )

    def to_svg(self) -> str:
        """The picture, standing alone."""
        record, rows = self.record, _rows(self.record)
        across = max(len([tap for tap in record.taps if tap.r == r]) for r in {tap.r for tap in record.taps})
        panel = (WIDE - LEFT) / across
        high = HEAD + rows * ROW + GAP
        lines = sorted({tap.r for tap in record.taps})
        head, _, what = record.title().partition(": ")
        drawn = [text(LEFT, 18, what[:1].upper() + what[1:], class_="h"), text(LEFT, 34, head, class_="s")]
        for tap in record.taps:
            x, y = LEFT + tap.s * panel, TOP + lines.index(tap.r) * high
            drawn += _panel(record, tap, x, y, panel - 18)
        size = f"0 0 {WIDE} {TOP + len(lines) * high}"
        return standalone(element("svg", drawn, xmlns="http://www.w3.org/2000/svg", viewBox=size), STYLE)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"text/plain": repr(self), **self.static()}, {}

    _ipython_display_ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<TapWindows: {self.alternative}>"


def _rows(record: TapAddresses) -> int:
    return len(record.stored) if record.shared else 1


def _panel(record: TapAddresses, tap: Tap, x: float, y: float, wide: float) -> list[str]:
    """One tap: the stored rows, the window, and its numbers below."""
    box = min(ROW - 2.0, wide / record.pitch)
    shown = record.stored if record.shared else (StoredRow(tap.slot, tap.input_row, tap.pixels),)
    drawn = [text(x, y + 10, f"tap ({tap.r}, {tap.s})")]
    for place, row in enumerate(shown):
        top = y + HEAD + place * ROW
        drawn += _cells(row, tap if row.slot == tap.slot else None, record.width, x, top, box)
    below = f"slot {tap.slot}, start {tap.start:,}"
    return [*drawn, text(x, y + HEAD + len(shown) * ROW + 11, below, class_="s")]


def _cells(row: StoredRow, tap: Tap | None, width: int, x: float, top: float, box: float) -> list[str]:
    drawn = [
        element("rect", x=x + i * box, y=top, width=box - 1, height=ROW - 3, class_="zero" if column < 0 else "cell")
        for i, column in enumerate(row.columns)
    ]
    if tap is not None:
        drawn.append(element("rect", x=x + tap.column * box - 1, y=top - 1.5, width=width * box + 1, height=ROW,
                             fill=OKABE_ITO[0], fill_opacity=0.3, stroke=OKABE_ITO[0], stroke_width=1.5))  # fmt: skip
    return drawn

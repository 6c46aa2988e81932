"""The picture of :class:`~subbyte.networks.NetworkTimeline`: a row for each layer from top to bottom, on the left its
floor and its estimate in microseconds, on the right its bytes."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.networks.timeline import NetworkTimeline
from subbyte_widgets._turned import panel_svg
from subbyte_widgets.network_timeline.words import unit_of
from subbyte_widgets.svg import element, text

WIDTH, TOP = 760.0, 92.0
TIMES, TIMES_END = 128.0, 486.0
BYTES, BYTES_END = 512.0, 696.0
"""Where bars start, and where the longest one ends."""
MOST_HIGH, LEAST_HIGH, ROWS_HIGH = 26.0, 13.0, 400.0
"""Height of a row, and of all rows together unless they get too low."""
MOST_LETTERS = 15
"""Longest name of a layer, in characters."""


@dataclass(frozen=True)
class Drawing:
    """A record with the positions of its parts."""

    record: NetworkTimeline

    @property
    def high(self) -> float:
        """Height of a row."""
        return max(LEAST_HIGH, min(MOST_HIGH, ROWS_HIGH / len(self.record.layers)))

    @property
    def bottom(self) -> float:
        """Where the rows end."""
        return TOP + len(self.record.layers) * self.high

    def y(self, number: int) -> float:
        """Where a layer's row starts."""
        return TOP + number * self.high

    @property
    def longest(self) -> float:
        """Microseconds of the longest bar."""
        return max(max(one.floor, one.estimate or 0.0) for one in self.record.layers) or 1.0

    @property
    def largest(self) -> int:
        """Bytes of the longest bar."""
        return max(one.bytes_moved for one in self.record.layers) or 1

    def wide(self, microseconds: float) -> float:
        """Width of a time."""
        return microseconds / self.longest * (TIMES_END - TIMES)

    def wide_bytes(self, count: float) -> float:
        """Width of this many bytes."""
        return count / self.largest * (BYTES_END - BYTES)


def timeline_svg(record: NetworkTimeline, chosen: int = -1) -> str:
    """The picture, with one of the layers marked."""
    drawing = Drawing(record)
    content = [
        text(24, 22, f"{record.network}: floors of {record.peaks_of}, and the kernels' estimates", "h"),
        text(24, 40, f"{record.label}; no time in this picture is of a run on a GPU", "s"),
        *_legend(),
        *_axis(drawing),
        *(_layer(drawing, number, number == chosen) for number in range(len(record.layers))),
    ]
    label = "Layers: up and down arrow keys choose one"
    return panel_svg(content, (WIDTH, drawing.bottom + 34), "sb-timeline-svg", label)


def _legend() -> list[str]:
    drawn = []
    for x, class_, words in (
        (TIMES, "launch", "launch"), (TIMES + 70, "move", "moving"), (TIMES + 146, "multiply", "multiplying"),
        (TIMES + 246, "estimate", "kernel's estimate"), (BYTES, "bytes", "operands, output"),
        (BYTES + 132, "residual", "residual"),
    ):  # fmt: skip
        drawn.append(element("rect", class_=class_, x=x, y=54, width=12, height=12))
        drawn.append(text(x + 17, 64, words))
    return [*drawn, text(24, 64, "layer", "s"), text(TIMES, 84, "microseconds: floors filled, estimates outlined", "s"),
            text(BYTES, 84, "bytes moved; share of residuals", "s")]  # fmt: skip


def _axis(drawing: Drawing) -> list[str]:
    """Lines at round times and bytes with their numbers."""
    drawn = []
    step = rounded(drawing.longest / 4)
    for number in range(1 + int(drawing.longest / step)):
        drawn += _line(drawing, TIMES + drawing.wide(number * step), f"{number * step:.6g}")
    factor, unit = unit_of(drawing.largest)
    step = rounded(drawing.largest / factor / 3)
    for number in range(1 + int(drawing.largest / factor / step)):
        drawn += _line(drawing, BYTES + drawing.wide_bytes(number * step * factor), f"{number * step:.6g}")
    drawn.append(text(WIDTH - 12, drawing.bottom + 18, unit, "s e"))
    return [*drawn, text(TIMES - 12, drawing.bottom + 18, "us", "s e")]


def _line(drawing: Drawing, x: float, words: str) -> list[str]:
    return [
        element("path", class_="grid", d=f"M{x:.1f} {TOP:.1f}V{drawing.bottom + 4:.1f}"),
        text(x, drawing.bottom + 18, words, "s m"),
    ]


def _layer(drawing: Drawing, number: int, chosen: bool) -> str:
    """Launch, then moving above multiplying, the estimate around them; bytes, those of residuals last."""
    one, y, high = drawing.record.layers[number], drawing.y(number), drawing.high - 4
    name = one.name if len(one.name) <= MOST_LETTERS else one.name[: MOST_LETTERS - 1] + "\u2026"
    after, half = TIMES + drawing.wide(one.launch), high / 2 - 1.5
    waiting = one.residual_read + one.residual_written
    own = one.bytes_moved - waiting
    bars = [
        element("rect", class_="back", x=18.0, y=y, width=WIDTH - 28, height=drawing.high, rx=3),
        text(24, y + drawing.high / 2 + 4, name, "name"),
        _bar("launch", TIMES, y + 3.5, drawing.wide(one.launch), high - 3),
        _bar("move", after, y + 3.5, drawing.wide(one.move), half),
        _bar("multiply", after, y + 3.5 + half, drawing.wide(one.multiply), half),
        _bar("bytes", BYTES, y + 3.5, drawing.wide_bytes(own), high - 3),
    ]
    if one.estimate is not None:
        bars.append(_bar("estimate", TIMES, y + 1.5, drawing.wide(one.estimate), high + 1))
    else:
        bars.append(text(TIMES + drawing.wide(one.floor) + 8, y + drawing.high / 2 + 4, "no estimate", "s"))
    if waiting:
        bars.append(_bar("residual", BYTES + drawing.wide_bytes(own), y + 3.5, drawing.wide_bytes(waiting), high - 3))
        share = f"{waiting / one.bytes_moved:.0%}"
        end = BYTES + drawing.wide_bytes(one.bytes_moved) + 6
        bars.append(text(end, y + drawing.high / 2 + 4, share, "s"))
    return element("g", bars, class_="layer on over" if chosen else "layer", data_layer=number)


def _bar(class_: str, x: float, y: float, wide: float, high: float) -> str:
    return element("rect", class_=class_, x=round(x, 2), y=round(y, 2), width=round(wide, 2), height=round(high, 2))


def rounded(wide: float) -> float:
    """1, 2 or 5 times a power of ten, at most as much."""
    unit = 10.0 ** len(str(int(wide))) if wide >= 1 else 1.0
    while unit > wide:
        unit /= 10
    return max(one * unit for one in (1, 2, 5) if one * unit <= wide)

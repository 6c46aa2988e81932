"""The picture of a best-so-far curve: trials along x, microseconds (logarithmic) along y. view.js draws the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, log10
from typing import Any

from subbyte_widgets.svg import element, text

WIDTH, HEIGHT = 760.0, 330.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 742.0, 46.0, 284.0
STEPS = (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
EMPTY: dict[str, list[Any]] = {"numbers": [], "microseconds": [], "best_microseconds": [], "failures": []}


class Axes:
    """Maps (index of a trial, microseconds) to points of the picture."""

    def __init__(self, curve: Mapping[str, Sequence[Any]], total: int) -> None:
        self.count = max(total, len(curve["numbers"]), 2)
        times = [time for time in curve["microseconds"] if time is not None] or [1.0, 10.0]
        span = max(log10(max(times)) - log10(min(times)), 0.1)
        # Room below for the crosses of failed trials and the label of the best.
        self.low, self.high = log10(min(times)) - 0.2 * span, log10(max(times)) + 0.06 * span

    def x(self, place: int) -> float:
        """Horizontal position of the trial whose result arrived at ``place`` (from 0)."""
        return LEFT + place / (self.count - 1) * (RIGHT - LEFT)

    def y(self, microseconds: float) -> float:
        """Vertical position of a time."""
        return BOTTOM - (log10(microseconds) - self.low) / (self.high - self.low) * (BOTTOM - TOP)

    def times(self) -> list[float]:
        """Round times inside the axis: few digits times a power of ten, more of them on a short axis."""
        decades = range(floor(self.low), floor(self.high) + 1)
        decades_shown = self.high - self.low
        steps = (1, 2, 5) if decades_shown > 1.2 else (1, 2, 3, 5, 7) if decades_shown > 0.55 else STEPS
        return [m * 10.0**d for d in decades for m in steps if self.low <= log10(m * 10.0**d) <= self.high]

    def counts(self) -> list[int]:
        """Round places of trials."""
        step = next(s for d in range(9) for s in (10**d, 2 * 10**d, 5 * 10**d) if self.count / s <= 8)
        return list(range(0, self.count, step))


def curve_svg(curve: Mapping[str, Sequence[Any]], total: int, title: str, status: str) -> str:
    """``curve`` has the columns of :class:`subbyte.tune.record.BestCurve`; ``total`` is the trials asked for, or 0."""
    axes = Axes(curve, total)
    parts = [text(LEFT, 18, title, "h"), text(LEFT, 36, status, "s"), *_grid(axes)]
    dots = "".join(f"M{axes.x(i):.1f} {axes.y(t):.1f}h0" for i, t in enumerate(curve["microseconds"]) if t is not None)
    crosses = "".join(
        f"M{axes.x(i) - 3:.1f} {BOTTOM - 9:.1f}l6 6m0 -6l-6 6" for i, kind in enumerate(curve["failures"]) if kind
    )
    parts.append(element("path", d=dots, class_="dots", data_of="study"))
    parts.append(element("path", d=crosses, class_="failed", data_of="study"))
    parts.append(element("path", d=best_path(axes, curve["best_microseconds"]), class_="best", data_of="study"))
    last = [(i, best) for i, best in enumerate(curve["best_microseconds"]) if best is not None][-1:]
    for i, best in last:
        parts.append(element("circle", cx=axes.x(i), cy=axes.y(best), r=5, class_="end"))
        parts.append(text(axes.x(i) - 4, axes.y(best) + 18, f"{best:.2f} us", "best-label e"))
    return element("svg", parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
                   class_="sb-curve-svg", role="img", aria_label=f"{title}. {status}")  # fmt: skip


def best_path(axes: Axes, best: Sequence[float | None]) -> str:
    """The staircase of the best time so far."""
    path, before = "", None
    for i, time in enumerate(best):
        if time is None:
            continue
        x, y = f"{axes.x(i):.1f}", f"{axes.y(time):.1f}"
        path += f"M{x} {y}" if before is None else f"H{x}" if time == before else f"H{x}V{y}"
        before = time
    return path


def _grid(axes: Axes) -> list[str]:
    parts = []
    for time in axes.times():
        y = axes.y(time)
        parts.append(element("path", d=f"M{LEFT} {y:.1f}H{RIGHT}", class_="rule"))
        parts.append(text(LEFT - 8, y + 4, f"{time:g}", "s e"))
    parts += [text(axes.x(count), BOTTOM + 18, count, "s m") for count in axes.counts()]
    parts.append(element("path", d=f"M{LEFT} {BOTTOM}H{RIGHT}", class_="axis"))
    parts.append(text((LEFT + RIGHT) / 2, BOTTOM + 38, "trial", "s m"))
    middle = (TOP + BOTTOM) / 2
    turn = f"rotate(-90 14 {middle:.0f})"
    parts.append(text(14, middle, "us (log)", "s m", transform=turn))
    marks = [("M456 {y}h0", "dots", 464, "measured"), ("M535 {c}l6 6m0 -6l-6 6", "failed", 546, "failed"),
             ("M598 {y}h22", "best", 626, "best so far")]  # fmt: skip
    for path, class_, x, words in marks:
        parts.append(element("path", d=path.format(y=14, c=11), class_=class_))
        parts.append(text(x, 18, words, "s"))
    return parts

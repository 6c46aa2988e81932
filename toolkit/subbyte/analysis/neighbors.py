"""The fastest configuration of a landscape and its neighbors: one knob changed at a time, each with its time or the
reason why it cannot be built."""

from __future__ import annotations

import math
from dataclasses import dataclass

from subbyte.analysis.landscape_view import landscape_points
from subbyte.arguments import checked
from subbyte.html import Cell, Markup, cell, element, table
from subbyte.records.landscape import Landscape
from subbyte.technique.record import InfoRecord, Table, columns_text

SLOWEST = 2.0
"""The slow end of the colour scale, as a multiple of the fastest time."""

FAST, SLOW = (26, 152, 80), (215, 90, 40)
"""Ends of the colour scale. Cells are translucent, so that their text keeps the page's colour and contrast."""


@dataclass(frozen=True)
class Neighbor:
    """The configuration with one knob set to ``value``. ``microseconds`` is None if it was not measured; ``reason``
    then says why. ``chosen``: the fastest configuration itself."""

    value: int
    microseconds: float | None
    reason: str
    chosen: bool


@dataclass(frozen=True)
class Neighbors(InfoRecord):
    """For each knob, the configurations that differ from the fastest one of ``workload`` in that knob alone.

    ``meanings``: each knob in one line; ``best``: microseconds of the fastest configuration.
    """

    workload: str
    device: str
    best: float
    meanings: dict[str, str]
    rows: dict[str, tuple[Neighbor, ...]]

    def title(self) -> str:
        """What the grid shows."""
        return f"{self.workload} on {self.device}: the fastest configuration (*), and one knob changed at a time, us"

    def table(self) -> Table:
        """One row per knob value."""
        rows = [
            (knob, one.value, one.microseconds, "*" if one.chosen else one.reason)
            for knob, row in self.rows.items()
            for one in row
        ]
        return Table(("knob", "value", "microseconds", "note"), tuple(rows))

    def text(self) -> str:
        """One line per knob: each value with its time, a star at the fastest, a dash if nothing was built."""
        cells = [[f"{one.value}: {_time(one)}" for one in row] for row in self.rows.values()]
        most = max(len(row) for row in cells)
        rows = tuple((knob, *row, *[""] * (most - len(row))) for knob, row in zip(self.rows, cells, strict=True))
        return self.title() + "\n\n" + columns_text(Table(("knob", *[""] * most), rows))

    def _repr_html_(self) -> Markup:
        most = max(len(row) for row in self.rows.values())
        lines: list[list[object]] = []
        for knob, row in self.rows.items():
            head = cell(element("code", knob), title=self.meanings[knob], style="text-align:left")
            lines.append([head, *(self._cell(one) for one in row), *[cell("")] * (most - len(row))])
        legend = "green is as fast as the fastest, orange twice as slow or more, a dash cannot be built (hover for why)"
        caption = element("div", element("b", self.title()), style="text-align:left")
        return Markup(table(lines, caption=caption) + element("div", legend))

    def _cell(self, one: Neighbor) -> Cell:
        value = element("small", f"{one.value} ", style="opacity:0.75")
        style = "text-align:right;min-width:5em"
        if one.microseconds is None:
            return cell(Markup(value + "–"), title=one.reason, style=style)
        part = min(1.0, math.log(one.microseconds / self.best) / math.log(SLOWEST))
        red, green, blue = (round(a + (b - a) * part) for a, b in zip(FAST, SLOW, strict=True))
        color = f";background:rgba({red},{green},{blue},0.3)"
        shown = element("b", _time(one)) if one.chosen else _time(one)
        return cell(Markup(value + shown), style=style + color)


@checked
def neighbors(landscape: Landscape) -> Neighbors:
    """The neighbors of the fastest configuration of ``landscape``, knob by knob in the space's order.

    Raises InvalidInput for anything but a landscape, and for a landscape without a time.
    """
    points = landscape_points(landscape)
    index, best = landscape.best
    outcomes = dict(zip(points.digits, zip(points.microseconds, points.reasons, strict=True), strict=True))
    champion = points.digits[points.indices.index(index)]
    rows: dict[str, tuple[Neighbor, ...]] = {}
    for place, (knob, values) in enumerate(points.knobs.items()):
        row = []
        for digit, value in enumerate(values):
            changed = (*champion[:place], digit, *champion[place + 1 :])
            time, reason = outcomes.get(changed, (None, "not in the landscape"))
            row.append(Neighbor(value, time, reason, changed == champion))
        rows[knob] = tuple(row)
    meanings = {knob: landscape.config(index).rows[knob].meaning for knob in rows}
    return Neighbors(points.workload, points.device, best.microseconds, meanings, rows)


def _time(one: Neighbor) -> str:
    return "-" if one.microseconds is None else f"{one.microseconds:.2f}{'*' if one.chosen else ''}"

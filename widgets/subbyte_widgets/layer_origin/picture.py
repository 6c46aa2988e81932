"""The picture of an :class:`~subbyte.analysis.origin.Origin`: a bar for each time that is known, its range, why one is
missing. Every row has its place (``data-item``) and its time (``data-value``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from subbyte.analysis.origin import Origin
from subbyte_widgets._turned import panel_svg
from subbyte_widgets.layer_origin.words import Row
from subbyte_widgets.svg import element, text

WIDTH, LEFT, END, TOP, ROW = 760.0, 186.0, 520.0, 62.0, 30.0
BAR = 14.0
US = "us"
Place = Callable[[float], float]
"""Maps microseconds to a point of the picture."""
LABEL = "What is known of the layer's time: up and down arrow keys choose a row"


def origin_svg(record: Origin, rows: Sequence[Row], chosen: int = -1) -> str:
    """The rows above one axis that starts at 0 microseconds; one of them is marked."""
    longest = max((one.high or one.microseconds or 0.0 for one in rows), default=0.0) or 1.0
    step = _step(longest)
    bottom = TOP + ROW * len(rows)

    def x(microseconds: float) -> float:
        return LEFT + microseconds / longest * (END - LEFT)

    content = [
        text(18, 22, record.title(), "h"),
        text(18, 41, f"{record.taken.short}, {record.taken.family} family", "s"),
        *(part for place in range(int(longest / step) + 1) for part in _tick(x(place * step), place * step, bottom)),
        *(_row(one, number, number == chosen, x) for number, one in enumerate(rows)),
        text(END + 8, bottom + 18, US, "s"),
    ]  # fmt: skip
    return panel_svg(content, (WIDTH, bottom + 30), "sb-origin-svg", LABEL)


def _step(longest: float) -> float:
    """Distance between two marks of the axis: at most six of them."""
    return next(s * 10.0**d for d in range(-2, 7) for s in (1, 2, 5) if longest / (s * 10.0**d) <= 6)


def _tick(x: float, value: float, bottom: float) -> list[str]:
    return [element("path", class_="grid", d=f"M{x:.1f} {TOP - 6:.1f}V{bottom + 4:.1f}"),
            text(x, bottom + 18, f"{value:g}", "s m")]  # fmt: skip


def _row(one: Row, number: int, chosen: bool, x: Place) -> str:
    y = TOP + ROW * number
    middle = y + ROW / 2
    parts = [
        element("rect", class_="back", x=8, y=y + 1, width=WIDTH - 16, height=ROW - 2, rx=4),
        text(LEFT - 10, middle + 4, one.name, "e name"),
    ]
    if one.taken:
        parts.append(element("path", class_="taken", d=f"M12 {middle - 5:.1f}l8 5l-8 5z"))
    time = one.microseconds
    parts += [text(LEFT + 8, middle + 4, one.nothing, "s none")] if time is None else _bar(one, time, middle, x)
    marks = "row taken" if one.taken else "row"
    value = None if time is None else f"{time:.6g}"
    return element("g", parts, class_=f"{marks} on over" if chosen else marks, data_item=number, data_value=value)


def _bar(one: Row, time: float, middle: float, x: Place) -> list[str]:
    wide = round(x(time) - LEFT, 1)
    parts = [element("rect", class_=f"bar {one.kind}", x=LEFT, y=middle - BAR / 2, width=wide, height=BAR)]
    said = f"{time:.2f} {US}"
    if one.low is not None and one.high is not None:
        low, high = x(one.low), x(one.high)
        path = f"M{low:.1f} {middle:.1f}H{high:.1f}M{low:.1f} {middle - 6:.1f}v12M{high:.1f} {middle - 6:.1f}v12"
        parts.append(element("path", class_="range", d=path))
        said += f" ({one.low:.2f} to {one.high:.2f})"
    return [*parts, text(END + 10, middle - 2, said, "v"), text(END + 10, middle + 12, one.device, "s")]

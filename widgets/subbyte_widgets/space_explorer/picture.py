"""The pictures of the space explorer: lines over the knobs, the map of two knobs, the effect of each knob."""

from __future__ import annotations

import math
from collections.abc import Sequence

from subbyte.analysis.landscape_view import KnobEffect, LandscapeMap, LandscapePoints
from subbyte_widgets.svg import element, text

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 760.0, 46.0, 690.0, 64.0, 262.0
BAND = 0.62
"""Fraction of a value's band that its lines fill."""
EFFECTS, VALUES, KNOB, IN_A_LINE = 440.0, 136.0, 36.0, 8
"""Of the effects: width, where the values begin, height of a line of values and how many are in one."""
SHADES = 8
"""Shades of one colour, from 0 (fastest) to the slowest; view.css holds them."""


MOST_LINES = 1200
"""Lines of the static picture; of more configurations every second, third, ... by speed is drawn."""


def shade(time: float, best: float, worst: float) -> int:
    """Shade of a time between the landscape's best and worst, on a logarithmic scale."""
    return min(SHADES - 1, int(SHADES * math.log(time / best) / max(math.log(worst / best), 1e-9)))


def explorer_svg(
    points: LandscapePoints,
    shown: LandscapeMap | None,
    statistic: str,
    effects: Sequence[KnobEffect],
    selected: int,
) -> str:
    """All three pictures, one below the other."""
    times = [time for time in points.microseconds if time is not None]
    best, worst = min(times), max(times)
    parts = [text(12, 20, points.title(), "h"), text(12, 38, counts_in_words(points), "s")]
    if points.measured > MOST_LINES:
        parts.append(text(12, 54, f"One line for every {math.ceil(points.measured / MOST_LINES)}, by speed.", "s"))
    parts += _lines(points, best, worst, selected)
    y = BOTTOM + 62
    if shown is not None:
        parts += _map(shown, statistic, best, worst, y)
        y += 58 + 30 * len(shown.y_values)
    parts.append(element("g", effect_rows(effects), transform=f"translate(0 {y:.0f})"))
    height = y + effects_height(effects)
    return element("svg", parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
                   class_="sb-space-svg", role="img", aria_label=in_words(points, effects))  # fmt: skip


def _lines(points: LandscapePoints, best: float, worst: float, selected: int) -> list[str]:
    columns = [i for i, name in enumerate(points.knobs) if name not in points.constant] or [0]
    knobs = [list(points.knobs.items())[i] for i in columns]
    step = (RIGHT - LEFT) / len(knobs)

    timed = [i for i, time in enumerate(points.microseconds) if time is not None]
    order = sorted(timed, key=lambda i: points.microseconds[i] or 0.0)
    # Lines that share a value lie side by side in its band: the fastest lowest, the slowest highest.
    side = {place: BAND * (rank / len(order) - 0.5) for rank, place in enumerate(order)}

    def path(place: int) -> str:
        time, within = points.microseconds[place], 0.5 + side.get(place, 0.0)
        digits = points.digits[place]
        ys = [BOTTOM - (digits[i] + within) / len(values) * (BOTTOM - TOP)
              for i, (_, values) in zip(columns, knobs, strict=True)]  # fmt: skip
        if time is not None:
            ys.append(BOTTOM - math.log(time / best) / max(math.log(worst / best), 1e-9) * (BOTTOM - TOP))
        return "M" + "L".join(f"{LEFT + i * step:.0f} {y:.0f}" for i, y in enumerate(ys))

    every = math.ceil(len(order) / MOST_LINES)
    layers: list[list[str]] = [[] for _ in range(SHADES)]
    for place in sorted(order[::every]):
        layers[shade(points.microseconds[place] or best, best, worst)].append(path(place))
    # Lines that coincide in the rounded picture are drawn once; the slow ones lie below.
    parts = [
        element("path", d="".join(dict.fromkeys(layers[level])), class_=f"line l{level}")
        for level in reversed(range(SHADES))
        if layers[level]
    ]
    if selected in points.indices:
        parts.append(element("path", d=path(points.indices.index(selected)), class_="line chosen"))
    for i, (name, values) in enumerate(knobs):
        x = LEFT + i * step
        parts.append(element("path", d=f"M{x:.0f} {TOP:.0f}V{BOTTOM:.0f}", class_="axis"))
        parts.append(text(x, BOTTOM + (18 if i % 2 == 0 else 32), name, "s m"))
        for digit, value in enumerate(values):
            y = BOTTOM - (digit + 0.5) / len(values) * (BOTTOM - TOP)
            parts.append(text(x - 5, y + 4, value, "e halo"))
    parts.append(element("path", d=f"M{RIGHT:.0f} {TOP:.0f}V{BOTTOM:.0f}", class_="axis"))
    for time, y in ((best, BOTTOM), (worst, TOP)):
        parts.append(text(RIGHT + 6, y + 4, f"{time:.1f} us", "t"))
    return parts


def _map(shown: LandscapeMap, statistic: str, best: float, worst: float, top: float) -> list[str]:
    parts = [text(12, top, f"{statistic} time (us) over all other knobs: {shown.y} down, {shown.x} across", "h")]
    width = min(90.0, 620.0 / len(shown.x_values))
    for j, value in enumerate(shown.x_values):
        parts.append(text(LEFT + 34 + (j + 0.5) * width, top + 22, value, "m"))
    for i, row in enumerate(shown.cells):
        y = top + 30 + 30 * i
        parts.append(text(LEFT + 26, y + 18, shown.y_values[i], "e"))
        for j, cell in enumerate(row):
            time = cell.best if statistic == "best" else cell.median
            kind = "none" if time is None else f"s{shade(time, best, worst)}"
            words = cell.reason.split(":")[0] if time is None else f"{time:.2f}"
            x = LEFT + 34 + j * width
            parts.append(element("rect", x=x, y=y, width=width - 3, height=27, rx=3, class_=f"cell {kind}"))
            parts.append(text(x + width / 2 - 1.5, y + 18, words, f"m on {kind}"))
    return parts


def effects_svg(effects: Sequence[KnobEffect]) -> str:
    """The effect of each knob as a picture of its own, without style."""
    height = effects_height(effects)
    return element("svg", effect_rows(effects), xmlns="http://www.w3.org/2000/svg",
                   viewBox=f"0 0 {EFFECTS:.0f} {height:.0f}", class_="sb-space-svg", role="img",
                   aria_label="Effect of each knob: " + "; ".join(effect.title() for effect in effects))  # fmt: skip


def effects_height(effects: Sequence[KnobEffect]) -> float:
    """Pixels of :func:`effect_rows`."""
    return 68 + KNOB * sum(_lines_of(effect) for effect in effects)


def _lines_of(effect: KnobEffect) -> int:
    return math.ceil(len(effect.values) / IN_A_LINE)


def effect_rows(effects: Sequence[KnobEffect]) -> list[str]:
    """One row per knob: the share of the variance as a bar below its name, best time at each value beside it."""
    parts = [
        text(12, 16, "Effect of each knob", "h"), text(12, 34, "bar: share of the variance, alone", "s"),
        text(12, 50, "numbers: best time (us) at each value; bold: the knob's best", "s"),
    ]  # fmt: skip
    y = 60.0
    for effect in effects:
        parts.append(text(12, y + 12, effect.knob))
        for size, class_ in ((70.0, "room"), (max(70 * effect.share, 1.0), "share")):
            parts.append(element("rect", x=12, y=y + 17, width=size, height=10, class_=class_))
        parts.append(text(88, y + 26, f"{effect.share:.0%}"))
        width = (EFFECTS - VALUES) / max(min(len(effect.values), IN_A_LINE), 5)
        least = min(time for time in effect.best if time is not None)
        for j, (value, best) in enumerate(zip(effect.values, effect.best, strict=True)):
            x, line = VALUES + j % IN_A_LINE * width, y + KNOB * (j // IN_A_LINE)
            parts.append(text(x, line + 12, value, "n"))
            words = "refused" if best is None else f"{best:.2f}"
            parts.append(text(x, line + 26, words, "b" if best == least else "n"))
        y += KNOB * _lines_of(effect)
    return parts


def counts_in_words(points: LandscapePoints) -> str:
    """How many configurations there are, how many were measured, and how many were rejected for which reason."""
    refused = ", ".join(f"{kind} {count:,}" for kind, count in points.refused.items())
    rest = f", {sum(points.refused.values()):,} refused ({refused})" if refused else ""
    return f"{points.size:,} configurations: {points.measured:,} measured{rest}"


def in_words(points: LandscapePoints, effects: Sequence[KnobEffect]) -> str:
    """The landscape in words."""
    times = [time for time in points.microseconds if time is not None]
    ranked = "; ".join(effect.title() for effect in effects)
    return (
        f"{points.title()}. {counts_in_words(points)}. From {min(times):.2f} to {max(times):.2f} microseconds. "
        f"Effect of each knob: {ranked}."
    )

"""Pictures of :class:`~subbyte.technique.folding.Folding`: the line of a batch normalization over the sums, the integer
thresholds where it crosses from one value to the next, and the code of every sum."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, sqrt

from subbyte.technique.folding import Folding
from subbyte_widgets._turned import Page, panel_svg
from subbyte_widgets.svg import element, text

WIDTH, LEFT, RIGHT = 760.0, 70.0, 736.0
TOP, BOTTOM = 62.0, 262.0
CODES, CODES_LOW = 306.0, 396.0
MOST_LEVELS = 15
"""Most thresholds that are drawn individually; with more, only the codes are drawn."""
DEVIATIONS = 3.0
"""Of the sums to either side of their mean."""
COLOURS = 4
CHARACTER = 7.0
"""Pixels of a letter."""
FEW = 5
"""Most thresholds that a sentence names."""


def pages(records: Sequence[Folding]) -> list[Page]:
    """A picture for each record."""
    return [Page(folding_svg(record), f"{record.gamma:.4g}", sentence(record)) for record in records]


def span(record: Folding) -> tuple[int, int]:
    """The sums that are drawn: around their mean."""
    wide = max(2.0, DEVIATIONS * sqrt(record.variance))
    least, most = max(record.least, floor(record.mean - wide)), min(record.most, ceil(record.mean + wide))
    return (least, most) if least < most else (record.least, record.most)


def inside(record: Folding) -> list[int]:
    """The indices of the levels that some sums in the picture pass and others do not."""
    least, most = span(record)
    found = [i for i, level in enumerate(record.levels) if least < level <= most]
    return found if len(record.levels) <= MOST_LEVELS else []


def sentence(record: Folding) -> str:
    """What the thresholds do."""
    if record.gamma == 0:
        value = record.ranges[0].value
        return f"gamma is 0: every sum gives {value}, a constant channel. No sum passes, or all do."
    levels = [f"{level:,}" for level in sorted({*record.levels} - {record.never, record.always})]
    said = ", ".join(levels if len(levels) <= FEW else [*levels[: FEW - 2], "...", levels[-1]])
    if record.flip:
        each = "" if len(levels) == 1 else ", each of another threshold"
        return (
            "gamma < 0: the line falls, so the comparison is turned over and the channel is flipped. Sums below "
            f"{said} pass{each}. The kernel compares as before and inverts the bit."
        )
    each = "" if len(levels) == 1 else ", each a threshold"
    return (
        f"gamma > 0: a sum passes from {said} on{each}: the first integer at which the line is high enough. "
        "Normalizing and rounding are comparisons; no floating point is left."
    )


def folding_svg(record: Folding) -> str:
    """The picture of one gamma."""
    head, _, what = record.title().partition(": ")
    content = [text(24, 20, f"{head}: batch normalization, then rounding", "h"), text(24, 38, what, "s")]
    content += [*_needs(record), *_curve(record), *_levels(record), *_codes(record)]
    label = "Gamma: left and right arrow keys choose another"
    return panel_svg(content, (WIDTH, CODES_LOW + 44), "sb-folding-svg", label)


def at(record: Folding, total: float) -> float:
    """x of a sum."""
    least, most = span(record)
    return LEFT + (total - least) / (most - least) * (RIGHT - LEFT)


def _height(record: Folding, normalized: float) -> float:
    """y of a normalized number: all that are needed, and as much again beyond."""
    low, high = record.needs[0], record.needs[-1]
    beyond = max(1.5 * record.step, 0.35 * (high - low))
    return BOTTOM - (normalized - low + beyond) / (high - low + 2 * beyond) * (BOTTOM - TOP)


def _needs(record: Folding) -> list[str]:
    """Which normalized numbers a sum has to reach."""
    drawn = [element("rect", class_="frame", x=LEFT, y=TOP, width=RIGHT - LEFT, height=BOTTOM - TOP)]
    if len(record.needs) > MOST_LEVELS:
        return drawn
    apart = abs(_height(record, record.needs[0]) - _height(record, record.needs[-1])) / len(record.needs)
    for need in record.needs:
        y = _height(record, need)
        first_or_last = need in (record.needs[0], record.needs[-1])
        drawn.append(element("path", class_="need", d=f"M{LEFT:.1f} {y:.1f}H{RIGHT:.1f}"))
        drawn += [text(LEFT - 6, y + 4, f"{need:.4g}", "s e")] * (apart > 12 or first_or_last)
    return [*drawn, text(24, TOP - 6, "normalized", "s")]


def _curve(record: Folding) -> list[str]:
    """The line, cut at the frame."""
    least, most = span(record)
    ends = [(float(total), record.normalized(total)) for total in (least, most)]
    (x0, y0), (x1, y1) = [(at(record, total), _height(record, value)) for total, value in ends]
    points = []
    for x, y in ((x0, y0), (x1, y1)):
        held = min(max(y, TOP), BOTTOM)
        points.append((x if y1 == y0 else x0 + (held - y0) / (y1 - y0) * (x1 - x0), held) if held != y else (x, y))
    (x0, y0), (x1, y1) = points
    drawn = [element("path", class_="line", d=f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}")]
    step = _round((most - least) / 4)
    ticks = range(ceil(least / step) * step, most + 1, step)
    drawn += [text(at(record, tick), CODES_LOW + 34, f"{tick:,}", "s m") for tick in ticks]
    return [*drawn, text(24, CODES_LOW + 34, "sum", "s")]


def _round(wide: float) -> int:
    """1, 2 or 5 times a power of ten, about as much."""
    unit = 1
    while 10 * unit <= wide:
        unit *= 10
    return max(one * unit for one in (1, 2, 5) if one * unit <= max(1.0, wide))


def _levels(record: Folding) -> list[str]:
    """A dashed line at each threshold, with the last sum before it and the first one from it on."""
    drawn = []
    for number in inside(record):
        level = record.levels[number]
        x = at(record, level)
        drawn.append(element("path", class_="level", d=f"M{x:.1f} {TOP:.1f}V{CODES_LOW:.1f}", data_level=level))
        for total, class_ in ((level - 1, "before"), (level, "from")):
            y = _height(record, record.normalized(total))
            if TOP <= y <= BOTTOM:
                drawn.append(element("circle", class_=class_, cx=at(record, total), cy=y, r=3.4))
    crowded = len(inside(record)) > 7
    for place, number in enumerate(sorted(inside(record), key=lambda i: record.levels[i])):
        level = record.levels[number]
        if not crowded or place % 2 == 0:
            words = f"below {level:,}" if record.flip else f"from {level:,}"
            x = min(at(record, level), WIDTH - CHARACTER * len(words) / 2)
            drawn.append(text(x, BOTTOM + 16 + 14 * (place % 2) * (not crowded), words, "m"))
    return drawn


def _codes(record: Folding) -> list[str]:
    """The value of every sum as steps, with their codes."""
    least, most = span(record)
    values = sorted({one.value for one in record.ranges})
    bits = len(record.levels).bit_length()
    drawn = [text(24, CODES - 4, "value", "s")]
    low, high = values[0], max(values[-1], values[0] + 1)
    for one in record.ranges:
        first, last = max(one.least, least), min(one.most + 1, most)
        if first >= last:
            continue
        y = CODES_LOW - 8 - (one.value - low) / (high - low) * (CODES_LOW - CODES - 20)
        x, wide = at(record, first), at(record, last) - at(record, first)
        class_ = f"value v{one.code % COLOURS}"
        drawn.append(element("rect", class_=class_, x=x, y=y, width=max(wide, 0.5), height=CODES_LOW + 8 - y,
                             data_value=one.value))  # fmt: skip
        words = f"{one.value}: code {one.code:0{bits}b}"
        if wide > CHARACTER * len(words):
            drawn.append(text(x + wide / 2, CODES_LOW + 3, words, "m v"))
        elif wide > 16:
            drawn.append(text(x + wide / 2, CODES_LOW + 3, one.value, "m v"))
    return drawn

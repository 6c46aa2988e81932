"""The pictures of one workload's speed of light: floors and times as bars, the roofline, the techniques' speed-ups.

Everything that represents a number carries ``data-item`` (its index in the order of the arrow keys), ``data-value`` and
a ``title`` that says it in words.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor, log10
from textwrap import wrap

from subbyte.analysis.ablation import Factor
from subbyte.analysis.speed import Roofline, RooflinePoint, SpeedLimits
from subbyte_widgets.svg import element, text, title

WIDTH, LADDER, SIDE = 760.0, 690.0, 440.0
"""Of the picture that is one, and of its two halves beside each other."""
NAME_X, BAR_X, BAR_END = 248.0, 256.0, 550.0
TOP, ROW = 66.0, 24.0
LOWER, ROOF_HEIGHT = 288.0, 292.0
LINE = 100
"""Characters of a line of the finding."""
PLOT = (58.0, 372.0, 34.0, 214.0)
SIDE_X, SIDE_END = 548.0, 700.0
LONGEST = 1.6
"""Bars are cut at this many times the longer of our time and the fastest other one's; their label stays."""
ROOF = "<!--roofline-->"
US = "us"
TECHNIQUES = {"duplicate_aware": "duplicate-aware load", "register_packing": "register packing", "layout": "layout"}
FLOORS = {"launch": "f0", "bytes": "f1", "arithmetic": "f2"}


def layer_svg(record: SpeedLimits) -> str:
    """One picture of a workload; the roofline, which all workloads share, takes the place of :data:`ROOF`."""
    ladder, bottom, count = _ladder(record)
    below = _group("techniques", _techniques(record, count), 0, bottom)
    return _svg(record, [*ladder, _group("lower", [ROOF], 0, bottom), below], WIDTH, bottom + LOWER)


def layer_html(record: SpeedLimits) -> str:
    """The same in two pictures, side by side in a wide page: the bars; the roofline above the techniques."""
    ladder, bottom, count = _ladder(record)
    techniques, high = _group("techniques", _techniques(record, count), 136 - SIDE_X, ROOF_HEIGHT), ROOF_HEIGHT + 262
    return _svg(record, ladder, LADDER, bottom) + _svg(record, [ROOF, techniques], SIDE, high)


def _group(name: str, parts: list[str], x: float, y: float) -> str:
    return element("g", parts, class_=name, transform=f"translate({x:.0f} {y:.0f})")


def _svg(record: SpeedLimits, parts: list[str], width: float, height: float) -> str:
    return element("svg", parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:.0f} {height:.0f}",
                   class_="sb-speed-svg", role="group", aria_label=record.finding)  # fmt: skip


def marked(svg: str, spec: str, item: int) -> str:
    """``svg`` with the points of one workload and one item marked, as the page marks them."""
    svg = svg.replace(f'data-spec="{spec}" class="point', f'data-spec="{spec}" class="here point')
    return svg.replace(f'data-item="{item}" class="', f'data-item="{item}" class="on ') if item >= 0 else svg


# ---- floors and times ------------------------------------------------------------------------------------------


def _ladder(record: SpeedLimits) -> tuple[list[str], float, int]:
    """What was found and the bars, where they end, and how many there are."""
    sides = ([record.measured] if record.measured else []) + list(record.others)
    longest = max([record.floor, *(side.microseconds for side in sides[:2])])
    end = min(LONGEST * longest, max([record.floor, *(side.microseconds for side in sides)])) * 1.02
    rows: list[str] = []

    def x(microseconds: float) -> float:
        return BAR_X + min(microseconds / end, 1.0) * (BAR_END - BAR_X)

    def row(name: str, value: float, pieces: list[tuple[str, float, float]], note: str, words: str) -> None:
        place = len(rows)
        y = TOP + 6 + place * ROW
        bars = [element("rect", class_=f"bar {c}", x=x(a), y=y, width=max(x(b) - x(a), 0.8), height=ROW - 7, rx=2)
                for c, a, b in pieces]  # fmt: skip
        cut = value > end
        if cut:
            bars.append(element("path", class_="cut", d=f"M{BAR_END - 14:.0f} {y + ROW - 5:.1f}l6 {5 - ROW:.1f}"))
        label = f"{value:.2f} {US}" + note
        hit = element("rect", class_="hit", x=8, y=y - 3, width=LADDER - 16, height=ROW - 1, rx=3)
        shown = [hit, text(NAME_X, y + 13, name, "e"), *bars, text(x(value) + 7, y + 13, label, "v")]
        rows.append(element("g", [title(words), *shown], data_item=place, class_="row", data_value=f"{value:.6g}",
                            data_end=f"{end:.6g}"))  # fmt: skip

    for one in record.floors:
        words = f"Floor of {one.name}: {one.microseconds:.2f} {US}, {one.why}."
        row(f"floor: {one.name}", one.microseconds, [(FLOORS[one.name], 0, one.microseconds)], "", words)
    launch = record.floor_of("launch")
    longer = max(("bytes", "arithmetic"), key=record.floor_of)
    both = [("f0", 0.0, launch), (FLOORS[longer], launch, record.floor)]
    row("speed of light", record.floor, both, "", f"Speed of light: {record.floor:.2f} {US}, launching and then the "
        "longer of moving and multiplying, which can overlap.")  # fmt: skip
    for side in sides:
        ours = side is record.measured
        own = [*both, ("ours", record.floor, side.microseconds)] if ours else [("other", 0.0, side.microseconds)]
        share = f", {record.share:.0%} is floor" if ours and record.share else ""
        words = f"{side.side}: {side.microseconds:.2f} {US}, {side.tops:.0f} TOPS{share}; {side.source}."
        row(side.side, side.microseconds, own, share, words + (f" Configuration {side.config}." if ours else ""))
    said = wrap(record.finding, LINE)
    heads = [text(14, 24, record.title(), "h"), *(text(14, 42 + 16 * i, words, "s") for i, words in enumerate(said))]
    return [*heads, *rows], TOP + len(rows) * ROW + 14, len(rows)


# ---- what the techniques brought -------------------------------------------------------------------------------


def _techniques(record: SpeedLimits, first: int) -> list[str]:
    found = record.ablation
    if found is None:
        return [text(SIDE_X - 128, 22, "Techniques", "b"), text(SIDE_X - 128, 42, "No ablation of this layer", "s"),
                text(SIDE_X - 128, 58, "is recorded.", "s")]  # fmt: skip
    groups = [("Added one after another", found.accumulated, "with {} added, in this order"),
              ("Taken away from all on", found.marginal, "all on against all but {}")]  # fmt: skip
    top = max(factor.high for _, factors, _ in groups for factor in factors.values())
    parts, y = [], 22.0
    place = first
    for head, factors, about in groups:
        parts.append(text(SIDE_X - 128, y, head, "b"))
        end = y + 8 + ROW * len(factors)
        parts.append(element("path", class_="axis", d=f"M{SIDE_X:.1f} {y + 6:.1f}V{end:.1f}"))
        parts.append(text(SIDE_X, end + 12, "1", "n m"))
        for name, factor in factors.items():
            y += ROW
            parts.append(_factor(TECHNIQUES.get(name, name), factor, y - 14, top, place, about))
            place += 1
        y += 44
    parts.append(text(SIDE_X - 128, y - 4, f"times as fast, {found.schedules} schedules; lines: 95 % intervals", "s"))
    return parts


def _factor(name: str, factor: Factor, y: float, top: float, place: int, about: str) -> str:
    """A bar from 1 to a speed-up, with its interval."""
    scale = (SIDE_END - SIDE_X) / max(top - 1, 0.05)
    x = [SIDE_X + (value - 1) * scale for value in (factor.speed_up, factor.low, factor.high)]
    left, width = min(SIDE_X, x[0]), max(abs(x[0] - SIDE_X), 0.8)
    parts = [
        title(f"{factor.speed_up:.2f} times as fast {about.format(name)} (95 % interval {factor.low:.2f} to "
              f"{factor.high:.2f})."),
        element("rect", class_="hit", x=SIDE_X - 132, y=y - 3, width=WIDTH - SIDE_X + 124, height=ROW - 1, rx=3),
        text(min(SIDE_X, x[1]) - 8, y + 13, name, "e"),
        element("rect", class_="bar ours", x=left, y=y, width=width, height=ROW - 7, rx=2),
        element("path", class_="span", d=f"M{x[1]:.1f} {y + 8:.1f}H{x[2]:.1f}m0 -4v8M{x[1]:.1f} {y + 4:.1f}v8"),
        text(x[2] + 6, y + 13, f"{factor.speed_up:.2f}", "v"),
    ]  # fmt: skip
    return element("g", parts, data_item=place, class_="row factor", data_value=f"{factor.speed_up:.6g}")


# ---- roofline --------------------------------------------------------------------------------------------------


class Axes:
    """Maps operations per byte and TOPS, both logarithmic, to points of the picture."""

    def __init__(self, record: Roofline) -> None:
        across = [point.intensity for point in record.points] or [1.0]
        up = [*(point.tops for point in record.points), *record.roofs.values()]
        self.low_x, self.high_x = log10(min(across) / 1.4), log10(max(across) * 1.4)
        self.low_y, self.high_y = log10(min(up) / 1.5), log10(max(up) * 1.5)

    def x(self, intensity: float) -> float:
        """Horizontal position."""
        return PLOT[0] + (log10(intensity) - self.low_x) / (self.high_x - self.low_x) * (PLOT[1] - PLOT[0])

    def y(self, tops: float) -> float:
        """Vertical position."""
        return PLOT[3] - (log10(tops) - self.low_y) / (self.high_y - self.low_y) * (PLOT[3] - PLOT[2])


def roofline_svg(record: Roofline) -> str:
    """The shared part: roofs, and a point for everything that was measured on this GPU."""
    axes = Axes(record)
    parts = [text(14, 22, "Roofline: everything recorded on this GPU", "b")]
    parts += _scales(axes)
    for number, (atom, tops) in enumerate(sorted(record.roofs.items(), key=lambda roof: -roof[1])):
        left = max(record.ridge(atom), 10**axes.low_x)
        path = f"M{axes.x(left):.1f} {axes.y(tops):.1f}H{PLOT[1]:.1f}"
        if left > 10**axes.low_x:
            low = max(10**axes.low_x, 10**axes.low_y / record.copy_terabytes_per_second)
            path = f"M{axes.x(low):.1f} {axes.y(low * record.copy_terabytes_per_second):.1f}L" + path[1:]
        parts.append(element("path", class_=f"roof r{number}", d=path, data_value=f"{tops:g}", data_atom=atom))
        # named below: beside its line a name would lie under the points
        x = 14.0 + 236.0 * number
        parts.append(element("path", class_=f"roof r{number}", d=f"M{x:.0f} 275h22"))
        parts.append(text(x + 28, 279, f"{tops:,.0f} {atom}", "s"))
    # ours last, on top
    parts += [_point(point, axes) for point in sorted(record.points, key=lambda point: point.ours)]
    marks = [
        ("point ours", 64.0, "subbyte"),
        ("point other", 142.0, "others"),
        ("here point ours", 212.0, "this layer"),
    ]
    for class_, x, words in marks:
        parts.append(element("g", [_shape(class_.split()[-1] == "ours", x, 255)], class_=class_))
        parts.append(text(x + 9, 259, words, "s"))
    return "".join(parts)


def _point(point: RooflinePoint, axes: Axes) -> str:
    words = (
        f"{point.workload}, {point.side}: {point.tops:.0f} TOPS at {point.intensity:.0f} operations per byte, "
        f"{point.microseconds:.2f} {US}. A click shows this layer."
    )
    parts = [title(words), _shape(point.ours, axes.x(point.intensity), axes.y(point.tops))]
    class_ = "point ours" if point.ours else "point other"
    return element("g", parts, data_spec=point.spec, class_=class_, data_value=f"{point.tops:.6g}",
                   data_intensity=f"{point.intensity:.6g}", data_side=point.side)  # fmt: skip


def _shape(ours: bool, x: float, y: float) -> str:
    if ours:
        return element("circle", cx=x, cy=y, r=5)
    return element("path", d=f"M{x:.1f} {y - 5:.1f}l5 9h-10z")


def _scales(axes: Axes) -> list[str]:
    parts = [element("path", class_="axis", d=f"M{PLOT[0]} {PLOT[2]}V{PLOT[3]}H{PLOT[1]}")]
    for value in _round(axes.low_y, axes.high_y):
        y = axes.y(value)
        parts.append(element("path", class_="rule", d=f"M{PLOT[0]} {y:.1f}H{PLOT[1]}"))
        parts.append(text(PLOT[0] - 6, y + 4, f"{value:g}", "n e"))
    parts += [text(axes.x(value), PLOT[3] + 15, f"{value:g}", "n m") for value in _round(axes.low_x, axes.high_x)]
    middle = (PLOT[2] + PLOT[3]) / 2
    parts.append(text((PLOT[0] + PLOT[1]) / 2, PLOT[3] + 30, "operations per byte (log)", "n m"))
    parts.append(text(14, middle, "TOPS (log)", "n m", transform=f"rotate(-90 14 {middle:.0f})"))
    return parts


def _round(low: float, high: float) -> Iterable[float]:
    """1, 2 and 5 times powers of ten between two logarithms; powers alone on a long axis."""
    steps = (1, 2, 5) if high - low < 2 else (1, 3) if high - low < 3 else (1,)
    return [m * 10.0**d for d in range(floor(low), ceil(high) + 1) for m in steps if low <= log10(m * 10.0**d) <= high]

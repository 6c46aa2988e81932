"""A chart as an SVG picture, drawn here from the figure's own data: no browser, no network, no other package.

Covers what the charts of this package are made of: bars, lines, bands, points with error bars, maps of cells. Other
traces (parallel coordinates) have no static picture; their table stands in for them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from itertools import count
from math import ceil, floor, log10
from typing import Any
from zlib import crc32

from subbyte_widgets.svg import INK, OKABE_ITO, element, text, title

WIDTH = 860.0
LEFT_MOST, RIGHT, TOP = 64.0, 836.0, 62.0
LEGEND_ROW, CHARACTER = 20.0, 7.2
NAME_CHARACTER = 8.4
"""Pixels of a letter of a name beside the axis, which must not be cut."""
DASHES = {"dash": "9 6", "dot": "2 4", "dashdot": "9 4 2 4", "longdash": "14 6", "longdashdot": "14 5 2 5"}
STYLE = (
    'text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: INK; } '
    ".h { font-size: 16px; font-weight: 700; } .e { text-anchor: end; } .m { text-anchor: middle; } "
    ".v { font-size: 11px; text-anchor: middle; } .n { font-size: 11px; } .axis { stroke: INK; fill: none; } "
    ".span { stroke: INK; fill: none; stroke-width: 1.5; } .grid { stroke: rgba(128,128,128,0.25); fill: none; }"
)
PAGE_INK = "var(--jp-content-font-color1, #1f2328)"
HATCHES = {"/": "M0 8L8 0", "x": "M0 8L8 0M0 0L8 8", "-": "M0 4H8", "|": "M4 0V8", ".": "M3 4h2"}
SHAPES = {
    "circle": "M{l} {y}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0", "square": "M{l} {t}h{d}v{d}h-{d}z",
    "diamond": "M{x} {t}l{r} {r}l-{r} {r}l-{r} -{r}z", "triangle-up": "M{x} {t}l{r} {d}h-{d}z",
    "cross": "M{l} {y}h{d}M{x} {t}v{d}", "x": "M{l} {t}l{d} {d}m0 -{d}l-{d} {d}",
}  # fmt: skip
KNOWN = ("bar", "scatter", "heatmap")


class Axis:
    """Maps the values of one axis to positions: linear, logarithmic, or one place for each category."""

    def __init__(self, values: Sequence[Any], spec: Mapping[str, Any], start: float, end: float) -> None:
        self.spec, self.start, self.end = spec, start, end
        self.names = list(dict.fromkeys(values)) if any(isinstance(value, str) for value in values) else []
        self.log = spec.get("type") == "log"
        if spec.get("autorange") == "reversed":
            self.start, self.end = end, start
        if self.names:
            self.low, self.high = -0.5, len(self.names) - 0.5
            return
        known = [log10(v) if self.log else float(v) for v in values if v is not None] or [0.0, 1.0]
        least, most = min(known), max(known)
        room = 0.06 * ((most - least) or 1)
        zero = not self.log and (spec.get("rangemode") == "tozero" or least == 0)
        self.low, self.high = (min(0.0, least) if zero else least - room), most + room

    def at(self, value: Any, beside: float = 0.0) -> float:
        """Position of a value; ``beside`` moves within a category's place."""
        place = self.names.index(value) if self.names else log10(value) if self.log else float(value)
        return self.start + (place + beside - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Positions and labels."""
        if self.names:
            return [(self.at(name), str(name)) for name in self.names]
        if self.log:
            decades = range(floor(self.low), ceil(self.high) + 1)
            steps = (1, 2, 5) if self.high - self.low > 1.2 else (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
            values = [m * 10.0**d for d in decades for m in steps if self.low <= log10(m * 10.0**d) <= self.high]
        else:
            wide = (self.high - self.low) / 6
            step = next(m * 10.0**d for d in range(-6, 12) for m in (1, 2, 5) if m * 10.0**d >= wide)
            values = [step * i for i in range(ceil(self.low / step), floor(self.high / step) + 1)]
        return [(self.at(value), _round(value)) for value in values]


def _round(value: float) -> str:
    return f"{value / 1e6:g} M" if abs(value) >= 1e6 else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def drawable(figure: Mapping[str, Any]) -> bool:
    """Whether every trace of a figure (plain data) is of a kind that is drawn here."""
    return all(trace["type"] in KNOWN for trace in figure["data"])


def scoped_style(class_: str) -> str:
    """The styles of pictures that are part of a page, for elements below ``class_``; they follow the page's theme."""
    return re.sub(r"(^|(?<=} ))", f".{class_} ", STYLE.replace("INK", PAGE_INK))


def page_svg(figure: Mapping[str, Any], alternative: str, class_: str, *, live: bool = True) -> str:
    """The picture as a part of a page that has :func:`scoped_style`; ``live``: it takes the keyboard, and its marks are
    numbered as in :func:`marks`."""
    whole = static_svg(figure, alternative)
    body = whole[whole.index("<defs") :].removesuffix("</svg>").replace(title(alternative), "", 1)
    ink, ground = figure["layout"]["font"]["color"], figure["layout"].get("paper_bgcolor", "none")
    body = body.replace(f'fill="{ground}"', 'fill="none"', 1).replace(f'"{ink}"', f'"{PAGE_INK}"')
    body = re.sub(r"(?<=[\"#])hatch(?=\d)", f"{class_}-{crc32(alternative.encode()):x}-", body)
    size = whole[whole.index("viewBox") + len('viewBox="') : whole.index('" width=')]
    attributes: dict[str, Any] = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": size, "class_": class_}
    if not live:
        return element("svg", body, role="img", aria_label=alternative, **attributes)
    number = count()
    body = re.sub(r" data-value=", lambda _found: f' data-item="{next(number)}" data-value=', body)
    panel = element("g", body, class_="panel", tabindex=0, data_lm_suppress_shortcuts="true", role="application",
                    aria_label="Chart: arrow keys choose a mark")  # fmt: skip
    return element("svg", panel, **attributes)


def marks(figure: Mapping[str, Any]) -> list[str]:
    """The words for each bar, point and cell, in the order in which they are drawn."""
    said: list[str] = []
    for trace in _unescaped(figure["data"]):
        name = f"{trace['name']}: " if trace.get("name") else ""
        if trace["type"] == "heatmap":
            said += [f"{y}, {x}: {trace['text'][i][j]}" for i, y in enumerate(trace["y"])
                     for j, x in enumerate(trace["x"]) if trace["z"][i][j] is not None]  # fmt: skip
        elif trace["type"] == "bar" or "markers" in trace.get("mode", "lines"):
            up, across = trace.get("orientation") != "h", trace["type"] == "scatter"
            for i, (x, y) in enumerate(zip(trace["x"], trace["y"], strict=True)):
                if y is not None and x is not None:
                    where, value, axis = (x, y, "y") if up and isinstance(y, int | float) else (y, x, "x")
                    of = _one(trace.get("text"), i) if across and trace.get("text") else ""
                    said.append(f"{name}{_said(where)}: {_said(value)}{_span(trace, axis, i, value)}{of and f'; {of}'}")
    return said


def _said(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, int | float) else str(value)


def _span(trace: Mapping[str, Any], axis: str, i: int, value: float) -> str:
    error = trace.get(f"error_{axis}")
    return f" ({_said(value - error['arrayminus'][i])} to {_said(value + error['array'][i])})" if error else ""


def static_svg(figure: Mapping[str, Any], alternative: str) -> str:
    """The picture of a figure given as plain data (``data`` and ``layout``)."""
    said = figure["layout"]["title"]
    head, below = (
        [html.unescape(line) for line in re.sub(r"</?b>", "", words or "").split("<br>")]
        for words in (said["text"], said["subtitle"].get("text"))
    )
    layout, traces = _unescaped(figure["layout"]), _unescaped(figure["data"])
    ink = layout["font"]["color"]
    top = TOP + 20 * (len(head) - 1) + 17 * (len(below) - 1)
    bottom = float(layout["height"]) - 96
    xs, ys = _values(traces, "x"), _values(traces, "y")
    left = max(LEFT_MOST, 16 + NAME_CHARACTER * max((len(v) for v in ys if isinstance(v, str)), default=0))
    x, y = Axis(xs, layout["xaxis"], left, RIGHT), Axis(ys, layout["yaxis"], bottom, top)
    parts = [text(12, 24 + 20 * i, line, "h") for i, line in enumerate(head)]
    parts += [text(12, top - 14 - 17 * i, line) for i, line in enumerate(reversed(below))]
    parts += _axes(x, y, layout, left, top, bottom)
    parts += [_shape(shape, x, y, top, bottom, left) for shape in layout.get("shapes", ())]
    bars = [trace for trace in traces if trace["type"] == "bar"]
    for number, trace in enumerate(traces):
        if trace["type"] == "heatmap":
            parts += _cells(trace, x, y)
        elif trace["type"] == "bar":
            parts += _bars(trace, number, bars.index(trace), len(bars), x, y)
        else:
            parts += _points(trace, x, y)
    if bars:
        parts += [_note(note, x, top, bottom) for note in layout.get("annotations", ()) if note.get("yref") == "paper"]
    legend, end = _legend(traces, bottom + 56)
    height = max(end, bottom + 60)
    hatches = [_hatch(number, trace) for number, trace in enumerate(traces) if _pattern(trace)]
    ground = layout.get("paper_bgcolor", "none")
    body = [element("style", STYLE.replace("INK", ink)), element("defs", hatches), title(alternative),
            element("rect", width=WIDTH, height=height, fill=ground), *parts, *legend]  # fmt: skip
    return element("svg", body, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
                   width=WIDTH, height=height, role="img", aria_label=alternative)  # fmt: skip


def _unescaped(value: Any) -> Any:
    """A figure's data with the labels as they were before they were escaped for plotly."""
    if isinstance(value, str):
        return html.unescape(value)
    if isinstance(value, Mapping):
        return {key: _unescaped(item) for key, item in value.items()}
    return [_unescaped(item) for item in value] if isinstance(value, list) else value


def _values(traces: Sequence[Mapping[str, Any]], axis: str) -> list[Any]:
    """Everything an axis must include: values, ends of intervals, and zero if bars start there."""
    found: list[Any] = []
    for trace in traces:
        values = list(trace[axis])
        found += values
        error = trace.get(f"error_{axis}")
        if error:
            found += [v + up for v, up in zip(values, error["array"], strict=True)]
            found += [v - down for v, down in zip(values, error["arrayminus"], strict=True)]
        if trace["type"] == "bar" and (axis == "x") == (trace.get("orientation") == "h"):
            found.append(0)
    return [value for value in found if value is not None]


def _axes(x: Axis, y: Axis, layout: Mapping[str, Any], left: float, top: float, bottom: float) -> list[str]:
    parts = []
    for at, label in x.ticks():
        parts.append(element("path", class_="grid", d=f"M{at:.1f} {top:.1f}V{bottom:.1f}"))
        parts.append(text(at, bottom + 18, label, "m"))
    for at, label in y.ticks():
        parts.append(element("path", class_="grid", d=f"M{left:.1f} {at:.1f}H{RIGHT:.1f}"))
        parts.append(text(left - 8, at + 4, label, "e"))
    parts.append(element("path", class_="axis", d=f"M{left:.1f} {top:.1f}V{bottom:.1f}H{RIGHT:.1f}"))
    across, up = (layout[axis].get("title", {}).get("text") or "" for axis in ("xaxis", "yaxis"))
    middle = (top + bottom) / 2
    parts.append(text((left + RIGHT) / 2, bottom + 38, across, "m"))
    if up:
        parts.append(text(14, middle, up, "m", transform=f"rotate(-90 14 {middle:.0f})"))
    return parts


def _shape(shape: Mapping[str, Any], x: Axis, y: Axis, top: float, bottom: float, left: float) -> str:
    """A line or band across the whole plot."""
    whole_x, whole_y = "domain" in shape.get("xref", ""), "domain" in shape.get("yref", "")
    x0, x1 = (left, RIGHT) if whole_x else (x.at(shape["x0"]), x.at(shape["x1"]))
    y0, y1 = (bottom, top) if whole_y else (y.at(shape["y0"]), y.at(shape["y1"]))
    if shape["type"] == "rect":
        return element("rect", x=min(x0, x1), y=min(y0, y1), width=abs(x1 - x0), height=abs(y1 - y0),
                       fill=shape.get("fillcolor", "none"))  # fmt: skip
    line = shape.get("line", {})
    return element("path", d=f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}", stroke=line.get("color", "#777777"), fill="none",
                   stroke_width=line.get("width", 1.6), stroke_dasharray=DASHES.get(line.get("dash", "")))  # fmt: skip


def _note(note: Mapping[str, Any], x: Axis, top: float, bottom: float) -> str:
    return text(x.at(note["x"]) + 4, top + (1.02 - note["y"]) * (bottom - top) + 10, note["text"])


def _bars(trace: Mapping[str, Any], number: int, place: int, count: int, x: Axis, y: Axis) -> list[str]:
    flat = trace.get("orientation") == "h"
    names, values = (trace["y"], trace["x"]) if flat else (trace["x"], trace["y"])
    along, across = (x, y) if flat else (y, x)
    part = trace["width"] if "width" in trace else 0.76 / count
    shift = 0.0 if "width" in trace else (place - (count - 1) / 2) * part
    labels = trace.get("text") or [""] * len(values)
    colours = trace["marker"]["color"]
    parts = []
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        if value is None:
            continue
        a, b = sorted((across.at(name, shift - part / 2), across.at(name, shift + part / 2)))
        low, high = sorted((along.at(0), along.at(value)))
        fill = colours if isinstance(colours, str) else colours[i]
        box: dict[str, Any] = {"x": low, "y": a, "width": high - low, "height": b - a} if flat else (
              {"x": a, "y": low, "width": b - a, "height": high - low})  # fmt: skip
        parts.append(element("rect", fill=fill, data_value=f"{value:.6g}", **box))
        if _pattern(trace):
            parts.append(element("rect", fill=f"url(#hatch{number})", **box))
        middle = (a + b) / 2
        if flat:
            parts.append(text(high + 5, middle + 4, labels[i]))
        elif labels[i]:
            parts += _label(str(labels[i]), middle, low, high, b - a, fill, trace.get("textposition") == "outside")
        parts += _error(trace, "x" if flat else "y", i, middle, value, along)
    return parts


def _label(words: str, middle: float, low: float, high: float, wide: float, fill: str, outside: bool) -> list[str]:
    """The number of an upright bar: above it, upright where it is narrow; or at its foot, clear of the hatching."""
    if outside:
        turn = None if wide > 30 else f"rotate(-90 {middle:.1f} {low - 6:.1f})"
        kind = "v" if wide > 30 else "n"
        return [text(middle + (0 if wide > 30 else 4), low - 6, words, kind, transform=turn)]
    ink = dict(zip(OKABE_ITO, INK, strict=True)).get(fill, "#111111")
    size = CHARACTER * len(words)
    return [element("rect", x=middle - size / 2, y=high - 16, width=size, height=14, fill=fill),
            text(middle, high - 5, words, "v", style=f"fill: {ink}")]  # fmt: skip


def _error(trace: Mapping[str, Any], axis: str, i: int, across: float, value: float, along: Axis) -> list[str]:
    error = trace.get(f"error_{axis}")
    if not error:
        return []
    low, high = along.at(value - error["arrayminus"][i]), along.at(value + error["array"][i])
    if axis == "y":
        path = f"M{across:.1f} {low:.1f}V{high:.1f}M{across - 5:.1f} {low:.1f}h10M{across - 5:.1f} {high:.1f}h10"
    else:
        path = f"M{low:.1f} {across:.1f}H{high:.1f}M{low:.1f} {across - 5:.1f}v10M{high:.1f} {across - 5:.1f}v10"
    return [element("path", class_="span", d=path)]


def _points(trace: Mapping[str, Any], x: Axis, y: Axis) -> list[str]:
    pairs = [(a, b, i) for i, (a, b) in enumerate(zip(trace["x"], trace["y"], strict=True)) if b is not None]
    places = [(x.at(a), y.at(b)) for a, b, _ in pairs]
    line, marker = trace.get("line", {}), trace.get("marker", {})
    parts = []
    if trace.get("fill") == "toself":
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places) + "z"
        return [element("path", d=path, fill=trace["fillcolor"], stroke="none")]
    if "lines" in trace.get("mode", "lines") and places:
        path = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
        for a, b in places[1:]:
            path += f"H{a:.1f}V{b:.1f}" if line.get("shape") == "hv" else f"L{a:.1f} {b:.1f}"
        parts.append(element("path", d=path, fill="none", stroke=line.get("color"), stroke_width=line.get("width", 2),
                             stroke_dasharray=DASHES.get(line.get("dash", ""))))  # fmt: skip
    if "markers" in trace.get("mode", "lines"):
        for (a, b, i), place in zip(pairs, places, strict=True):
            parts += _error(trace, "x", i, place[1], a, x)
            shade, form = (_one(marker.get(name), i) for name in ("color", "symbol"))
            value = b if isinstance(b, str) else f"{b:.6g}"
            parts.append(_mark(form or "circle", *place, marker.get("size", 7) / 2, shade, data_value=value))
    return parts


def _one(value: Any, i: int) -> Any:
    return value[i] if isinstance(value, list) else value


def _mark(form: str, x: float, y: float, r: float, shade: str, **more: str) -> str:
    numbers = {"x": x, "y": y, "l": x - r, "t": y - r, "r": r, "d": 2 * r}
    path = SHAPES[form].format(**{name: f"{value:.1f}" for name, value in numbers.items()})
    thin = form in ("cross", "x")
    return element(
        "path", d=path, fill="none" if thin else shade, stroke=shade, stroke_width=3 if thin else 0.5, **more
    )


def _cells(trace: Mapping[str, Any], x: Axis, y: Axis) -> list[str]:
    values = [value for row in trace["z"] for value in row if value is not None]
    low, span = log10(min(values)), (log10(max(values) / min(values)) or 1.0)
    parts = []
    for i, row in enumerate(trace["z"]):
        for j, value in enumerate(row):
            a, b = x.at(trace["x"][j], -0.48), x.at(trace["x"][j], 0.48)
            c, d = y.at(trace["y"][i], 0.48), y.at(trace["y"][i], -0.48)
            words = "refused" if value is None else trace["text"][i][j]
            middle = ((a + b) / 2, (c + d) / 2 + 4)
            if value is None:
                parts.append(text(*middle, words, "m"))
            else:
                t = (log10(value) - low) / span
                shade = [round(f + (s - f) * t) for f, s in zip((253, 231, 55), (0, 61, 120), strict=True)]
                parts.append(element("rect", x=a, y=c, width=b - a, height=d - c, data_value=f"{value:.6g}",
                                     fill=f"rgb({shade[0]},{shade[1]},{shade[2]})"))  # fmt: skip
                parts.append(text(*middle, words, "m", style=f"fill: {'#111111' if t < 0.5 else '#ffffff'}"))
    return parts


def _pattern(trace: Mapping[str, Any]) -> str:
    return str((trace.get("marker") or {}).get("pattern", {}).get("shape", ""))


def _hatch(number: int, trace: Mapping[str, Any]) -> str:
    line = element("path", d=HATCHES[_pattern(trace)], stroke="#111111", stroke_width=1.4, stroke_opacity=0.35)
    return element("pattern", line, id=f"hatch{number}", width=8, height=8, patternUnits="userSpaceOnUse")


def _legend(traces: Sequence[Mapping[str, Any]], y: float) -> tuple[list[str], float]:
    """The names of the traces with their marks, in rows, and where they end."""
    named = [(i, t) for i, t in enumerate(traces) if t.get("name") and t.get("showlegend", True)]
    if len(named) < 2:
        return [], y
    parts, x = [], LEFT_MOST
    for number, trace in named:
        name = trace["name"]
        wide = 44 + CHARACTER * len(name)
        if x > LEFT_MOST and x + wide > RIGHT:
            x, y = LEFT_MOST, y + LEGEND_ROW
        line, marker = trace.get("line", {}), trace.get("marker", {})
        if trace["type"] == "bar":
            parts.append(element("rect", x=x, y=y - 10, width=14, height=12, fill=marker["color"]))
            if _pattern(trace):
                parts.append(element("rect", x=x, y=y - 10, width=14, height=12, fill=f"url(#hatch{number})"))
        elif "markers" in trace.get("mode", "lines"):
            shade, form = (_one(marker.get(key), 0) for key in ("color", "symbol"))
            parts.append(_mark(form or "circle", x + 8, y - 4, 5, shade))
        else:
            parts.append(element("path", d=f"M{x:.1f} {y - 4:.1f}h24", stroke=line.get("color"), stroke_width=2.4,
                                 stroke_dasharray=DASHES.get(line.get("dash", ""))))  # fmt: skip
        parts.append(text(x + 30, y, name))
        x += wide
    return parts, y + LEGEND_ROW

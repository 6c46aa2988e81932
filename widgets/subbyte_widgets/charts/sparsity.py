"""Charts of the experiments on the dual-side sparse unit, each a table's columns as lines, points or bars, and of what
software gains today."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plotly.graph_objects as go

from subbyte.errors import InvalidInput
from subbyte.sparse import PATHS, Experiment, Software
from subbyte_widgets.charts.style import DASHES, SYMBOLS, Chart, chart, colour, hatched, label, symbol

Traces = list[Any]
MODEL = "a model in cycles; no GPU has this unit"
MEASURED = "F4"
"""The experiment without a chart."""


def experiment_chart(record: Experiment, theme: str = "auto") -> Chart:
    """One experiment. Raises InvalidInput for F8, which is quoted text."""
    if record.name not in _DRAWN:
        raise InvalidInput(f"there is no chart of {record.name}; there are charts of {', '.join(_DRAWN)}")
    draw, finding, x, y = _DRAWN[record.name]
    below = f"{record.about}{'' if record.name == MEASURED else f'; {MODEL}'}. Published: {record.source}"
    return chart(draw(record), f"{record.name}: {finding(record)}", below, x, y, record, theme, height=520)


def software_chart(record: Software, theme: str = "auto") -> Chart:
    """F9: what each path gains by the density that it exploits, with a mark for each layer and a line through the
    medians; beside them the hypothetical unit, over its dense core. Density 0 is not on the axis."""
    traces: Traces = []
    for place, path in enumerate(PATHS):
        own = sorted((one for one in record.of_path(path) if one.weights > 0), key=lambda one: one.weights)
        if own:
            marks = {"symbol": SYMBOLS[place], "size": 6, "color": colour(place)}
            traces.append(go.Scatter(
                x=[one.weights for one in own], y=[one.speedup for one in own], mode="markers", name=path,
                text=[label(one.layer) for one in own], marker=marks, hovertemplate="%{text}: %{y:.2f} at %{x}",
            ))  # fmt: skip
            traces.append(_curve(record.medians(path), f"{path}, median", place))
    traces += [_curve(record.model(both), f"model, zeros of {sides}", len(PATHS) + both, "dot")
               for both, sides in ((False, "weights"), (True, "both operands"))]  # fmt: skip
    traces.append(_curve([(at, 1.0) for at in record.densities], "level with dense", len(PATHS) + 2, "dash"))
    pays = ", ".join(f"{one.path} {one.points[0][1]:.2g}" for one in record.break_evens())
    below = f"measured on {', '.join(record.machines())}, over the dense kernel in the same process; dotted: {MODEL}"
    return chart(
        traces, f"F9: level with dense at {pays or 'no density measured'}", below,
        {**_text("density"), "type": "log"}, {**_text("times dense"), "type": "log"}, record, theme, height=560,
    )  # fmt: skip


def _curve(points: Sequence[tuple[float, float]], name: str, place: int, dash: str = "solid") -> Any:
    xs, ys = zip(*points, strict=True) if points else ((), ())
    line = {"color": colour(place), "dash": dash, "width": 2.4 if dash == "solid" else 1.6}
    return go.Scatter(x=list(xs), y=list(ys), mode="lines", name=name, line=line)


def _column(record: Experiment, place: int, rows: list[tuple[Any, ...]] | None = None) -> list[Any]:
    return [row[place] for row in (record.rows if rows is None else rows)]


def _line(xs: list[Any], ys: list[Any], name: str, place: int, mode: str = "lines+markers") -> Any:
    return go.Scatter(
        x=xs, y=ys, name=name, mode=mode,
        line={"color": colour(place), "dash": DASHES[place % len(DASHES)], "width": 2.4},
        marker={"symbol": symbol(place), "size": 8, "color": colour(place)},
    )  # fmt: skip


def _figure_21(record: Experiment) -> Traces:
    """The model as lines, the digitised points as marks."""
    traces = []
    for place, b in enumerate(sorted({row[1] for row in record.rows}, reverse=True)):
        rows = sorted(row for row in record.rows if row[1] == b)
        traces.append(
            _line(_column(record, 0, rows), _column(record, 2, rows), f"model, B density {b:g}", place, "lines")
        )
        marks = {"symbol": SYMBOLS[place], "size": 11, "color": colour(place)}
        traces.append(go.Scatter(x=_column(record, 0, rows), y=_column(record, 3, rows), mode="markers", marker=marks,
                                 name=f"digitised, B density {b:g}"))  # fmt: skip
    return traces


def _lines(*columns: int) -> Callable[[Experiment], Traces]:
    """Columns over the first one."""

    def draw(record: Experiment) -> Traces:
        return [_line(_column(record, 0), _column(record, at), record.columns[at], n) for n, at in enumerate(columns)]

    return draw


def _networks(record: Experiment) -> Traces:
    """Whole networks with implicit im2col: bars over both bases."""
    rows = [row for row in record.rows if row[1] == "all" and row[2] == "implicit"]
    names = _column(record, 0, rows)
    return [
        go.Bar(x=names, y=_column(record, at, rows), name=record.columns[at], marker=hatched(place))
        for place, at in enumerate((3, 4, 5, 8))
    ]


def _crossings(record: Experiment) -> Traces:
    return [_line(_column(record, 0), _column(record, at), record.columns[at], n) for n, at in enumerate((1, 2))]


def _utilisation(record: Experiment) -> Traces:
    """A line for each density of A."""
    traces = []
    for place, a in enumerate(sorted({row[0] for row in record.rows}, reverse=True)):
        rows = sorted(row for row in record.rows if row[0] == a)
        traces.append(_line(_column(record, 1, rows), _column(record, 4, rows), f"A density {a:g}", place))
    return traces


def _text(words: str) -> dict[str, Any]:
    return {"title": {"text": words}}


def _value(record: Experiment, name: str) -> str:
    found = record.values[name]
    return f"{found:.2f}" if isinstance(found, float) else str(found)


def _share(record: Experiment, name: str) -> str:
    return f"{float(record.values[name]):.1%}"


_Drawn = tuple[Callable[[Experiment], Traces], Callable[[Experiment], str], dict[str, Any], dict[str, Any]]
_DRAWN: dict[str, _Drawn] = {
    "F1": (
        _figure_21,
        lambda one: f"the model is {_share(one, 'mean_error')} off on average, {_share(one, 'worst_error')} at worst",
        _text("density of A"), {**_text("time relative to dense"), "rangemode": "tozero"},
    ),
    "F2": (
        _lines(3, 4), lambda one: "only whole groups of 8 (A) or of 16 (B) are saved",
        _text("non-zeros of 32"), {**_text("times fewer OHMMA"), "rangemode": "tozero"},
    ),
    "F3": (
        _lines(1, 2), lambda one: f"from {_share(one, 'breakeven_sparsity_dense_core')} zeros it beats the dense core",
        _text("% zeros on both sides"), {**_text("speed-up"), "rangemode": "tozero"},
    ),
    MEASURED: (
        _lines(1, 2, 3), lambda one: f"bitmaps take at most {_value(one, 'bitmap_at_worst')} times as long as dense",
        _text("% zeros"), {**_text("time over that of dense bytes"), "type": "log"},
    ),
    "F5": (
        _networks, lambda one: "both sides beat one, one beats none", _text(""),
        {**_text("speed-up, implicit im2col"), "rangemode": "tozero"},
    ),
    "F6": (
        _lines(1, 2), lambda one: f"conflicts are worst at density {_value(one, 'peak_density_without_collector')}",
        _text("density of both"), _text("cycles that an OHMMA waits"),
    ),
    "F7": (
        _crossings, lambda one: "sparser activations leave 2:4 behind at denser weights",
        _text("density of the activations"), {**_text("weights' density up to which it wins"), "rangemode": "tozero"},
    ),
    "F10": (
        _utilisation, lambda one: f"{_value(one, 'dstc_over_dense_core')} times the dense core's use of multipliers",
        _text("density of B"), {**_text("utilisation over the dense core's"), "rangemode": "tozero"},
    ),
}  # fmt: skip

"""Charts of races: curves with bands, fractions at given trials, trials to a target, paired differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go

from subbyte.analysis.curves import checkpoints
from subbyte.analysis.result import Race
from subbyte_widgets.charts.style import DASHES, SYMBOLS, Chart, chart, colour, hatched, pick, spans, symbol

PERCENT = {"title": {"text": "fraction of the optimum (%)"}}


def race_chart(record: Race, kind: str = "curves", scope: str = "", only: Sequence[str] = (), **options: Any) -> Chart:
    """``kind``: curves (best so far, median and quartiles), fractions (at given trials), reach (trials to ``target`` of
    the optimum) or differences (paired, with 95 % intervals). ``scope``: a landscape, or the GPU for all of them;
    ``only``: these participants."""
    kinds: dict[str, Callable[..., Chart]] = {
        "curves": _curves, "fractions": _fractions, "reach": _reach, "differences": _differences,
    }  # fmt: skip
    draw = pick("kind", kind, kinds)
    for name in only:
        pick("only", name, dict.fromkeys(record.participants, 1))
    if only:
        runs = tuple(run for run in record.runs if run.participant in only)
        record = replace(record, participants=tuple(only), runs=runs)
    chosen = scope or list(record.scopes)[-1]
    pick("scope", chosen, record.scopes)
    return draw(record, chosen, **options)


def _finding(record: Race, scope: str) -> str:
    lines = [line for line in record.verdict.splitlines() if line.startswith((f"{scope}:", f"{scope},"))]
    words = lines[0].partition(": ")[2].rstrip(".") if lines else record.title()
    return words[:1].upper() + words[1:] if words.startswith("no ") else words


def _below(record: Race, scope: str) -> str:
    seeds = max((standing.runs for standing in record.standings), default=0)
    names = record.scopes[scope]
    where = scope if len(names) == 1 else f"{len(names)} landscapes of {scope}"
    return f"{where}; {seeds} seeds, {record.trials} trials"


def _curves(record: Race, scope: str, theme: str = "auto") -> Chart:
    traces: list[Any] = []
    for place, curve in enumerate(c for c in record.curves if c.landscape == scope):
        band = [100 * v for v in curve.low] + [100 * v for v in reversed(curve.high)]
        traces.append(go.Scatter(
            x=[*curve.trials, *reversed(curve.trials)], y=band, fill="toself", fillcolor=colour(place, 0.16),
            line={"width": 0}, hoverinfo="skip", showlegend=False, legendgroup=curve.participant,
            name=f"{curve.participant}: quartiles",
        ))  # fmt: skip
        traces.append(go.Scatter(
            x=list(curve.trials), y=[100 * v for v in curve.median], name=curve.participant, mode="lines",
            line={"color": colour(place), "width": 2.6, "dash": DASHES[place % len(DASHES)]},
            legendgroup=curve.participant, hovertemplate="trial %{x}: %{y:.1f} %",
        ))  # fmt: skip
    below = _below(record, scope) + "; lines: medians, bands: quartiles"
    return chart(traces, _finding(record, scope), below, {"title": {"text": "trials"}}, PERCENT, record, theme)


def _fractions(record: Race, scope: str, theme: str = "auto") -> Chart:
    at = checkpoints(record.trials)
    traces = []
    for place, curve in enumerate(c for c in record.curves if c.landscape == scope):
        rows = [[100 * values[t - 1] for t in at] for values in (curve.median, curve.low, curve.high)]
        traces.append(go.Bar(
            x=[f"{t} trials" for t in at], y=rows[0], error_y=spans(*rows), name=curve.participant,
            marker=hatched(place),
            hovertemplate="%{x}: %{y:.1f} %",
        ))  # fmt: skip
    below = _below(record, scope) + "; bars: medians, lines: quartiles"
    return chart(traces, _finding(record, scope), below, None, PERCENT, record, theme)


def _reach(record: Race, scope: str, target: float = 0.95, theme: str = "auto") -> Chart:
    known = {f"{reach.target:g}": reach.target for reach in record.standings[0].reach}
    pick("target", f"{target:g}", known)
    traces = []
    for place, participant in enumerate(record.participants):
        here = [s for s in record.standings if s.participant == participant and s.landscape in record.scopes[scope]]
        found = [(s, r) for s in here for r in s.reach if r.target == target]
        middle = [record.trials if r.median is None else r.median for _, r in found]
        low = [record.trials if r.low is None else r.low for _, r in found]
        high = [record.trials if r.high is None else r.high for _, r in found]
        words = [f"{100 * r.share:.0f} % of runs" + (", median beyond the end" * (r.median is None)) for _, r in found]
        traces.append(go.Scatter(
            x=middle, y=[s.landscape.split(".sm_")[0] for s, _ in found], mode="markers", name=participant,
            marker={"color": colour(place), "symbol": symbol(place), "size": 12},
            error_x=spans(middle, low, high), text=words, hovertemplate="%{x} trials; %{text} got there",
        ))  # fmt: skip
    below = _below(record, scope) + f"; medians and quartiles, at most {record.trials}: not reached"
    title = f"Trials to {100 * target:g} % of the optimum: {_finding(record, scope)}"
    return chart(traces, title, below, {"title": {"text": "trials"}, "rangemode": "tozero"}, None, record, theme)


def _differences(record: Race, scope: str, theme: str = "auto") -> Chart:
    found = [c for c in record.comparisons if c.scope == scope and c.interval is not None]
    values = [100 * c.difference for c in found]
    low = [100 * c.interval.low for c in found if c.interval]
    high = [100 * c.interval.high for c in found if c.interval]
    marks = {"better": 0, "worse": 3, "equivalent": 2, "undecided": 4}
    traces = [go.Scatter(
        x=values, y=[f"{c.a} against {c.b}" for c in found], mode="markers", error_x=spans(values, low, high),
        marker={"size": 12, "color": [colour(marks[c.outcome]) for c in found],
                "symbol": [SYMBOLS[marks[c.outcome]] for c in found]},
        text=[c.outcome for c in found], hovertemplate="%{y}: %{x:+.2f} %, %{text}", showlegend=False,
    )]  # fmt: skip
    margin = 100 * found[0].margin if found else 0
    figure = chart(traces, _finding(record, scope), _below(record, scope) + "; 95 % intervals, paired by seed; "
                   f"verdicts (colours) from wider ones, joint over all pairs; grey: below {margin:g} % counts as none",
                   {"title": {"text": "difference of the area (%)"}, "zeroline": True}, None, record, theme,
                   height=220 + 44 * len(found))  # fmt: skip
    figure.add_vrect(x0=-margin, x1=margin, fillcolor="rgba(128,128,128,0.18)", line_width=0, layer="below")
    return figure

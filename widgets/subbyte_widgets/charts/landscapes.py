"""Charts of landscapes: every configuration as a line over its knobs, two knobs as a map, the distribution of times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go

from subbyte.analysis.landscape_view import knob_effects, landscape_map, landscape_points
from subbyte.analysis.spread import Spread, spread
from subbyte.records.landscape import Landscape
from subbyte_widgets.charts.style import US, Chart, chart, colour, label, pick

BAND = 0.6
"""Part of the room of a knob value that its lines fill."""


def landscape_chart(record: Landscape, kind: str = "distribution", **options: Any) -> Chart:
    """``kind``: distribution of the times, lines (parallel coordinates over the knobs) or map (best time over the knobs
    ``x`` and ``y``, ``statistic`` "best" or "median")."""
    kinds: dict[str, Callable[..., Chart]] = {"distribution": _distribution, "lines": _lines, "map": _map}
    return pick("kind", kind, kinds)(record, **options)


def _below(record: Landscape) -> str:
    info = record.info()
    return f"{info.workload}, {info.kind} space, {info.measured:,} configurations, {info.device.get('name')}"


def _distribution(record: Landscape, theme: str = "auto") -> Chart:
    return spread_chart(spread(record), theme)


def spread_chart(record: Spread, theme: str = "auto") -> Chart:
    """How many configurations reach which speed."""
    bins = record.bins
    traces = [go.Bar(x=[(a + b) / 2 for a, b, _ in bins], y=[count for _, _, count in bins],
                     marker={"color": colour(0)}, width=0.9 * (bins[0][1] - bins[0][0]), showlegend=False,
                     hovertemplate="%{x:.2f} " + US + ": %{y} configurations")]  # fmt: skip
    below = f"{record.workload}, {len(record.microseconds):,} configurations, {record.device}"
    figure = chart(traces, record.finding, below, {"title": {"text": f"time ({US})"}},
                   {"title": {"text": "configurations"}}, record, theme)  # fmt: skip
    best = record.best
    for place, share in enumerate((1.0, 0.9, 0.5)):
        words = "best" if share == 1 else f"{share:.0%} of its speed"
        figure.add_vline(x=best / share, line={"color": colour(3), "dash": "dot"})
        figure.add_annotation(x=best / share, y=1.02 - 0.08 * place, yref="paper", yanchor="top", xanchor="left",
                              text=words, showarrow=False, xshift=3, bgcolor=figure.layout.plot_bgcolor)  # fmt: skip
    return figure


def _lines(record: Landscape, theme: str = "auto") -> Chart:
    points = landscape_points(record)
    timed = sorted((time, place) for place, time in enumerate(points.microseconds) if time is not None)
    times = [time for time, _ in timed][::-1]  # slow ones first: the fast lie on top
    order = [place for _, place in timed][::-1]
    # lines that share a value lie side by side, the fastest lowest
    beside = [(place, BAND * (0.5 - turn / len(order))) for turn, place in enumerate(order)]
    axes = [
        {"label": name, "values": [points.digits[place][column] + side for place, side in beside],
         "tickvals": list(range(len(values))), "ticktext": [str(value) for value in values],
         "range": [-0.4, len(values) - 0.6]}
        for column, (name, values) in enumerate(points.knobs.items())
    ]  # fmt: skip
    axes.append({"label": f"time ({US})", "values": times})
    traces = [go.Parcoords(
        dimensions=axes, labelfont={"size": 13}, tickfont={"size": 12}, rangefont={"size": 11},
        line={"color": [-time for time in times], "colorscale": "Cividis", "cmin": -min(4 * times[-1], times[0]),
              "cmax": -times[-1]},
    )]  # fmt: skip
    decisive = knob_effects(record)[0]
    title = f"{decisive.knob} decides most: it explains {decisive.share:.0%} of the variance of the times"
    figure = chart(traces, title, _below(record) + "; yellow: fast", record=record, theme=theme)
    return figure.update_layout(margin={"t": 120, "r": 64})


def _map(record: Landscape, x: str = "", y: str = "", statistic: str = "best", theme: str = "auto") -> Chart:
    first, second = (effect.knob for effect in knob_effects(record)[:2])
    found = landscape_map(record, x or second, y or first)
    pick("statistic", statistic, {"best": 1, "median": 1})
    values = [[getattr(cell, statistic) for cell in row] for row in found.cells]
    words = [["" if value is None else f"{value:.2f}" for value in row] for row in values]
    about = [
        [cell.reason or f"{cell.measured} measured, {cell.refused} refused" for cell in row] for row in found.cells
    ]
    best = min((value, i, j) for i, row in enumerate(values) for j, value in enumerate(row) if value is not None)
    traces = [go.Heatmap(
        z=values, x=[str(v) for v in found.x_values], y=[str(v) for v in found.y_values], text=words, customdata=about,
        texttemplate="%{text}", colorscale="Cividis_r", colorbar={"title": {"text": US}}, xgap=2, ygap=2,
        hovertemplate=label(found.y) + " %{y}, " + label(found.x) + " %{x}: %{text}; %{customdata}<extra></extra>",
    )]  # fmt: skip
    where = f"{found.y} {found.y_values[best[1]]} and {found.x} {found.x_values[best[2]]}"
    title = f"The {statistic} time is lowest, {best[0]:.2f} {US}, at {where}"
    figure = chart(traces, title, _below(record), {"title": {"text": found.x}, "type": "category", "showgrid": False},
                   {"title": {"text": found.y}, "type": "category", "showgrid": False}, found, theme)  # fmt: skip
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            if value is None:
                figure.add_annotation(x=j, y=i, text="refused", showarrow=False)
    return figure

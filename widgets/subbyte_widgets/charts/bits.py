"""Charts of one-bit kernels: time by pairs of planes, cycles of a tile's load by the distance of its rows."""

from __future__ import annotations

import plotly.graph_objects as go

from subbyte.analysis.bit_times import PlaneTimes, StrideTimes
from subbyte_widgets.charts.style import DASHES, INK, SYMBOLS, US, Chart, chart, colour


def plane_chart(record: PlaneTimes, theme: str = "auto") -> Chart:
    """Microseconds of each precision by its pairs of planes, the line through those that give codes, other sides."""
    traces = []
    for place, (codes, name) in enumerate(((True, "codes out"), (False, "int32 sums out"))):
        rows = [one for one in record.rows if one.codes == codes]
        traces.append(go.Scatter(
            x=[one.pairs for one in rows], y=[one.microseconds for one in rows], mode="markers", name=name,
            text=[one.precision for one in rows], hovertemplate="%{text}: %{y:.2f} " + US + "<extra></extra>",
            marker={"symbol": SYMBOLS[place], "size": 11, "color": colour(place), "line": {"width": 1, "color": INK}},
        ))  # fmt: skip
    most = max(one.pairs for one in record.rows)
    start, each = record.line
    traces.append(go.Scatter(
        x=[0, most], y=[start, start + each * most], mode="lines", name=f"line of codes: {start:.1f} + {each:.2f} p*q",
        line={"color": colour(0), "dash": DASHES[2]}, hoverinfo="name",
    ))  # fmt: skip
    for place, (name, time) in enumerate(record.others.items()):
        traces.append(go.Scatter(
            x=[0, most], y=[time, time], mode="lines", name=f"{name}: {time:.2f} {US}", hoverinfo="name",
            line={"color": colour(2 + place), "dash": DASHES[place % len(DASHES)]},
        ))  # fmt: skip
    reached = " and ".join(f"{name} at p*q = {record.crossing(name):.1f}" for name in record.others)
    title = f"{record.layer}: bits reach {reached}" if reached else record.title()
    return chart(traces, title, f"{record.device}, {record.date[:10]}; every output compared",
                 {"title": {"text": "pairs of planes p*q"}, "rangemode": "tozero"},
                 {"title": {"text": f"time ({US})"}, "rangemode": "tozero"}, record, theme)  # fmt: skip


def stride_chart(record: StrideTimes, theme: str = "auto") -> Chart:
    """Cycles more than at the least distance, of each memory."""
    traces, ranges = [], []
    for place, (space, cycles) in enumerate(record.cycles.items()):
        least = cycles[min(cycles)]
        more = [time - least for time in cycles.values()]
        ranges.append(f"{space} {max(more):.0f}")
        traces.append(go.Scatter(
            x=list(cycles), y=more, mode="lines+markers", name=f"{space}: {least:.1f} cycles at {min(cycles)}",
            line={"color": colour(place), "dash": DASHES[place % len(DASHES)]},
            marker={"symbol": SYMBOLS[place % len(SYMBOLS)], "size": 10}, hovertemplate="ldm %{x}: %{y:.1f} more",
        ))  # fmt: skip
    title = f"Cycles that rows further apart cost at most: {', '.join(ranges)}"
    distances = sorted({distance for cycles in record.cycles.values() for distance in cycles})
    below = f"{record.device}, {record.date[:10]}; a tile of 8 rows x 128 bits, each load after the one before"
    x = {"title": {"text": "bits from row to row (ldm)"}, "tickvals": distances}
    return chart(traces, title, below, x, {"title": {"text": "cycles more than at the first"}}, record, theme)

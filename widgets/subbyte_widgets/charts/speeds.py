"""Charts of speed: the floors of a layer, the roofline of a GPU, this toolkit beside cuDNN."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from subbyte.analysis.recorded import OURS, SideBySide
from subbyte.analysis.speed import Roofline, SpeedLimits
from subbyte_widgets.charts.style import DASHES, INK, US, Chart, chart, colour, pick, symbol

TICKS = [m * 10**d for d in range(5) for m in (1, 2, 5)]


def limits_chart(record: SpeedLimits, theme: str = "auto") -> Chart:
    """Floors and measured times of one workload as bars."""
    sides = ([record.measured] if record.measured else []) + list(record.others)
    names = [f"floor: {floor.name}" for floor in record.floors] + ["speed of light"] + [side.side for side in sides]
    values = [floor.microseconds for floor in record.floors] + [record.floor] + [side.microseconds for side in sides]
    about = [floor.why for floor in record.floors] + ["launch, then the longer of the others"]
    about += [side.config or side.source for side in sides]
    shades = [colour(4), colour(1), colour(2), colour(5)] + [colour(0) if side is record.measured else "#9aa0a6"
                                                             for side in sides]  # fmt: skip
    traces = [go.Bar(x=values, y=names, orientation="h", marker={"color": shades}, text=[f"{v:.2f}" for v in values],
                     textposition="outside", cliponaxis=False, customdata=about, showlegend=False,
                     hovertemplate="%{y}: %{x:.2f} " + US + "; %{customdata}<extra></extra>")]  # fmt: skip
    return chart(traces, record.finding.rstrip("."), record.device,
                 {"title": {"text": f"time ({US})"}}, {"autorange": "reversed"}, record, theme,
                 height=200 + 30 * len(names))  # fmt: skip


def roofline_chart(record: Roofline, theme: str = "auto") -> Chart:
    """Everything measured on one GPU as a roofline: TOPS against operations per byte, both axes logarithmic."""
    intensities = [point.intensity for point in record.points] or [1.0, 1000.0]
    low, high = min(intensities) / 1.5, max(intensities) * 1.5
    traces = []
    for place, (atom, tops) in enumerate(sorted(record.roofs.items(), key=lambda roof: roof[1])):
        ridge = record.ridge(atom)
        xs = [low, ridge, high] if low < ridge < high else [low, high]
        ys = [min(tops, at * record.copy_terabytes_per_second) for at in xs]
        traces.append(go.Scatter(
            x=xs, y=ys, mode="lines", name=f"roof of {atom}: {tops:,.0f} TOPS",
            line={"color": colour(2), "dash": DASHES[place % len(DASHES)]}, hoverinfo="name",
        ))  # fmt: skip
    for ours, name, form, shade in ((False, "others", "triangle-up", "#9aa0a6"), (True, OURS, "circle", colour(0))):
        points = [point for point in record.points if point.ours == ours]
        traces.append(go.Scatter(
            x=[p.intensity for p in points], y=[p.tops for p in points], mode="markers", name=name,
            marker={"symbol": form, "size": 12 if ours else 9, "color": shade,
                    "line": {"width": 1, "color": INK}},
            text=[f"{p.workload}, {p.side}: {p.microseconds:.2f} {US}" for p in points],
            hovertemplate="%{text}<br>%{y:.0f} TOPS at %{x:.0f} operations per byte<extra></extra>",
        ))  # fmt: skip
    best = max((point for point in record.points if point.ours), key=lambda point: point.tops, default=None)
    reached = "" if best is None else f": at most {best.tops:,.0f} TOPS reached ({best.workload})"
    return chart(
        traces, f"Under the roofs of {record.device}{reached}",
        "each datum counted once, in the types of each side; " + record.title().partition(": ")[2],
        {"type": "log", "title": {"text": "operations per byte (log)"}, "tickvals": TICKS},
        {"type": "log", "title": {"text": "speed (TOPS, log)"}, "tickvals": TICKS}, record, theme, height=520,
    )  # fmt: skip


def side_by_side_chart(record: SideBySide, unit: str = "microseconds", theme: str = "auto") -> Chart:
    """Every side on every workload, a row for each workload. ``unit``: microseconds or tops."""
    axis = pick("unit", unit, {"microseconds": f"time ({US}, log), hot L2", "tops": "speed (TOPS, log)"})
    names = {row.spec: row.workload for row in record.rows}
    network = common_network(list(names.values()))
    traces = []
    for place, side in enumerate(dict.fromkeys(row.side for row in record.rows)):
        rows = [row for row in record.rows if row.side == side]
        traces.append(go.Scatter(
            x=[getattr(row, unit) for row in rows], y=[row.workload.removeprefix(network) for row in rows],
            mode="markers", name=side, hovertemplate="%{y}: %{x:.2f}",
            marker={"color": colour(place), "symbol": symbol(place), "size": 11},
        ))  # fmt: skip
    ahead = []
    for spec in names:
        ours = next((row for row in record.of_workload(spec) if row.side.startswith(OURS)), None)
        best = next((row for row in record.of_workload(spec) if not row.side.startswith(OURS)), None)
        if ours and best:
            ahead.append(best.microseconds / ours.microseconds)
    span = f"{min(ahead):.2f} to {max(ahead):.2f} times as fast as the fastest other side" if ahead else record.title()
    below = f"{record.title()}; {record.name}" + (f"; layers of {network.rstrip('.')}" if network else "")
    rows_of = {"autorange": "reversed", "type": "category", "dtick": 1, "categoryorder": "array",
               "categoryarray": [name.removeprefix(network) for name in names.values()]}  # fmt: skip
    across = {"type": "log", "title": {"text": axis}, "tickvals": TICKS}
    return chart(traces, f"{OURS} is {span}" if ahead else span, below, across, rows_of, record, theme,
                 height=230 + 27 * len(names))  # fmt: skip


def common_network(names: Sequence[str]) -> str:
    """The common prefix of the names of one network's layers ("resnet50."); empty if they are not of one network."""
    starts = {name.partition(".")[0] + "." for name in names if "." in name}
    return starts.pop() if len(starts) == 1 and all("." in name for name in names) else ""

"""Charts of the evidence beside the paper: Table 1, memory traffic beside time, sharing with and without unpacking."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from subbyte.analysis.mechanism import Mechanism
from subbyte.analysis.table_one import BASELINES, TableOne
from subbyte.analysis.unpacking import UnpackingControl
from subbyte_widgets.charts.style import INK, US, Chart, chart, colour, hatched, pick, spans, symbol

OVER = {
    "hwnc_s4": "TVM's HWNC schedule, int4",
    "hwnc_s8": "TVM's HWNC schedule, bytes",
    "all_off": "all techniques off",
}
COLUMNS = {"all_off": "all techniques off", "exhaustive": "exhaustive", "searched": "searched"}
TRAFFIC = {
    "sectors_read": "sectors read", "sectors_written": "sectors written", "bytes_asked": "bytes asked for",
    "shared_bytes_read": "bytes of shared memory read", "shared_bytes_written": "bytes of shared memory written",
    "stores": "store instructions", "shuffles": "shuffles", "mma": "matrix instructions",
}  # fmt: skip
STORED = {"s4": "packed int4", "s8": "bytes"}


def table_one_chart(record: TableOne, kind: str = "speed-ups", theme: str = "auto") -> Chart:
    """Table 1 by stage. ``kind``: speed-ups (of the searched kernel over each baseline, and the paper's) or times."""
    pick("kind", kind, {"speed-ups": 1, "times": 1})
    stages = [f"stage {row.stage}" for row in record.rows]
    traces: list[Any] = []
    y: dict[str, Any]
    if kind == "times":
        names = {**{key: OVER[key] for key in ("hwnc_s4", "hwnc_s8")}, **COLUMNS}
        rows = {words: [getattr(row, key) for row in record.rows] for key, words in names.items()}
        y, unit = {"title": {"text": f"time ({US})"}}, "{:.2f}"
    else:
        rows = {f"over {OVER[key]}": [row.speed_up(key) for row in record.rows] for key in BASELINES}
        rows["the paper, T4, over TVM's HWNC schedule, int4"] = [row.paper_speed_up for row in record.rows]
        y, unit = {"title": {"text": "times as fast"}, "rangemode": "tozero"}, "{:.2f}"
    for place, (name, values) in enumerate(rows.items()):
        if any(value is not None for value in values):
            traces.append(go.Bar(
                x=stages, y=values, name=name, marker=hatched(place), textposition="outside", cliponaxis=False,
                text=["" if value is None else unit.format(value) for value in values],
                hovertemplate="%{x}: %{y:.2f}",
            ))  # fmt: skip
    off = [row.speed_up("all_off") or 0 for row in record.rows]
    paper = [row.paper_speed_up for row in record.rows]
    title = (
        f"Searched: {min(off):.2f} to {max(off):.2f} times as fast as all techniques off; the paper, over another "
        f"baseline: {min(paper):.2f} to {max(paper):.2f}"
    )
    below = f"{record.device}; each tuned by {record.strategy} with {record.trials} trials; paper: T4"
    return chart(traces, title, below, None, y, record, theme)


def mechanism_chart(record: Mechanism, count: str = "sectors_read", theme: str = "auto") -> Chart:
    """Each schedule with each combination of switches: a count of one launch beside the measured time."""
    words = pick("count", count, TRAFFIC)
    traces = []
    for place, sharing in enumerate(dict.fromkeys(row.sharing for row in record.rows)):
        rows = [row for row in record.rows if row.sharing == sharing and row.microseconds is not None]
        about = [f"{r.schedule}, packing {'on' if r.packing else 'off'}, {r.layout}" for r in rows]
        traces.append(go.Scatter(
            x=[getattr(row, count) for row in rows], y=[row.microseconds for row in rows], mode="markers", text=about,
            name=f"sharing: {sharing}", hovertemplate="%{text}: %{x:,} " + words + ", %{y:.2f} " + US,
            marker={"color": colour(place), "symbol": symbol(place), "size": 11,
                    "line": {"width": [2 if row.layout == "nhwc" else 0 for row in rows], "color": INK}},
        ))  # fmt: skip
    values = [getattr(row, count) for row in record.rows]
    most = max(values) / max(min(values), 1)
    title = f"{record.workload}: the combinations differ up to {most:.1f} times in {words}"
    below = f"one launch, counted in the generated kernels; times: {record.device}; with a rim: NHWC"
    return chart(traces, title, below, {"title": {"text": words}, "rangemode": "tozero"},
                 {"title": {"text": f"time ({US})"}, "rangemode": "tozero"}, record, theme)  # fmt: skip


def unpacking_chart(record: UnpackingControl, theme: str = "auto") -> Chart:
    """What sharing gains with packed activations, which are unpacked, and with bytes, which are not."""
    traces = []
    for place, (stored, factors) in enumerate(record.sharing.items()):
        values, low, high = ([getattr(f, name) for f in factors.values()] for name in ("speed_up", "low", "high"))
        names = [name if "over" in name else f"{name} over none" for name in factors]
        traces.append(go.Bar(
            x=names, y=values, error_y=spans(values, low, high), name=f"activations as {STORED.get(stored, stored)}",
            text=[f"{value:.2f}" for value in values], textposition="inside", insidetextanchor="start",
            marker=hatched(place), hovertemplate="%{x}: %{y:.2f} times as fast",
        ))  # fmt: skip
    factor = record.unpacking
    ratio = f"{factor.speed_up:.2f} ({factor.low:.2f} to {factor.high:.2f})"
    alike = factor.low <= 1 <= factor.high
    title = "Sharing in registers adds " + ("the same" if alike else "another factor") + (
        f" with and without unpacking: ratio {ratio}")  # fmt: skip
    below = f"{record.workload}, {record.device}; the same {record.schedules} schedules; lines: 95 % intervals"
    figure = chart(
        traces, title, below, None, {"title": {"text": "times as fast"}, "rangemode": "tozero"}, record, theme
    )
    figure.add_hline(y=1, line={"dash": "dot", "width": 1.5, "color": figure.layout.font.color})
    return figure

"""Charts of what each technique contributes: Figures 15 and 16 of Choi et al. 2022, and Shapley values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from subbyte_widgets.charts.style import Chart, chart, hatched, pick, spans

WORDS = {"duplicate_aware": "duplicate-aware load", "register_packing": "register packing", "layout": "NHWCnc layout",
         "shared": "sharing in shared memory", "full": "and in registers"}  # fmt: skip
KINDS = {
    "accumulated": ("added one after another", "All techniques together are {low} times as fast as none"),
    "marginal": ("all on, against all on but this one", "The largest loss comes from switching off {most}"),
    "shapley": ("fair share of the whole gain (Shapley)", "The largest fair share of the gain is that of {most}"),
    "sharing": ("against no sharing, the other techniques on", "Sharing makes the layers {low} times as fast"),
}


def ablation_chart(record: Any, kind: str = "accumulated", others: Sequence[Any] = (), theme: str = "auto") -> Chart:
    """``kind``: accumulated (Figure 15), marginal (Figure 16), shapley or sharing. ``others``: further workloads."""
    records = [record, *others]
    how, finding = pick("kind", kind, KINDS)
    traces = []
    for place, one in enumerate(records):
        factors = getattr(one, kind)
        values, low, high = ([getattr(f, name) for f in factors.values()] for name in ("speed_up", "low", "high"))
        first = "+ " if kind == "accumulated" else ""
        traces.append(go.Bar(
            x=[first + WORDS.get(name, name) for name in factors], y=values, error_y=spans(values, low, high),
            name=one.workload, text=[f"{value:.2f}" for value in values], textposition="inside",
            insidetextanchor="start",
            marker=hatched(place),
            hovertemplate="%{x}: %{y:.2f} times as fast",
        ))  # fmt: skip
    y = {"title": {"text": "times as fast"}, "rangemode": "tozero"}
    below = f"{record.device}; {_basis(records)}; {how}; {_lines(records)}"
    shown = record if len(records) == 1 else None
    figure = chart(traces, _say(finding, kind, records), below, None, y, shown, theme)
    figure.add_hline(y=1, line={"dash": "dot", "width": 1.5, "color": figure.layout.font.color})
    return figure


def _lines(records: Sequence[Any]) -> str:
    tuned = not hasattr(records[0], "schedules")
    return "lines: noise of the finals (95 %)" if tuned else "lines: 95 % intervals"


def _basis(records: Sequence[Any]) -> str:
    counts = [getattr(one, "schedules", None) for one in records]
    if None in counts:
        return f"every combination tuned with {records[0].trials} trials"
    shown = str(counts[0]) if len(set(counts)) == 1 else ", ".join(map(str, counts))
    return f"the same {shown} schedules"


def _say(finding: str, kind: str, records: Sequence[Any]) -> str:
    last = [list(getattr(one, kind).values())[-1].speed_up for one in records]
    low = f"{min(last):.2f}" if len(last) == 1 else f"{min(last):.2f} to {max(last):.2f}"
    names: list[str] = []
    for one in records:
        factors = getattr(one, kind)
        names.append(WORDS.get(most := max(factors, key=lambda name: factors[name].speed_up), most))
    return finding.format(low=low, most=" or ".join(dict.fromkeys(names)))

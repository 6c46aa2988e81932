"""Charts of studies: the history of a tuning, and what the cost model predicted against what was measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go

from subbyte.analysis.monitoring import StudyState, study_state
from subbyte_widgets.charts.style import US, Chart, chart, colour, pick, symbol


def study_chart(record: Any, kind: str = "history", **options: Any) -> Chart:
    """``kind``: history (each trial, best so far, failures) or predicted (place in the model's order against the
    measured speed; only of a study of this session, a record does not keep predictions)."""
    kinds: dict[str, Callable[..., Chart]] = {"history": _history, "predicted": _predicted}
    draw = pick("kind", kind, kinds)
    return draw(record if isinstance(record, StudyState) else study_state(record), **options)


def _history(state: StudyState, theme: str = "auto") -> Chart:
    timed = [
        (n, t, o) for n, t, o in zip(state.numbers, state.microseconds, state.origins, strict=True) if t is not None
    ]
    failed = [(n, why) for n, why in zip(state.numbers, state.failures, strict=True) if why]
    traces: list[Any] = [
        go.Scatter(x=[n for n, _, _ in timed], y=[t for _, t, _ in timed], mode="markers", name="trial",
                   text=[origin for _, _, origin in timed], marker={"color": colour(4), "size": 7},
                   hovertemplate="trial %{x}: %{y:.2f} " + US + " %{text}"),
        go.Scatter(x=list(state.numbers), y=list(state.best_microseconds), mode="lines", name="best so far",
                   line={"color": colour(0), "width": 2.6, "shape": "hv"}, connectgaps=False),
    ]  # fmt: skip
    if failed:
        highest = max((t for _, t, _ in timed), default=1.0)
        traces.append(go.Scatter(
            x=[n for n, _ in failed], y=[highest] * len(failed), mode="markers", name="failed",
            text=[why for _, why in failed], marker={"symbol": "x", "color": colour(3), "size": 8},
            hovertemplate="trial %{x}: %{text}",
        ))  # fmt: skip
    best = state.best_microseconds[-1] if state.best_microseconds else None
    found = (
        "no configuration was measured" if best is None else f"best {best:.2f} {US}, found at trial {state.best_number}"
    )
    y = {"type": "log", "title": {"text": f"time ({US}, log)"}}
    return chart(traces, f"{state.strategy}: {found}", f"{state.title()}; {len(state.numbers)} trials",
                 {"title": {"text": "trial"}}, y, state, theme)  # fmt: skip


def _predicted(state: StudyState, theme: str = "auto") -> Chart:
    traces = []
    for place, fit in enumerate(state.models):
        rows = [(p, s) for p, s, f in zip(state.predicted, state.speeds, state.fits, strict=True)
                if f == fit.fit and p is not None]  # fmt: skip
        rank = "" if fit.spearman is None else f", rank correlation {fit.spearman:+.2f}"
        traces.append(go.Scatter(
            x=[p for p, _ in rows], y=[100 * s for _, s in rows], mode="markers", name=f"fit {fit.fit}{rank}",
            marker={"color": colour(place), "symbol": symbol(place), "size": 9},
            showlegend=len(state.models) <= 8, hovertemplate="%{y:.0f} % of the best speed",
        ))  # fmt: skip
    typical = state.typical_correlation
    title = "The model says nothing: this record keeps no predictions" if typical is None else (
        f"Within a batch the model's order fits with a rank correlation of {typical:+.2f} (median of "
        f"{len(state.judged)} fits)")  # fmt: skip
    x = {"title": {"text": "predicted place within its batch (0 slowest, 1 fastest)"}}
    y = {"title": {"text": "measured speed (% of the best)"}}
    return chart(traces, title, state.title(), x, y, state, theme)

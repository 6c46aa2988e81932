"""The picture of the tuning monitor; view.js draws the same from the same columns.

From the top: the trials and the best so far of every study, the GPU's readings during it, on the left the model's
predictions against measured times, on the right the knob values that were tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import floor, log10
from typing import Any

from subbyte_widgets.svg import OKABE_ITO, element, text

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 760.0, 62.0, 742.0, 76.0, 264.0
GPU, GPU_ROW, GPU_LEFT = 306.0, 24.0, 236.0
PLOT, PLOT_HEIGHT = (62.0, 330.0), 176.0
KNOBS, CELLS, KNOB_ROW, CELL = 372.0, 492.0, 29.0, 22.0
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "1 3")
MODELLED = ("plan", "model")
STEPS = (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
State = Mapping[str, Any]


class Axes:
    """Maps (index of a trial, microseconds) to points of the picture, for all studies together."""

    def __init__(self, studies: Sequence[State], total: int) -> None:
        self.count = max([total, 2, *(len(study["numbers"]) for study in studies)])
        times = [time for study in studies for time in study["microseconds"] if time is not None] or [1.0, 10.0]
        span = max(log10(max(times)) - log10(min(times)), 0.1)
        self.low, self.high = log10(min(times)) - 0.2 * span, log10(max(times)) + 0.06 * span

    def x(self, place: float) -> float:
        """Horizontal position of the trial whose result arrived at ``place`` (from 0)."""
        return LEFT + place / (self.count - 1) * (RIGHT - LEFT)

    def y(self, microseconds: float) -> float:
        """Vertical position of a time."""
        return BOTTOM - (log10(microseconds) - self.low) / (self.high - self.low) * (BOTTOM - TOP)

    def times(self) -> list[float]:
        """Round times inside the axis."""
        decades, shown = range(floor(self.low), floor(self.high) + 1), self.high - self.low
        steps = (1, 2, 5) if shown > 1.2 else (1, 2, 3, 5, 7) if shown > 0.55 else STEPS
        return [m * 10.0**d for d in decades for m in steps if self.low <= log10(m * 10.0**d) <= self.high]

    def counts(self) -> list[int]:
        """Round places of trials."""
        step = next(s for d in range(9) for s in (10**d, 2 * 10**d, 5 * 10**d) if self.count / s <= 8)
        return list(range(0, self.count, step))


def monitor_svg(studies: Sequence[State], shown: int, total: int, title: str, status: str, selected: int = -1) -> str:
    """``studies`` are the columns of :class:`subbyte.analysis.monitoring.StudyState`; ``shown`` is the one drawn with
    its trials, ``total`` the trials asked for, or 0; ``selected`` the place of the visited trial, or -1."""
    axes = Axes(studies, total)
    parts = [text(LEFT, 18, title, "h"), text(LEFT, 36, status, "s"), *_legend(studies, shown), *_grid(axes)]
    height = BOTTOM + 40
    if studies:
        study = studies[shown]
        parts += [element("path", d=d, class_=name, data_of=name) for name, d in trial_paths(axes, study).items()]
        parts += _best(axes, studies, shown)
        parts += _gpu(axes, study)
        top = lower(study)
        parts += [*_predictions(study, top), *_knobs(study, top)]
        if 0 <= selected < len(study["numbers"]):
            parts += _mark(axes, study, selected, top)
        rows = KNOB_ROW * len(study["knobs"]) + 18 * len(study["selection_words"])
        height = top + 46 + max(PLOT_HEIGHT + 30, rows + 8)
    return element("svg", parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
                   class_="sb-monitor-svg", role="img", aria_label=f"{title}. {status}")  # fmt: skip


def lower(study: State) -> float:
    """Where the lower panels start."""
    return GPU + GPU_ROW * max(len(study["readings"]), 1) + 14


def trial_paths(axes: Axes, study: State) -> dict[str, str]:
    """The trials of a study: those the model chose, all others, failures."""
    rows = list(enumerate(zip(study["microseconds"], study["origins"], strict=True)))
    timed = [(f"M{axes.x(i):.1f} {axes.y(t):.1f}h0", origin in MODELLED) for i, (t, origin) in rows if t is not None]
    failed = [i for i, kind in enumerate(study["failures"]) if kind]
    crosses = [f"M{axes.x(i) - 3:.1f} {BOTTOM - 9:.1f}l6 6m0 -6l-6 6" for i in failed]
    return {
        "other": "".join(d for d, modelled in timed if not modelled),
        "dots": "".join(d for d, modelled in timed if modelled), "failed": "".join(crosses),
    }  # fmt: skip


def best_path(axes: Axes, best: Sequence[float | None]) -> str:
    """The staircase of the best time so far."""
    path, before = "", None
    for i, time in enumerate(best):
        if time is None or (time == before and i < len(best) - 1):
            continue
        x, y = f"{axes.x(i):.1f}", f"{axes.y(time):.1f}"
        path += f"M{x} {y}" if before is None else f"H{x}" if time == before else f"H{x}V{y}"
        before = time
    return path


def _best(axes: Axes, studies: Sequence[State], shown: int) -> Iterator[str]:
    order = [place for place in range(len(studies)) if place != shown] + [shown]
    for place in order:
        best = studies[place]["best_microseconds"]
        yield element("path", d=best_path(axes, best), class_="best shown" if place == shown else "best",
                      stroke=OKABE_ITO[place % 6], stroke_dasharray=DASHES[place % 6] or None,
                      data_of=f"best{place}")  # fmt: skip
    best = studies[shown]["best_microseconds"]
    if best and best[-1] is not None:
        x, y = axes.x(len(best) - 1), axes.y(best[-1])
        yield element("circle", cx=x, cy=y, r=5, class_="end", fill=OKABE_ITO[shown % 6])
        yield text(x - 4, y + 18, f"{best[-1]:.2f} us", "best-label e")


def _legend(studies: Sequence[State], shown: int) -> Iterator[str]:
    step = (RIGHT - LEFT) / max(len(studies), 3)
    room = int(step / 7) - 5
    for place, study in enumerate(studies):
        x, words = LEFT + place * step, study["strategy"]
        yield element("path", d=f"M{x:.1f} 55h22", class_="best", stroke=OKABE_ITO[place % 6],
                      stroke_dasharray=DASHES[place % 6] or None)  # fmt: skip
        words = words if len(words) <= room else words[: room - 1] + "\u2026"
        yield text(x + 28, 59, words, "name shown" if place == shown else "name", data_study=place)
    marks = [("M440 {y}h0", "dots", 448, "model's choice"), ("M552 {y}h0", "other", 560, "other trial"),
             ("M648 {c}l6 6m0 -6l-6 6", "failed", 660, "failed")]  # fmt: skip
    for path, class_, x, words in marks:
        yield element("path", d=path.format(y=14, c=11), class_=class_)
        yield text(x, 18, words, "s")


def _grid(axes: Axes) -> Iterator[str]:
    for time in axes.times():
        y = axes.y(time)
        yield element("path", d=f"M{LEFT} {y:.1f}H{RIGHT}", class_="rule")
        yield text(LEFT - 8, y + 4, f"{time:g}", "s e")
    yield from (text(axes.x(count), BOTTOM + 17, count, "s m") for count in axes.counts())
    yield element("path", d=f"M{LEFT} {BOTTOM}H{RIGHT}", class_="axis")
    yield text(RIGHT, BOTTOM + 30, "trial", "s e")
    yield text(14, 170, "us (log)", "s m", transform="rotate(-90 14 170)")


def _gpu(axes: Axes, study: State) -> Iterator[str]:
    if not study["readings"]:
        yield text(LEFT, GPU + 14, "These results came without readings of GPU clock, power and temperature.", "s")
    for row, reading in enumerate(study["readings"]):
        top = GPU + row * GPU_ROW
        low, high = reading["low"], reading["high"]
        span = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        yield text(LEFT, top + 14, f"{reading['name']} {span} {reading['unit']}", "s")
        yield element("path", d=reading_path(axes, reading, top), class_="reading", data_of=f"reading{row}")


def reading_path(axes: Axes, reading: State, top: float) -> str:
    """One reading along the trials, from its least (below) to its greatest."""
    span, path = max(reading["high"] - reading["low"], 1e-9), ""
    for i, value in enumerate(reading["values"]):
        if value is not None:
            x = GPU_LEFT + i / (axes.count - 1) * (RIGHT - GPU_LEFT)
            y = top + 17 - 14 * (value - reading["low"]) / span
            path += f"{'L' if path else 'M'}{x:.1f} {y:.1f}"
    return path


def _predictions(study: State, top: float) -> Iterator[str]:
    (left, right), ground = PLOT, top + 46 + PLOT_HEIGHT
    yield text(14, top + 16, "Predicted against measured", "h")
    yield text(14, top + 33, study["model_words"], "s")
    for share in (0.0, 0.5, 1.0):
        y = ground - share * PLOT_HEIGHT
        yield element("path", d=f"M{left} {y:.1f}H{right}", class_="axis" if share == 0 else "rule")
        yield text(left - 8, y + 4, f"{share:g}", "s e")
    yield text(left, ground + 16, "predicted slowest", "s")
    yield text(right, ground + 16, "predicted fastest", "s e")
    middle = f"rotate(-90 14 {ground - PLOT_HEIGHT / 2:g})"
    yield text(14, ground - PLOT_HEIGHT / 2, "speed, 1 = best found", "s m", transform=middle)
    for name, d in prediction_paths(study, top).items():
        yield element("path", d=d, class_=name, data_of=name)


def prediction_paths(study: State, top: float) -> dict[str, str]:
    """Trials predicted by earlier fits, and by the latest judged one."""
    (left, right), ground = PLOT, top + 46 + PLOT_HEIGHT
    latest = max((model["fit"] for model in study["models"] if model["spearman"] is not None), default=-1)
    paths = {"earlier": "", "latest": ""}
    for fit, share, speed in zip(study["fits"], study["predicted"], study["speeds"], strict=True):
        if share is not None:
            d = f"M{left + share * (right - left):.1f} {ground - speed * PLOT_HEIGHT:.1f}h0"
            paths["latest" if fit == latest else "earlier"] += d
    return paths


def cell_width(study: State) -> float:
    """Width of a knob value's cell."""
    return (RIGHT - CELLS) / max([len(knob["values"]) for knob in study["knobs"]] or [1])


def _mark(axes: Axes, study: State, place: int, top: float) -> Iterator[str]:
    """The visited trial in every panel."""
    x, time, share = axes.x(place), study["microseconds"][place], study["predicted"][place]
    yield element("path", d=f"M{x:.1f} {TOP}V{BOTTOM}", class_="cursor")
    if time is not None:
        yield element("circle", cx=x, cy=axes.y(time), r=7, class_="ring")
    if share is not None:
        y = top + 46 + PLOT_HEIGHT - study["speeds"][place] * PLOT_HEIGHT
        yield element("circle", cx=PLOT[0] + share * (PLOT[1] - PLOT[0]), cy=y, r=7, class_="ring")
    width = cell_width(study)
    for row, digit in enumerate(study["digits"][place]):
        y = top + 46 + row * KNOB_ROW
        yield element("rect", x=CELLS + int(digit, 36) * width + 1, y=y, width=width - 2, height=CELL, class_="ring")


def _knobs(study: State, top: float) -> Iterator[str]:
    yield text(KNOBS, top + 16, "Knob values tried", "h")
    chosen = study["selection"]
    words = "stronger: tried more often" + ("; orange: share of its mutants kept" if chosen else "")
    yield text(KNOBS, top + 33, words, "s")
    width = cell_width(study)
    for row, knob in enumerate(study["knobs"]):
        y, most = top + 46 + row * KNOB_ROW, max([*knob["tried"], 1])
        yield text(KNOBS, y + 15, knob["name"], "knob")
        for place, (value, tried, kept) in enumerate(zip(knob["values"], knob["tried"], knob["kept"], strict=True)):
            x = CELLS + place * width
            yield element("rect", x=x + 1, y=y, width=width - 2, height=CELL, class_="cell" if tried else "cell never",
                          fill_opacity=round(0.6 * tried / most, 2), data_cell=f"{row}.{place}")  # fmt: skip
            if width > 16:
                yield text(x + width / 2, y + 15, value[:8], "value m")
            if kept is not None:
                yield element("rect", x=x + 1, y=y + CELL, width=(width - 2) * kept, height=4.0, class_="kept")
    for line, words in enumerate(study["selection_words"]):
        yield text(KNOBS, top + 60 + KNOB_ROW * len(study["knobs"]) + 18 * line, words, "s")

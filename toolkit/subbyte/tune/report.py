"""The report of a tuning as one self-contained HTML page of tables and pictures."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subbyte.families.registry import settings_text
from subbyte.files import prove_writable, write_file
from subbyte.html import Markup, cell, element, page, table
from subbyte.records.result import Failed, Measured
from subbyte.tune.record import StudyRecord
from subbyte.tune.remeasurement import Remeasurement

if TYPE_CHECKING:
    from subbyte.tune.outcome import NetworkReport, TuningReport

_STYLE = """
:root { color-scheme: light dark; --line: #0072b2; --dot: #999; --grid: #8884; --bar: #009e73; --bad: #d55e00; }
@media (prefers-color-scheme: dark) { :root { --line: #56b4e9; } }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid var(--grid); }
th:first-child, td:first-child, td.text { text-align: left; }
figure { display: inline-block; margin: 0 1rem 1rem 0; vertical-align: top; }
figcaption { font-size: .85rem; }
svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
.best { fill: none; stroke: var(--line); stroke-width: 2; }
.trial { fill: var(--dot); } .failed { stroke: var(--bad); stroke-width: 1.5; } .axis { stroke: var(--grid); }
.bar { fill: var(--bar); } code { font-size: .85rem; }
"""
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 320, 170, 46, 24


def html_page(report: TuningReport, network: NetworkReport | None = None) -> str:
    """The page, self-contained; ``network`` is the same report if it is a network's."""
    title = f"Tuning of {network.network}" if network else "Tuning"
    parts = [element("h1", title), _lead(report, network), _table(_summary_rows(report))]
    if network and network.grants:
        parts += [_head("Where the trials went"), _allocation(network)]
    parts.append(_head("Best so far"))
    parts += [_curve(record) for record in report.records]
    remeasured = [row for label, final in report.remeasurements.items() for row in _remeasured_rows(label, final)]
    if remeasured:
        fresh = any(final.remeasured for final in report.remeasurements.values())
        how = "measured again, in rounds of a random order" if fresh else "judged by their recorded samples"
        parts += [
            _head("Top-k re-measurement"),
            element("p", f"The fastest of each study, {how}. Those marked as tied cannot be told apart."),
            _table(remeasured),
        ]
    parts += [_head("Best configurations"), _table(_config_rows(report))]
    failures, notes = list(_failures(report.records)), list(_notes(report.records))
    if failures:
        parts += [_head("Failures"), _table(failures)]
    if notes:
        parts += [_head("Disturbed measurements"), _table(notes)]
    if report.skipped:
        rows = [{"workload": label, "not tuned, because": reason} for label, reason in report.skipped.items()]
        parts += [_head("Left out"), _table(rows)]
    parts += [_head("How it was measured"), _table(_provenance(report, network))]
    return page(title, _STYLE, *parts)


def _head(words: str) -> Markup:
    return element("h2", words)


def write_page(text: str, path: str | os.PathLike[str]) -> Path:
    """Write a page atomically. Raises InvalidInput when the file cannot be written."""
    target = Path(path)
    prove_writable(target, "report", parents=True)
    write_file(target, text.encode(), "report")
    return target


def _lead(report: TuningReport, network: NetworkReport | None) -> Markup:
    trials = sum(len(record.trials) for record in report.records)
    words: list[str] = [f"{trials} trials on {len(report.records)} workload(s)"]
    if network and network.microseconds:
        words += [
            "; all tuned layers together, as often as they occur: ",
            element("b", f"{network.microseconds:.1f} us"),
        ]
    return element("p", *words, ". Interrupted." if report.interrupted else ".")


def _summary_rows(report: TuningReport) -> list[dict[str, Any]]:
    rows = []
    for row in report.rows():
        final = report.remeasurements.get(row["workload"])
        line: dict[str, Any] = {"workload": row["workload"]}
        if "count" in row:
            line["occurs"] = row["count"]
        line |= {"trials": row["trials"], "failed": sum(row["failed"].values()), "best us": row["best_microseconds"],
                 "TOPS": row["best_tops"]}  # fmt: skip
        if row.get("share") is not None:
            line["share of time"] = f"{100 * row['share']:.1f}%"
        if row["fraction_of_optimum"] is not None:
            line["of optimum"] = f"{100 * row['fraction_of_optimum']:.1f}%"
        line["tied"] = len(final.tied) if final and len(final.tied) > 1 else ""
        rows.append(line)
    return rows


def _remeasured_rows(label: str, final: Remeasurement) -> list[dict[str, Any]]:
    tie = len(final.tied) > 1
    return [
        {
            "workload": label, "trial": row["trial"], "us": row["microseconds"],
            "slower": f"{100 * row['slower']:.2f}%", "": ("tied" if tie else "fastest") if row["tied"] else "",
            "us, first time": row["first_microseconds"],
        }
        for row in final.rows()
    ] or [{"workload": label, "trial": final.notice}]  # fmt: skip


def _config_rows(report: TuningReport) -> list[dict[str, Any]]:
    return [
        {"workload": label, "configuration": settings_text(config.to_dict())} for label, config in report.best.items()
    ]


def _failures(records: Sequence[StudyRecord]) -> Iterable[dict[str, Any]]:
    for record in records:
        kinds: Counter[str] = Counter()
        reasons: dict[str, str] = {}
        for trial in record.trials:
            if isinstance(trial.result, Failed):
                kinds[trial.result.kind] += 1
                reasons.setdefault(trial.result.kind, trial.result.reason)
        for kind, count in kinds.items():
            yield {
                "workload": record.workload.label,
                "kind": kind,
                "trials": count,
                "first reason": reasons[kind][:300],
            }


def _notes(records: Sequence[StudyRecord]) -> Iterable[dict[str, Any]]:
    for record in records:
        for trial in record.trials:
            if isinstance(trial.result, Measured) and trial.result.notes:
                yield {"workload": record.workload.label, "trial": trial.number, "finished": trial.finished,
                       "what": "; ".join(trial.result.notes)}  # fmt: skip


def _provenance(report: TuningReport, network: NetworkReport | None) -> list[dict[str, Any]]:
    rows = []
    for record in report.records[: 1 if network else None]:
        header, device = record.header, record.header["device"] or {}
        strategy = header["strategy"]
        options = "".join(f":{key}={value}" for key, value in strategy["options"].items())
        rows.append(
            {
                "workload": network.network if network else record.workload.label,
                "measured by": f"{device.get('runner', '')} on {device.get('name', 'unknown')}",
                "device": device.get("uuid") or device.get("landscape") or "",
                "driver": device.get("driver") or device.get("driver_version") or "",
                "space": f"{header['space']['kind']}, {header['space']['arch']}",
                "strategy": f"{strategy['name']}{options}", "seed": header["seed"], "begun": header["created"],
                "versions": ", ".join(f"{name} {version}" for name, version in header.get("versions", {}).items()),
            }
        )  # fmt: skip
    return rows


def _allocation(report: NetworkReport) -> Markup:
    """A bar chart of the trials that each layer got."""
    got = {record.workload.label: len(record.trials) for record in report.records}
    most, step, left = max(got.values()) or 1, 18, 210
    lines: list[Markup] = []
    for row, (label, trials) in enumerate(got.items()):
        y, width = row * step, 300 * trials / most
        lines += [
            element("text", label, x=left - 6, y=y + 12, text_anchor="end"),
            element("rect", class_="bar", x=left, y=y + 2, width=width, height=step - 5),
            element("text", trials, x=left + width + 5, y=y + 12),
        ]
    return _svg(560, step * len(got) + 4, *lines)


def _svg(width: int, height: int, *content: Markup) -> Markup:
    return element("svg", *content, role="img", width=width, height=height, viewBox=f"0 0 {width} {height}")


def _curve(record: StudyRecord) -> Markup:
    """Trials as dots, failures as marks at the top, the best so far as a line; microseconds on a logarithmic axis."""
    caption = element("figcaption", record.workload.label)
    times = [time for time in record.curve.microseconds if time is not None]
    if not times:
        return element("figure", caption, element("p", "no configuration worked"))
    from math import log

    low, high = log(min(times) * 0.97), log(max(times) * 1.03)
    width, height = _WIDTH - _LEFT - 8, _HEIGHT - _BOTTOM - 8
    count = len(record.trials)

    def x(place: float) -> float:
        return _LEFT + width * (place + 0.5) / count

    def y(time: float) -> float:
        return 8 + height * (1 - (log(time) - low) / (high - low))

    marks: list[Markup] = []
    line: list[str] = []
    for place, (time, best) in enumerate(zip(record.curve.microseconds, record.curve.best_microseconds, strict=True)):
        if time is None:
            marks.append(element("path", class_="failed", d=f"M{x(place):.1f} 2v7"))
        else:
            marks.append(element("circle", class_="trial", cx=x(place), cy=y(time), r=2))
        if best is not None:
            step = f"H{x(place):.1f}V{y(best):.1f}" if line else f"M{x(place):.1f} {y(best):.1f}"
            line.append(step)
    line.append(f"H{_WIDTH - 8}")
    for value in {min(times): 1, max(times): 1}:
        marks.append(element("path", class_="axis", d=f"M{_LEFT} {y(value):.1f}H{_WIDTH - 8}"))
        marks.append(element("text", f"{value:.3g}", x=_LEFT - 5, y=y(value) + 4, text_anchor="end"))
    marks.append(element("path", class_="best", d="".join(line)))
    foot = element("text", f"{count} trials; us per launch", x=_WIDTH - 8, y=_HEIGHT - 8, text_anchor="end")
    return element("figure", caption, _svg(_WIDTH, _HEIGHT, *marks, foot))


def _table(rows: Sequence[Mapping[str, Any]]) -> Markup:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return table(([_cell(row.get(name)) for name in names] for row in rows), names)


def _cell(value: Any) -> object:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, int) else cell(value, class_="text")

"""Write the tables of the records of ``compare`` and ``rounds`` into README.md and benchmarks/baselines/README.md.

python benchmarks/baselines table            rewrite the tables between the markers
python benchmarks/baselines table --check    change nothing; exit 1 when they are stale
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.baselines import rounds_table
from benchmarks.baselines.short_names import SHORT, short
from benchmarks.shared.command import FOLDER, RESULTS, ROOT, answering, parser_of
from benchmarks.shared.documents import markdown, update
from subbyte.device.peaks import MeasuredPeaks, measured_peaks

MARKERS = "<!-- baselines:start -->", "<!-- baselines:end -->"
ROUNDS = "<!-- rounds:start -->", "<!-- rounds:end -->"
SUMMARY = "<!-- benchmark:start -->", "<!-- benchmark:end -->"
EARLIER_PEAK = 1930.0
"""TOPS: what shares of the peak refer to in records that do not name theirs (wgmma on int8 unpacked from packed int4 in
registers; two measurements: 1,926 and 1,932)."""


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("baselines table", __doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md", help="where the stages alone stand")
    parser.add_argument("--tables", type=Path, default=FOLDER / "baselines" / "README.md", help="where all stand")
    parser.add_argument("--results", type=Path, default=RESULTS / "baselines", help="folder of the records")
    args = parser.parse_args(arguments)
    return max(
        update(args.readme, lambda: summary(args.results), SUMMARY, args.check),
        update(args.tables, lambda: tables(args.results), MARKERS, args.check),
        update(args.tables, lambda: rounds(args.results), ROUNDS, args.check),
    )


def tables(folder: Path) -> str:
    """All tables of the newest record."""
    files = sorted(folder.glob("side-by-side-*.json"))
    if not files:
        return "Nothing has been recorded yet."
    record = json.loads(files[-1].read_text(encoding="utf-8"))
    limits, peak = measured_peaks(record["gpu"]["name"]), peak_of(record)
    parts = [
        provenance(record, files[-1].name), stage_table(stages_of(record), limits, peak), sides_table(files),
        missing(record),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part)


def rounds(folder: Path) -> str:
    """All layers of the newest record of ``rounds``."""
    path = rounds_table.newest(folder)
    return rounds_table.tables(path) if path else "Nothing has been recorded yet."


def summary(folder: Path) -> str:
    """The stages alone, for the README of the project: the newest record of ``rounds``."""
    path = rounds_table.newest(folder)
    return rounds_table.stages(path) if path else "Nothing has been recorded yet."


def stages_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The 3x3 stages of a record, in their order."""
    return sorted(
        (c for c in record["cells"] if "ours" in c and c["opponents"] and is_stage(c)), key=rounds_table.stage_order
    )


def peak_of(record: dict[str, Any]) -> float:
    """The TOPS that shares of the peak refer to: the record's own, see :data:`EARLIER_PEAK`."""
    return float(record["peak"]["tops"]) if record.get("peak") else EARLIER_PEAK


def is_stage(cell: dict[str, Any]) -> bool:
    """One of the four 3x3 stages of ResNet50."""
    return str(cell["workload"]).startswith(rounds_table.STAGES)


def floor(cell: dict[str, Any], limits: MeasuredPeaks, peak: float) -> tuple[float, str]:
    """The larger of two floors in microseconds, and its name: moving the bytes, or a launch and multiplying."""
    multiply = limits.launch_microseconds + cell["operations"] / 1e6 / peak
    copy = cell.get("copy", {}).get("microseconds", 0.0)
    return (multiply, "arithmetic") if multiply >= copy else (copy, "bytes")


def cold(own: dict[str, Any]) -> str:
    """Our time with the L2 flushed before every launch."""
    return "-" if own["cold_microseconds"] is None else f"{own['cold_microseconds']:.2f}"


def best_of(cell: dict[str, Any]) -> dict[str, Any]:
    """The fastest baseline."""
    best: dict[str, Any] = min(cell["opponents"], key=lambda line: line["microseconds"])
    return best


def provenance(record: dict[str, Any], name: str) -> str:
    """What was measured, on what."""
    gpu, cells = record["gpu"], [cell for cell in record["cells"] if "ours" in cell]
    clocks = sorted({cell["ours"]["clocks"]["after"]["sm_mhz"] for cell in cells} - {None})
    software = ", ".join(f"{key} {value}" for key, value in sorted(record["versions"].items()))
    clock = f"{clocks[0]} to {clocks[-1]} MHz" if clocks else "unknown"
    date = cells[0]["ours"]["date"][:10] if cells else "unknown"
    where = processes(record)
    return (
        f"{gpu['name']}, driver {gpu['driver_version'] or 'unknown'}, SM clock {clock}, {date}; {software}. "
        f"{where[0].upper()}{where[1:]}, CUDA-graph replay, L2 hot, random operands over the whole int4 range (the "
        "same values on every side), every answer compared with the exact one; sides one after the other, one run. "
        f"Raw record: [`{name}`](../results/baselines/{name}). Beside each layer: the {asked(cells)} baselines that a "
        "search of the plans offered, within its time limit, found fastest.\n\n"
        f"Ours does {record['our_epilogue']}. Of the baselines, `int8 to int8`, `fp8 to fp8` and CUTLASS scale by one "
        "number and store a byte; the others store their sums as they are (no scale, no bias). *Alone*: each launch "
        "after the end of the one before. *Chain*: launches that overlap, the time of one; a true chain where a "
        "layer's output fits its input, elsewhere all read the same input. *Floor*: the larger of the measured copy "
        f"kernel that moves as many bytes and of a launch plus the multiplications at {peak_of(record):,.0f} TOPS."
    )


def asked(cells: list[dict[str, Any]]) -> str:
    """How many baselines a layer was measured beside."""
    counts = [len(cell["opponents"]) for cell in cells] or [0]
    return " to ".join(map(str, sorted({min(counts), max(counts)})))


def processes(record: dict[str, Any]) -> str:
    """In how many processes the layers were measured: a run that was stopped goes on in another."""
    count = len(record.get("runs", [{}]))
    return "one process" if count == 1 else f"{count} processes, each layer in one of them"


def stage_table(cells: list[dict[str, Any]], limits: MeasuredPeaks, peak: float) -> str:
    """The twelve cells of the four 3x3 stages."""
    rows = []
    for cell in cells:
        own, best = cell["ours"], best_of(cell)
        least, why = floor(cell, limits, peak)
        rows.append((
            cell["workload"], own["key"], f"{own['microseconds']:.2f}", cold(own), f"{own['tops']:,.0f}",
            f"{100 * own['tops'] / peak:.0f} %", f"{own['chain']['microseconds']:.2f}",
            f"{best['microseconds']:.2f}", short(best["side"]), f"{best['microseconds'] / own['microseconds']:.2f}",
            f"{best['microseconds'] / own['chain']['microseconds']:.2f}", f"{least:.2f} {why}",
            f"{100 * least / own['microseconds']:.0f} %",
        ))  # fmt: skip
    head = ("layer", "configuration", "alone us", "cold L2 us", "TOPS", "of peak", "in a chain us", "best baseline us",
            "which", "ratio alone", "ratio chain", "floor us", "floor / ours")  # fmt: skip
    return markdown("**3x3 stages of ResNet50**: microseconds.", head, rows, 2) if rows else ""


def sides_table(files: list[Path]) -> str:
    """Every baseline on the twelve cells, of the newest record that has most of them: ``compare`` measures
    the sides that the search found fastest, and all of them only where it is asked to."""
    kept = {path: stages_of(json.loads(path.read_text(encoding="utf-8"))) for path in reversed(files)}
    path, cells = max(kept.items(), key=lambda one: min((len(cell["opponents"]) for cell in one[1]), default=0))
    sides = [side for side in SHORT if any(side == line["side"] for cell in cells for line in cell["opponents"])]
    rows = []
    for cell in cells:
        times = {line["side"]: line["microseconds"] for line in cell["opponents"]}
        shown = (f"{times[side]:.2f}" if side in times else "-" for side in sides)
        rows.append((cell["workload"], f"{cell['ours']['microseconds']:.2f}", *shown))
    head = ("layer", "ours", *(short(side) for side in sides))
    where = f"[`{path.name}`](../results/baselines/{path.name})"
    title = f"**Every baseline on them**: microseconds, the fastest of the plans tried; {where}."
    return markdown(title, head, rows) if rows else ""


def missing(record: dict[str, Any]) -> str:
    """What could not be measured."""
    lines = [f"Not measured: {one['workload']}: {one['reason'][:120]}." for one in record["missing"]]
    lines += [f"Not measured: {cell['workload']}, {one['side']}: {one['reason'][:120]}."
              for cell in record["cells"] for one in cell["missing"]]  # fmt: skip
    return "\n".join(lines)

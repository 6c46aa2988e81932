"""Writes the benchmark table of README.md from the raw records, and that of benchmarks/README.md from the landscapes.

python benchmarks/table.py            rewrite the tables between the markers
python benchmarks/table.py --check    change nothing; exit 1 when one of them is stale
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from subbyte.measure.result import Measured
from subbyte.tune import Landscape, shipped

ROOT = Path(__file__).resolve().parent.parent
START, END = "<!-- benchmark:start -->", "<!-- benchmark:end -->"
LANDSCAPES = "<!-- landscapes:start -->", "<!-- landscapes:end -->"
CLOSE = 1.05
"""How far from the optimum a configuration still counts as close to it."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--landscapes", type=Path, default=ROOT / "benchmarks" / "README.md")
    args = parser.parse_args(arguments)
    return max(
        update(args.readme, lambda: tables(args.results), (START, END), args.check),
        update(args.landscapes, landscapes, LANDSCAPES, args.check),
    )


def update(file: Path, make: Callable[[], str], markers: tuple[str, str], check: bool) -> int:
    """Replace the table in ``file`` with what ``make`` gives, or only compare; the exit code."""
    text = file.read_text(encoding="utf-8")
    try:
        wanted = replace_table(text, make(), *markers)
    except ValueError as error:
        print(f"error: {file}: {error}", file=sys.stderr)
        return 2
    if wanted == text:
        return 0
    if check:
        print(f"{file} is stale: run `python benchmarks/table.py`", file=sys.stderr)
        return 1
    file.write_text(wanted, encoding="utf-8")
    return 0


def replace_table(text: str, table: str, start: str, end: str) -> str:
    """``text`` with what stands between the two markers replaced. Raises ValueError unless each stands there once."""
    if text.count(start) != 1 or text.count(end) != 1 or text.index(start) > text.index(end):
        raise ValueError(f"must hold {start} and, after it, {end}, once each")
    before, _, rest = text.partition(start)
    return f"{before}{start}\n{table}\n{end}{rest.partition(end)[2]}"


def landscapes() -> str:
    """The shipped landscapes as Markdown: size, optimum, quartiles, how many are close to the optimum."""
    lines = [
        "| landscape | configurations | programs | optimum us | TOPS | quartiles us | within 5 % of optimum |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    return "\n".join([*lines, *(landscape_line(Landscape.load(path)) for path in shipped().values())])


def landscape_line(one: Landscape) -> str:
    """One landscape's row."""
    info = one.info()
    times = [result.microseconds for result in one.results.values() if isinstance(result, Measured)]
    best = min(times)
    close = sum(time <= CLOSE * best for time in times)
    quartiles = ", ".join(f"{time:.2f}" for time in statistics.quantiles(times, n=4, method="inclusive"))
    share = f"{close} ({100 * close / len(times):.1f} %)"
    cells = (one.name, f"{len(one):,}", f"{info.programs:,}", f"{best:.2f}", f"{info.best_tops:.0f}", quartiles, share)
    return "| " + " | ".join(cells) + " |"


def tables(folder: Path) -> str:
    """One table for each record, in the order of the file names."""
    records = [(path, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json"))]
    known = [(path, record) for path, record in records if record.get("benchmark") == "side by side with cuDNN"]
    if not known:
        return "No measurement has been recorded yet: `subbyte bench` makes one."
    return "\n\n".join(table(record, path.name) for path, record in known)


def table(record: dict[str, Any], name: str) -> str:
    """A record as Markdown: provenance, one line for each row, what could not be measured."""
    gpu, versions = record["gpu"], record["versions"]
    software = ", ".join(f"{key} {value}" for key, value in sorted(versions.items()))
    provenance = (
        f"{gpu['name']}, driver {gpu['driver_version'] or 'unknown'}, SM clock {clock_range(record['rows'])} MHz, "
        f"{record['date'][:10]}; {software}. Raw record: [`{name}`](benchmarks/results/{name})."
    )
    lines = [
        provenance,
        "",
        "| workload | side | hot us (min to max) | cold us | TOPS | of int8 peak | epilogue | checked |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- | --- |",
    ]
    lines += [line(row) for row in record["rows"]]
    if record["peak_tops"]:
        lines += [
            "",
            f"The peak, {record['peak_tops']:,.0f} TOPS of `mma.sync` int8, was measured outside of this record.",
        ]
    lines += [f"\nNot measured: {m['workload']}, {m['side']}: {m['reason'][:120]}." for m in record["missing"]]
    return "\n".join(lines)


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    cold = "-" if row["cold_microseconds"] is None else f"{row['cold_microseconds']:.2f}"
    share = "-" if row["share_of_peak"] is None else f"{100 * row['share_of_peak']:.0f}%"
    hot = f"{row['microseconds']:.2f} ({min(row['samples']):.2f} to {max(row['samples']):.2f})"
    cells = (row["workload"], row["side"], hot, cold, f"{row['tops']:.0f}", share, row["epilogue"], row["verified"])
    return "| " + " | ".join(cells) + " |"


def clock_range(rows: list[dict[str, Any]]) -> str:
    """Lowest to highest SM clock read after the rows, in MHz."""
    clocks = [row["clocks"]["after"]["sm_mhz"] for row in rows if row["clocks"]["after"]["sm_mhz"] is not None]
    if not clocks:
        return "unknown"
    return f"{min(clocks)}" if min(clocks) == max(clocks) else f"{min(clocks)} to {max(clocks)}"


if __name__ == "__main__":
    sys.exit(main())

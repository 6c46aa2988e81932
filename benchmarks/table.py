"""Writes the benchmark table of README.md from the raw records in benchmarks/results/.

python benchmarks/table.py            rewrite the table between the markers
python benchmarks/table.py --check    change nothing; exit 1 when README.md is stale
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
START, END = "<!-- benchmark:start -->", "<!-- benchmark:end -->"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    args = parser.parse_args(arguments)
    text = args.readme.read_text(encoding="utf-8")
    try:
        wanted = replace_table(text, tables(args.results))
    except ValueError as error:
        print(f"error: {args.readme}: {error}", file=sys.stderr)
        return 2
    if wanted == text:
        return 0
    if args.check:
        print(f"{args.readme} is stale: run `python benchmarks/table.py`", file=sys.stderr)
        return 1
    args.readme.write_text(wanted, encoding="utf-8")
    return 0


def replace_table(text: str, table: str) -> str:
    """``text`` with what stands between the two markers replaced. Raises ValueError unless each stands there once."""
    if text.count(START) != 1 or text.count(END) != 1 or text.index(START) > text.index(END):
        raise ValueError(f"must hold {START} and, after it, {END}, once each")
    before, _, rest = text.partition(START)
    return f"{before}{START}\n{table}\n{END}{rest.partition(END)[2]}"


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

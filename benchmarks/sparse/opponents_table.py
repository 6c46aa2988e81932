"""Write the tables of notes/sparse_today.md from records of ``opponents``, ``im2col`` and ``compact``.

Times are means of the two runs' medians, microseconds, with half of the 95 % interval (``subbyte/measure/interval.py``
has the formula: what runs of all cells differ by is in it).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.shared.command import FOLDER, RESULTS, answering, parser_of
from benchmarks.shared.documents import markdown, update
from subbyte.measure.interval import Interval, interval, pooled, runs_of
from subbyte.sparse import read_software

MARKERS = ("<!-- today:start -->", "<!-- today:end -->")
NOTE = FOLDER / "notes" / "sparse_today.md"
SIDES = {
    "ours dense": ("subbyte dense",),
    "ours 2:4": ("subbyte 2:4",),
    "cuSPARSELt": ("cuSPARSELt 2:4 int8 to int8", "cuSPARSELt 2:4 int8 to int32"),
    "CUTLASS 2:4": ("CUTLASS 2:4 int8 to int8",),
    "lowering": ("lowering",),
    "cuSPARSELt, lowering": (
        "cuSPARSELt 2:4 int8 to int8, with lowering", "cuSPARSELt 2:4 int8 to int32, with lowering",
    ),
    "CUTLASS 2:4, lowering": ("CUTLASS 2:4 int8 to int8, with lowering",),
    "cuBLAS int8": ("cuBLAS dense int8 to int32",),
    "cuDNN int8": ("cuDNN int8 to int8, graph API",),
    "cuSPARSE CSR": ("cuSPARSE CSR float16",),
    "blocks of 32": ("torch.sparse blocks of 32 x 32, float16",),
}  # fmt: skip
"""Columns, and the sides that may stand in one: the fastest of them."""
KERNELS = ("dense", "bitmap", "csr_warp", "csr_thread")


def times_of(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Interval]]:
    """Of each cell the time of each side, with its interval."""
    samples: dict[str, dict[str, list[list[float]]]] = {}
    for record in records:
        for cell in record["cells"]:
            of_cell = samples.setdefault(cell["cell"], {})
            for run in cell["runs"]:
                for entry in run["entries"]:
                    of_cell.setdefault(entry["side"], []).append(entry["samples"])
    runs = {(cell, side): runs_of(several) for cell, sides in samples.items() for side, several in sides.items()}
    among = pooled(runs.values())
    found: dict[str, dict[str, Interval]] = {}
    for (cell, side), one in runs.items():
        found.setdefault(cell, {})[side] = interval(one, among)
    return found


def column_of(sides: Mapping[str, Interval], column: str) -> Interval | None:
    """The fastest side of a column; None when none was measured."""
    names = SIDES[column]
    there = [one for name, one in sides.items() if name in names or name.partition(", eng")[0] in names]
    return min(there, key=lambda one: one.value, default=None)


def cell_text(one: Interval | None) -> str:
    """A time with half of its interval."""
    if one is None:
        return "-"
    known = one.low and one.high < 1e9
    return f"{one.value:.2f}" + (f" ± {(one.high - one.low) / 2:.2f}" if known else "")


def opponents(paths: Sequence[Path]) -> str:
    """All sides of all cells, and what is absent."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    found = times_of(records)
    rows = [
        (cell, *(cell_text(column_of(sides, column)) for column in SIDES)) for cell, sides in found.items() if sides
    ]
    title = f"Microseconds, from {', '.join(f'`results/sparse/{path.name}`' for path in paths)}:"
    absent: dict[tuple[str, str], list[str]] = {}
    for record in records:
        for cell in record["cells"]:
            for run in (run for run in cell["runs"] if run["entries"]):
                for one in run["absent"]:
                    cells = absent.setdefault((one["side"], one["reason"].split("Exception raised")[0].strip()), [])
                    if cell["cell"] not in cells:
                        cells.append(cell["cell"])
    lines = [
        (side, reason[:160], "all" if len(cells) == len(found) else ", ".join(cells))
        for (side, reason), cells in absent.items()
    ]  # fmt: skip
    what = markdown("What could not run, or was not right:", ("side", "reason", "layers"), lines, 3)
    return "\n\n".join([markdown(title, ("layer", *SIDES), rows), what])


def lowering(path: Path) -> str:
    """F4: each kernel at each sparsity."""
    record = json.loads(path.read_text(encoding="utf-8"))
    times: dict[tuple[str, float], dict[str, float]] = {}
    for row in record["rows"]:
        times.setdefault((row["cell"], row["sparsity"]), {})[row["kernel"]] = row["microseconds"]
    rows = [
        (cell, f"{sparsity:.0%}", *(f"{one[kernel]:.2f}" for kernel in KERNELS),
         *(f"{one[kernel] / one['dense']:.2f}" for kernel in KERNELS[1:]))
        for (cell, sparsity), one in times.items()
    ]  # fmt: skip
    heads = ("layer", "zeros", "dense", "bitmap", "CSR, a warp a row", "CSR, a thread a row", "bitmap / dense",
             "CSR warp / dense", "CSR thread / dense")  # fmt: skip
    return markdown(f"F4, lowering, microseconds, from `results/sparse/{path.name}`:", heads, rows)


def software(paths: Sequence[Path]) -> str:
    """F9: what each path gains, and where it is level with dense."""
    found = read_software(*paths)
    layers = list(dict.fromkeys(one.layer for one in found.gains))
    rows = []
    for path in dict.fromkeys(one.path for one in found.gains):
        for layer in layers:
            own = sorted((one for one in found.of_path(path) if one.layer == layer), key=lambda one: -one.weights)
            if own:
                level = found.break_even(path, layer)
                gains = ", ".join(f"{one.weights:.2g}: {one.speedup:.2f}" for one in own)
                rows.append((path, layer, gains, "-" if level is None else f"{level:.2f}"))
    title = "F9, dense time over that of each path by the density of the weights, and the density of break-even:"
    return markdown(title, ("path", "layer", "density: times dense", "level at"), rows, 3)


def tables(folder: Path) -> str:
    """All of them, from the records of a folder."""
    parts = []
    beside = sorted(folder.glob("opponents*-h200-*.json"))
    if beside:
        parts.append(opponents(beside))
    parts += [lowering(path) for path in sorted(folder.glob("im2col-h200-*.json"))[-1:]]
    parts.append(software(software_records(folder)))
    return "\n\n".join(parts)


def software_records(folder: Path) -> list[Path]:
    """The records of a folder that :func:`subbyte.sparse.read_software` reads."""
    names = ("stages", "neighbours", "compact", "blocks", "densities", "condense")
    return [path for name in names for path in sorted(folder.glob(f"{name}*-h200-*.json"))]


@answering
def main(arguments: Sequence[str]) -> int:
    """Write them, or say that they are out of date."""
    parser = parser_of("sparse opponents-table", __doc__)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args(arguments)
    return update(NOTE, lambda: tables(RESULTS / "sparse"), MARKERS, asked.check)

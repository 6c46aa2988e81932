"""Print what records of ``measure`` hold of weights with blocks of zeros: each cell's dense twin, the fastest kernel
that skips them at each share of live blocks, and the share below which it pays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import subbyte
from benchmarks.shared.command import answering, parser_of
from benchmarks.sparse.table import joined
from subbyte.measure.break_even import break_even

Shares = dict[float, dict[str, dict[str, Any]]]
"""By share of live blocks both sides, ``dense`` and ``sparse``."""


def by_cell(records: Sequence[dict[str, Any]]) -> dict[str, Shares]:
    """Of each cell what :func:`benchmarks.sparse.table.joined` gives at every share, the sparsest last."""
    found: dict[str, Shares] = {}
    for cell, sides in joined(records).items():
        percent = subbyte.workload(cell).precision.weights.live_percent if ":" in cell else None
        if percent is not None:
            found.setdefault(cell.partition(":")[0], {})[percent / 100] = sides
    return {cell: dict(sorted(shares.items(), reverse=True)) for cell, shares in found.items()}


def paying(shares: Shares) -> dict[str, Any] | None:
    """The share below which skipping pays, see :func:`subbyte.measure.break_even.break_even`."""
    rows = [
        {"density": share,
         "sides": {side: {"samples": one["samples"], "microseconds": one["median"], "wrong": 0}
                   for side, one in sides.items()}}
        for share, sides in shares.items()
    ]  # fmt: skip
    return break_even({"rows": rows, "skipping": ["sparse"], "dense": ["dense"]})


def rows(records: Sequence[dict[str, Any]]) -> list[str]:
    """The table's lines."""
    cells = by_cell(records)
    shares = sorted({share for found in cells.values() for share in found}, reverse=True)
    heads = [
        "cell",
        "dense, us",
        *(f"{share:.0%} live" for share in shares),
        "break-even share",
        "kernel of the sparsest",
    ]
    made = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    for cell, found in cells.items():
        dense = [sides["dense"]["median"] for sides in found.values()]
        line = [cell, f"{min(dense):.2f} to {max(dense):.2f}"]
        for share in shares:
            one = found.get(share, {}).get("sparse")
            line.append("-" if one is None else f"{one['median']:.2f} ({one['ratio']:.2f} x)")
        line.append(_said(paying(found)))
        line.append(f"`{list(found.values())[-1]['sparse']['config']}`")
        made.append(f"| {' | '.join(line)} |")
    return made


def _said(found: dict[str, Any] | None) -> str:
    if found is None:
        return "-"
    if found["value"] is not None:
        return f"{found['value']:.3f} ({found['low']:.3f} to {found['high']:.3f})"
    return {"dense": "none: dense is faster", "skipping": "above all: faster at each"}.get(found["always"], "several")


@answering
def main(arguments: Sequence[str]) -> int:
    """Print it."""
    parser = parser_of("sparse blocks", __doc__)
    parser.add_argument("records", type=Path, nargs="+", metavar="RECORD")
    asked = parser.parse_args(arguments)
    print("\n".join(rows([json.loads(path.read_text(encoding="utf-8")) for path in asked.records])))
    return 0

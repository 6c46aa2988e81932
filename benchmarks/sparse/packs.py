"""What the parts that measure packed kernels in several processes ask for, and how their records grow."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.shared import kernel_pack
from benchmarks.shared.command import parser_of
from subbyte.errors import InvalidInput


def pack_parser(name: str, text: str | None, cells: Sequence[str]) -> argparse.ArgumentParser:
    """A parser of ``--pack``, ``--build``, ``--cells``, ``--out`` and ``--run``."""
    parser = parser_of(name, text)
    parser.add_argument("--pack", type=Path, required=True, help="folder of our kernels")
    parser.add_argument("--build", action="store_true", help="build the pack: needs TVM, no GPU")
    parser.add_argument("--cells", nargs="+", default=list(cells), metavar="CELL")
    parser.add_argument("--out", type=Path, help="the record")
    parser.add_argument("--run", type=int, help="only this run, in this process")
    return parser


def require_pack(asked: argparse.Namespace) -> None:
    """There is a record to write and a pack to measure. Raises InvalidInput."""
    if asked.out is None or not (asked.pack / kernel_pack.INDEX).exists():
        raise InvalidInput("--out, --pack: name the record and a pack that --build has made")


def add_run(record: dict[str, Any], cell: str, run: Any, **about: Any) -> None:
    """Put a run behind the others of its cell, whose line begins with ``about``."""
    line = next((one for one in record["cells"] if one["cell"] == cell), None)
    if line is None:
        line = {"cell": cell, **about, "runs": []}
        record["cells"].append(line)
    line["runs"].append(run)

"""Lines of a kernel's CUDA text, and what a warp's lanes did at each of them when the text ran on the CPU.

The emulator records the source line of every access, so a picture can highlight the line that it shows, and show
what a line did. Lines are those of the text that ran; addresses are those of the trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.emulator.trace import KINDS, Rows
from subbyte.info_record import InfoRecord, Table

LANES = 32
Place = tuple[int | None, int | None]


@dataclass(frozen=True)
class LineAccess:
    """What the 32 lanes of a warp did in one execution of a line.

    ``kind`` is the trace's (``copy``, ``shared_load``, ``mma`` ...), ``bytes`` is per lane. A lane's place consists of
    its byte in the argument's array in global memory and its byte in shared memory, each None if it touches none of
    it (zero padding reads no global memory); an inactive lane has no place at all.
    """

    line: int
    kind: str
    bytes: int
    lanes: tuple[Place | None, ...]

    @property
    def active(self) -> int:
        """The active lanes."""
        return sum(lane is not None for lane in self.lanes)


@dataclass(frozen=True)
class Listing(InfoRecord):
    """Part of a kernel's CUDA text: ``numbers`` count from 1 in the whole text, ``texts`` are the lines themselves.

    ``accesses`` are what was done at the lines, in the order in which the record provides them; ``steps`` lists lines
    by the step of a technique that they perform.
    """

    kernel: str
    numbers: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
    accesses: tuple[LineAccess, ...] = ()
    steps: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def text_of(self, line: int) -> str:
        """The text of a line. Raises KeyError for one that is not listed."""
        return dict(zip(self.numbers, self.texts, strict=True))[line]

    def title(self) -> str:
        """One line that names the kernel."""
        return f"CUDA text of {self.kernel}: {len(self.numbers)} lines, {len(self.accesses)} accesses of a warp"

    def table(self) -> Table:
        """One row per line, with how often the warp acts there."""
        counts: dict[int, int] = {}
        for access in self.accesses:
            counts[access.line] = counts.get(access.line, 0) + 1
        rows = ((n, counts.get(n, 0), text.strip()) for n, text in zip(self.numbers, self.texts, strict=True))
        return Table(("line", "accesses", "CUDA"), tuple(rows))


def listed(
    kernel: str,
    run: Any,
    groups: Iterable[NDArray[np.intp]],
    lines: Iterable[int] | None = None,
    steps: Mapping[str, tuple[int, ...]] | None = None,
) -> Listing:
    """The listing of a run with a trace. ``groups``: rows of the trace by lane [32] (-1: inactive), one per access.

    ``lines``: the line numbers to list; by default the whole body of the kernel that ran.
    """
    text = run.text.split("\n")
    numbers = tuple(body(run.text, run.entry) if lines is None else lines)
    accesses = tuple(line_access(run.trace, group) for group in groups)
    return Listing(kernel, numbers, tuple(text[n - 1] for n in numbers), accesses, dict(steps or {}))


def line_access(rows: Rows, group: NDArray[np.intp]) -> LineAccess:
    """One access of a warp, from the rows of its lanes (-1: inactive)."""
    first = rows[group[group >= 0][0]]
    places = tuple(_place(rows[row]) if row >= 0 else None for row in group)
    return LineAccess(int(first["line"]), KINDS[int(first["kind"])], int(first["size"]), places)


def _place(row: np.void) -> Place:
    kind, shared = KINDS[int(row["kind"])], int(row["shared"])
    reads_global = kind.startswith("global") or (kind == "copy" and int(row["valid"]) > 0)
    return (int(row["offset"]) if reads_global else None, shared if shared >= 0 else None)


def body(text: str, entry: str) -> range:
    """Line numbers of a kernel's body, from the line that names it; a declaration before it does not count."""
    lines = text.split("\n")
    first = max(n for n, line in enumerate(lines, 1) if "__global__" in line and f" {entry}(" in line)
    last = max((n for n, line in enumerate(lines, 1) if n > first and line.startswith("}")), default=len(lines))
    return range(first, last + 1)

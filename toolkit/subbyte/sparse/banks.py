"""The accumulator banks: which OHMMA wait for one another, with and without the operand collector.

The paper gives no number of banks. Here accumulator (row, column) of a 32 x 32 tile is in bank (row % 8, column % 16),
so that a dense OHMMA accesses each of the 128 banks once. The collector merges the accesses of ``window`` OHMMA.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.sparse.bitmap import POSITIONS
from subbyte.sparse.machines import Machine
from subbyte.sparse.patterns import density_of

BANK_ROWS, BANK_COLUMNS = 8, 16


@dataclass(frozen=True)
class BankCycles:
    """Means over the k of random warp tiles."""

    issue: float
    """OHMMA per k."""
    merge: float
    """Cycles of the busiest bank in each window."""
    cycles: float
    """The maximum of the two and of the time to transfer the words, window by window."""

    @property
    def conflicts(self) -> float:
        """Cycles per OHMMA spent waiting for banks; 0 is free of conflicts."""
        return (self.cycles - self.issue) / self.issue if self.issue else 0.0


def bank_cycles(
    machine: Machine, a: float, b: float, window: int = 32, tiles: int = 8, depth: int = 64, seed: int = 0
) -> BankCycles:
    """Cycles per k of ``tiles`` random warp tiles of ``depth``; the collector looks at ``window`` OHMMA at a time.

    A window of 1 means no collector. A window can also be limited by the words transferred per cycle. Raises
    InvalidInput for a density outside 0 to 1, or a window, number of tiles or depth outside 1 to 4096.
    """
    density_of(a, "density of A")
    density_of(b, "density of B")
    for name, value in (("window", window), ("tiles", tiles), ("depth", depth)):
        if isinstance(value, bool) or value not in range(1, 4097):
            raise InvalidInput(f"{name} {value!r}: expected 1 to 4096")
    rng = np.random.default_rng(seed)
    issue = merge = cycles = 0.0
    for _ in range(tiles):
        mask_a, mask_b = rng.random((depth, POSITIONS)) < a, rng.random((depth, POSITIONS)) < b
        loads = np.array(list(_loads(machine, mask_a, mask_b)))
        if not len(loads):
            continue
        first = np.arange(0, len(loads), window)
        busiest = np.add.reduceat(loads, first).max(1)
        issued = np.minimum(window, len(loads) - first)
        words = np.add.reduceat(loads.sum(1), first) / machine.accumulator_words if window > 1 else 0.0
        issue += float(issued.sum())
        merge += float(busiest.sum())
        cycles += float(np.maximum(np.maximum(issued, busiest), words).sum())
    whole = tiles * depth
    return BankCycles(issue / whole, merge / whole, cycles / whole)


def _loads(machine: Machine, a: NDArray[np.bool_], b: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    """Accesses to each bank, for every OHMMA."""
    for row_mask, column_mask in zip(a, b, strict=True):
        rows, columns = np.flatnonzero(row_mask), np.flatnonzero(column_mask)
        by_rows = [
            np.bincount(rows[i : i + machine.group_a] % BANK_ROWS, minlength=BANK_ROWS)
            for i in range(0, len(rows), machine.group_a)
        ]
        by_columns = [
            np.bincount(columns[i : i + machine.group_b] % BANK_COLUMNS, minlength=BANK_COLUMNS)
            for i in range(0, len(columns), machine.group_b)
        ]
        for left in by_rows:
            for right in by_columns:
                yield np.outer(left, right).ravel()

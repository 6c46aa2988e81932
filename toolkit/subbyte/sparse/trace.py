"""What the warp operation SpWMMA issues and what it skips: counts, and the instructions one by one.

One SpWMMA multiplies a 32 x 16 tile of A by a 16 x 32 tile of B as 16 outer products (Wang et al. 2021). For every k of
a pair of live tiles, two POPC count the bitmaps. If neither is empty, one BOHMMA makes the 32 x 32 bitmap of positions,
and of the eight predicated OHMMA 8 x 16 x 1 those run that hold condensed values: ceil(a/8) * ceil(b/16). Each is
merged: the accumulators at the set positions are gathered, added to and scattered back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.sparse.bitmap import POSITIONS

OHMMA_ROWS, OHMMA_COLUMNS = 8, 16
"""Condensed values of A and of B that one OHMMA takes."""
OHMMA_DENSE = POSITIONS // OHMMA_ROWS * (POSITIONS // OHMMA_COLUMNS)
"""OHMMA per k without any zero."""

REASONS = {
    "a_tile_empty": "level 1: the warp tile of A is empty",
    "b_tile_empty": "level 1: the warp tile of B is empty",
    "a_vector_empty": "level 2: this k of A has no non-zero",
    "b_vector_empty": "level 2: this k of B has no non-zero",
    "a_condensed": "too few values of A: this group of 8 is empty once the zeros are gone",
    "b_condensed": "too few values of B: this group of 16 is empty once the zeros are gone",
}
"""Why an instruction is skipped: the first reason that applies."""


@dataclass(frozen=True)
class Step:
    """One instruction of the trace, or several instructions that one bit skips together."""

    instruction: str
    """POPC, BOHMMA, OHMMA or MERGE."""
    tile: tuple[int, int]
    """Warp tile of the result: row and column of tiles."""
    k: int
    count: int = 1
    """Number of instructions: more than one if they are skipped together."""
    group: tuple[int, int] | None = None
    """For an OHMMA or MERGE: which 8 condensed values of A, which 16 of B."""
    rows: tuple[int, ...] = ()
    """Positions in the tile, 0 to 31; for a POPC those of A."""
    columns: tuple[int, ...] = ()
    a: tuple[float, ...] = ()
    """For an OHMMA: values of A at ``rows``."""
    b: tuple[float, ...] = ()
    skipped: str | None = None
    """The reason, a key of :data:`REASONS`; None if it is issued."""

    def text(self) -> str:
        """The step in words."""
        place = f"k {self.k}" if self.group is None else f"k {self.k} group {self.group[0]},{self.group[1]}"
        head = f"tile {self.tile[0]},{self.tile[1]} {place}: "
        if self.skipped is not None:
            return f"{head}{self.count} {self.instruction} skipped: {REASONS[self.skipped]}"
        a, b = len(self.rows), len(self.columns)
        return (
            head
            + {
                "POPC": f"POPC a = {a}, b = {b}: {-(-a // OHMMA_ROWS) * -(-b // OHMMA_COLUMNS)} of {OHMMA_DENSE} OHMMA",
                "BOHMMA": f"BOHMMA: {a * b} positions of the 32 x 32 result",
                "OHMMA": f"OHMMA: {a} x {b} products",
                "MERGE": f"gather, add and scatter {a * b} accumulators",
            }[self.instruction]
        )

    def bitmap(self) -> NDArray[np.uint32]:
        """uint32 [32]: the outer AND that BOHMMA computes; word r has a bit for each column that is set together with
        row r."""
        word = np.uint32(sum(1 << column for column in self.columns))
        words = np.zeros(POSITIONS, np.uint32)
        words[list(self.rows)] = word
        return words


@dataclass(frozen=True)
class Counts(InfoRecord):
    """The instructions that one product of two encoded matrices issues; in the last slice only the k that exist are
    counted."""

    shape: tuple[int, int, int]
    """M, N and K."""
    kind: str
    tile_products: int
    """Pairs of warp tiles, 32 x 32 x 16."""
    live_tile_products: int
    """Pairs with both level-1 bits set."""
    ohmma: int
    bohmma: int
    popc: int
    merges: int
    """One for each OHMMA."""
    merged_words: int
    """Accumulators gathered and scattered: products of two non-zeros."""
    ohmma_dense: int
    """OHMMA without any skipping: 8 for each k of each pair of tiles."""
    reasons: Mapping[str, int]
    """OHMMA skipped, by reason."""
    sums: str
    """The type of the sums: exact int32, or float32 and in which order."""
    trace: tuple[Step, ...] | None = field(default=None, repr=False)
    """The instructions in order, if they were asked for."""

    @property
    def skipped(self) -> int:
        """OHMMA that are not issued."""
        return self.ohmma_dense - self.ohmma

    def title(self) -> str:
        """One line: issued and skipped."""
        m, n, k = self.shape
        return (
            f"{self.kind} product {m} x {n} x {k}: {self.ohmma:,} of {self.ohmma_dense:,} OHMMA, {self.skipped:,} "
            f"skipped; {self.bohmma:,} BOHMMA, {self.popc:,} POPC, {self.merged_words:,} accumulators merged"
        )

    def table(self) -> Table:
        """Skipped OHMMA by reason."""
        rows = tuple((REASONS[reason], count) for reason, count in self.reasons.items())
        return Table(("why an OHMMA is skipped", "OHMMA"), rows)

    def text(self) -> str:
        """The counts, and the trace if there is one."""
        live = f"{self.live_tile_products:,} of {self.tile_products:,} products of warp tiles are live; {self.sums}"
        parts = [self.title(), live, columns_text(self.table())]
        if self.trace is not None:
            parts.append("\n".join(f"{number:5d}  {step.text()}" for number, step in enumerate(self.trace)))
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """All fields and ``skipped``."""
        return {**super().to_dict(), "skipped": self.skipped}

    def accumulators(self, step: int) -> NDArray[Any]:
        """The result [M, N] after the first ``step`` steps of the trace, int32 or float32: the data of a stepper.

        Raises InvalidInput without a trace or for a step outside it.
        """
        if self.trace is None:
            raise InvalidInput("these counts hold no trace: ask for one with spgemm(..., trace=True)")
        if step not in range(len(self.trace) + 1):
            raise InvalidInput(f"step {step}: the trace has 0 to {len(self.trace)} steps")
        dtype = np.float32 if self.kind == "fp16" else np.int32
        m, n, _ = self.shape
        sums = np.zeros((-(-m // POSITIONS) * POSITIONS, -(-n // POSITIONS) * POSITIONS), dtype)
        for one in self.trace[:step]:
            if one.instruction == "MERGE":
                rows = POSITIONS * one.tile[0] + np.array(one.rows)
                columns = POSITIONS * one.tile[1] + np.array(one.columns)
                sums[np.ix_(rows, columns)] += np.outer(np.array(one.a, dtype), np.array(one.b, dtype))
        return sums[:m, :n]

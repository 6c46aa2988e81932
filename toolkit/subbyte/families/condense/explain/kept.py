"""What tiles keep of K: expected for independent zeros, and counted on operands drawn that way.

The kernel's own tile is compared with others: smaller ones keep less and gather more for each product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from subbyte.errors import InvalidInput, shown
from subbyte.families.condense.estimate import TILE_ROWS, kept, tile_steps
from subbyte.families.condense.live import kept_of, live_columns, live_rows, steps_of
from subbyte.families.condense.plan import CondensePlan
from subbyte.families.condense.rules import why_not
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.workload.conv import ConvWorkload, ceil_div

COLUMN_TILES = (1, 2, 4)
MOST_ROWS, MOST_COLUMNS = 4096, 2048
"""Largest operands that are counted completely; of larger ones a part is counted."""


@dataclass(frozen=True)
class KeptTile:
    """A tile: fraction of K that is kept and steps of 32 positions, expected and counted; ``own`` marks the kernel's.
    ``least`` and ``most`` are those of single tiles."""

    rows: int
    columns: int
    own: bool
    expected: float
    counted: float
    least: float
    most: float
    steps_expected: float
    steps: float


@dataclass(frozen=True)
class KeptProducts(InfoRecord):
    """A product's tiles at one density of the rows (activations) and one of the columns (weights).

    ``blocks`` are those of 32 positions of K: the steps of a dense tile. ``counted_rows`` and ``counted_columns``: how
    much of the operands was drawn and counted. ``live_rows`` and ``live_columns``: fractions of K that are not all 0 in
    the 32 rows, and in the columns of the kernel's tile."""

    workload: ConvWorkload
    config: str
    density_rows: float
    density_columns: float
    blocks: int
    counted_rows: int
    counted_columns: int
    live_rows: float
    live_columns: float
    tiles: tuple[KeptTile, ...]

    def title(self) -> str:
        """One line that names what the record shows."""
        rows, columns = f"{self.density_rows:g}", f"{self.density_columns:g}"
        return (
            f"{self.workload.label} with {self.config}: what tiles keep where {rows} of the activations and {columns} "
            "of the weights are not 0"
        )

    def table(self) -> Table:
        """One row per tile."""
        names = ("tile", "kept, expected", "counted", "least", "most", "steps, expected", "counted", "of")
        rows = (
            (f"{one.rows}x{one.columns}" + (" *" if one.own else ""), f"{one.expected:.3f}", f"{one.counted:.3f}",
             f"{one.least:.3f}", f"{one.most:.3f}", f"{one.steps_expected:.1f}", f"{one.steps:.1f}", self.blocks)
            for one in self.tiles
        )  # fmt: skip
        return Table(names, tuple(rows))

    def text(self) -> str:
        """The table, and the operands it was counted on."""
        own = next(one for one in self.tiles if one.own)
        lines = [
            self.title(), "", columns_text(self.table()), "",
            f"* the kernel's; counted on {self.counted_rows} rows and {self.counted_columns} columns drawn at random",
            f"live of K: {self.live_rows:.3f} in 32 rows, {self.live_columns:.3f} in {own.columns} columns",
            "a step takes one position of each of 32 lanes, so a tile takes as many as its lane with the most",
        ]  # fmt: skip
        return "\n".join(lines)


def densities_of(text: str) -> tuple[float, float]:
    """``0.05`` or ``0.05,0.2``: densities of rows and columns. Raises InvalidInput."""
    parts = str(text).split(",")
    try:
        found = [float(part) for part in parts]
    except ValueError:
        found = []
    if len(found) not in (1, 2) or not all(0 <= one <= 1 for one in found):
        raise InvalidInput(f"density {shown(text)}: expected a share from 0 to 1 such as 0.05, or two: 0.05,0.2")
    return found[0], found[-1]


def kept_products(plan: CondensePlan, density: str = "0.05", seed: int = 0) -> KeptProducts:
    """What a kernel's tiles keep. Raises InvalidInput for an impossible density and for a plan that is rejected."""
    if reason := why_not(plan):
        raise InvalidInput(
            f"{plan.workload.label} with {plan.config.key} on {plan.arch.name} cannot be built: {reason}"
        )
    of_rows, of_columns = densities_of(density)
    w = plan.workload
    draw = np.random.default_rng(seed)
    pixels = min(w.h * w.w, max(1, MOST_ROWS // w.n)) if w.n < MOST_ROWS else 1
    x = (draw.random((min(w.n, MOST_ROWS), 1, pixels, w.c), np.float32) < of_rows).astype(np.int8)
    weights = (draw.random((min(w.k, MOST_COLUMNS), 1, 1, w.c), np.float32) < of_columns).astype(np.int8)
    rows = live_rows(plan, x)
    tiles, own_columns = [], live_columns(plan, weights)
    for count in COLUMN_TILES:
        other = replace(plan, config=replace(plan.config, column_tiles=count))
        columns = live_columns(other, weights)
        share = kept(of_rows, of_columns, 8 * count)
        each = rows.astype(np.float32) @ columns.astype(np.float32).T / w.c
        tiles.append(KeptTile(
            TILE_ROWS, 8 * count, count == plan.config.column_tiles, share, kept_of(rows, columns), float(each.min()),
            float(each.max()), tile_steps(other, share), steps_of(other, rows, columns),
        ))  # fmt: skip
    return KeptProducts(
        w, plan.config.key, of_rows, of_columns, ceil_div(w.c, 32), x.size // w.c, len(weights), float(rows.mean()),
        float(own_columns.mean()), tuple(tiles),
    )  # fmt: skip

"""Speed-up as a function of both operands' densities: one map for a layer and a unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.info_record import InfoRecord, Table, grid_text
from subbyte.sparse import machines
from subbyte.sparse.bitmap import POSITIONS
from subbyte.sparse.cost import LEVELS, column_factors, joint, row_factors
from subbyte.sparse.evaluate import Product, checked, paced, wave_maxima
from subbyte.sparse.machines import Machine, cost_tables
from subbyte.sparse.operands import Operand, activations_of, weights_of
from subbyte.sparse.patterns import ACTIVATION_GROUPS, WEIGHT_GROUPS, density_of
from subbyte.sparse.shapes import Shape, lowers, shape_of, sizes

LARGEST_GRID = 64
_FACTORS = 1 << 23
"""Most numbers kept as factors of sampled tiles."""
_WAVES = 2


@dataclass(frozen=True)
class Surface(InfoRecord):
    """Speed-ups by [density of the activations][density of the weights], a model in cycles."""

    workload: str
    machine: Machine
    im2col: str
    kind: str
    """Kind of zeros: one generator for both operands."""
    activations: tuple[float, ...]
    weights: tuple[float, ...]
    same_unit: tuple[tuple[float, ...], ...]
    """Over the same unit in dense mode, in total: memory and waves included."""
    dense_core: tuple[tuple[float, ...], ...]
    """Over the inner-product core, in total."""
    compute: tuple[tuple[float, ...], ...]
    """Over the same unit in dense mode, compute alone."""
    compute_dense_core: tuple[tuple[float, ...], ...]
    sides: tuple[str, ...]
    """For each density of the activations, a string with a letter for each density of the weights: the side that the
    weights are on."""
    waves: str
    """The number of waves from which the imbalance was computed."""

    def title(self) -> str:
        """One line: the range of both speed-ups."""
        low, high = min(map(min, self.dense_core)), max(map(max, self.dense_core))
        own = max(map(max, self.same_unit))
        return (
            f"{self.workload} on {self.machine.name}, {self.kind} (synthetic): {low:.2f} to {high:.2f} times the dense "
            f"core, up to {own:.2f} times the same unit dense (model)"
        )

    def table(self) -> Table:
        """One row for each pair of densities."""
        rows = tuple(
            (a, b, self.same_unit[i][j], self.dense_core[i][j], self.compute[i][j], self.compute_dense_core[i][j])
            for i, a in enumerate(self.activations)
            for j, b in enumerate(self.weights)
        )
        heads = ("over the same unit", "over the dense core", "compute: same unit", "compute: dense core")
        return Table(("activations", "weights", *heads), rows)

    def text(self) -> str:
        """Two maps: over the same unit in dense mode, and over the dense core."""
        parts = [self.title()]
        for name, grid in (("the same unit in dense mode", self.same_unit), ("the dense core", self.dense_core)):
            cells = [[f"{value:.2f}" for value in row] for row in grid]
            top, left = ([f"{one:g}" for one in axis] for axis in (self.weights, self.activations))
            parts.append(f"times {name}; activations down, weights across\n" + grid_text(top, left, cells))
        return "\n\n".join([*parts, self.waves])


def surface(
    workload: str | Shape, machine: str | Machine = "dstc", *, activations: Sequence[float] | None = None,
    weights: Sequence[float] | None = None, kind: str = "iid", im2col: str = "implicit", weights_side: str = "auto",
    seed: int = 0,
) -> Surface:  # fmt: skip
    """Speed-ups of one layer over a grid of densities, by default 0.05 to 1 in steps of 0.05.

    ``kind``: a generator for both operands (iid, runs, channels, blocks, dead). Each density is drawn once; wave times
    are computed from at most two waves. Raises InvalidInput for wrong densities, kinds, names and sizes, and for a unit
    that only skips 2:4 weights, which random zeros do not fit.
    """
    unit = machines.machine(machine)
    checked("dual", im2col, weights_side)
    shape = shape_of(workload)
    axes = [_axis(one, name) for one, name in ((activations, "activations"), (weights, "weights"))]
    both = [name for name in ACTIVATION_GROUPS if name in WEIGHT_GROUPS]
    if kind not in both:
        raise InvalidInput(f"kind {kind!r}: expected one of {', '.join(both)}")
    if unit.skips == "2:4 weights":
        raise InvalidInput(
            f"machine {unit.name}: random zeros do not fit 2:4, so it has no surface; take dstc or ideal"
        )
    xs = [activations_of(shape, f"{kind}:{density}", seed) for density in axes[0]]
    ws = [weights_of(shape, f"{kind}:{density}", seed) for density in axes[1]]
    work = _Grid(shape, unit, xs, ws, im2col, weights_side)
    m, n, _ = sizes(shape)
    base = Product(xs[0], ws[0], m, n, work.lowers)
    own, inner = (base.reference(unit, per_k, im2col) for per_k in (unit.dense_k, unit.inner_k))
    total, compute, sides = work.totals()
    grids = (own[1] / total, inner[1] / total, own[0] / compute, inner[0] / compute)
    same, core, alone, alone_core = (tuple(map(tuple, grid.tolist())) for grid in grids)
    return Surface(
        shape.label, unit, im2col, kind, axes[0], axes[1], same, core, alone, alone_core,
        tuple("".join(row) for row in sides.tolist()), work.waves_text(),
    )  # fmt: skip


class _Grid:
    """All pairs of densities of one layer; factors of the tiles are computed once for each density and side."""

    def __init__(
        self, shape: Shape, unit: Machine, xs: list[Operand], ws: list[Operand], im2col: str, side: str
    ) -> None:
        self.unit, self.xs, self.ws, self.im2col = unit, xs, ws, im2col
        self.m, self.n, _ = sizes(shape)
        self.lowers = lowers(shape)
        self.tiles = xs[0].tiles * ws[0].tiles
        self.waves = -(-self.tiles // unit.units)
        table = cost_tables(unit).cost
        left, right = (np.concatenate([one.histogram for one in both], axis=1) for both in (xs, ws))
        pairs = joint(left, right).reshape(len(xs), LEVELS, len(ws), LEVELS).swapaxes(1, 2)
        tables = {"b": table, "a": table.T}
        self.compute = {name: (pairs * tables[name]).sum((2, 3)) for name in ("b", "a")}
        self.kept: dict[tuple[int, int, bool], NDArray[np.float64]] = {}
        self.asked = ("b", "a") if side == "auto" else (side,)
        rows = min(xs[0].tiles, unit.units // ws[0].tiles + 2)
        few = _FACTORS // (len(xs) * rows * xs[0].depth * 5)
        taken = max(1, min(_WAVES, few, self.waves))
        # Whole waves, spread evenly; the last one may have idle sub-cores and is used only if it is the only one.
        whole = max(1, self.tiles // unit.units)
        self.sampled = sorted({(2 * i + 1) * whole // (2 * taken) for i in range(taken)})

    def waves_text(self) -> str:
        """How the times of waves were computed."""
        return f"imbalance taken from {len(self.sampled)} of {self.waves} waves"

    def totals(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Cycles in total and of the compute alone, and the weights' side, [activations, weights]: the side that takes
        fewer cycles in total."""
        total = np.empty((len(self.asked), len(self.xs), len(self.ws)))
        for at, side in enumerate(self.asked):
            for j, w in enumerate(self.ws):
                for i, waves in enumerate(self._maxima(w, side == "a")):
                    total[at, i, j] = self._total(self.xs[i], w, waves)
        best = total.argmin(0)
        compute = np.choose(best, [self.compute[side] for side in self.asked]) / self.unit.units
        return total.min(0), compute, np.array(self.asked)[best]

    def _maxima(self, w: Operand, swapped: bool) -> list[NDArray[np.float64]]:
        """The slowest tile of each sampled wave, for each density of the activations."""
        right = column_factors(_counts(w, slice(None)), self.unit, swapped)
        out: list[list[float]] = [[] for _ in self.xs]
        for wave in self.sampled:
            begin, end = wave * self.unit.units, min(self.tiles, (wave + 1) * self.unit.units)
            first, last = begin // w.tiles, -(-end // w.tiles)
            left = self._left(first, last, swapped)
            cycles = np.round(left @ right.T, 6).reshape(len(self.xs), -1)
            inside = cycles[:, begin - first * w.tiles : end - first * w.tiles]
            for values, row in zip(out, inside, strict=True):
                values += wave_maxima(row, self.unit.units).tolist()
        return [np.array(values) for values in out]

    def _left(self, first: int, last: int, swapped: bool) -> NDArray[np.float64]:
        """Factors of some tiles for all densities of the activations, cached."""
        key = (first, last, swapped)
        if key not in self.kept:
            parts = [row_factors(_counts(x, slice(first, last)), self.unit, swapped) for x in self.xs]
            self.kept[key] = np.concatenate(parts)
        return self.kept[key]

    def _total(self, x: Operand, w: Operand, waves: NDArray[np.float64]) -> float:
        traffic = Product(x, w, self.m, self.n, self.lowers).traffic(self.unit, x, w, self.im2col)
        memory, lowering = (part / self.unit.bytes_per_cycle for part in (traffic.product, traffic.lowering))
        every = np.resize(np.sort(waves), self.waves)
        return lowering + paced(every, memory, self.tiles, self.unit.units)


def _counts(operand: Operand, tiles: slice) -> NDArray[np.uint8]:
    if operand.counts is not None:
        return operand.counts[:, tiles]
    return np.full((operand.depth, len(range(*tiles.indices(operand.tiles)))), POSITIONS, np.uint8)


def _axis(given: Any, name: str) -> tuple[float, ...]:
    values = [round(0.05 * step, 2) for step in range(1, 21)] if given is None else given
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, np.ndarray)):
        raise InvalidInput(f"{name} {values!r}: expected several densities, such as (0.1, 0.5, 1)")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InvalidInput(f"{name}: expected densities in one row, such as (0.1, 0.5, 1)")
    if not 1 <= len(values) <= LARGEST_GRID:
        raise InvalidInput(f"{name}: {len(values)} densities, expected 1 to {LARGEST_GRID}")
    found = tuple(density_of(value, name) for value in values)
    if 0 in found:
        raise InvalidInput(f"{name}: density 0 leaves nothing to multiply; a surface takes densities above 0")
    return found

"""One warp tile of the dual-side sparse Tensor Core, instruction by instruction: the data of the stepper.

The same steps at two sizes: the unit's own, 32 x 32 x 16 with OHMMA of 8 x 16 condensed values, and a toy in which
every number can be read, 8 x 8 x 8 with OHMMA of 2 x 4. Both have four groups of A and two of B, so both skip in the
same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput, did_you_mean
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.sparse.bitmap import POSITIONS, SLICE, checked_values
from subbyte.sparse.machines import MACHINES, cost_tables
from subbyte.sparse.patterns import density_of, random_matrix
from subbyte.sparse.trace import OHMMA_COLUMNS, OHMMA_ROWS, REASONS
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse_workload

Grid = tuple[tuple[int, ...], ...]


class Geometry(NamedTuple):
    """Sizes of a unit."""

    name: str
    positions: int
    """Rows of A, and columns of B, in a warp tile."""
    slice: int
    """Values of k in a warp tile."""
    rows: int
    """Condensed values of A that one OHMMA takes."""
    columns: int
    """Condensed values of B that one OHMMA takes."""
    depth: int
    """Values of k that are shown."""

    @property
    def groups(self) -> tuple[int, int]:
        """Groups of A and of B: their product is the OHMMA of a dense k."""
        return self.positions // self.rows, self.positions // self.columns


GEOMETRIES = {
    one.name: one
    for one in (
        Geometry("toy", 8, 2, 2, 4, 8),
        Geometry("unit", POSITIONS, SLICE, OHMMA_ROWS, OHMMA_COLUMNS, SLICE),
    )
}
"""Name -> sizes: ``toy`` is a made-up unit a quarter as wide, ``unit`` the proposed one."""
TOY_A = (
    (2, 0, 0, 0, 0, 1, 0, -1), (0, 0, 0, 0, 0, 0, 2, 0), (-1, 3, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, -2, 0, 1),
    (3, 0, 0, 0, 0, 0, 1, 0), (0, -2, 0, 0, 0, 0, 0, 2), (1, 0, 0, 0, 0, 2, 0, 0), (0, 1, 0, 0, 0, 0, -3, 0),
)  # fmt: skip
"""[M, K]: the second of its four warp tiles is empty, and k = 4."""
TOY_B = (
    (0, 2, 0, 0, -1, 0, 3, 0), (1, 0, -2, 0, 0, 2, 1, 0), (0, 3, 0, 1, 0, 0, 0, 2), (2, 0, 0, 0, 1, 0, 0, 0),
    (0, 0, 1, 0, 0, 0, 2, 0), (0, 3, 0, -1, 2, 0, 1, 1), (0, 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0, 0),
)  # fmt: skip
"""[K, N]: the last of its four warp tiles is empty."""


@dataclass(frozen=True)
class OhmmaSlot:
    """One of the OHMMA that a dense k takes, issued or skipped."""

    k: int
    group: tuple[int, int]
    """Which condensed values of A, which of B."""
    rows: tuple[int, ...]
    """Positions of its values of A in the warp tile."""
    columns: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]
    gathered: Grid
    """Accumulators at its positions before it runs, [values of A][values of B]."""
    skipped: str | None
    """The reason, a key of :data:`subbyte.sparse.REASONS`; None if it is issued."""

    @property
    def products(self) -> Grid:
        """The products that it computes."""
        return tuple(tuple(left * right for right in self.b) for left in self.a)

    @property
    def sums(self) -> Grid:
        """The sums that it scatters back."""
        return tuple(
            tuple(old + new for old, new in zip(before, added, strict=True))
            for before, added in zip(self.gathered, self.products, strict=True)
        )


@dataclass(frozen=True)
class TileSteps(InfoRecord):
    """A pair of operands of one unit and everything that the unit does with them. Exact integers."""

    geometry: Geometry
    a: Grid
    """[positions][k]."""
    b: Grid
    """[k][positions]."""
    source: str
    """Where the operands come from."""
    slots: tuple[OhmmaSlot, ...]
    """For every k all OHMMA of a dense one: groups of A in the outer loop, of B in the inner loop."""

    @property
    def dense(self) -> int:
        """Number of OHMMA without skipping."""
        return len(self.slots)

    @cached_property
    def reasons(self) -> dict[str, int]:
        """Number of OHMMA skipped, by reason."""
        found = Counter(slot.skipped for slot in self.slots if slot.skipped is not None)
        return {reason: found[reason] for reason in REASONS}

    @property
    def issued(self) -> int:
        """Number of OHMMA that run."""
        return self.dense - sum(self.reasons.values())

    def why(self, reason: str) -> str:
        """A reason in words, with the sizes of this geometry."""
        words = {"a_condensed": self.geometry.rows, "b_condensed": self.geometry.columns}
        if reason not in words:
            return REASONS[reason]
        return f"too few values of {reason[0].upper()}: this group of {words[reason]} is empty once the zeros are gone"

    def vector(self, side: str, k: int) -> tuple[int, ...]:
        """One k of A (``a``) or of B (``b``) with its zeros."""
        return tuple(row[k] for row in self.a) if side == "a" else self.b[k]

    def count(self, side: str, k: int) -> int:
        """Non-zeros of one k: what POPC counts."""
        return sum(value != 0 for value in self.vector(side, k))

    def level1(self, side: str) -> tuple[bool, ...]:
        """For each warp tile along k, whether it holds any non-zero."""
        per = self.geometry.slice
        counts = [self.count(side, k) for k in range(self.geometry.depth)]
        return tuple(any(counts[first : first + per]) for first in range(0, len(counts), per))

    @cached_property
    def result(self) -> Grid:
        """A times B, after all slots."""
        product = np.array(self.a, np.int64) @ np.array(self.b, np.int64)
        return _grid(product)

    @cached_property
    def cycles(self) -> tuple[float, float, float] | None:
        """Cycles of the proposed unit, of the same unit dense and of the dense core, compute alone; None for the
        toy."""
        if self.geometry.name != "unit":
            return None
        unit = MACHINES["dstc"]
        cost = cost_tables(unit).cost
        depth = self.geometry.depth
        own = sum(float(cost[self.count("a", k), self.count("b", k)]) for k in range(depth))
        return own, depth * unit.dense_k, depth * unit.inner_k

    def title(self) -> str:
        """One line: issued and skipped, and for the real unit both speed-ups."""
        one = self.geometry
        what = "toy unit" if self.cycles is None else "proposed unit"
        head = (
            f"{one.positions} x {one.positions} x {one.depth} on the {what}: {self.issued} of {self.dense} OHMMA "
            f"{one.rows} x {one.columns} issued"
        )
        if self.cycles is None:
            return head
        own, same, core = self.cycles
        return f"{head}; {same / own:.2f} times the same unit dense, {core / own:.2f} times the dense core (model)"

    def table(self) -> Table:
        """One row for each k."""
        per = len(self.slots) // self.geometry.depth
        rows = []
        for k in range(self.geometry.depth):
            own = self.slots[per * k : per * (k + 1)]
            why = next((slot.skipped for slot in own if slot.skipped), None)
            issued = sum(slot.skipped is None for slot in own)
            rows.append((k, self.count("a", k), self.count("b", k), issued, per - issued, self.why(why) if why else ""))
        return Table(("k", "a", "b", "OHMMA", "skipped", "why the first of them"), tuple(rows))

    def text(self) -> str:
        """The table, what is skipped by reason, and the source."""
        counts = tuple((self.why(reason), count) for reason, count in self.reasons.items())
        skipped = Table(("why an OHMMA is skipped", "OHMMA"), counts)
        return "\n\n".join([self.title(), columns_text(self.table()), columns_text(skipped), self.source])


def tile_steps(
    a: NDArray[Any] | Sequence[Sequence[int]] | None = None, b: NDArray[Any] | Sequence[Sequence[int]] | None = None, *,
    size: str = "unit", density: float | Sequence[float] = 0.5, seed: int = 0,
) -> TileSteps:  # fmt: skip
    """The steps of one warp tile: A [M, K] times B [K, N], integers -8 to 7.

    ``size``: ``unit`` (M and N up to 32, K up to 16) or ``toy`` (all up to 8); smaller operands are padded with zeros.
    By default the toy has two small matrices of its own, and the unit random ones with values -3 to 3 and this density
    (or these two). Raises InvalidInput for another size, one operand alone, wrong shapes, values, densities.
    """
    if size not in GEOMETRIES:
        raise InvalidInput(f"size {size!r}: {did_you_mean(size, GEOMETRIES)}")
    one = GEOMETRIES[size]
    if (a is None) != (b is None):
        raise InvalidInput("give both operands, A [M, K] and B [K, N], or neither")
    if a is not None and b is not None:
        left, right = (np.asarray(matrix) for matrix in (a, b))
        source = "given operands"
    elif size == "toy":
        left, right, source = np.array(TOY_A), np.array(TOY_B), "two small matrices, chosen by hand"
    else:
        pair = density if isinstance(density, Sequence) else (density, density)
        if len(pair) != 2:
            raise InvalidInput(f"density {density!r}: expected one of both sides, or two, such as (0.5, 0.3)")
        found = [density_of(value, f"density of {name}") for value, name in zip(pair, "AB", strict=True)]
        shapes = ((one.positions, one.depth), (one.depth, one.positions))
        left, right = (
            _small(random_matrix(shape, value, "int4", seed + at))
            for at, (shape, value) in enumerate(zip(shapes, found, strict=True))
        )
        source = f"random, densities {found[0]:g} and {found[1]:g}, i.i.d. (synthetic), seed {seed}"
    left, right = _filled(left, right, one)
    return TileSteps(one, _grid(left), _grid(right), source, tuple(_slots(left, right, one)))


def _grid(matrix: NDArray[Any]) -> Grid:
    return tuple(map(tuple, matrix.tolist()))


def layer_tile(
    workload: ConvWorkload | str, activations: float = 0.45, weights: float = 0.2, seed: int = 0
) -> TileSteps:
    """The steps of one warp tile in the middle of a layer: 32 lowered pixels of an image, 16 of their k, 32 filters.

    Activations and weights are random int4, -3 to 3, with these densities; padding is zero, as is everything beyond the
    edge of a smaller layer. Raises InvalidInput for an unknown text or an invalid density.
    """
    wl = parse_workload(workload)
    pixels, depth = wl.p * wl.q, wl.r * wl.s * wl.c
    one = GEOMETRIES["unit"]
    first = max(0, min(pixels - one.positions, pixels // 2))
    k = max(0, min(depth - one.depth, depth // 2 // one.slice * one.slice)) + np.arange(min(depth, one.depth))
    at = first + np.arange(min(pixels, one.positions))
    offsets, channels = np.divmod(k, wl.c)
    rows = (at // wl.q * wl.stride - wl.pad)[:, None] + offsets // wl.s * wl.dilation
    columns = (at % wl.q * wl.stride - wl.pad)[:, None] + offsets % wl.s * wl.dilation
    inside = (rows >= 0) & (rows < wl.h) & (columns >= 0) & (columns < wl.w)
    used = sorted(set(channels.tolist()))
    places = np.searchsorted(used, channels)
    image = _small(random_matrix((wl.h * wl.w, len(used)), density_of(activations, "activations"), "int4", seed))
    flat = np.clip(rows, 0, wl.h - 1) * wl.w + np.clip(columns, 0, wl.w - 1)
    left = np.where(inside, image[flat, places], 0)
    shape = (len(k), min(wl.k, one.positions))
    right = _small(random_matrix(shape, density_of(weights, "weights"), "int4", seed + 1))
    left, right = _filled(left, right, one)
    source = f"{wl.label}, pixels from {first}, k from {k[0]}; i.i.d. {activations:g} and {weights:g} (synthetic)"
    return TileSteps(one, _grid(left), _grid(right), source, tuple(_slots(left, right, one)))


def _small(matrix: NDArray[Any]) -> NDArray[Any]:
    """Values -8 to 7 mapped to -3 to 3, zeros kept: products and sums then have few digits."""
    return np.asarray(np.sign(matrix) * (1 + np.abs(matrix.astype(np.int64)) % 3))


def _filled(a: NDArray[Any], b: NDArray[Any], one: Geometry) -> tuple[NDArray[Any], NDArray[Any]]:
    most = {"A": (one.positions, one.depth), "B": (one.depth, one.positions)}
    for (name, limit), matrix in zip(most.items(), (a, b), strict=True):
        checked_values(matrix, "int4")
        if matrix.ndim != 2 or 0 in matrix.shape or any(n > m for n, m in zip(matrix.shape, limit, strict=True)):
            raise InvalidInput(
                f"{name} of shape {list(matrix.shape)}: the {one.name} shows matrices up to {limit[0]} x {limit[1]}"
            )
    if a.shape[1] != b.shape[0]:
        raise InvalidInput(f"A is {a.shape[0]} x {a.shape[1]}, B is {b.shape[0]} x {b.shape[1]}: their k differ")
    padded = [
        np.pad(matrix.astype(np.int64), [(0, m - n) for n, m in zip(matrix.shape, limit, strict=True)])
        for matrix, limit in zip((a, b), most.values(), strict=True)
    ]
    return padded[0], padded[1]


def _slots(a: NDArray[Any], b: NDArray[Any], one: Geometry) -> list[OhmmaSlot]:
    """All OHMMA of all k; accumulators carry over from one to the next."""
    sums = np.zeros((one.positions, one.positions), np.int64)
    found = []
    for k in range(one.depth):
        part = slice(k - k % one.slice, k - k % one.slice + one.slice)
        rows, columns = np.flatnonzero(a[:, k]), np.flatnonzero(b[k])
        whole = _why(bool(a[:, part].any()), bool(b[part].any()), len(rows), len(columns))
        for g in range(one.groups[0]):
            for h in range(one.groups[1]):
                mine = rows[one.rows * g : one.rows * (g + 1)]
                theirs = columns[one.columns * h : one.columns * (h + 1)]
                why = whole or (None if len(mine) and len(theirs) else "b_condensed" if len(mine) else "a_condensed")
                if why:
                    mine, theirs = mine[:0], theirs[:0]
                at = np.ix_(mine, theirs)
                slot = OhmmaSlot(
                    k, (g, h), tuple(mine.tolist()), tuple(theirs.tolist()), tuple(a[mine, k].tolist()),
                    tuple(b[k, theirs].tolist()), _grid(sums[at]), why,
                )  # fmt: skip
                sums[at] += np.multiply.outer(a[mine, k], b[k, theirs])
                found.append(slot)
    return found


def _why(a_live: bool, b_live: bool, a: int, b: int) -> str | None:
    """Why nothing is issued for a k: the first reason that applies."""
    reasons = (("a_tile_empty", a_live), ("b_tile_empty", b_live), ("a_vector_empty", a), ("b_vector_empty", b))
    return next((reason for reason, there in reasons if not there), None)

"""A surface of speed-ups with layers placed on it by their densities, and break-even lines of existing software."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from subbyte.errors import InvalidInput, did_you_mean
from subbyte.info_record import InfoRecord, Table
from subbyte.sparse.networks import NetworkCycles, network
from subbyte.sparse.patterns import density_of
from subbyte.sparse.shapes import Shape
from subbyte.sparse.surfaces import Surface, surface

OVER = {
    "same_unit": "the same unit dense",
    "dense_core": "the dense core",
    "compute": "the same unit dense, compute alone",
    "compute_dense_core": "the dense core, compute alone",
}
"""The baseline of a surface's speed-ups, by the field that holds them."""


@dataclass(frozen=True)
class LayerDot:
    """One layer, placed by its densities, with its own total speed-ups (dual, implicit im2col)."""

    name: str
    activations: float
    weights: float
    same_unit: float
    dense_core: float


@dataclass(frozen=True)
class BreakEven:
    """Where a software path on an existing GPU takes as long as dense: below the line it is faster."""

    path: str
    points: tuple[tuple[float, float], ...]
    """Densities of activations and weights."""
    source: str
    """The measurement that it comes from."""

    def __post_init__(self) -> None:
        if not self.points or not self.source:
            raise InvalidInput(f"break-even of {self.path}: needs at least one point and the record that it is from")
        for point in self.points:
            for density in point:
                density_of(density, f"break-even of {self.path}")


@dataclass(frozen=True)
class SpeedMap(InfoRecord):
    """A surface, layers on it, and break-even lines if a record has them. Speed-ups are a model in cycles."""

    surface: Surface
    layers: tuple[LayerDot, ...]
    layers_from: str
    """Which network, and where its densities come from."""
    breakevens: tuple[BreakEven, ...]

    def grid(self, over: str) -> tuple[tuple[float, ...], ...]:
        """Speed-ups [activations][weights] over one of :data:`OVER`. Raises InvalidInput for another baseline."""
        if over not in OVER:
            raise InvalidInput(f"over {over!r}: {did_you_mean(over, OVER)}")
        found: tuple[tuple[float, ...], ...] = getattr(self.surface, over)
        return found

    def contour(self, over: str, level: float) -> tuple[tuple[float, float], ...]:
        """Where the speed-up equals ``level``: pairs of densities (activations, weights), the densest activations
        first.

        Searched along every row and every column of the grid; between two grid points the logarithm of the speed-up is
        interpolated linearly.
        """
        where, grid = self.surface, self.grid(over)
        found = [
            (a, at)
            for a, row in zip(where.activations, grid, strict=True)
            for at in _crossing(where.weights, row, level)
        ]
        columns = zip(where.weights, zip(*grid, strict=True), strict=True)
        found += [(at, w) for w, column in columns for at in _crossing(where.activations, column, level)]
        return tuple(sorted(set(found), key=lambda pair: (pair[1] - pair[0], pair)))

    def title(self) -> str:
        """One line: the surface's title, and the number of layers."""
        return f"{self.surface.title()}; {len(self.layers)} layers on it"

    def table(self) -> Table:
        """One row for each layer."""
        rows = tuple((one.name, one.activations, one.weights, one.same_unit, one.dense_core) for one in self.layers)
        return Table(("layer", "activations", "weights", "over the same unit dense", "over the dense core"), rows)

    def text(self) -> str:
        """The surface, then the layers."""
        return "\n\n".join([self.surface.text(), super().text(), self.layers_from])


def _crossing(axis: Sequence[float], speedups: Sequence[float], level: float) -> list[float]:
    """The density at which speed-ups, which decrease with it, reach ``level``; empty if they do not."""
    for (left, high), (right, low) in pairwise(zip(axis, speedups, strict=True)):
        if high >= level > low:
            return [left + math.log(high / level) / math.log(high / low) * (right - left)]
    return []


def speed_map(
    of: str | Shape | Surface = "gemm1024", layers: str | NetworkCycles | None = None, *,
    breakevens: Iterable[BreakEven] = (), **options: Any,
) -> SpeedMap:  # fmt: skip
    """A surface of a layer (``options`` are those of :func:`subbyte.sparse.surface`) or an existing one, with layers on
    it.

    ``layers``: a result of :func:`subbyte.sparse.network`, or the name of a network with assumed densities; by default
    none. ``breakevens``: measured lines. Raises InvalidInput for anything else.
    """
    if isinstance(of, Surface) and options:
        raise InvalidInput(f"{', '.join(options)}: these go with the name of a layer; a finished surface has its own")
    found = of if isinstance(of, Surface) else surface(of, **options)
    lines = tuple(breakevens)
    for one in lines:
        if not isinstance(one, BreakEven):
            raise InvalidInput(f"breakevens hold {type(one).__name__}: expected sparse.BreakEven(path, points, source)")
    if layers is None:
        return SpeedMap(found, (), "no layers are shown", lines)
    cycles = layers if isinstance(layers, NetworkCycles) else network(layers)
    dots = tuple(
        LayerDot(
            one.name, one.activations.density, one.weights.density,
            one.cycles["dense"]["implicit"] / one.cycles["dual"]["implicit"],
            one.dense_core["implicit"] / one.cycles["dual"]["implicit"],
        )
        for one in cycles.layers
    )  # fmt: skip
    return SpeedMap(found, dots, f"layers of {cycles.network}: {_sources(cycles)}", lines)


def _sources(cycles: NetworkCycles) -> str:
    """The sources of the densities, each once."""
    said: Sequence[str] = [one.source for layer in cycles.layers for one in (layer.activations, layer.weights)]
    return "; ".join(dict.fromkeys(said))

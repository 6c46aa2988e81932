"""Cycles of one product on one unit: multiplying, merging, moving, and waiting for the slowest tile of a wave.

Warp tiles of the result are dealt to the sub-cores in order, one each, wave by wave; a wave lasts as long as its
slowest tile, or as its share of the memory traffic if that takes longer. Traffic counts each datum once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput, did_you_mean
from subbyte.sparse.bitmap import POSITIONS
from subbyte.sparse.cost import bins, joint, tile_cycles
from subbyte.sparse.machines import Machine, cost_tables
from subbyte.sparse.operands import Operand

MODES = ("dense", "weight", "activation", "dual")
"""Which operands' zeros the unit may skip."""
IM2COL = ("implicit", "explicit")
"""Lowering on the fly (implicit), or by a separate pass through memory (explicit)."""
SIDES = ("auto", "a", "b")


@dataclass(frozen=True)
class Traffic:
    """Bytes moved by the product itself and by the lowering pass."""

    activations: float
    weights: float
    output: float
    lowering: float
    """For explicit im2col: the tensor read and the lowered matrix written."""

    @property
    def product(self) -> float:
        """Everything except the lowering."""
        return self.activations + self.weights + self.output


@dataclass(frozen=True)
class Cycles:
    """Cycles of the device. ``issue``, ``merge``, ``overhead`` and ``compute`` are means over the sub-cores."""

    issue: float
    """The multipliers alone."""
    merge: float
    """The accumulators' buffer alone."""
    overhead: float
    """Bitmap fetch, POPC and BOHMMA of every k."""
    compute: float
    """For each k the larger of issue and merge, plus the overhead."""
    waves: float
    """Compute if every wave lasts as long as its slowest tile, including idle sub-cores in the last wave."""
    memory: float
    """Moving the product's bytes alone."""
    lowering: float
    """The lowering pass of explicit im2col."""
    total: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The result for one product on one unit in one mode."""

    cycles: Cycles
    traffic: Traffic
    weights_side: str
    utilisation: tuple[float, float, float, float]
    """Share of the compute cycles in which 0-25, 25-50, 50-75, 75-100 % of the multipliers do useful work."""


class Product:
    """One pair of operands; caches what several modes and units need."""

    def __init__(self, activations: Operand, weights: Operand, m: int, n: int, lowers: bool) -> None:
        self.activations, self.weights = activations, weights
        self.m, self.n, self.lowers = m, n, lowers
        self.tiles = activations.tiles * weights.tiles
        self._waves = lru_cache(maxsize=8)(self._wave_cycles)
        self._pairs = lru_cache(maxsize=4)(self._joint)

    def operands(self, mode: str) -> tuple[Operand, Operand]:
        """Activations and weights as a mode sees them: a side whose zeros it does not skip is dense."""
        x = self.activations if mode in ("activation", "dual") else self.activations.dense()
        w = self.weights if mode in ("weight", "dual") else self.weights.dense()
        return x, w

    def evaluate(self, machine: Machine, mode: str, im2col: str, side: str) -> Evaluation:
        """Cycles in one mode. ``side``: which operand the weights are, ``auto`` for whichever takes fewer cycles."""
        checked(mode, im2col, side)
        _, w = self.operands(mode)
        if machine.skips == "2:4 weights" and not w.fits_24:
            if mode in ("weight", "dual"):
                raise InvalidInput(
                    f"machine {machine.name} skips 2:4 weights only, and these do not fit: {w.misfit}; take weights "
                    "2:4, mode activation, or another machine"
                )
            machine = dense_core(machine)
        found = [self._on_side(machine, mode, im2col, one) for one in (("b", "a") if side == "auto" else (side,))]
        return min(found, key=lambda one: one.cycles.total)

    def _on_side(self, machine: Machine, mode: str, im2col: str, side: str) -> Evaluation:
        x, w = self.operands(mode)
        tables = cost_tables(machine)
        pairs = self._pairs(mode).T if side == "a" else self._pairs(mode)
        issue, merge, compute = (
            float((pairs * table).sum()) / machine.units for table in (tables.issue, tables.merge, tables.cost)
        )
        overhead = machine.per_k * x.depth * self.tiles / machine.units if machine.skips == "condensed vectors" else 0.0
        traffic = self.traffic(machine, x, w, im2col)
        memory, lowering = (part / machine.bytes_per_cycle for part in (traffic.product, traffic.lowering))
        waves = self._waves(machine, mode, side == "a")
        total = lowering + paced(waves, memory, self.tiles, machine.units)
        spent = pairs * tables.cost
        shares = [float(spent[bins(tables.useful) == quarter].sum()) for quarter in range(4)]
        whole = sum(shares)
        return Evaluation(
            Cycles(issue, merge, overhead, compute, float(waves.sum()), memory, lowering, total), traffic, side,
            tuple(share / whole if whole else 0.0 for share in shares),  # type: ignore[arg-type]
        )  # fmt: skip

    def traffic(self, machine: Machine, x: Operand, w: Operand, im2col: str) -> Traffic:
        """Bytes moved: values and bitmaps of the non-zeros, or the dense operand if that is smaller."""
        size = machine.value_bytes
        lowered = _stored(x.lowered_nonzeros, x.lowered_elements, size)
        tensor = _stored(x.nonzeros, x.elements, size)
        explicit = im2col == "explicit" and self.lowers
        weights = _stored(w.nonzeros, w.elements, size)
        if machine.skips == "2:4 weights":
            weights = w.elements * (size / 2 + 1 / 8)
        return Traffic(
            lowered if explicit else tensor, weights, self.m * self.n * machine.output_bytes,
            tensor + lowered if explicit else 0.0,
        )  # fmt: skip

    def reference(
        self, machine: Machine, per_k: float, im2col: str, *, half_weights: bool = False
    ) -> tuple[float, float]:
        """Cycles without skipping, compute alone and in total, at ``per_k`` cycles for one k of a tile."""
        x, w = self.operands("dense")
        skips = replace(machine, skips="2:4 weights" if half_weights else "nothing")
        traffic = self.traffic(skips, x, w, im2col)
        waves = np.full(-(-self.tiles // machine.units), round(per_k * x.depth, 6))
        lowering = traffic.lowering / machine.bytes_per_cycle
        memory = traffic.product / machine.bytes_per_cycle
        compute = per_k * x.depth * self.tiles / machine.units
        return compute, lowering + paced(waves, memory, self.tiles, machine.units)

    def _joint(self, mode: str) -> NDArray[np.float64]:
        x, w = self.operands(mode)
        return joint(x.histogram, w.histogram)

    def _wave_cycles(self, machine: Machine, mode: str, swapped: bool) -> NDArray[np.float64]:
        """Cycles of the slowest tile of each wave; tiles in the order (32 pixels, 32 filters)."""
        x, w = self.operands(mode)
        left, right = (
            np.full((one.depth, 1), POSITIONS, np.uint8) if one.counts is None else one.counts for one in (x, w)
        )
        cycles = np.broadcast_to(tile_cycles(left, right, machine, swapped), (x.tiles, w.tiles))
        return wave_maxima(cycles.ravel(), machine.units)


def wave_maxima(cycles: NDArray[np.float64], units: int) -> NDArray[np.float64]:
    """The slowest tile of each wave of ``units`` tiles."""
    return np.maximum.reduceat(cycles, np.arange(0, len(cycles), units))


def paced(waves: NDArray[np.float64], memory: float, tiles: int, units: int) -> float:
    """Cycles when every wave waits for its slowest tile and for its share of ``memory`` cycles."""
    shares = np.full(len(waves), units * memory / tiles)
    shares[-1] = memory - shares[:-1].sum()
    return float(np.maximum(waves, shares).sum())


def dense_core(machine: Machine) -> Machine:
    """The inner-product core of the same device."""
    return replace(machine, name="dense", skips="nothing")


def checked(mode: str, im2col: str, side: str) -> None:
    """Raise InvalidInput for an unknown mode, lowering or side of the weights."""
    for name, value, allowed in (("mode", mode, MODES), ("im2col", im2col, IM2COL), ("weights_side", side, SIDES)):
        if value not in allowed:
            raise InvalidInput(f"{name} {value!r}: {did_you_mean(value, allowed)}")


def _stored(nonzeros: int, elements: int, size: float) -> float:
    """Bytes of values plus one bit for each element, or of the dense form if that is smaller."""
    return min(nonzeros * size + elements / 8, elements * size)

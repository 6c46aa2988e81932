"""One layer on one unit: cycles by bound and speed-ups, always shown with their baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.sparse import machines
from subbyte.sparse.evaluate import Cycles, Evaluation, Product, Traffic
from subbyte.sparse.machines import Machine
from subbyte.sparse.operands import Operand, activations_of, weights_of
from subbyte.sparse.shapes import Shape, lowers, shape_of, sizes

BASELINES = {
    "same_unit": "the same unit in dense mode",
    "dense_core": "the dense inner-product core",
    "sparse24": "the same core with 2:4 weights",
}
"""The baselines of the speed-ups."""
BINS = ("0-25 %", "25-50 %", "50-75 %", "75-100 %")


@dataclass(frozen=True)
class Speedups:
    """How many times as fast; above 1 is faster, None if no cycles are left. Never quote one without the others."""

    same_unit: float | None
    """Over the same unit without skipping; 1 if nothing is zero."""
    dense_core: float | None
    """Over the inner-product core with as many multipliers; 0.88 for dense operands on ``dstc``."""
    sparse24: float | None
    """Over that core with weights pruned to 2:4, at its nominal rate of two."""


@dataclass(frozen=True)
class OperandSummary:
    """Where one operand's zeros come from, and how many there are."""

    source: str
    density: float
    """Non-zeros over elements of the tensor."""
    lowered_density: float
    """The same for the matrix that is multiplied: padding has no values."""


@dataclass(frozen=True)
class Simulation(InfoRecord):
    """One layer on one unit, in the unit's own cycles. A model: nothing here was measured on hardware."""

    workload: str
    shape: tuple[int, int, int]
    """M, N, K: output pixels, filters, depth."""
    machine: Machine
    mode: str
    im2col: str
    weights_side: str
    """``a``: skipped in groups of 8, ``b``: skipped in groups of 16."""
    activations: OperandSummary
    weights: OperandSummary
    tiles: int
    """Warp tiles of the result, 32 x 32."""
    cycles: Cycles
    bound: str
    """What takes most of the time: issue, merge or memory."""
    speedup: Speedups
    """In total: memory, waves and lowering included."""
    compute_speedup: Speedups
    """Compute alone: what papers quote."""
    imbalance: float
    """Cycles of the waves over cycles of compute: 1 means balanced."""
    utilisation: tuple[float, float, float, float]
    """Share of compute cycles in which 0-25, 25-50, 50-75, 75-100 % of the multipliers do useful work."""
    bytes: Traffic
    notes: tuple[str, ...]

    def title(self) -> str:
        """One line: the layer, the unit and both speed-ups."""
        return (
            f"{self.workload} on {self.machine.name}, {self.mode}, im2col {self.im2col}: {self.cycles.total:,.0f} "
            f"cycles (model), {_times(self.speedup.same_unit)} times the same unit dense, "
            f"{_times(self.speedup.dense_core)} times the dense core"
        )

    def table(self) -> Table:
        """Cycles by bound."""
        return Table(("cycles of", "cycles"), tuple((name, round(value)) for name, value in vars(self.cycles).items()))

    def text(self) -> str:
        """All fields, with their sources."""
        sides = {"a": "A, skipped by 8", "b": "B, skipped by 16"}
        lines = [self.title(), ""]
        for name, one in (("activations", self.activations), ("weights", self.weights)):
            lines.append(f"{name}: {one.source}; density {one.density:.3f}, as multiplied {one.lowered_density:.3f}")
        lines += [f"weights stand on {sides[self.weights_side]}; {self.tiles:,} warp tiles; bound: {self.bound}", ""]
        rows = tuple(
            (text, _times(getattr(self.compute_speedup, key)), _times(getattr(self.speedup, key)))
            for key, text in BASELINES.items()
        )
        lines += [columns_text(Table(("speed-up over", "compute alone", "in total"), rows)), ""]
        lines += [columns_text(self.table()), ""]
        use = ", ".join(f"{name}: {share:.0%}" for name, share in zip(BINS, self.utilisation, strict=True))
        lines += [f"cycles by useful multipliers: {use}", f"imbalance {self.imbalance:.3f}"]
        moved = ", ".join(f"{name} {value:,.0f}" for name, value in vars(self.bytes).items())
        return "\n".join([*lines, f"bytes: {moved}", *self.notes])


def simulate(
    workload: str | Shape, *, activations: Any = 1.0, weights: Any = 1.0, mode: str = "dual",
    im2col: str = "implicit", machine: str | Machine = "dstc", weights_side: str = "auto", seed: int = 0,
) -> Simulation:  # fmt: skip
    """Simulate one layer: ``resnet50.stage2@8``, ``gemm4096``, ``bert.ffn1@8``, or a workload.

    ``activations`` and ``weights``: a density 0 to 1, a source such as ``runs:0.4``, ``2:4`` or ``photos`` (see
    :mod:`subbyte.sparse.patterns`), or an array, mask or values, in the tensor's shape. ``mode``: whose zeros are
    skipped, ``dual``, ``weight``, ``activation`` or ``dense``. ``weights_side``: ``a``, ``b`` or ``auto``, whichever
    takes fewer cycles. An operand without zeros is processed dense, padding included. The result is a model in cycles
    of the unit; no GPU has it. Raises InvalidInput with the allowed values, and for layers too large with the size that
    fits.
    """
    unit = machines.machine(machine)
    product, shape = product_of(workload, activations, weights, seed)
    return summarize(product, shape, unit, mode, im2col, weights_side)


def product_of(workload: str | Shape, activations: Any, weights: Any, seed: int = 0) -> tuple[Product, Shape]:
    """The operands of one layer, counted."""
    shape = shape_of(workload)
    m, n, _ = sizes(shape)
    both = activations_of(shape, activations, seed), weights_of(shape, weights, seed)
    product = Product(*both, m, n, lowers(shape))
    return product, shape


def summarize(product: Product, shape: Shape, unit: Machine, mode: str, im2col: str, weights_side: str) -> Simulation:
    """One mode of a product as a record."""
    one = product.evaluate(unit, mode, im2col, weights_side)
    x, w = product.operands(mode)
    notes = []
    if x.counts is None and mode in ("activation", "dual") and shape.pad:
        notes.append("activations without zeros are processed dense: padding is multiplied too")
    return Simulation(
        workload=shape.label, shape=sizes(shape), machine=unit, mode=mode, im2col=im2col,
        weights_side=one.weights_side, activations=_summary(x), weights=_summary(w), tiles=product.tiles,
        cycles=one.cycles, bound=bound_of(one), speedup=speedups(product, one, unit, im2col),
        compute_speedup=speedups(product, one, unit, im2col, compute=True),
        imbalance=one.cycles.waves / one.cycles.compute if one.cycles.compute else 1.0,
        utilisation=one.utilisation, bytes=one.traffic, notes=tuple(notes),
    )  # fmt: skip


def speedups(product: Product, one: Evaluation, unit: Machine, im2col: str, *, compute: bool = False) -> Speedups:
    """Speed-ups over the three baselines, in total or for the compute alone."""
    own = one.cycles.compute if compute else one.cycles.total
    values = references(product, unit, im2col, compute=compute)
    return Speedups(*(value / own if own else None for value in values))


def references(product: Product, unit: Machine, im2col: str, *, compute: bool = False) -> tuple[float, float, float]:
    """Cycles of the three baselines, in total or for the compute alone."""
    part = 0 if compute else 1
    return (
        product.reference(unit, unit.dense_k, im2col)[part],
        product.reference(unit, unit.inner_k, im2col)[part],
        product.reference(unit, unit.inner_k / 2, im2col, half_weights=True)[part],
    )


def bound_of(one: Evaluation) -> str:
    """issue, merge or memory: whichever takes most of the time."""
    cycles = one.cycles
    if cycles.memory + cycles.lowering > cycles.waves:
        return "memory"
    return "merge" if cycles.merge > cycles.issue else "issue"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _summary(operand: Operand) -> OperandSummary:
    lowered = operand.lowered_nonzeros / operand.lowered_elements
    return OperandSummary(operand.label, operand.density, lowered)

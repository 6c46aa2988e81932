"""Batch normalization and rounding folded into integer thresholds, as an info record."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.numerics.reference import accumulator_bound
from subbyte.numerics.requant import product_moments
from subbyte.numerics.thresholds import ALWAYS, NEVER, Thresholds
from subbyte.numerics.values import encode
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named


@dataclass(frozen=True)
class SumRange:
    """The sums from ``least`` to ``most`` that give one value of the output type, and its code."""

    value: int
    code: int
    least: int
    most: int


@dataclass(frozen=True)
class Folding(InfoRecord):
    """Batch normalization and rounding of one channel as thresholds (:class:`subbyte.Thresholds`).

    ``levels`` and ``flip`` are the channel's; ``always`` and ``never`` are the levels that every sum passes and that
    none does. ``ranges`` are in the order of the sums, from ``least`` to ``most`` of the workload. ``needs`` are the
    normalized numbers at which a sum passes: halfway between two values of the output.
    """

    workload: ConvWorkload
    output: str
    gamma: float
    beta: float
    mean: float
    variance: float
    eps: float
    step: float
    levels: tuple[int, ...]
    flip: bool
    least: int
    most: int
    ranges: tuple[SumRange, ...]
    needs: tuple[float, ...]
    always: int = ALWAYS
    never: int = NEVER

    def normalized(self, total: float) -> float:
        """The result of batch normalization for a sum."""
        return self.gamma * (total - self.mean) / sqrt(self.variance + self.eps) + self.beta

    def title(self) -> str:
        """The normalization."""
        mean = f"{'+' if self.mean < 0 else '-'} {abs(self.mean):g}"
        normalized = f"{self.gamma:g} (sum {mean}) / sqrt({self.variance:g} + {self.eps:g}) + {self.beta:g}"
        return f"{self.workload.label}: {normalized}, to {self.output} in steps of {self.step:g}"

    def table(self) -> Table:
        """One row per value that some sum gives."""
        return Table(
            ("sums from", "to", "value", "code"),
            tuple((one.least, one.most, one.value, one.code) for one in self.ranges),
        )

    def text(self) -> str:
        """The thresholds, then the values they give."""
        said = {ALWAYS: "always", NEVER: "never"}
        levels = ", ".join(said.get(level, str(level)) for level in self.levels)
        rule = "sum >= level, turned over (gamma < 0)" if self.flip else "sum >= level"
        return "\n".join([self.title(), "", f"levels: {levels}", f"passed: {rule}", "", columns_text(self.table())])


@checked
def folding(
    workload: ConvWorkload | str, gamma: float = 1.0, beta: float = 0.0, mean: float | None = None,
    variance: float | None = None, eps: float = 1e-5, step: float = 1.0,
) -> Folding:  # fmt: skip
    """The thresholds of one channel of a workload; mean and variance default to those of random sums.

    Raises InvalidInput for numbers that no batch normalization can have.
    """
    wl = workload_named(workload)
    average, spread = (
        wl.r * wl.s * wl.c * part for part in product_moments(wl.precision.weights, wl.precision.activations)
    )
    mean, variance = average if mean is None else mean, spread if variance is None else variance
    found = Thresholds.from_batch_norm(
        [gamma], [beta], [mean], [variance], eps=eps, step=step, output=wl.precision.output
    )
    bound = accumulator_bound(wl)
    if bound >= NEVER:
        raise InvalidInput(f"workload {wl}: sums up to {bound} do not fit 32 bits; use fewer channels")
    levels = found.levels[:, 0].tolist()
    starts = sorted({-bound, *(level for level in levels if -bound < level <= bound)})
    values = found.apply(np.array(starts, np.int32)[:, None])[:, 0]
    codes = encode(values, found.output).tolist()
    ends = [*(start - 1 for start in starts[1:]), bound]
    ranges = tuple(map(SumRange, values.tolist(), codes, starts, ends))
    return Folding(
        wl, found.output.name, float(gamma), float(beta), float(mean), float(variance), float(eps), float(step),
        tuple(levels), bool(found.flip[0]), -bound, bound, ranges,
        tuple(step * (low + high) / 2 for low, high in pairwise(sorted(found.output.values))),
    )  # fmt: skip

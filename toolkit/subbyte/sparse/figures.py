"""Experiments of the paper and of third parties, recomputed from stored points, with the published number beside ours.

F1 is Figure 21, on which the model is calibrated; F10 is an independent check; F8, area and power, is quoted, not
modelled. F4 and F9 need a GPU and are not here. Every number is the model's, in cycles of a unit that no GPU has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from subbyte.errors import InvalidInput, did_you_mean
from subbyte.info_record import InfoRecord, Table, columns_text, plain
from subbyte.sparse.banks import bank_cycles
from subbyte.sparse.bitmap import POSITIONS, encode
from subbyte.sparse.cost import binomial, expected_cycles, expected_speedup
from subbyte.sparse.evaluate import IM2COL, MODES
from subbyte.sparse.machines import MACHINES, Machine
from subbyte.sparse.networks import network
from subbyte.sparse.product import count

_UNIT = MACHINES["dstc"]
NETWORKS = ("vgg16@1", "resnet18@1", "resnet50@1", "maskrcnn@1", "bert@1", "lstm@1")
"""Networks of F5."""


@cache
def published() -> Mapping[str, Any]:
    """The published numbers with their sources, from ``published.json`` beside this file."""
    stored: Mapping[str, Any] = json.loads((Path(__file__).parent / "published.json").read_text())
    return stored


@dataclass(frozen=True)
class Experiment(InfoRecord):
    """One experiment: a table, and the numbers derived from it."""

    name: str
    about: str
    source: str
    """Sources of the published numbers."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    values: Mapping[str, Any]
    published: Mapping[str, Any]
    """The paper's numbers, under the same names, if it has any."""

    def title(self) -> str:
        """One line: its name and subject."""
        return f"{self.name}: {self.about}"

    def table(self) -> Table:
        """The rows."""
        return Table(self.columns, self.rows)

    def text(self) -> str:
        """Table, our numbers and the published ones."""
        rows = tuple(tuple(f"{cell:.3f}" if isinstance(cell, float) else cell for cell in row) for row in self.rows)
        ours = Table(
            ("number", "here", "published"),
            tuple((name, _shown(value), _shown(self.published.get(name))) for name, value in self.values.items()),
        )
        parts = [self.title(), columns_text(Table(self.columns, rows))]
        if self.values:
            parts.append(columns_text(ours))
        return "\n\n".join([*parts, f"published: {self.source}"])


@dataclass(frozen=True)
class Figures(InfoRecord):
    """Several experiments, and the numbers that are only quoted."""

    experiments: tuple[Experiment, ...]
    quoted: Mapping[str, str]

    def title(self) -> str:
        """One line: which experiments."""
        return f"experiments {', '.join(one.name for one in self.experiments)} of the cycle model (no measurement)"

    def table(self) -> Table:
        """All numbers, ours beside the published ones."""
        rows = tuple(
            (one.name, name, _shown(value), _shown(one.published.get(name)))
            for one in self.experiments
            for name, value in one.values.items()
        )
        return Table(("experiment", "number", "here", "published"), rows)

    def text(self) -> str:
        """Every experiment."""
        return "\n\n".join([self.title(), *(one.text() for one in self.experiments)])

    def to_dict(self) -> dict[str, Any]:
        """Experiments by name, and the quoted numbers."""
        named = {one.name: plain(one) for one in self.experiments}
        return {"experiments": named, "quoted": dict(self.quoted)}


def figures(*names: str) -> Figures:
    """The experiments with these names (F1, F2, F3, F5, F6, F7, F8, F10), by default all. Raises InvalidInput."""
    asked = [str(name).strip().upper() for name in names] or list(_EXPERIMENTS)
    for name in asked:
        if name not in _EXPERIMENTS:
            if name in _MEASURED:
                raise InvalidInput(f"experiment {name} is measured on a GPU, not computed: {_MEASURED[name]}")
            raise InvalidInput(f"unknown experiment {name!r}: {did_you_mean(name, _EXPERIMENTS)}")
    return Figures(tuple(_EXPERIMENTS[name]() for name in asked), dict(published()["quoted"]))


def _f1() -> Experiment:
    stored = published()["figure21"]
    times = {(a, b): time for a, b, time in stored["points"]}
    wanted = {place: time / times[1.0, 1.0] for place, time in times.items()}
    points = [place for place in wanted if place != (1.0, 1.0)]

    def errors(unit: Machine, expected: Callable[[Machine, float, float], float] = expected_cycles) -> Any:
        dense = expected(unit, 1, 1)
        return np.array([expected(unit, *place) / dense / wanted[place] - 1 for place in points])

    ours = errors(_UNIT)
    rows = [(1.0, 1.0, 1.0, 1.0, 0.0)]
    rows += [
        (*place, wanted[place] * (1 + error), wanted[place], error) for place, error in zip(points, ours, strict=True)
    ]
    # Leave one out: the constant per k fitted to the other points, over the grid 0, 0.05, ... 0.95.
    grid = np.abs([errors(_UNIT.but(per_k=round(0.05 * step, 2))) for step in range(20)])
    left_out = [grid[np.delete(grid, i, 1).mean(1).argmin(), i] for i in range(len(points))]
    free = _UNIT.but(accumulator_words=1e9, per_k=0.0)
    others = {
        "issue_only": errors(free),
        "swapped_groups": errors(free.but(group_a=16, group_b=8)),
        "banks_8x16_window_32": errors(_UNIT, lambda unit, a, b: bank_cycles(unit, a, b).cycles),
    }
    values = {
        "mean_error": float(np.abs(ours).mean()), "worst_error": float(np.abs(ours).max()),
        "leave_one_out_mean_error": float(np.mean(left_out)), "leave_one_out_worst_error": float(np.max(left_out)),
        **{f"{name}_mean_error": float(np.abs(error).mean()) for name, error in others.items()},
        **{f"{name}_worst_error": float(np.abs(error).max()) for name, error in others.items()},
        "dense_over_dense_core": _UNIT.inner_k / _UNIT.dense_k,
    }  # fmt: skip
    about = (
        "Figure 21, SpGEMM of 4096: time relative to dense, on which the model is calibrated (2 parameters, 10 points)"
    )
    heads = ("A density", "B density", "model", "digitised", "error")
    return Experiment("F1", about, stored["source"], heads, tuple(rows), values, {})


def _f2() -> Experiment:
    stored = published()["levels"]

    def issued(a: int, b: int) -> int:
        """OHMMA of one k with a and b non-zeros, counted by the function itself."""
        left, right = np.zeros((POSITIONS, 1), np.int8), np.zeros((1, POSITIONS), np.int8)
        left[:a], right[:, :b] = 1, 1
        return count(encode(left, "columns"), encode(right, "rows")).ohmma

    rows = tuple(
        (n, issued(n, 32), issued(32, n), 8 / max(issued(n, 32), 1), 8 / max(issued(32, n), 1))
        for n in range(1, POSITIONS + 1)
    )
    steps = {
        f"steps_{side}": [n for (n, *now), (_, *then) in pairwise(rows) if now[at] != then[at]]
        for at, side in enumerate("ab")
    }
    values = {**steps, "skipped_of_8_at_24_by_16": 8 - issued(24, 16)}
    heads = ("non-zeros of 32", "OHMMA (A)", "OHMMA (B)", "times fewer (A)", "times fewer (B)")
    about = "levels of one outer product: only whole groups of 8 (A) or 16 (B) condensed values are saved"
    given = {"steps_a": stored["a"], "steps_b": stored["b"], "skipped_of_8_at_24_by_16": 5}
    return Experiment("F2", about, stored["source"], heads, rows, values, given)


def _f3() -> Experiment:
    stored = published()["crossover"]
    over = _UNIT.inner_k / _UNIT.dense_k
    rows = []
    for percent in (0, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95):
        density = 1 - percent / 100
        own = expected_speedup(_UNIT, density, density)
        rows.append((percent, own, own * over, 1 / max(density**2, 1e-9)))
    values = {
        "speedup_at_10_percent": expected_speedup(_UNIT, 0.9, 0.9),
        "speedup_at_10_percent_dense_core": expected_speedup(_UNIT, 0.9, 0.9) * over,
        "speedup_at_25_percent": expected_speedup(_UNIT, 0.75, 0.75),
        "speedup_at_25_percent_dense_core": expected_speedup(_UNIT, 0.75, 0.75) * over,
        "breakeven_sparsity_dense_core": 1 - _crossing(lambda d: expected_speedup(_UNIT, d, d) * over, 1.0),
    }  # fmt: skip
    given = {"breakeven_sparsity_dense_core": stored["sparsity"]}
    heads = ("% zeros on both sides", "over same unit dense", "over dense core", "if every zero were skipped")
    about = "from which sparsity it pays, both sides equally sparse, i.i.d., compute alone"
    return Experiment("F3", about, stored["source"], heads, tuple(rows), values, given)


def _f5() -> Experiment:
    rows: list[tuple[Any, ...]] = []
    values: dict[str, float] = {}
    for name in NETWORKS:
        found = network(name)
        for way in IM2COL:
            for layer in found.layers:
                own = [layer.cycles[mode][way] for mode in MODES]
                rows.append((name, layer.name.partition("@")[0], way, *_speedups(own, layer.dense_core[way]),
                             layer.sparse24[way] / own[-1]))  # fmt: skip
            totals = [found.total(mode, way) for mode in MODES]
            core = found.speedup("dual", way, "dense_core") * totals[-1]
            rows.append((name, "all", way, *_speedups(totals, core), found.speedup("dual", way, "sparse24")))
        single = min(found.total("weight"), found.total("activation"))
        values |= {
            f"{name}_dual": found.speedup("dual"),
            f"{name}_dual_dense_core": found.speedup("dual", over="dense_core"),
            f"{name}_dual_over_single": single / found.total("dual"),
            f"{name}_explicit_over_implicit": found.total("dual", "explicit") / found.total("dual"),
        }
    over = [f"{mode} over {base}" for base in ("same unit", "dense core") for mode in MODES[1:]]
    heads = ("network", "layer", "im2col", *over, "dual over 2:4")
    about = "layers and whole networks; i.i.d. zeros of assumed densities (synthetic), memory included"
    source = "Wang et al. 2021: dual beats single beats dense; their densities are not published in numbers"
    return Experiment("F5", about, source, heads, tuple(rows), values, {})


def _speedups(cycles: list[float], core: float) -> list[float]:
    """Speed-ups of all modes but the first, dense: over the same unit dense, then over the dense core."""
    return [base / own for base in (cycles[0], core) for own in cycles[1:]]


def _f6() -> Experiment:
    rows = []
    for density in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        alone, collected = (bank_cycles(_UNIT, density, density, window) for window in (1, 32))
        rows.append((density, alone.conflicts, collected.conflicts, alone.cycles, collected.cycles))
    conflicts = [row[1] for row in rows]
    values = {
        "peak_density_without_collector": rows[int(np.argmax(conflicts))][0],
        "conflicts_at_peak": max(conflicts),
        "conflicts_at_density_1": conflicts[-1],
        "conflicts_at_peak_with_collector": max(row[2] for row in rows),
    }
    heads = ("density of both", "waits for each OHMMA", "with collector of 32", "cycles a k", "with collector")
    about = "bank conflicts of the merge; 8 x 16 banks are assumed, a collector merges 32 OHMMA"
    source = "Wang et al. 2021 has a collector against conflicts; banks and window are not published"
    return Experiment("F6", about, source, heads, tuple(rows), values, {})


def _f7() -> Experiment:
    over = _UNIT.inner_k / _UNIT.dense_k

    def speed(activations: float, weights: float) -> float:
        """Speed-up over the dense core, with the weights on the cheaper side."""
        return over * max(expected_speedup(_UNIT, activations, weights, swapped) for swapped in (False, True))

    rows, values = [], {}
    for activations in (1.0, 0.7, 0.5, 0.45, 0.3):
        half, quarter = (_crossing(partial(speed, activations), wanted) for wanted in (2.0, 4.0))
        core = [speed(activations, weights) for weights in (0.5, 0.25)]
        rows.append((activations, half, quarter, *core, *(one / over for one in core)))
        values[f"beats_2:4_below_weight_density_at_activations_{activations:g}"] = half
        values[f"beats_75_percent_vectors_below_weight_density_at_activations_{activations:g}"] = quarter
    heads = (
        "activations",
        "weights to beat 2:4",
        "weights to beat 75 % vector-wise",
        "over dense core at weights 0.5",
        "at 0.25",
        "over same unit at weights 0.5",
        "at 0.25",
    )
    about = (
        "against fixed 2:4 (2 times the dense core) and 75 % vector-wise pruning (4 times), both at their nominal rates"
    )
    source = "the rates of the two baselines are nominal, in their favour; the paper's own figures are not available"
    return Experiment("F7", about, source, heads, tuple(rows), values, {})


def _f8() -> Experiment:
    quoted = published()["quoted"]
    about = "overhead and third-party speed: quoted, not modelled here"
    source = "as named in each row"
    return Experiment("F8", about, source, ("what, by whom", "published"), tuple(quoted.items()), {}, {})


def _f10() -> Experiment:
    stored = published()["utilisation"]
    n = np.arange(17.0)
    rows = []
    for sparse_a in stored["sparsities_a"]:
        for sparse_b in stored["sparsities_b"]:
            a, b = binomial(1 - sparse_a, 16), binomial(1 - sparse_b, 16)
            products = (a @ n) * (b @ n)
            steps = float(a @ np.outer(np.ceil(n / 8), np.ceil(n / 16)) @ b)
            used, dense = products / (128 * steps), (1 - sparse_a) * (1 - sparse_b)
            rows.append((1 - sparse_a, 1 - sparse_b, float(used), dense, float(used / dense)))
    wanted = stored["over_dense_core"] / stored["over_dstc"]
    ratios = np.array([row[4] for row in rows])
    values = {
        "dstc_over_dense_core": float(ratios.mean()),
        "geometric_mean": float(np.exp(np.log(ratios).mean())),
        "ratio_of_means": float(np.mean([row[2] for row in rows]) / np.mean([row[3] for row in rows])),
    }
    heads = ("A density", "B density", "utilisation", "dense core", "ratio")
    about = "independent check: utilisation on random 16 x 16 x 16 tasks, mean ratio to the dense core"
    return Experiment("F10", about, stored["source"], heads, tuple(rows), values, {"dstc_over_dense_core": wanted})


def _crossing(speed: Callable[[float], float], wanted: float) -> float:
    """The density up to which ``speed``, which decreases with it, reaches ``wanted``; 0 if it never does."""
    low, high = 0.0, 1.0
    if speed(high) >= wanted:
        return high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if speed(middle) >= wanted else (low, middle)
    return low


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return "-" if value is None else str(value)


_EXPERIMENTS: dict[str, Callable[[], Experiment]] = {
    "F1": _f1, "F2": _f2, "F3": _f3, "F5": _f5, "F6": _f6, "F7": _f7, "F8": _f8, "F10": _f10,
}  # fmt: skip
EXPERIMENTS = tuple(_EXPERIMENTS)
"""Names of the experiments."""
_MEASURED = {
    "F4": "`python benchmarks/sparse im2col` measures it, subbyte.sparse.read_lowering(FILE) reads the record",
    "F9": "`python benchmarks/sparse measure`, `compact` and `bench --densities` measure it, "
          "subbyte.sparse.read_software(FILE, ...) reads the records",
}  # fmt: skip
"""What kernels on a GPU do, and the sources for it."""

"""What software on existing GPUs gains from zeros, from the records of ``benchmarks/sparse``: one function reads all of
them and finds the density from which each path pays off."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.info_record import InfoRecord, Table
from subbyte.sparse.bars import MeasuredLayer
from subbyte.sparse.cost import expected_cycles
from subbyte.sparse.figures import Experiment
from subbyte.sparse.machines import machine
from subbyte.sparse.maps import BreakEven

PATHS = {
    "compact": "dead channels removed, a smaller dense layer",
    "2:4": "two of four weights, wgmma.sp",
    "blocks": "blocks of dead weights skipped from a list",
    "condense": "zeros anywhere on both sides, live positions gathered",
}
"""Software paths that gain from zeros."""


@dataclass(frozen=True)
class SoftwareGain:
    """One layer on one path: dense time divided by the path's time, measured in turns in one process."""

    layer: str
    path: str
    activations: float
    """Density of the activations that the path exploits; 1 if it only exploits the weights'."""
    weights: float
    speedup: float
    source: str


@dataclass(frozen=True)
class Software(InfoRecord):
    """Gains of several records."""

    gains: tuple[SoftwareGain, ...]

    def of_path(self, path: str) -> tuple[SoftwareGain, ...]:
        """The gains of one path."""
        return tuple(one for one in self.gains if one.path == path)

    def break_even(self, path: str, layer: str) -> float | None:
        """The density of the weights below which a path is faster than dense on a layer: where the speed-up is 1,
        interpolated linearly in logarithms between two measured densities. None if it does not cross 1 between any
        two."""
        points = sorted((one.weights, one.speedup) for one in self.of_path(path) if one.layer == layer)
        for (low, above), (high, below) in pairwise(points):
            if above >= 1 > below:
                return exp(log(low) + log(above) / log(above / below) * log(high / low))
        return None

    def break_evens(self) -> tuple[BreakEven, ...]:
        """The line of each path that breaks even on some layer, for a :func:`subbyte.sparse.speed_map`: the median over
        its layers; for all densities of the activations if the path does not exploit them."""
        found = []
        for path in PATHS:
            own = self.of_path(path)
            layers = {one.layer: self.break_even(path, one.layer) for one in own}
            densities = [density for density in layers.values() if density is not None]
            if not densities:
                continue
            middle = median(densities)
            points = (
                ((1.0, middle), (0.02, middle)) if all(one.activations == 1 for one in own) else ((middle, middle),)
            )
            found.append(BreakEven(path, points, ", ".join(dict.fromkeys(one.source for one in own))))
        return tuple(found)

    @property
    def densities(self) -> tuple[float, ...]:
        """The densities of the weights, ascending, without 0."""
        return tuple(sorted({one.weights for one in self.gains if one.weights > 0}))

    def medians(self, path: str) -> tuple[tuple[float, float], ...]:
        """Densities of the weights and the median gain of a path's layers, where all of them were measured."""
        gains = {at: [one.speedup for one in self.of_path(path) if one.weights == at] for at in self.densities}
        most = max(map(len, gains.values()), default=0)
        return tuple((at, median(several)) for at, several in gains.items() if several and len(several) == most)

    def model(self, both: bool) -> tuple[tuple[float, float], ...]:
        """For the same densities, the gain of the hypothetical unit over its dense core: from the zeros of the weights
        or of both operands, compute alone."""
        unit = machine("dstc")
        return tuple(
            (
                at,
                unit.inner_k
                / min(expected_cycles(unit, at if both else 1.0, at, swapped) for swapped in (False, True)),
            )
            for at in self.densities
        )

    def machines(self) -> tuple[str, ...]:
        """The GPUs that were measured."""
        return tuple(dict.fromkeys(one.source.partition(", ")[2] for one in self.gains))

    def bars(self, prefix: str = "") -> tuple[MeasuredLayer, ...]:
        """The gains at half of the weights as measurements for :func:`subbyte.sparse.layer_bars`, for the layers whose
        names start with ``prefix``."""
        kept = (one for one in self.gains if 0.5 <= one.weights <= 0.5625 and one.layer.startswith(prefix))
        return tuple(MeasuredLayer(one.layer, one.path, one.speedup, one.source) for one in kept)

    def title(self) -> str:
        """One line: how many gains, and of what."""
        return f"{len(self.gains)} gains of {len({one.layer for one in self.gains})} layers, measured"

    def table(self) -> Table:
        """One row for each layer on each path, denser weights first."""
        place = {path: number for number, path in enumerate(PATHS)}
        order = sorted(self.gains, key=lambda one: (place.get(one.path, len(place)), one.layer, -one.weights))
        rows = tuple((one.path, one.layer, one.activations, one.weights, one.speedup) for one in order)
        return Table(("path", "layer", "activations", "weights", "over dense"), rows)


def read_software(*paths: str | os.PathLike[str]) -> Software:
    """The gains in records of ``benchmarks/sparse``: ``measure`` (2:4 and blocks), ``compact`` and ``densities``.

    For each layer and density, the fastest correct kernel counts, compared with the dense one in the same process.
    Raises InvalidInput if there is no file, BrokenRecord if it is something else.
    """
    found: dict[tuple[str, str, float], SoftwareGain] = {}
    for path in paths:
        try:
            stored = json.loads(Path(path).read_text(encoding="utf-8"))
            gains = list(_reader(stored)(stored, Path(path).name))
        except OSError as error:
            raise InvalidInput(f"{path}: {error.strerror}; give records of `benchmarks/sparse`") from None
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, ZeroDivisionError):
            raise BrokenRecord(f"{path}: no record of `benchmarks/sparse`, or a damaged one") from None
        for one in gains:
            key = one.path, one.layer, one.weights
            if key not in found or found[key].speedup < one.speedup:
                found[key] = one
    return Software(tuple(found.values()))


def _reader(stored: Mapping[str, Any]) -> Callable[[Mapping[str, Any], str], Iterator[SoftwareGain]]:
    if stored.get("format") == "subbyte-compact":
        return _compact
    return _densities if stored.get("kind") == "densities" else _measured


def _measured(stored: Mapping[str, Any], name: str) -> Iterator[SoftwareGain]:
    """Gains in a record of ``measure``: rounds of dense and sparse kernels. Blocks are named in the cell with their
    percentage."""
    where = f"{name}, {stored['gpus'][0]['name']}"
    wrong = {(one["cell"], one["config"]) for one in stored["kernels"] if one["wrong"] != 0 or one.get("refused")}
    for one in stored["rounds"]:
        if one["dense"] or (one["cell"], one["config"]) in wrong:
            continue
        layer, _, types = one["cell"].partition(":")
        percent = types.partition("-blocks")[2].partition(".")[0]
        path, weights = ("blocks", int(percent) / 100) if percent else ("2:4", 0.5)
        yield SoftwareGain(layer, path, 1.0, weights, float(one["ratio"]), where)


def _compact(stored: Mapping[str, Any], name: str) -> Iterator[SoftwareGain]:
    """Gains in a record of ``compact``: a share of the channels on both sides of a layer, so that its square is
    left."""
    where = f"{name}, {stored['gpu']['name']}"
    for cell in stored["cells"]:
        ratios: dict[float, list[float]] = {}
        for run in cell["runs"]:
            samples = {one["kept"]: one["samples"] for one in run["sides"]}
            for kept in samples.keys() - {1.0}:
                pairs = zip(samples[1.0], samples[kept], strict=True)
                ratios.setdefault(kept, []).extend(whole / own for whole, own in pairs)
        for kept, several in ratios.items():
            yield SoftwareGain(cell["cell"], "compact", 1.0, kept * kept, median(several), where)


def _densities(stored: Mapping[str, Any], name: str) -> Iterator[SoftwareGain]:
    """Gains in a record of ``densities``: both operands have the same density; the fastest correct kernel that skips
    compared with the fastest that does not."""
    for record in stored["records"]:
        where = f"{name}, {record['device']['name']}"
        for row in record["rows"]:
            right = {key: side for key, side in row["sides"].items() if side["wrong"] == 0}
            best = [min((right[key] for key in record[kind] if key in right), key=lambda side: side["microseconds"])
                    for kind in ("dense", "skipping")]  # fmt: skip
            ratio = median(a / b for a, b in zip(best[0]["samples"], best[1]["samples"], strict=True))
            yield SoftwareGain(record["workload"], "condense", row["density"], row["density"], ratio, where)


_LOWERINGS = ("bitmap", "csr_warp", "csr_thread")


def read_lowering(path: str | os.PathLike[str]) -> Experiment:
    """F4 from a record of ``benchmarks/sparse im2col``: by the share of zeros, the time of each lowering over that of
    dense bytes, as the median over the layers and the worst of any layer. Raises InvalidInput if there is no file,
    BrokenRecord if it is something else."""
    try:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
        times = {(one["cell"], one["sparsity"], one["kernel"]): float(one["microseconds"]) for one in stored["rows"]}
        cells = list(dict.fromkeys(cell for cell, _, _ in times))
        places = [(zeros, kernel) for zeros in sorted({zeros for _, zeros, _ in times}) for kernel in _LOWERINGS]
        over = {
            (zeros, kernel): [times[cell, zeros, kernel] / times[cell, zeros, "dense"] for cell in cells]
            for zeros, kernel in places
        }
        rows = tuple(
            (100 * zeros, *(median(found) for (own, _), found in over.items() if own == zeros))
            for zeros in dict.fromkeys(zeros for zeros, _ in over)
        )
        worst = {f"{kernel}_at_worst": max(max(found) for (_, own), found in over.items() if own == kernel)
                 for kernel in ("csr_thread", "bitmap")}  # fmt: skip
        about = f"lowering, median of {', '.join(cells)}, measured on {stored['gpu']['name']}"
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}; give a record of `benchmarks/sparse im2col`") from None
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError):
        raise BrokenRecord(f"{path}: no record of `benchmarks/sparse im2col`, or a damaged one") from None
    columns = ("% zeros", "bitmaps over dense", "CSR, a warp a row, over dense", "CSR, a thread a row, over dense")
    return Experiment("F4", about, "naive sparse im2col 10 to 100 times dense, Wang et al. 2021", columns, rows, worst,
                      {"csr_thread_at_worst": "10 to 100"})  # fmt: skip

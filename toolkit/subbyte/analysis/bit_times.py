"""Measured times of one-bit kernels for the papers' experiments: time by pairs of planes, and by the row stride of a
tile.

From records of ``benchmarks/bits papers`` (APNN-TC's sweep of precisions) and of ``subbyte bench strides`` (TCBNN's
tile loads).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from statistics import linear_regression
from typing import Any

import msgspec

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.info_record import InfoRecord, Table
from subbyte.records.reading import json_file, typed
from subbyte.records.shapes import Count, Name, Sample, Time
from subbyte.workload.precision import SUMS, Precision

EXPERIMENT = "A5"
INT4, INT8 = "int4", "cuBLAS int8"
SPACES = ("shared", "L1", "L2")


class Named(msgspec.Struct, frozen=True):
    """A GPU."""

    name: Name


class SideShape(msgspec.Struct, frozen=True):
    """A kernel at a point of the sweep."""

    experiment: Name
    point: Name
    side: Name
    layer: Name
    output: Name
    wrong: Count | None = None
    microseconds: Time | None = None
    second: Time | None = None


class PapersShape(msgspec.Struct, frozen=True):
    """A record of kernels and other sides."""

    device: Named
    date: Name
    sides: tuple[SideShape, ...]


class LoadShape(msgspec.Struct, frozen=True):
    """A load of a tile."""

    space: Name
    ldm: Count
    cycles: Sample


class StridesShape(msgspec.Struct, frozen=True):
    """A record of tile loads."""

    device: Named
    date: Name
    loads: tuple[LoadShape, ...]


@dataclass(frozen=True)
class PlaneTime:
    """The fastest exact kernel of a precision: pairs of planes, microseconds, and whether it outputs codes or sums."""

    precision: str
    pairs: int
    microseconds: float
    codes: bool


@dataclass(frozen=True)
class PlaneTimes(InfoRecord):
    """Times of a layer or product by pairs of planes; ``point`` is its name in the record; ``others`` has int4 and a
    library's int8, if they ran.

    ``line`` is microseconds at zero pairs and for each additional pair, by least squares over the kernels that output
    codes.
    """

    point: str
    layer: str
    device: str
    date: str
    rows: tuple[PlaneTime, ...]
    others: dict[str, float]
    line: tuple[float, float]

    def crossing(self, other: str) -> float:
        """Pairs of planes at which the line reaches another side's time. Raises InvalidInput for a side that did not
        run."""
        if other not in self.others:
            raise InvalidInput(f"{other!r} did not run at {self.point}: expected one of {', '.join(self.others)}")
        return (self.others[other] - self.line[0]) / self.line[1]

    def title(self) -> str:
        """What was measured, and where."""
        return f"{self.layer} on {self.device}: time by pairs of planes"

    def table(self) -> Table:
        """One row for each precision, then the other sides."""
        rows = [(one.precision, one.pairs, "codes" if one.codes else SUMS, one.microseconds) for one in self.rows]
        return Table(("precision", "p*q", "output", "us"), (*rows, *((name, "", "", us) for name, us in
                                                                     self.others.items())))  # fmt: skip


@dataclass(frozen=True)
class StrideTimes(InfoRecord):
    """Cycles to load 8 rows x 128 bits, by row stride in bits, for each memory the tile is loaded from."""

    device: str
    date: str
    cycles: dict[str, dict[int, float]]

    def title(self) -> str:
        """What was measured, and where."""
        return f"A tile's load on {self.device}: cycles by the distance of its rows"

    def table(self) -> Table:
        """One row for each stride."""
        distances = sorted({distance for one in self.cycles.values() for distance in one})
        rows = [(distance, *(one.get(distance) for one in self.cycles.values())) for distance in distances]
        return Table(("ldm", *self.cycles), tuple(rows))


def read_plane_times(path: str | os.PathLike[str]) -> tuple[PlaneTimes, ...]:
    """The points of the precision sweep in a record of ``benchmarks/bits papers``, each with the slower median of its
    fastest exact kernel. Raises InvalidInput (no such file, no such experiment), BrokenRecord."""
    record = _read(path, PapersShape)
    fastest: dict[tuple[str, str], tuple[float, str]] = {}
    for side in record.sides:
        if side.experiment == EXPERIMENT and side.wrong == 0 and side.microseconds and side.second:
            key, time = (side.point, side.side), max(side.microseconds, side.second)
            fastest[key] = min(fastest.get(key, (time, side.output)), (time, side.output))
    points = {one.point: one.layer.partition(":")[0] for one in record.sides if (one.point, one.side) in fastest}
    if not points:
        raise InvalidInput(f"{path}: no times by precision; give a record of `benchmarks/bits papers --only A5`")
    return tuple(_plane_times(point, layer, record, fastest) for point, layer in points.items())


def _plane_times(
    point: str, layer: str, record: PapersShape, fastest: dict[tuple[str, str], tuple[float, str]]
) -> PlaneTimes:
    """One point; ``layer`` is written without its types."""
    rows, others = [], {}
    for (of, side), (time, output) in fastest.items():
        if of == point and side in (INT4, INT8):
            others[side] = time
        elif of == point and "," not in side:
            types = Precision.of(side)
            rows.append(PlaneTime(side, types.weights.bits * types.activations.bits, time, output != SUMS))
    codes = [one for one in rows if one.codes]
    if len({one.pairs for one in codes}) < 2:
        raise BrokenRecord(f"{point}: fewer than two pairs of planes give codes; measure the experiment again")
    line = linear_regression([one.pairs for one in codes], [one.microseconds for one in codes])
    return PlaneTimes(point, layer, record.device.name, record.date, tuple(rows), others, (line.intercept, line.slope))


def read_stride_times(path: str | os.PathLike[str]) -> StrideTimes:
    """The loads of a record of ``subbyte bench strides``. Raises InvalidInput (no such file), BrokenRecord."""
    record = _read(path, StridesShape)
    cycles = {space: {one.ldm: one.cycles for one in record.loads if one.space == space} for space in SPACES}
    return StrideTimes(record.device.name, record.date, {space: found for space, found in cycles.items() if found})


def _read(path: str | os.PathLike[str], shape: Any) -> Any:
    return typed(json_file(path, "record"), shape, f"{path}: no record of these times, or a damaged one")

"""Measurements that are kept: side-by-side records, ablations, landscapes, found by workload and GPU."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec

import subbyte
from subbyte.analysis.ablation import Ablation, ablation
from subbyte.arguments import checked
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.families.registry import family_named, family_of_kind, usual
from subbyte.measure.sidebyside import Absence, Row
from subbyte.records.describe import config_at, workload_from_dict
from subbyte.records.landscape import Landscape, read_header
from subbyte.records.landscape_file import SUFFIX, read_file, shipped
from subbyte.records.landscape_space import fastest
from subbyte.records.reading import json_file, typed
from subbyte.records.shapes import Name
from subbyte.spaces.configuration import Configuration
from subbyte.technique.record import InfoRecord, Table
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse

_PACKAGE = Path(subbyte.__file__).resolve().parent
FOLDERS = (_PACKAGE / "results", _PACKAGE.parents[1] / "benchmarks" / "results")
"""Where the raw results are: in an installed package, in a checkout."""
BENCHMARK = "side by side with cuDNN"
OURS = "subbyte"
OPPONENTS = "subbyte-opponents"
"""Format of the records that ``benchmarks/baselines compare`` writes."""


_ADVICE = "`subbyte bench --out FILE` makes one"


class Gpu(msgspec.Struct, frozen=True):
    """Which GPU measured."""

    name: Name


class RecordShape(msgspec.Struct, frozen=True):
    """The fields of a record that are read."""

    gpu: Gpu
    date: Name
    rows: tuple[Row, ...]
    missing: tuple[Absence, ...] = ()


@dataclass(frozen=True)
class SideBySide(InfoRecord):
    """The same convolutions in this toolkit and in cuDNN, measured in one process (``subbyte bench``).

    ``name`` is the file, ``rows`` has one row for each workload and side, ``missing`` says what could not run.
    """

    name: str
    device: str
    date: str
    rows: tuple[Row, ...]
    missing: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Mapping[str, Any], name: str = "") -> SideBySide:
        """The record in the parsed output of ``subbyte bench --json``, or of ``benchmarks/baselines`` (layers only).

        Raises BrokenRecord.
        """
        source = name or "record"
        if not isinstance(data, Mapping):
            raise BrokenRecord(f"{source}: not a side-by-side record; `subbyte bench --out FILE` makes one")
        if data.get("format") == OPPONENTS:
            try:
                data = _as_rows(data)
            except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
                said = f"{error!r:.100} is missing or odd"
                raise BrokenRecord(f"{source}: not a side-by-side record ({said})") from None
        shape: RecordShape = typed(data, RecordShape, f"{source}: not a side-by-side record", _ADVICE)
        missing = tuple(f"{one.workload}, {one.side}: {one.reason}" for one in shape.missing)
        return cls(name, shape.gpu.name, shape.date[:10], shape.rows, missing)

    @classmethod
    def load(cls, path: Path | str) -> SideBySide:
        """The record in a file. Raises InvalidInput (no such file), BrokenRecord."""
        return cls.of(json_file(path, "side-by-side record"), Path(path).name)

    @property
    def workloads(self) -> tuple[str, ...]:
        """Specs of the convolutions, in the order measured."""
        return tuple(dict.fromkeys(row.spec for row in self.rows))

    def of_workload(self, spec: str) -> tuple[Row, ...]:
        """The rows of one convolution, the fastest first."""
        return tuple(sorted((row for row in self.rows if row.spec == spec), key=lambda row: row.microseconds))

    def of_workloads(self, *workloads: ConvWorkload | str) -> SideBySide:
        """The same record with these convolutions only. Raises InvalidInput for one that it does not contain."""
        specs = [parse(one).spec for one in workloads]
        for one, spec in zip(workloads, specs, strict=True):
            if spec not in self.workloads:
                held = len(self.workloads)
                raise InvalidInput(f"{one} is not in {self.name or 'this record'}, which holds {held} layers")
        return replace(self, rows=tuple(row for row in self.rows if row.spec in specs))

    def title(self) -> str:
        """What was measured, where and when."""
        sides = len(dict.fromkeys(row.side for row in self.rows))
        return f"{len(self.workloads)} convolutions on {sides} sides, {self.device}, {self.date}"

    def table(self) -> Table:
        """One row for each workload and side."""
        columns = ("workload", "side", "hot us", "cold us", "TOPS", "checked")
        rows = [(r.workload, r.side, r.microseconds, r.cold_microseconds, r.tops, r.verified) for r in self.rows]
        return Table(columns, tuple(rows))


def _as_rows(data: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a baseline record as rows, ours first in each cell."""
    rows, missing = [], [{"side": "all", **one} for one in data["missing"]]
    for cell in data["cells"]:
        common = {name: cell[name] for name in ("workload", "spec", "operations")}
        missing += [{"workload": cell["workload"], **one} for one in cell["missing"]]
        ours = [{**cell["ours"], "side": f"{OURS} int4", "output": "int4", "epilogue": data["our_epilogue"],
                 "plan": cell["ours"]["key"], "plans": cell["ours"]["tried"]}] if "ours" in cell else []  # fmt: skip
        rows += [
            {"output": "", "config": None, "verified": f"relative error {side.get('error', 0):.1e}",
             "tops": cell["operations"] / side["microseconds"] / 1e6, **common, **side, "share_of_peak": None,
             "samples": tuple(side["samples"]), "cold_samples": ()}
            for side in (*ours, *cell["opponents"])
        ]  # fmt: skip
    date = next((row["date"] for row in rows), "")
    return {"rows": rows, "missing": missing, "gpu": data["gpu"], "date": date}


def results_folder() -> Path | None:
    """The folder of the raw results; None if there is none."""
    return next((folder for folder in FOLDERS if folder.is_dir()), None)


@lru_cache(maxsize=1)
def side_by_sides() -> tuple[SideBySide, ...]:
    """Every kept side-by-side record, by file name; other files in the folder are skipped."""
    folder = results_folder()
    found = []
    files = [*sorted(folder.glob("*.json")), *sorted(folder.glob("baselines/side-by-side-*.json"))] if folder else []
    for path in files:
        data = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(data, dict) and (data.get("benchmark") == BENCHMARK or data.get("format") == OPPONENTS):
            found.append(SideBySide.of(data, path.name))
    return tuple(found)


@checked
@cache
def recorded_ablation(spec: str, device: str, family: str | None = None) -> Ablation | None:
    """What each technique contributes to a workload on a GPU, from the kept landscapes of one kernel family (default:
    the usual one); None without them. Raises InvalidInput for an unknown family."""
    folder = results_folder()
    name = usual().name if family is None else family_named(family).name
    fitting = _ablation_files(folder).get((spec, device, name), ()) if folder else ()
    try:
        return ablation(map(_as_recorded, fitting)) if fitting else None
    except InvalidInput:  # some combinations are still missing
        return None


def _as_recorded(path: Path) -> Landscape:
    """A landscape as it was recorded: its own times are compared, whatever today's constraints are."""
    header, results, _ = read_file(path)
    return Landscape(header, results, path.name.removesuffix(SUFFIX))


@lru_cache(maxsize=4)
def _ablation_files(folder: Path) -> dict[tuple[str, str, str], tuple[Path, ...]]:
    """The landscapes in folders called ``ablation``, by workload, GPU and family."""
    found: dict[tuple[str, str, str], tuple[Path, ...]] = {}
    for path in sorted(folder.glob(f"**/ablation/*{SUFFIX}")):
        spec, device, kind = _header_of(path)
        family = family_of_kind(kind)
        key = (spec, device, "" if family is None else family.name)
        found[key] = (*found.get(key, ()), path)
    return found


@dataclass(frozen=True)
class Fastest:
    """The fastest configuration of a recorded landscape that today's constraints allow, and its time."""

    landscape: str
    config: Configuration
    microseconds: float


def recorded_fastest(device: str, spec: str) -> Iterator[Fastest]:
    """The fastest configuration in each shipped landscape of a workload on a GPU."""
    for path in shipped().values():
        if _header_of(path)[:2] == (spec, device) and (found := _fastest(path)) is not None:
            yield found


@lru_cache(maxsize=32)
def _fastest(path: Path) -> Fastest | None:
    header, results, _ = read_file(path)
    found = fastest(header, results)
    if found is None:
        return None
    today, index, result = found
    return Fastest(path.name.removesuffix(SUFFIX), config_at(today["space"], index), result.microseconds)


@lru_cache(maxsize=4)
def landscape_workloads(device: str) -> tuple[ConvWorkload, ...]:
    """The workloads with a shipped landscape on a GPU; reads only the headers."""
    paths = [path for path in shipped().values() if _header_of(path)[1] == device]
    return tuple(workload_from_dict(read_header(path)["workload"]) for path in paths)


@lru_cache(maxsize=1024)
def _header_of(path: Path) -> tuple[str, str, str]:
    """Workload, GPU and kind of space of a landscape."""
    header = read_header(path)
    return str(header["workload"]["spec"]), str(header["device"].get("name")), str(header["space"]["kind"])

"""Landscapes: every valid configuration of a space, measured once and kept with its raw samples.

A file is gzip-compressed JSON lines: a header with the provenance, then one line per configuration in index order,
``{"index", "microseconds", "samples", "cold_microseconds", "verified", ...}`` or ``{"index", "kind", "reason"}``.
Configurations are not repeated in the lines; the header's knobs give the configuration of any index.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subbyte.charts import Charted
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.measure.result import Failed, Measured, Result, result_from_dict
from subbyte.schedule import ConvConfig
from subbyte.tune.describe import (
    SpaceLike,
    config_at,
    describe_space,
    describe_workload,
    to_line,
    workload_from_dict,
)
from subbyte.tune.landscape_file import (
    FORMAT,
    SUFFIX,
    default_name,
    entry_fields,
    locate,
    make_header,
    offer,
    parse_header,
    read_header,
    read_lines,
    shipped,
)
from subbyte.tune.table import frame, html_table, in_tops
from subbyte.workload import ConvWorkload

if TYPE_CHECKING:
    import pandas

__all__ = [
    "FORMAT",
    "SUFFIX",
    "Landscape",
    "LandscapeInfo",
    "default_name",
    "find_landscape",
    "landscape",
    "make_header",
    "read_header",
    "shipped",
]


@dataclass(frozen=True)
class LandscapeInfo:
    """Summary of a landscape. Times in microseconds, ``best_tops`` in 10^12 operations per second."""

    name: str
    workload: str
    spec: str
    arch: str
    kind: str
    size: int
    measured: int
    failed: dict[str, int]
    verified: int
    best_microseconds: float | None
    median_microseconds: float | None
    best_tops: float | None
    best_config: dict[str, Any] | None
    device: dict[str, Any]
    protocol: dict[str, Any]
    date: str

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def _repr_html_(self) -> str:
        return html_table([self.to_dict()], f"Landscape {self.name}")


@dataclass(frozen=True, eq=False)
class Landscape(Charted):
    """Results by configuration index, with the header they were recorded under."""

    header: Mapping[str, Any]
    results: Mapping[int, Result]
    name: str = field(default="")

    @classmethod
    def from_results(
        cls,
        space: SpaceLike,
        results: Mapping[int, Result],
        device: Mapping[str, Any],
        protocol: Mapping[str, Any] | None = None,
        command: str = "",
    ) -> Landscape:
        """A landscape of ``space``; ``device`` and ``protocol`` say what measured, and how."""
        header = make_header(describe_workload(space.workload), describe_space(space), device, protocol, command)
        return cls(header, dict(sorted(results.items())), default_name(header))

    @cached_property
    def workload(self) -> ConvWorkload:
        """The convolution that was measured."""
        return workload_from_dict(self.header["workload"])

    @property
    def arch(self) -> str:
        """Compilation target."""
        return str(self.header["space"]["arch"])

    @property
    def kind(self) -> str:
        """Kind of space, such as ``paper``."""
        return str(self.header["space"]["kind"])

    @property
    def space_hash(self) -> str:
        """Hash of the space at recording time."""
        return str(self.header["space"]["hash"])

    @property
    def device(self) -> dict[str, Any]:
        """The GPU that measured."""
        return dict(self.header["device"])

    def __len__(self) -> int:
        return len(self.results)

    def config(self, index: int) -> ConvConfig:
        """The configuration at ``index``."""
        return config_at(self.header["space"], index)

    @cached_property
    def by_config(self) -> dict[ConvConfig, int]:
        """Index of every recorded configuration."""
        return {self.config(index): index for index in self.results}

    @cached_property
    def best(self) -> tuple[int, Measured]:
        """Index and result of the fastest configuration. Raises InvalidInput when nothing was measured."""
        timed = [(result.microseconds, index) for index, result in self.results.items() if isinstance(result, Measured)]
        if not timed:
            raise InvalidInput(f"landscape {self.name}: every configuration failed, there is no best one")
        result = self.results[min(timed)[1]]
        assert isinstance(result, Measured)
        return min(timed)[1], result

    def fraction(self, microseconds: float) -> float:
        """``best / microseconds``: 1.0 for the fastest configuration of the landscape."""
        return self.best[1].microseconds / microseconds

    def info(self) -> LandscapeInfo:
        """Counts, best and median time, provenance."""
        times = [result.microseconds for result in self.results.values() if isinstance(result, Measured)]
        failed = Counter(result.kind for result in self.results.values() if isinstance(result, Failed))
        best = self.best if times else None
        return LandscapeInfo(
            name=self.name, workload=self.workload.label, spec=self.workload.spec, arch=self.arch, kind=self.kind,
            size=int(self.header["space"]["size"]), measured=len(times), failed=dict(failed),
            verified=sum(isinstance(result, Measured) and result.verified for result in self.results.values()),
            best_microseconds=best[1].microseconds if best else None,
            median_microseconds=statistics.median(times) if times else None,
            best_tops=in_tops(self.workload, best[1].microseconds) if best else None,
            best_config=self.config(best[0]).to_dict() if best else None,
            device=self.device, protocol=dict(self.header["protocol"]), date=str(self.header["created"]),
        )  # fmt: skip

    def rows(self) -> list[dict[str, Any]]:
        """One flat row per configuration: index, knobs, microseconds, cold, verified, failure and reason."""
        knobs = list(self.header["space"]["knobs"])
        rows = []
        for index, result in self.results.items():
            config = self.config(index).to_dict()
            row: dict[str, Any] = {"index": index, **{knob: config[knob] for knob in knobs}}
            timed = result if isinstance(result, Measured) else None
            row["microseconds"] = timed.microseconds if timed else None
            row["cold_microseconds"] = timed.cold_microseconds if timed else None
            row["verified"] = timed.verified if timed else None
            row["failure"] = result.kind if isinstance(result, Failed) else ""
            row["reason"] = result.reason if isinstance(result, Failed) else ""
            rows.append(row)
        return rows

    def to_frame(self) -> pandas.DataFrame:
        """``rows()`` as a pandas table, indexed by configuration index. Raises MissingDependency without pandas."""
        return frame(self.rows(), index="index")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file (the same content gives the same bytes) and return its path, which must end in .json.gz."""
        target = Path(path)
        if not target.name.endswith(SUFFIX):
            raise InvalidInput(f"landscape file {target}: the name must end in {SUFFIX}")
        header = {**self.header, "entries": len(self.results)}
        lines = [to_line(header), *(to_line(entry_fields(index, result)) for index, result in self.results.items())]
        partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
        partial.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), compresslevel=9, mtime=0))
        partial.replace(target)
        return target

    @classmethod
    def load(cls, name_or_path: str | os.PathLike[str]) -> Landscape:
        """The landscape in a file, or the shipped one of that name. Raises InvalidInput, BrokenRecord."""
        path = locate(name_or_path)
        lines = read_lines(path)
        header = parse_header(next(lines, ""), path)
        results: dict[int, Result] = {}
        for number, line in enumerate(lines, start=2):
            try:
                data = json.loads(line)
                index = data.pop("index")
                if index in results or not isinstance(index, int):
                    raise InvalidInput("an index repeats, or is no integer")
                results[index] = result_from_dict({"ok": "kind" not in data, **data})
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise BrokenRecord(f"{path}, line {number}: {error}; the file is damaged, fetch it again") from None
        if len(results) != header.get("entries", len(results)):
            raise BrokenRecord(f"{path}: {len(results)} of {header['entries']} configurations; the file was cut short")
        return cls(header, results, path.name.removesuffix(SUFFIX))

    def __repr__(self) -> str:
        return (
            f"Landscape({self.name!r}, {len(self)} configurations of {self.workload.label}, {self.device.get('name')})"
        )

    def _repr_html_(self) -> str:
        return self.info()._repr_html_()


def find_landscape(
    workload: ConvWorkload, arch: str | None = None, kind: str | None = None, fixed: Mapping[str, Any] | None = None
) -> str | None:
    """Name of the shipped landscape of ``workload`` (same sizes, whatever it is called), or None.

    ``fixed`` are switches the landscape must have been recorded with; those not named must be at their defaults.
    """
    wanted = ConvConfig().with_values(fixed or {}).to_dict()
    for name, path in shipped().items():
        header = read_header(path)
        space = header["space"]
        same = header["workload"]["spec"] == workload.spec
        same = same and all(wanted.get(key) == value for key, value in space["fixed"].items())
        if same and arch in (None, space["arch"]) and kind in (None, space["kind"]):
            return name
    return None


def landscape(which: str | os.PathLike[str] | ConvWorkload) -> Landscape:
    """A landscape by file, by shipped name, or by workload (an object or its name). Raises InvalidInput."""
    if isinstance(which, ConvWorkload):
        name = find_landscape(which)
        if name is None:
            raise InvalidInput(f"no landscape of {which.label} is shipped; {offer(which.label)}")
        return Landscape.load(name)
    return Landscape.load(which)

"""Landscapes: every valid configuration of a space, measured once and kept with its raw samples.

A file is gzip-compressed JSON lines: a header with the provenance, then one line per configuration in index order,
``{"index", "microseconds", "samples", "cold_microseconds", "verified", ...}``, ``{"index", "kind", "reason"}`` or
``{"index", "same_as"}`` (it compiled to the same machine code), then a line with the SHA-256 of all before.
Lines do not repeat the configurations; the header's knobs give the configuration of any index.
"""

from __future__ import annotations

import os
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subbyte.arguments import checked
from subbyte.charts import Charted
from subbyte.errors import InvalidInput
from subbyte.families.registry import families, family_of_kind, usual
from subbyte.records.checked import file_path, number
from subbyte.records.describe import (
    SpaceLike,
    config_at,
    describe_space,
    describe_workload,
    knob_values,
    workload_from_dict,
)
from subbyte.records.landscape_file import (
    FORMAT,
    SUFFIX,
    default_name,
    locate,
    make_header,
    offer,
    read_file,
    read_header,
    shipped,
    write_file,
)
from subbyte.records.landscape_space import fit, space_today
from subbyte.records.result import Failed, Measured, Result
from subbyte.records.table import frame, html_table, in_tops
from subbyte.spaces.configuration import Configuration
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
    """Summary of a landscape. Times in microseconds, ``best_tops`` in 10^12 operations per second.

    ``programs`` counts the distinct kernels among those measured. ``missing`` configurations are valid today but
    were not recorded, ``dropped`` ones were recorded but are rejected today; ``notice`` says so in a sentence.
    """

    name: str
    workload: str
    spec: str
    arch: str
    kind: str
    size: int
    measured: int
    failed: dict[str, int]
    verified: int
    programs: int
    missing: int
    dropped: int
    notice: str
    best_microseconds: float | None
    median_microseconds: float | None
    best_tops: float | None
    best_config: dict[str, Any] | None
    device: dict[str, Any]
    protocol: dict[str, Any]
    date: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def _repr_html_(self) -> str:
        return html_table([self.to_dict()], f"Landscape {self.name}")


@dataclass(frozen=True, eq=False)
class Landscape(Charted):
    """Results by configuration index, with the header they were recorded under.

    ``dropped`` holds the reasons of recorded entries that are rejected today. ``same`` maps configurations that
    compiled to the same machine code as another one: index to the index that was measured for both.
    """

    header: Mapping[str, Any]
    results: Mapping[int, Result]
    name: str = field(default="")
    dropped: Mapping[int, str] = field(default_factory=dict)
    same: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def from_results(
        cls,
        space: SpaceLike,
        results: Mapping[int, Result],
        device: Mapping[str, Any],
        protocol: Mapping[str, Any] | None = None,
        command: str = "",
    ) -> Landscape:
        """A landscape of ``space``; ``device`` and ``protocol`` describe the GPU and how it measured."""
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

    def config(self, index: int) -> Configuration:
        """The configuration at ``index``."""
        return config_at(self.header["space"], index)

    @cached_property
    def by_config(self) -> dict[Configuration, int]:
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

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """Indices that are valid today but were not recorded; empty for spaces not made by ``subbyte.space``."""
        space = space_today(self.header)
        return () if space is None else tuple(index for index in space.valid if index not in self.results)

    def fraction(self, microseconds: float) -> float:
        """``best / microseconds``: 1.0 for the fastest configuration of the landscape."""
        return self.best[1].microseconds / number(microseconds, "microseconds", positive=True)

    def info(self) -> LandscapeInfo:
        """Counts, best and median time, provenance."""
        times = [result.microseconds for result in self.results.values() if isinstance(result, Measured)]
        failed = Counter(result.kind for result in self.results.values() if isinstance(result, Failed))
        best = self.best if times else None
        return LandscapeInfo(
            name=self.name, workload=self.workload.label, spec=self.workload.spec, arch=self.arch, kind=self.kind,
            size=int(self.header["space"]["size"]), measured=len(times), failed=dict(failed),
            verified=sum(isinstance(result, Measured) and result.verified for result in self.results.values()),
            programs=len(times) - sum(isinstance(self.results[index], Measured) for index in self.same),
            missing=len(self.missing), dropped=len(self.dropped), notice=self._notice(),
            best_microseconds=best[1].microseconds if best else None,
            median_microseconds=statistics.median(times) if times else None,
            best_tops=in_tops(self.workload, best[1].microseconds) if best else None,
            best_config=self.config(best[0]).to_dict() if best else None,
            device=self.device, protocol=dict(self.header["protocol"]), date=str(self.header["created"]),
        )  # fmt: skip

    def _notice(self) -> str:
        parts = []
        if self.dropped:
            index, reason = next(iter(self.dropped.items()))
            parts.append(f"{len(self.dropped)} recorded configurations are refused today and left out (first: {index}, "
                         f"{reason})")  # fmt: skip
        if self.missing:
            parts.append(f"{len(self.missing)} valid configurations were not recorded (first: {self.missing[0]})")
        return "; ".join(parts)

    def rows(self) -> list[dict[str, Any]]:
        """One flat row per configuration: index, knobs, microseconds, cold, verified, failure and reason."""
        knobs = self.header["space"]["knobs"]
        rows = []
        for index, result in self.results.items():
            row: dict[str, Any] = {"index": index, **knob_values(knobs, index)}
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
        target = file_path(path, "landscape file")
        if not target.name.endswith(SUFFIX):
            raise InvalidInput(f"landscape file {target}: the name must end in {SUFFIX}")
        write_file(target, self.header, self.results, self.same)
        return target

    @classmethod
    def load(cls, name_or_path: str | os.PathLike[str]) -> Landscape:
        """The landscape in a file, or the shipped one with that name. Raises InvalidInput, BrokenRecord."""
        path = locate(name_or_path)
        header, results, same = read_file(path)
        return cls.fitted(header, results, path.name.removesuffix(SUFFIX), same)

    @classmethod
    def fitted(
        cls,
        header: Mapping[str, Any],
        results: Mapping[int, Result],
        name: str = "",
        same: Mapping[int, int] | None = None,
    ) -> Landscape:
        """The recorded results under today's constraints (see :mod:`subbyte.records.landscape_space`)."""
        described, kept, dropped = fit(header, results)
        shared = {index: owner for index, owner in (same or {}).items() if index in kept and owner in kept}
        return cls(described, kept, name or default_name(described), dropped, shared)

    def __repr__(self) -> str:
        return (
            f"Landscape({self.name!r}, {len(self)} configurations of {self.workload.label}, {self.device.get('name')})"
        )

    def _repr_html_(self) -> str:
        return self.info()._repr_html_()


@checked
def find_landscape(
    workload: ConvWorkload, arch: str | None = None, kind: str | None = None, fixed: Mapping[str, Any] | None = None
) -> str | None:
    """Name of the shipped landscape for ``workload`` (same sizes, whatever it is called), or None.

    ``fixed`` holds switches that the landscape must have been recorded with; others must be at their defaults. If
    the whole space of a kind was not recorded, a landscape of part of it is found.
    """
    if not isinstance(workload, ConvWorkload):
        raise InvalidInput(f"workload {workload!r}: expected a ConvWorkload, as subbyte.workload(NAME) gives")
    if fixed and not any(set(fixed) <= set(one.held({})) for one in families().values()):
        usual().held(fixed)  # says which fields are held fixed
    found: dict[str, str] = {}
    for name, path in shipped().items():
        header = read_header(path)
        space = header["space"]
        same = header["workload"]["spec"] == workload.spec
        same = same and _holds(space, {} if fixed is None else fixed)
        if same and arch in (None, space["arch"]):
            found.setdefault(space["kind"], name)
    family = None if kind is None else family_of_kind(kind)
    parts = family.parts.get(kind, ()) if family is not None and kind is not None else ()
    kinds = list(found) if kind is None else [kind, *parts]
    return next((found[one] for one in kinds if one in found), None)


def _holds(space: Mapping[str, Any], fixed: Mapping[str, Any]) -> bool:
    """Whether a recorded space has the values in ``fixed``, and its family's defaults for everything else. Raises
    InvalidInput for a value that the field cannot have."""
    family = family_of_kind(space["kind"])
    if family is None or not set(fixed) <= set(family.held({})):
        return family is None and not fixed
    wanted = family.held(fixed)
    return all(wanted.get(key) == value for key, value in space["fixed"].items())


@checked
def landscape(which: str | os.PathLike[str] | ConvWorkload) -> Landscape:
    """A landscape by file, by shipped name, or by workload (an object or its name). Raises InvalidInput."""
    if isinstance(which, ConvWorkload):
        name = find_landscape(which)
        if name is None:
            raise InvalidInput(f"no landscape of {which.label} is shipped; {offer(which.label)}")
        return Landscape.load(name)
    return Landscape.load(which)

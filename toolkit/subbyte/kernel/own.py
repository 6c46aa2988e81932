"""The user's own finds, taken only on the GPU they were measured on and with the kernel text they were measured
with."""

from __future__ import annotations

import hashlib
import os
import uuid
import warnings
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from subbyte.device.arch import Arch
from subbyte.errors import MissingDependency, SubbyteError
from subbyte.families.base import Plan
from subbyte.families.registry import family_of, is_configuration
from subbyte.kernel.build import cuda_text, generator, part_plans
from subbyte.numerics.fusion import SEPARATOR
from subbyte.records.describe import now
from subbyte.records.launches import SplitLaunches
from subbyte.records.own import OwnRecord, of_result
from subbyte.records.result import Measured, Result
from subbyte.records.store import Store, store_path
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

AGAIN = "measure again with tries=16"
MOST_SAID = 2
"""How many of the records that are not taken a reason mentions."""
Path = str | os.PathLike[str]


class Own(NamedTuple):
    """Records to take, fastest first, and a clause for each stored record that is not taken.
    ``two`` are those that split a batch into more than one launch."""

    taken: tuple[OwnRecord, ...] = ()
    left: tuple[str, ...] = ()
    two: tuple[OwnRecord, ...] = ()

    @property
    def left_text(self) -> str:
        """These clauses as the end of a reason."""
        more = len(self.left) - MOST_SAID
        said = [*self.left[:MOST_SAID], *([f"{more} more"] if more > 0 else [])]
        return f"; not taken from your own store: {'; '.join(said)}" if said else ""


def own_records(
    workload: ConvWorkload, arch: Arch, output: str | None = None, store: Path | None = None, gpu: str | None = None
) -> Own:
    """The user's own records of a workload. Those to take were measured and verified on a GPU of this
    machine (or on the GPU named by ``gpu``) with the kernel text that is generated today.

    For an output that was never measured, records of the workload's own output type are used, unless the output fuses
    something. Raises what :meth:`Store.rows` raises for a given ``store``; for the default one that becomes a warning.
    """
    try:
        rows = _rows(workload, arch, store)
    except SubbyteError as error:
        if store is not None:
            raise
        warnings.warn(f"{error}; its records are not taken now", stacklevel=3)
        return Own()
    own_type = workload.precision.output.name
    wanted = own_type if output is None else output
    exact = [one for one in rows if one.output == wanted]
    found = exact or [one for one in rows if one.output == own_type and SEPARATOR not in wanted]
    if not found:
        return Own()
    here = {gpu} if gpu is not None else gpu_names(arch.name)
    taken: list[OwnRecord] = []
    two: list[OwnRecord] = []
    left = []
    for one in sorted(found, key=lambda record: record.microseconds):
        reason = _not_taken(one, workload, arch, here)
        if reason is None:
            (two if one.launches else taken).append(one)
        else:
            left.append(reason)
    return Own(tuple(taken), tuple(left), tuple(two))


def reason_of(record: OwnRecord) -> str:
    """Why a kernel from the user's own finds is taken."""
    how = "compile(tries=)" if record.source == "tries" else f"a search of {record.trials} trials"
    spread = (record.high - record.low) / record.microseconds
    driver = f", driver {record.driver}" if record.driver else ""
    what = f"{record.family} family"
    if isinstance(config := record.configuration, SplitLaunches):
        what = f"two launches, of {' and '.join(map(str, config.images))} images"
    return (
        f"{what}, your own record ({record.microseconds:.2f} us, spread {spread:.1%}, on {record.gpu}"
        f"{driver}, {record.day} UTC, by {how})"
    )


def gpu_names(arch: str) -> set[str]:
    """The names of this machine's GPUs of an architecture; empty without a driver."""
    from subbyte.gpu.driver import detect

    try:
        return {one.name for one in detect() if one.arch == arch}
    except MissingDependency:
        return set()


def beaten(record: OwnRecord, microseconds: float | None, device: str | None) -> bool:
    """Whether the shipped kernel was faster than the user's own find on a GPU of the same name: a short search
    must not make a layer slower."""
    return microseconds is not None and device == record.gpu and microseconds < record.low


class Memory:
    """Writes the finds of one search to the user's own store, each new best as soon as it is reported.

    A failure to write causes a warning and never loses a result. Results not measured on a GPU (the device's ``runner``
    is not ``cuda``) and kernels of other libraries are not written. ``least`` is the best time in microseconds reached
    earlier, with the text of that day; whoever measured it has stored it.
    """

    def __init__(
        self, workload: ConvWorkload, arch: str, source: str, store: Path | None = None, output: str | None = None,
        log: str = "",
    ) -> None:  # fmt: skip
        self.workload, self.arch, self.source, self.log = workload, arch, source, log
        self.output = output
        self.search = uuid.uuid4().hex
        self.least = float("inf")
        self.seen: set[Configuration] = set()
        """Configurations verified by this search itself, not by an earlier search that it resumes."""
        self._store = store
        self._failed = False

    def told(self, config: Configuration, result: Result, device: Mapping[str, Any], trials: int) -> None:
        """Store a result if it is a time on a GPU and better than those before."""
        if isinstance(result, Measured):
            if result.verified:
                self.seen.add(config)
            if result.microseconds < self.least:
                self.least = result.microseconds
                self._keep(config, result, device, trials)

    def settle(self, config: Configuration, times: Sequence[float], device: Mapping[str, Any], trials: int) -> None:
        """Store this configuration in place of the best one so far: ``times`` come from re-measuring it beside
        others."""
        if config in self.seen and times:
            self._keep(config, Measured(median(times), tuple(times), verified=True), device, trials)

    def _keep(self, config: Configuration, result: Measured, device: Mapping[str, Any], trials: int) -> None:
        known = {**device, **result.device}
        ours = isinstance(config, SplitLaunches) or is_configuration(config)
        if known.get("runner") != "cuda" or not ours or self._failed:
            return
        try:
            path = store_path(self._store)
            if path is None:
                return
            record = self._record(config, result, known, trials)
            done = Store(path).add(record)
        except (SubbyteError, OSError) as error:
            self._failed = True
            warnings.warn(f"what this search finds is not remembered: {error}", stacklevel=4)
            return
        if said := done.said(record):
            warnings.warn(said, stacklevel=4)

    def _record(self, config: Configuration, result: Measured, device: Mapping[str, Any], trials: int) -> OwnRecord:
        plans = part_plans(self.workload, config, self.arch, self.output, None, "fixed")
        families = _families(plans)
        return of_result(
            self.workload.spec, plans[0].output, self.arch, config, result, device, family="+".join(families),
            trials=trials, generator=generator(*families), text=_digest(plans), source=self.source, measured=now(),
            log=self.log, search=self.search,
        )  # fmt: skip


def _rows(workload: ConvWorkload, arch: Arch, store: Path | None) -> list[OwnRecord]:
    path = store_path(store)
    return [] if path is None else [row.record for row in Store(path).rows(workload.spec, arch=arch.name)]


def _not_taken(record: OwnRecord, workload: ConvWorkload, arch: Arch, here: set[str]) -> str | None:
    """Why a record is not taken, and what to do about it; None if it is taken."""
    what = f"{record.config}, {record.microseconds:.2f} us on {record.gpu} of {record.day} UTC"
    if not record.verified:
        return f"{what}, was not verified ({AGAIN})"
    if record.gpu not in here:
        named = f"gpu={record.gpu!r} (--gpu {record.gpu!r}) takes it"
        return f"{what}, which is not {' or '.join(sorted(here)) or 'a GPU of this machine'} ({named})"
    try:
        plans = part_plans(workload, record.configuration, arch, record.output, None, "fixed")
        # The same generator gives the same text; another may give the same text too, which only a comparison can tell.
        if record.generator == generator(*_families(plans)) or _digest(plans) == record.text:
            return None
    except SubbyteError as error:
        return f"{what}, cannot be built by this version: {error}"
    return f"{what}, is of another kernel text, by generator {record.generator} ({AGAIN})"


def _families(plans: Sequence[Plan]) -> list[str]:
    """The distinct families of the kernels of some launches."""
    return list(dict.fromkeys(family_of(one.config).name for one in plans))


def _digest(plans: Sequence[Plan]) -> str:
    """The digest of the kernel texts of all launches."""
    return hashlib.sha256("\n".join(map(cuda_text, plans)).encode()).hexdigest()

"""Sharing in registers saves loads and, where int4 is unpacked first, unpacking: how much each of them saves.

From a control experiment in which activations are stored as the bytes that are multiplied (``benchmarks/paper
unpacking``). What full sharing gains there, it gains without unpacking; what it gains in addition with packed
activations comes from unpacking each datum once instead of once per tap.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from subbyte.analysis.contributions import Factor, factor_of
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.records.reading import is_a_file, json_file, typed
from subbyte.records.shapes import Name, Sample
from subbyte.technique.record import InfoRecord, Table

FORMAT = "subbyte-unpacking-control"
STORED = {"s4": "packed int4", "s8": "bytes"}
"""How activations are stored, by the short name of the arm."""
SHARINGS = ("none", "shared", "full")


class Named(msgspec.Struct, frozen=True):
    """A workload or a GPU."""

    name: Name


class ScheduleShape(msgspec.Struct, frozen=True):
    """The samples of one schedule, by arm."""

    samples: dict[Name, Annotated[tuple[Sample, ...], msgspec.Meta(min_length=1)]]


class ControlShape(msgspec.Struct, frozen=True):
    """The file of a control experiment."""

    workload: Named
    device: Named
    schedules: tuple[ScheduleShape, ...]


@dataclass(frozen=True)
class UnpackingControl(InfoRecord):
    """Arms none, shared and full, with packed (``s4``) and with byte activations (``s8``), on common schedules.

    ``sharing[stored]`` holds the speed-ups ``"shared"`` and ``"full"`` over none, and ``"full over shared"``: what
    registers add to shared memory. ``unpacking`` is the part of ``"full over shared"`` that disappears when nothing is
    unpacked: the ratio of the two. ``stored_as_bytes[sharing]`` is packed time over byte time. ``microseconds[stored]``
    holds the geometric mean of each arm.
    """

    workload: str
    device: str
    schedules: int
    sharing: dict[str, dict[str, Factor]]
    unpacking: Factor
    stored_as_bytes: dict[str, Factor]
    microseconds: dict[str, dict[str, float]]

    def title(self) -> str:
        """One line that names what the record shows."""
        return f"{self.workload} on {self.device}: sharing with and without unpacking, {self.schedules} schedules"

    def table(self) -> Table:
        """One row for each comparison."""
        rows = [
            (STORED[stored], f"{name}{'' if 'over' in name else ' over none'}", str(factor))
            for stored, parts in self.sharing.items()
            for name, factor in parts.items()
        ]
        rows.append(("packed against bytes", "full over shared", str(self.unpacking)))
        rows += [("packed to bytes", name, str(factor)) for name, factor in self.stored_as_bytes.items()]
        return Table(("activations", "step", "speed-up"), tuple(rows))


def unpacking(data: Mapping[str, Any], seed: int = 0) -> UnpackingControl:
    """The record in the parsed contents of a control's file; schedules that lack an arm are left out.

    Raises BrokenRecord, InvalidInput when fewer than 10 schedules have all six arms.
    """
    try:
        if data["format"] != FORMAT or data["schema"] != 1:
            raise BrokenRecord(f"not a control of unpacking (format {data['format']!r})")
        arms = [f"{sharing}-{stored}" for sharing in SHARINGS for stored in STORED]
        whole = [one["samples"] for one in data["schedules"] if all(arm in one["samples"] for arm in arms)]
        if len(whole) < 10:
            raise InvalidInput(f"only {len(whole)} schedules have all six arms: at least 10 needed")
        logs = {arm: np.log([np.median(samples[arm]) for samples in whole]) for arm in arms}
        workload, device = str(data["workload"]["name"]), str(data["device"]["name"])
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenRecord(f"the control of unpacking is damaged: {error!r} is missing or invalid") from None

    def gain(slow: str, fast: str) -> npt.NDArray[np.float64]:
        return np.asarray(logs[slow] - logs[fast])

    sharing = {
        stored: {
            "shared": factor_of(gain(f"none-{stored}", f"shared-{stored}"), seed),
            "full": factor_of(gain(f"none-{stored}", f"full-{stored}"), seed),
            "full over shared": factor_of(gain(f"shared-{stored}", f"full-{stored}"), seed),
        }
        for stored in STORED
    }
    return UnpackingControl(
        workload=workload,
        device=device,
        schedules=len(whole),
        sharing=sharing,
        unpacking=factor_of(gain("shared-s4", "full-s4") - gain("shared-s8", "full-s8"), seed),
        stored_as_bytes={name: factor_of(gain(f"{name}-s4", f"{name}-s8"), seed) for name in SHARINGS},
        microseconds={
            stored: {name: float(np.exp(logs[f"{name}-{stored}"].mean())) for name in SHARINGS} for stored in STORED
        },
    )


def read_unpacking(path: str | os.PathLike[str]) -> UnpackingControl:
    """The record in a control's .json.gz file. Raises InvalidInput (no such file), BrokenRecord."""
    if not is_a_file(Path(path)):
        raise InvalidInput(f"control {path}: no such file")
    try:
        data: Any = json_file(path, "control")
    except BrokenRecord as error:
        raise BrokenRecord(f"{path}: not gzip-compressed JSON ({error!s:.300})") from None
    if isinstance(data, dict) and data.get("format") == FORMAT:  # anything else is reported by the next line
        typed(data, ControlShape, f"{path}: the control of unpacking is damaged")
    return unpacking(data)

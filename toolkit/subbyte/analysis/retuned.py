"""How much each technique contributes when every combination of the switches gets a search of its own.

The same schedule with and without a technique (:mod:`subbyte.analysis.ablation`) can flatter a technique for which the
schedule was made. Here every combination has its own best schedule, found by the same tuner with the same number of
trials and measured again beside the others (``benchmarks/paper retuned``). The intervals cover the noise of that
measurement, not the luck of the search.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

import msgspec
import numpy as np

from subbyte.analysis.ablation import factor_table
from subbyte.analysis.contributions import (
    TECHNIQUES,
    Factor,
    Switches,
    contributions,
    name_of,
)
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.families import space
from subbyte.records.reading import json_file, typed
from subbyte.records.shapes import Count, Name, Sample, Time
from subbyte.technique.record import InfoRecord, Table

FORMAT = "subbyte-tuned-finals"
EXHAUSTIVE = "exhaustive"


class FinalShape(msgspec.Struct, frozen=True):
    """One search's best schedule in a finals file."""

    switches: Name
    microseconds: Time
    index: Count
    samples: Annotated[tuple[Sample, ...], msgspec.Meta(min_length=1)]
    trials: Count = 0


class DeviceShape(msgspec.Struct, frozen=True):
    """Which GPU measured."""

    name: Name


class FinalsShape(msgspec.Struct, frozen=True):
    """A finals file."""

    stage: Count
    entries: tuple[FinalShape, ...]
    device: DeviceShape
    strategy: Name
    trials: Count
    seed: Count


@dataclass(frozen=True)
class Optimum:
    """The best schedule found: median microseconds of the finals' rounds (``samples``), its index in the space and
    ``config``, its key. ``trials`` is the number of results of the search, 0 if all configurations were measured."""

    microseconds: float
    samples: tuple[float, ...]
    index: int
    config: str
    trials: int


@dataclass(frozen=True)
class Retuned(InfoRecord):
    """The optimum of every combination of switches of one workload, and what follows from them.

    ``optima`` by combination; ``exhaustive`` is the best of the whole space with all techniques on, measured beside
    them. The speed-ups are as in :class:`subbyte.analysis.ablation.Ablation`.
    """

    workload: str
    device: str
    strategy: str
    trials: int
    seed: int
    optima: dict[str, Optimum]
    exhaustive: Optimum | None
    combinations: dict[str, Factor]
    accumulated: dict[str, Factor]
    marginal: dict[str, Factor]
    shapley: dict[str, Factor]
    sharing: dict[str, Factor]
    order: tuple[str, ...] = TECHNIQUES

    def title(self) -> str:
        """One line that names what the record shows."""
        return (
            f"{self.workload} on {self.device}: every combination of switches tuned by {self.strategy} with "
            f"{self.trials} trials"
        )

    def table(self) -> Table:
        """One row for each combination, fastest first."""
        entries = sorted(self.optima.items(), key=lambda pair: pair[1].microseconds)
        return Table(
            ("switches", "us", "configuration", "trials"),
            tuple((name, one.microseconds, one.config, one.trials) for name, one in entries),
        )

    def factors(self) -> Table:
        """One row for each bar of Figures 15 and 16."""
        return factor_table(self)


def retuned(finals: Mapping[str, Any], order: Sequence[str] = TECHNIQUES, seed: int = 0) -> Retuned:
    """The record in the parsed contents of a finals file. Raises BrokenRecord, InvalidInput."""
    try:
        if finals["format"] != FORMAT or finals["schema"] != 1:
            raise BrokenRecord(f"not the finals of tuned searches (format {finals['format']!r})")
        label = f"resnet50.stage{finals['stage']}@8"
        best: dict[str, dict[str, Any]] = {}
        for entry in finals["entries"]:
            name = str(entry["switches"])
            if name not in best or entry["microseconds"] < best[name]["microseconds"]:
                best[name] = entry
        exhaustive = best.pop(EXHAUSTIVE, None)
        by_switches = {switches_of(name): entry for name, entry in best.items()}
        logs = {key: np.log(np.asarray(entry["samples"], dtype=np.float64)) for key, entry in by_switches.items()}
        parts = contributions(logs, order, seed)
        return Retuned(
            workload=label,
            device=str(finals["device"]["name"]),
            strategy=str(finals["strategy"]),
            trials=int(finals["trials"]),
            seed=int(finals["seed"]),
            optima={name_of(key): _optimum(label, key, entry) for key, entry in sorted(by_switches.items())},
            exhaustive=_optimum(label, ("full", True, "nhwcnc"), exhaustive) if exhaustive else None,
            **{one.name: getattr(parts, one.name) for one in fields(parts)},
        )
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenRecord(f"the finals of tuned searches are damaged: {error!r} is missing or invalid") from None


def read_retuned(path: str | os.PathLike[str], order: Sequence[str] = TECHNIQUES) -> Retuned:
    """The record in a finals file. Raises InvalidInput (no such file), BrokenRecord."""
    finals: Any = json_file(path, "finals")
    if isinstance(finals, dict) and finals.get("format") == FORMAT:  # anything else is reported by the next line
        typed(finals, FinalsShape, f"{path}: the finals of tuned searches are damaged")
    return retuned(finals, order)


def switches_of(name: str) -> Switches:
    """The combination that a search's name stands for, such as ``full-rp-nhwcnc``. Raises ValueError."""
    sharing, packing, layout = name.split("-")
    return sharing, {"rp": True, "sp": False}[packing], layout


def _optimum(label: str, switches: Switches, entry: Mapping[str, Any]) -> Optimum:
    sharing, packing, layout = switches
    here = space(label, duplicate_aware=sharing, register_packing=packing, layout=layout)
    index = int(entry["index"])
    samples = tuple(float(sample) for sample in entry["samples"])
    return Optimum(float(entry["microseconds"]), samples, index, here.config(index).key, int(entry.get("trials", 0)))

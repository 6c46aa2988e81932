"""What earlier runs of ``tune`` left to a later one: folders of its logs, and records of the repository.

A search's times are worth taking over where kernels are what they were. A run therefore keeps the digests of some
kernels' texts for each layer (``texts.json``, in a record the field ``texts``): when today's generator writes the same
texts, the layer's trials count as done; else they say what to try first, and nothing more. Sources may change in
between as they like.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from subbyte.errors import BrokenRecord, InvalidInput, SubbyteError
from subbyte.families.registry import config_from_dict, family_of_kind
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.kernel.build import cuda_text, make_plan
from subbyte.records.describe import config_at
from subbyte.records.result import Failed, Measured, Result
from subbyte.spaces.configuration import Configuration
from subbyte.tune import Study, read_log
from subbyte.workload import ConvWorkload, workload

ARCH = "sm_90a"
FORMAT = "subbyte-network-tuning"
TEXTS = "texts.json"
PROBES = 3
"""Kernels of a layer whose texts stand for all."""
Probe = dict[str, Any]
"""``config`` of the wgmma family, and the digest ``text``."""


@dataclass(frozen=True)
class Search:
    """The trials of one search: configurations with their results, in the order told. ``source`` names the record."""

    spec: str
    kind: str
    trials: tuple[tuple[Any, Result], ...]
    source: str


def searches_in(path: Path) -> Iterator[Search]:
    """Every search of a folder of logs, or of a record; what cannot be read is left out, and named."""
    for one in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
        try:
            yield from [search_of(one)] if path.is_dir() else _of_record(one)
        except (SubbyteError, OSError, EOFError, ValueError, KeyError, TypeError) as error:
            print(f"{one}: left out: {error}", file=sys.stderr)


def search_of(log: Path) -> Search:
    """What a log holds. Raises BrokenRecord, InvalidInput."""
    record = read_log(log)
    told = tuple((trial.config, _from(trial.result, log.name)) for trial in record.trials if trial.result is not None)
    return Search(record.header["workload"]["spec"], kind_today(record.header["space"]["kind"]), told, log.name)


def _of_record(path: Path) -> Iterator[Search]:
    data = _record(path)
    for one in data["searches"].values():
        device = {key: one["device"][key] for key in ("runner", "name", "arch", "uuid") if key in one["device"]}
        trials = []
        for index, found in one["trials"]:
            with suppress(InvalidInput):  # a configuration that exists no more
                config = config_at(one["space"], index)
                trials.append((config, _from(_result(found, device), path.name)))
        yield Search(one["workload"]["spec"], kind_today(one["space"]["kind"]), tuple(trials), path.name)


def kind_today(kind: str) -> str:
    """The kind of space that took the place of one of earlier versions."""
    family = family_of_kind(kind)
    return kind if family is None else family.old_kinds.get(kind, kind)


def _record(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    if data.get("format") != FORMAT:
        raise BrokenRecord(f"{path} is no record of `python benchmarks/network tune`")
    return data


def _result(found: Any, device: Mapping[str, Any]) -> Result:
    if isinstance(found, str):
        return Failed(found, "as recorded", device=device)
    return Measured(statistics.median(found), tuple(found), verified=True, device=device)


def _from(result: Result, source: str) -> Result:
    """A result that says where it was taken from."""
    return replace(result, device={**result.device, "taken_from": result.device.get("taken_from", source)})


# ---- are the kernels what they were? ---------------------------------------------------------------------------------


def kernel_text(job: tuple[ConvWorkload, Configuration]) -> str:
    """The digest of a kernel's text; empty where it cannot be made."""
    with suppress(SubbyteError):
        text = cuda_text(make_plan(*job, ARCH, "int4", (-8, 7), "fixed"))
        return hashlib.sha256(text.encode()).hexdigest()[:20]
    return ""


def texts_in(path: Path) -> dict[str, list[Probe]]:
    """By workload spec the kernels whose texts a folder or record keeps; none where it keeps none."""
    with suppress(OSError, EOFError, ValueError, BrokenRecord):
        data = json.loads((path / TEXTS).read_text(encoding="utf-8")) if path.is_dir() else _record(path)
        return dict(data.get("texts", {}))
    return {}


def probes(
    configs: Mapping[ConvWorkload, Iterable[WgmmaConfig]],
    pool: Executor,
    text: Callable[[tuple[ConvWorkload, Configuration]], str] = kernel_text,
) -> dict[str, list[Probe]]:
    """The digests of today's texts of a few configurations of each layer."""
    jobs = [(layer, config) for layer, some in configs.items() for config in list(dict.fromkeys(some))[:PROBES]]
    found: dict[str, list[Probe]] = {}
    for (layer, config), digest in zip(jobs, pool.map(text, jobs), strict=True):
        if digest:
            found.setdefault(layer.spec, []).append({"config": config.to_dict(), "text": digest})
    return found


def unchanged(
    kept: Mapping[str, list[Probe]],
    specs: Iterable[str],
    pool: Executor,
    text: Callable[[tuple[ConvWorkload, Configuration]], str] = kernel_text,
) -> set[str]:
    """The workload specs whose kept texts, one or more, are all what today's generator writes."""
    jobs: list[tuple[str, str, tuple[ConvWorkload, Configuration]]] = []
    there = {spec for spec in specs if kept.get(spec)}
    for spec in sorted(there):
        for probe in kept[spec]:
            try:
                jobs.append((spec, probe["text"], (workload(spec), config_from_dict(probe["config"]))))
            except SubbyteError:  # it exists no more
                there.discard(spec)
    digests = pool.map(text, [job for _, _, job in jobs])
    changed = {spec for (spec, before, _), now in zip(jobs, digests, strict=True) if before != now}
    return there - changed


# ---- taking over -----------------------------------------------------------------------------------------------------


def take_over(study: Study, runner: Any, searches: Iterable[Search]) -> int:
    """Tell a new study what earlier searches of its layer found with the same kernels; how many trials.

    Its space may be another one by now: what lies outside it, or is refused in it, is left out, as is what was measured
    on another kind of GPU."""
    study.run(runner, stop=[lambda _: True])  # measures nothing, and notes the device in the log
    space, told = study.space, {trial.index for trial in study.trials}
    before = len(told)
    for search in searches:
        for config, result in search.trials:
            with suppress(InvalidInput):
                index = space.index(config)
                if index not in told and space.check(index) is None:
                    study.tell(index, result)
                    told.add(index)
    return len(told) - before

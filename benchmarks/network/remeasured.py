"""The fastest kernels of a layer's searches: which of them ``tune`` measures again, and the pack of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.network.builders import build_clean
from benchmarks.network.searches import ARCH
from benchmarks.shared import kernel_pack
from subbyte.errors import SubbyteError
from subbyte.families.registry import config_from_dict
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.tune import read_log
from subbyte.workload import ConvWorkload, workload

TOP = {"wgmma": 3, "mma": 2}


def entry_of(config: Any, microseconds: float | None) -> dict[str, Any]:
    """A configuration's line, as far as it is known before it is measured again."""
    family = kernel_pack.family_of(config)
    return {"family": family, "key": config.key, "config": config.to_dict(), "first_microseconds": microseconds}


def overlaps(config: Mapping[str, Any]) -> bool:
    """Whether a recorded configuration, of this or an earlier version, overlaps with others in a chain."""
    chosen = config.get("dependent_launch", config.get("overlap"))
    if chosen is not None:
        return bool(chosen)
    return isinstance(config_from_dict(config), WgmmaConfig)  # a pipeline, which always does


def logs_of(out: Path, layer: ConvWorkload) -> list[Path]:
    """The logs of a layer."""
    return sorted(path for path in out.glob("*.jsonl") if path.stem.rpartition(".")[0] == layer.label)


def tried(out: Path, layer: ConvWorkload) -> set[str]:
    """Keys of all configurations that were measured, or failed."""
    return {trial.config.key for path in logs_of(out, layer) for trial in read_log(path).trials}


def top_of(out: Path, layer: ConvWorkload) -> list[dict[str, Any]]:
    """The fastest few of each family, two that overlap with others in a chain among them."""
    found: dict[str, dict[str, tuple[float, Any]]] = {family: {} for family in TOP}
    for path in logs_of(out, layer):
        for trial in read_log(path).trials:
            if trial.microseconds is not None:
                family = kernel_pack.family_of(trial.config)
                known = found[family].get(trial.config.key, (float("inf"), None))
                found[family][trial.config.key] = min(known, (trial.microseconds, trial.config), key=lambda e: e[0])
    chosen = []
    for family, count in TOP.items():
        ordered = sorted(found[family].values(), key=lambda entry: entry[0])
        overlapping = [entry for entry in ordered if overlaps(entry[1].to_dict())]
        more = (entry for entry in overlapping[:2] if entry not in ordered[:count])
        chosen += [entry_of(config, us) for us, config in [*ordered[:count], *more]]
    return chosen


def pack(out: Path) -> None:
    """Replace ``out/pack`` by the two fastest kernels of each layer, and the two fastest that overlap, when all of them
    are built; what was built before is still in the cache."""
    packed = []
    for path in sorted((out / "remeasured").glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        layer = workload(data["workload"])
        overlapping = [entry for entry in data["entries"] if overlaps(entry["config"])]
        first = data["entries"][:2]
        for entry in [*first, *(entry for entry in overlapping[:2] if entry not in first)]:
            config = kernel_pack.config_from_dict(entry["family"], entry["config"])
            try:
                kernel = build_clean(layer, config, ARCH)
            except SubbyteError as error:
                print(f"{layer}: not packed: {error}"[:200], flush=True)
                continue
            reason = f"{entry['family']} family, fastest of the searches"
            packed.append(
                kernel_pack.Packed(layer, entry["family"], config, reason, bytes(kernel.cubin), kernel.launch)
            )
    kernel_pack.replace(out / "pack", packed)

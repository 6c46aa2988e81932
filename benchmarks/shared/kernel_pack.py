"""Built kernels in a folder, for a machine that has neither TVM nor a compiler.

``kernels.jsonl`` holds a line for each: workload (name and sizes), family, configuration, why it was chosen, launch and
the file of its machine code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subbyte.device.launch import Launch, launch_from_dict
from subbyte.families import registry
from subbyte.files import replace_file
from subbyte.records.describe import describe_workload, workload_from_dict
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

INDEX = "kernels.jsonl"


@dataclass(frozen=True)
class Packed:
    """A kernel of a pack."""

    workload: ConvWorkload
    family: str
    config: Configuration
    reason: str
    cubin: bytes
    launch: Launch


def family_of(config: Configuration) -> str:
    """The family a configuration belongs to."""
    return registry.family_of(config).name


def config_from_dict(family: str, data: dict[str, Any]) -> Configuration:
    """A configuration of a family from its record."""
    made = registry.family_named(family)
    return made.decode(data) or made.plain.with_values(data)


def add(folder: Path, kernels: Iterable[Packed]) -> int:
    """Append kernels to the pack in ``folder``; how many."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    with open(folder / INDEX, "a", encoding="utf-8") as file:
        for kernel in kernels:
            file.write(json.dumps(_put(folder, kernel)) + "\n")
            count += 1
    return count


def replace(folder: Path, kernels: Iterable[Packed]) -> int:
    """Let the pack in ``folder`` hold these kernels and no others, how many; whoever is killed before all of them are
    there leaves the pack as it was. Without a kernel there is no pack."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [_put(folder, kernel) for kernel in kernels]
    if lines:
        replace_file(folder / INDEX, "".join(json.dumps(line) + "\n" for line in lines).encode())
    else:
        (folder / INDEX).unlink(missing_ok=True)
    for path in {*folder.glob("*.cubin")} - {folder / line["cubin"] for line in lines}:
        path.unlink()
    return len(lines)


def _put(folder: Path, kernel: Packed) -> dict[str, Any]:
    """Write the machine code of a kernel, and give its line of the index."""
    name = f"{hashlib.sha256(kernel.cubin).hexdigest()[:20]}.cubin"
    replace_file(folder / name, kernel.cubin)
    return {
        "workload": describe_workload(kernel.workload), "family": kernel.family, "config": kernel.config.to_dict(),
        "reason": kernel.reason, "cubin": name, "launch": kernel.launch.to_dict(),
    }  # fmt: skip


def read(folder: Path) -> dict[ConvWorkload, list[Packed]]:
    """The kernels of a pack by workload, in the order they were added."""
    found: dict[ConvWorkload, list[Packed]] = {}
    for line in (folder / INDEX).read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        workload = workload_from_dict(data["workload"])
        config = config_from_dict(data["family"], data["config"])
        cubin = (folder / data["cubin"]).read_bytes()
        packed = Packed(workload, data["family"], config, data["reason"], cubin, launch_from_dict(data["launch"]))
        found.setdefault(workload, []).append(packed)
    return found

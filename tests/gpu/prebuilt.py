"""Candidates for the runner's tests: kernels of the prebuilt bundle, and kernels that misbehave, by ``config.chunk``.

Imported by the processes that build and measure; the folder is the one SUBBYTE_GPU_BUNDLE names.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from subbyte.device.launch import launch_from_dict
from subbyte.errors import BuildFailed
from subbyte.families.mma.config import MmaConfig
from subbyte.records.describe import workload_from_dict

FAULTS = ("good", "spin", "stray", "silent", "zeros", "memory", "no_image", "compiler_dies", "other")
KINDS = ("ok", "timeout", "crash", "wrong", "wrong", "memory", "launch", "crash", "ok")


def loaded(folder, entry):
    """A kernel of ``kernels.jsonl``: ``.workload .cubin .launch .clip``."""
    return SimpleNamespace(
        workload=workload_from_dict(entry["workload"]), cubin=(folder / entry["cubin"]).read_bytes(),
        launch=launch_from_dict(entry["launch"]), clip=tuple(entry["clip"]),
    )  # fmt: skip


def named(folder, name):
    """The kernels of ``kernels.jsonl`` with this name, in their order."""
    lines = map(json.loads, (folder / "kernels.jsonl").read_text().splitlines())
    return [loaded(folder, entry) for entry in lines if entry["name"] == name]


def bundle():
    """Folder, workload and good entries of the bundle."""
    folder = Path(os.environ["SUBBYTE_GPU_BUNDLE"])
    lines = [json.loads(line) for line in (folder / "bundle/manifest.jsonl").read_text().splitlines()]
    return folder, workload_from_dict(lines[0]["workload"]), [line for line in lines[1:] if "cubin" in line]


def build(workload, config, arch):
    """What the candidate's chunk says, in place of a compiler."""
    fault = FAULTS[config.chunk - 1]
    folder, _, entries = bundle()
    entry = entries[-1 if fault == "other" else 0]
    launch = launch_from_dict(entry["launch"])
    cubin = (folder / "bundle" / entry["cubin"]).read_bytes()
    outs = [argument for argument in launch.arguments if argument.role == "out"]
    ins = [argument for argument in launch.arguments if argument.role == "in"]
    if fault == "compiler_dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    if fault == "no_image":
        cubin = b"no machine code" + bytes(64)
    if fault == "memory":
        outs = [replace(out, shape=(1 << 40,)) for out in outs]  # four terabytes
    if fault in ("spin", "stray", "silent", "zeros"):
        cubin = (folder / f"{fault}.cubin").read_bytes()
    if fault in ("memory", "spin", "stray", "silent", "zeros"):
        launch = replace(launch, arguments=(*outs, *ins))
    return SimpleNamespace(cubin=cubin, launch=launch)


@cache
def spaces():
    """Bundles by workload in the folder SUBBYTE_GPU_SPACES names: folder and entries by configuration."""
    found = {}
    for manifest in sorted(Path(os.environ.get("SUBBYTE_GPU_SPACES") or "/nonexistent").glob("*/manifest.jsonl")):
        lines = [json.loads(line) for line in manifest.read_text().splitlines()]
        entries = {MmaConfig.from_dict(line["config"]): line for line in lines[1:] if "cubin" in line}
        found[workload_from_dict(lines[0]["workload"])] = (manifest.parent, entries)
    return found


def from_spaces(workload, config, arch):
    """The kernel a bundle holds for this configuration."""
    folder, entries = spaces()[workload]
    if config not in entries:
        raise BuildFailed("the bundle holds no kernel of this configuration")
    entry = entries[config]
    return SimpleNamespace(cubin=(folder / entry["cubin"]).read_bytes(), launch=launch_from_dict(entry["launch"]))

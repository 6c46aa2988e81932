"""Candidates for the runner's tests: kernels of the prebuilt bundle, and kernels that misbehave, by ``config.chunk``.

Imported by the processes that build and measure; the folder is the one SUBBYTE_GPU_BUNDLE names.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from subbyte.measure.case import launch_from_dict
from subbyte.tune.describe import workload_from_dict

FAULTS = ("good", "spin", "stray", "silent", "zeros", "memory", "no_image", "compiler_dies", "other")
KINDS = ("ok", "timeout", "crash", "wrong", "wrong", "memory", "launch", "crash", "ok")


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

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

import numpy as np

from subbyte.data import Requantization
from subbyte.errors import BuildFailed
from subbyte.measure.case import Case, launch_from_dict
from subbyte.measure.gpu import GpuKernel
from subbyte.schedule import ConvConfig
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


@cache
def spaces():
    """Bundles by workload in the folder SUBBYTE_GPU_SPACES names: folder and entries by configuration."""
    found = {}
    for manifest in sorted(Path(os.environ.get("SUBBYTE_GPU_SPACES") or "/nonexistent").glob("*/manifest.jsonl")):
        lines = [json.loads(line) for line in manifest.read_text().splitlines()]
        entries = {ConvConfig.from_dict(line["config"]): line for line in lines[1:] if "cubin" in line}
        found[workload_from_dict(lines[0]["workload"])] = (manifest.parent, entries)
    return found


def from_spaces(workload, config, arch):
    """The kernel a bundle holds for this configuration."""
    folder, entries = spaces()[workload]
    if config not in entries:
        raise BuildFailed("the bundle holds no kernel of this configuration")
    entry = entries[config]
    return SimpleNamespace(cubin=(folder / entry["cubin"]).read_bytes(), launch=launch_from_dict(entry["launch"]))


def repeated(workload, cubin, launch, clip, runs):
    """How many of ``runs`` launches gave other words than the first one: launched one by one, and overlapping."""
    rng = np.random.default_rng(5)
    drawn = Requantization.random(workload, rng)
    case = Case(workload, 5, requant=Requantization(drawn.bias, drawn.multiplier, drawn.shift, clip))
    different = {}
    with GpuKernel(cubin, launch) as gpu:
        expected = gpu.run({argument.name: case.operand(argument) for argument in gpu.inputs})["Out"]
        assert case.check(expected, gpu.outputs[0]).ok
        function, pointers, out = gpu._function, gpu._pointers(), gpu._buffers["Out"]
        for name, together in (("alone", 1), ("overlapping", 10)):
            different[name] = 0
            for _ in range(runs // together):
                out.fill(0xA5)
                for _ in range(together):
                    function.launch(
                        launch.grid, launch.block, launch.shared_bytes, pointers, launch.overlap and together > 1
                    )
                words = out.download(expected.shape, expected.dtype)
                different[name] += int((words != expected).any())
    return different

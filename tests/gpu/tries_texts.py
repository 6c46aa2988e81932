"""CUDA texts that `compile(tries=)` and `build` ask for: a machine without TVM has them from its kernel cache then.

    PYTHONPATH=toolkit python tests/gpu/tries_texts.py write FILE.jsonl.xz [LAYER ...]     # where TVM is
    PYTHONPATH=toolkit python tests/gpu/tries_texts.py prime FILE.jsonl.xz                 # where the GPU is

``prime`` puts each text into the kernel cache (SUBBYTE_CACHE) under the name that it has there.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Sequence
from pathlib import Path

from subbyte.cache import cache_folder, write_cached
from subbyte.device.arch import arch as arch_named
from subbyte.families.registry import config_from_dict
from subbyte.kernel.build import _plan_key, cuda_text, make_plan
from subbyte.kernel.choose import likeliest
from subbyte.kernel.default import default_config
from subbyte.spaces.configuration import Configuration
from subbyte.workload import workload

LAYERS = (
    "resnet50.stage2@40", "resnet50.stage3@24", "resnet50.stage4@16", "resnet50.stage5@8", "n12h33w33c96k160r5s5p2",
    "resnet50.stage4.expand1x1@48",
)  # fmt: skip
"""Among them two that have a record of an H200, and batches between the recorded ones."""
ARCH, TRIES = "sm_90a", 16


def write(file: Path, layers: Sequence[str]) -> None:
    """The texts of the likeliest kernels of layers, and of what `build` takes of them."""
    lines = []
    for layer in layers:
        found = workload(layer)
        for config in {*likeliest(found, arch_named(ARCH), TRIES), default_config(found, ARCH)}:
            text = cuda_text(make_plan(found, config, ARCH, None, None, "fixed"))
            lines.append(json.dumps({"layer": layer, "config": config.to_dict(), "text": text}))
    file.write_bytes(lzma.compress("\n".join(lines).encode()))
    print(f"{len(lines)} texts of {len(layers)} layers", file=sys.stderr)


def prime(file: Path) -> list[str]:
    """Have the kernel cache hold the texts; the layers there are."""
    layers = {}
    for line in map(json.loads, lzma.decompress(file.read_bytes()).decode().split("\n")):
        plan = make_plan(workload(line["layer"]), config_from_dict(line["config"]), ARCH, None, None, "fixed")
        write_cached(cache_folder("kernels") / f"{_plan_key(plan)}.cu", line["text"].encode())
        layers[line["layer"]] = None
    return list(layers)


def configurations(file: Path, layer: str) -> list[Configuration]:
    """The configurations of a layer's texts."""
    lines = map(json.loads, lzma.decompress(file.read_bytes()).decode().split("\n"))
    return [config_from_dict(line["config"]) for line in lines if line["layer"] == layer]


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), sys.argv[3:] or LAYERS)
    else:
        print(*prime(Path(sys.argv[2])), sep="\n")

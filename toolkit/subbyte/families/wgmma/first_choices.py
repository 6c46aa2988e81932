"""How far off the model was on its first choices: layers that it was not trained on, measured afterwards.

``first_choices.json`` is written by ``python benchmarks/network first``. It names the model that it evaluates, and
applies to no other: a retrained model has no error bar before its first choices are measured.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from subbyte.device.arch import Arch
from subbyte.families.base import Expected
from subbyte.families.wgmma import batches, model
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.workload import ConvWorkload

FILE = Path(__file__).with_name("first_choices.json")
FORMAT = "subbyte-wgmma-first-choices"
DEVICE = "NVIDIA H200"
"""The GPU of the model's times."""


@cache
def ratios() -> tuple[float, ...]:
    """Measured over expected time of the first choices of this version's model, one for each layer, sorted; empty
    if they were never measured."""
    data = json.loads(FILE.read_text(encoding="utf-8"))
    return tuple(data["ratios"]) if data["model"] == digest() else ()


@cache
def digest() -> str:
    """The identification of this version's model."""
    return hashlib.sha256(model.FILE.read_bytes()).hexdigest()[:16]


def written(judged: Mapping[str, float], records: list[str]) -> dict[str, Any]:
    """The contents of the file: ``judged`` holds ratios by the layer's spec."""
    found = sorted(round(one, 4) for one in judged.values())
    return {"format": FORMAT, "schema": 1, "model": digest(), "device": DEVICE, "records": records, "ratios": found}


def expected_time(layer: ConvWorkload, config: WgmmaConfig, arch: Arch) -> Expected:
    """The expected time of a configuration: by the model with its error bar, or its measured time at another batch
    size."""
    one, off = batches.known(layer, config, arch), ratios()
    time = one.microseconds
    if one.measured or not off:
        return Expected(time, DEVICE, measured=one.measured)
    return Expected(time, DEVICE, time * min(*off, 1.0), time * max(*off, 1.0), len(off))

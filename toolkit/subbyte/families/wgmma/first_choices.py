"""How far off the model was on its first choices: layers that it was not trained on, measured afterwards.

``first_choices.json`` is written by ``python benchmarks/network first``. It names the model that it judges, and says
nothing of any other: a model that was trained anew has no error bar before its first choices are judged.
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
"""What the model's times are of."""


@cache
def ratios() -> tuple[float, ...]:
    """Measured over expected time of the first choices of the model of this version, one for each layer, sorted; none
    where nobody measured them."""
    data = json.loads(FILE.read_text(encoding="utf-8"))
    return tuple(data["ratios"]) if data["model"] == digest() else ()


@cache
def digest() -> str:
    """What names the model of this version."""
    return hashlib.sha256(model.FILE.read_bytes()).hexdigest()[:16]


def written(judged: Mapping[str, float], records: list[str]) -> dict[str, Any]:
    """What the file holds: ``judged`` are ratios by the layer's spec."""
    found = sorted(round(one, 4) for one in judged.values())
    return {"format": FORMAT, "schema": 1, "model": digest(), "device": DEVICE, "records": records, "ratios": found}


def expected_time(layer: ConvWorkload, config: WgmmaConfig, arch: Arch) -> Expected:
    """What is expected of a configuration: by the model with its error bar, or what it took at another batch."""
    one, off = batches.known(layer, config, arch), ratios()
    time = one.microseconds
    if one.measured or not off:
        return Expected(time, DEVICE, measured=one.measured)
    return Expected(time, DEVICE, time * min(*off, 1.0), time * max(*off, 1.0), len(off))

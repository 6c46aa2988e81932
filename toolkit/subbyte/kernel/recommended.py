"""Configurations that were measured and found best, shipped with the package together with their CUDA text.

One file per workload and architecture in ``recommended/``: the configuration, its measured time with its origin, and
the generated text, so that these kernels can be built and run even if TVM can no longer be installed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from subbyte.families.base import Plan
from subbyte.families.registry import config_from_dict, family_of
from subbyte.files import slug
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

FOLDER = Path(__file__).parent / "recommended"


@dataclass(frozen=True)
class Recommendation:
    """``microseconds`` is the median measured time (L2 hot) on ``device``; ``source`` names the raw result."""

    workload: str
    arch: str
    config: Configuration
    microseconds: float
    device: str
    source: str
    cuda: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {**self.__dict__, "config": self.config.to_dict()}


@cache
def recommendation(spec: str, arch: str) -> Recommendation | None:
    """The recommendation for a workload's spec on an architecture; None if nothing was measured."""
    path = path_of(spec, arch)
    if not path.is_file():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    return Recommendation(**{**data, "config": config_from_dict(data["config"])})


def recommended_text(plan: Plan) -> str | None:
    """The stored CUDA text of a plan; None unless the plan is a recommended one with an int4 output."""
    found = recommendation(plan.workload.spec, plan.arch.name)
    standard = family_of(plan.config).plan(plan.workload, plan.config, plan.arch)
    return found.cuda if found is not None and found.config == plan.config and plan == standard else None


def save(workload: ConvWorkload, found: Recommendation) -> Path:
    """Write a recommendation into the package's folder."""
    FOLDER.mkdir(exist_ok=True)
    path = path_of(workload.spec, found.arch)
    path.write_text(json.dumps(found.to_dict(), indent=1) + "\n", encoding="utf-8")
    return path


def path_of(spec: str, arch: str) -> Path:
    """The file of the recommendation for a workload and architecture."""
    return FOLDER / f"{slug(spec)}-{arch}.json"

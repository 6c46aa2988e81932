"""The kinds of kernels: each folder is one, each line of :mod:`subbyte.families.registry` makes one known."""

import warnings
from importlib import import_module
from typing import Any

from subbyte.families.base import ExportParts, Family, Plan, Space
from subbyte.families.mma.config import KNOBS, SWITCHES, ConvConfig
from subbyte.families.registry import (
    config_from_dict,
    config_from_key,
    families,
    family_named,
    family_of,
    register,
)
from subbyte.families.search import space
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.single.config import SinglePassConfig

__all__ = [
    "KNOBS",
    "SWITCHES",
    "ConvConfig",
    "ExportParts",
    "Family",
    "PipelineConfig",
    "Plan",
    "SinglePassConfig",
    "Space",
    "WgmmaPlan",
    "config_from_dict",
    "config_from_key",
    "families",
    "family_named",
    "family_of",
    "register",
    "space",
]

_FORMER = {
    "WarpgroupConfig": "PipelineConfig or SinglePassConfig", "WarpgroupPlan": "WgmmaPlan",
    "WARPGROUP_KNOBS": "PipelineConfig.rows", "WarpgroupSpace": "WgmmaSpace", "warpgroup_space": "space",
}  # fmt: skip
"""Public names of earlier versions, with what takes their place."""


def __getattr__(name: str) -> Any:
    if name not in _FORMER:
        raise AttributeError(f"module 'subbyte.families' has no attribute {name!r}")
    warnings.warn(f"{name} is now {_FORMER[name]} of subbyte.families", DeprecationWarning, stacklevel=2)
    return getattr(import_module("subbyte.families.wgmma.aliases"), name)

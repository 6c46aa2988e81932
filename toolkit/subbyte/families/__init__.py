"""The kinds of kernels: each folder is one, each line of :mod:`subbyte.families.registry` makes one known."""

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
from subbyte.families.wgmma.config import WARPGROUP_KNOBS, WarpgroupConfig
from subbyte.families.wgmma.plan import WarpgroupPlan

__all__ = [
    "KNOBS",
    "SWITCHES",
    "WARPGROUP_KNOBS",
    "ConvConfig",
    "ExportParts",
    "Family",
    "Plan",
    "Space",
    "WarpgroupConfig",
    "WarpgroupPlan",
    "config_from_dict",
    "config_from_key",
    "families",
    "family_named",
    "family_of",
    "register",
    "space",
]

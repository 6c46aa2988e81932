"""One schedule and what it means: configuration, matrix instruction, index maps, launch. Pure Python."""

from subbyte.schedule.atoms import ATOMS, Atom
from subbyte.schedule.config import KNOBS, SWITCHES, ConvConfig
from subbyte.schedule.families import config_from_dict, config_from_key, warp_family_only
from subbyte.schedule.launch import Argument, Launch
from subbyte.schedule.plan import Plan, plan
from subbyte.schedule.warpgroup import WARPGROUP_KNOBS, WarpgroupConfig
from subbyte.schedule.warpgroup_plan import WarpgroupPlan

__all__ = [
    "ATOMS",
    "KNOBS",
    "SWITCHES",
    "WARPGROUP_KNOBS",
    "Argument",
    "Atom",
    "ConvConfig",
    "Launch",
    "Plan",
    "WarpgroupConfig",
    "WarpgroupPlan",
    "config_from_dict",
    "config_from_key",
    "plan",
    "warp_family_only",
]

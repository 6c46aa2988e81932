"""The kinds of kernels: each is a folder here, registered by one line in :mod:`subbyte.families.registry`."""

from typing import Any

from subbyte.families.base import ExportParts, Family, Plan, Space
from subbyte.families.bits.config import BitsConfig
from subbyte.families.bits.ring_config import RingConfig
from subbyte.families.bmma.config import BmmaConfig
from subbyte.families.mma.config import KNOBS, SWITCHES, MmaConfig
from subbyte.families.popc.config import PopcConfig
from subbyte.families.registry import (
    config_from_dict,
    config_from_key,
    families,
    family_named,
    family_of,
    register,
)
from subbyte.families.search import space, usual_kind
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.renamed import former_name

__all__ = [
    "KNOBS",
    "SWITCHES",
    "BitsConfig",
    "BmmaConfig",
    "ExportParts",
    "Family",
    "MmaConfig",
    "PipelineConfig",
    "Plan",
    "PopcConfig",
    "RingConfig",
    "SingleTileConfig",
    "Space",
    "WgmmaPlan",
    "config_from_dict",
    "config_from_key",
    "families",
    "family_named",
    "family_of",
    "register",
    "space",
    "usual_kind",
]


def __getattr__(name: str) -> Any:
    return former_name(__name__, name)

"""The two families of kernels side by side: their names, configurations by key, and what only the warp family has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from subbyte.errors import Unsupported
from subbyte.families.mma.config import KNOBS, ConvConfig, named_once
from subbyte.families.wgmma.config import ALWAYS, FAMILY, WarpgroupConfig

FAMILIES: dict[str, type[ConvConfig] | type[WarpgroupConfig]] = {"warp": ConvConfig, "warpgroup": WarpgroupConfig}
"""The configurations of each family by its name."""


def config_from_key(key: str) -> ConvConfig | WarpgroupConfig:
    """The configuration of either family that a key names. Raises InvalidInput for a part that means nothing."""
    made = WarpgroupConfig if str(key).strip().lower().startswith(FAMILY) else ConvConfig
    return made.from_key(key)


def config_from_dict(values: Mapping[str, Any]) -> ConvConfig | WarpgroupConfig:
    """The configuration of either family with these fields. Raises InvalidInput for an unknown or impossible one."""
    made = WarpgroupConfig if "groups_m" in named_once(values) else ConvConfig
    return made.from_dict(values)


def settings_text(values: Mapping[str, Any]) -> str:
    """A configuration's fields as ``subbyte build --set`` takes them: those a key always names and what is not at its
    default; of a foreign kernel every knob."""
    warpgroup = "groups_m" in values
    usual = (WarpgroupConfig() if warpgroup else ConvConfig()).to_dict()
    named = ALWAYS if warpgroup else KNOBS
    return " ".join(f"{name}={value}" for name, value in values.items() if name in named or value != usual.get(name))


def warp_family_only(config: Any) -> Any:
    """``config``, where mma.sync kernels are explained. Raises Unsupported for one of the warpgroup family."""
    if isinstance(config, WarpgroupConfig):
        raise Unsupported(
            f"only kernels of the warp family (mma.sync) are shown here; {config.key} is of the warpgroup family "
            "(wgmma): see its taps, stores, fragments and text (`subbyte explain taps`, `explain packing --family "
            "warpgroup`, notebook 09_hopper)"
        )
    return config

"""The two families of kernels side by side: configurations by key, and what only the warp family has."""

from __future__ import annotations

from typing import Any

from subbyte.errors import Unsupported
from subbyte.schedule.config import ConvConfig
from subbyte.schedule.warpgroup import FAMILY, WarpgroupConfig


def config_from_key(key: str) -> ConvConfig | WarpgroupConfig:
    """The configuration of either family that a key names. Raises InvalidInput for a part that means nothing."""
    if key.strip().lower().startswith(FAMILY):
        return WarpgroupConfig.from_key(key)
    return ConvConfig.from_key(key)


def warp_family_only(config: Any) -> Any:
    """``config``, where mma.sync kernels are explained. Raises Unsupported for one of the warpgroup family."""
    if isinstance(config, WarpgroupConfig):
        raise Unsupported(
            f"only kernels of the warp family (mma.sync) are shown here; {config.key} is of the warpgroup family "
            "(wgmma): see the kernel reader, the fragments and the notebook 09_hopper"
        )
    return config

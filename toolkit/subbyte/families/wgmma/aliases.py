"""Public names from earlier versions, kept for one minor version; :mod:`subbyte.families` warns when they are used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from subbyte.device.arch import Arch
from subbyte.families.wgmma import translate
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.family import WGMMA
from subbyte.families.wgmma.former import FormerConfig, RetiredConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.space import WGMMA as WHOLE
from subbyte.families.wgmma.space import WgmmaSpace, wgmma_space
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload


class _Former(type):
    """Metaclass of a former class whose instances are today's configurations."""

    rows = RetiredConfig.rows

    def __call__(cls, *args: Any, **fields: Any) -> translate.Found:
        return translate.today(RetiredConfig(*args, **fields))

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, WgmmaConfig | FormerConfig)


class WarpgroupConfig(metaclass=_Former):
    """Makes today's configuration from the fields of earlier versions: a PipelineConfig, a SingleTileConfig,
    or for a removed kernel a RetiredConfig. All of them count as its instances."""

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Configuration:
        """The configuration described by recorded fields. Raises InvalidInput, Unsupported."""
        return WGMMA.decode(data) or translate.decode(data)

    @staticmethod
    def from_key(key: str) -> Configuration:
        """The configuration that a recorded key names. Raises InvalidInput."""
        return WGMMA.from_key(key) or translate.from_key(key)


WARPGROUP_KNOBS = tuple(name for name, row in RetiredConfig.rows.items() if not row.switch)
"""Knobs of earlier versions."""
WarpgroupPlan = WgmmaPlan
WarpgroupSpace = WgmmaSpace


def warpgroup_space(workload: ConvWorkload, arch: Arch, fixed: Mapping[str, Any] | None = None) -> WgmmaSpace:
    """The space of a workload; ``fixed`` are switches to turn off. Raises InvalidInput for a knob among them."""
    return wgmma_space(workload, arch, WHOLE, fixed)

"""What configurations of the pipeline in spaces of version 2 mean today, and how today's were recorded then.

It concerns four knobs, ``dependent_launch``, ``flatten``, ``image_groups`` and ``half_rows``: the first is always 1
today, the others are values of ``pixels``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from subbyte.families.base import RETIRED
from subbyte.families.wgmma.blocks.config import BlocksConfig
from subbyte.families.wgmma.former import SECOND, FormerBlocksConfig, FormerPipelineConfig, FormerSparseConfig
from subbyte.families.wgmma.pipeline.config import PIXELS, PipelineConfig
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.sparse.config import SparseConfig

LAUNCH, CHOICE = "dependent_launch", "multicast"
KINDS: Mapping[type[FormerPipelineConfig], type[PipelineConfig]] = {
    FormerPipelineConfig: PipelineConfig, FormerSparseConfig: SparseConfig, FormerBlocksConfig: BlocksConfig,
}  # fmt: skip
"""The configurations of version 2, with their replacements."""
BEFORE = {today: former for former, today in KINDS.items()}
USUAL: Mapping[str, Any] = {
    **FormerBlocksConfig().to_dict(), **FormerSparseConfig().to_dict(), **SingleTileConfig().to_dict(), CHOICE: 0,
}  # fmt: skip
"""The default of each field."""
NAMES = frozenset(USUAL)
"""Every knob and switch of version 2."""
SINGLE_ALONE = frozenset(SingleTileConfig.rows) - frozenset(FormerPipelineConfig.rows)
"""Those that only the kernel with a single tile iteration had."""
_PART = re.compile(r"(?:pdl|fl|ig|hr)[0-9]+")
Then = FormerPipelineConfig | SingleTileConfig


def recorded(values: Mapping[str, Any]) -> bool:
    """Whether recorded fields, or the value lists of a space, are those of version 2 with their own meaning.

    In today's lists ``dependent_launch`` follows ``multicast``, because it belongs to the kernel that this selects.
    """
    names = list(values)
    if not set(names) <= NAMES:
        return False
    if any(name in SECOND for name in names):
        return True
    if CHOICE not in names:
        return LAUNCH in names and not SINGLE_ALONE & set(names)
    return LAUNCH in names[: names.index(CHOICE)]


def of_pipeline(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of values to set in a pipeline configuration, those of knobs that it had in version 2."""
    names = SECOND if SINGLE_ALONE & set(values) else (LAUNCH, *SECOND)
    return {name: values[name] for name in names if name in values}


def named(key: str) -> bool:
    """Whether a key contains a part of version 2."""
    return any(key.startswith(kind.prefix) for kind in KINDS) and any(map(_PART.fullmatch, key.split("-")))


def from_key(key: str) -> FormerPipelineConfig:
    """The configuration that such a key names. Raises InvalidInput."""
    return next(kind for kind in KINDS if key.startswith(kind.prefix)).from_key(key)


def then(values: Mapping[str, Any]) -> Then:
    """The configuration of version 2 selected by its fields, or by the values of one of its spaces. Raises
    InvalidInput."""
    kind: type[Then] = FormerPipelineConfig
    if SingleTileConfig.rows[CHOICE].parse(values.get(CHOICE, 0)):
        kind = SingleTileConfig
    elif "resident" in values:
        kind = FormerSparseConfig
    elif "live_pairs" in values:
        kind = FormerBlocksConfig
    return kind.from_dict({name: value for name, value in values.items() if name in kind.rows})


def no_more(pixels: tuple[int, int, int], launch: int, launch_name: str = LAUNCH) -> str | None:
    """Why no kernel of today has these values; None when one has."""
    flatten, image_groups, _ = pixels
    if not launch:
        return f"{RETIRED}: {launch_name}=0 is of a knob that is no more"
    if pixels in PIXELS.values():
        return None
    if flatten:
        return "tile: flatten goes neither with image_groups nor with half_rows"
    return f"{RETIRED}: image_groups={image_groups} is of a value that is no more"


def refused(config: FormerPipelineConfig) -> str | None:
    """Why there is no such configuration today; None when there is one."""
    return no_more(config.pixel_knobs, config.dependent_launch)


def today(config: Then) -> PipelineConfig | SingleTileConfig | FormerPipelineConfig:
    """Today's configuration with the same meaning, or the configuration itself if there is none."""
    if isinstance(config, SingleTileConfig) or refused(config) is not None:
        return config
    kind, code = KINDS[type(config)], list(PIXELS.values()).index(config.pixel_knobs)
    return kind(**{name: value for name, value in vars(config).items() if name in kind.rows}, pixels=code)


def nearest(config: FormerPipelineConfig) -> PipelineConfig:
    """Today's configuration that is closest to this one."""
    flatten, image_groups, half_rows = config.pixel_knobs
    if config.pixel_knobs not in PIXELS.values():
        image_groups, half_rows = 1, 0 if flatten else half_rows
    found = today(config.with_values({LAUNCH: 1, "image_groups": image_groups, "half_rows": half_rows}))
    assert isinstance(found, PipelineConfig)
    return found


def before(config: PipelineConfig) -> FormerPipelineConfig:
    """How version 2 recorded one of today's configurations."""
    kind = BEFORE[type(config)]
    fields: dict[str, Any] = {name: value for name, value in vars(config).items() if name in kind.rows}
    return kind(**fields | dict(zip(SECOND, config.pixel_knobs, strict=True)))

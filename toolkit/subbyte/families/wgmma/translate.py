"""What configurations of earlier versions mean today; the only module that knows their names.

:func:`decode` returns today's configuration for recorded fields or, if there is no equivalent, the
:class:`~subbyte.families.wgmma.former.FormerConfig` itself, which has results and cannot be built. Records made
with spaces of version 2 are translated in :mod:`~subbyte.families.wgmma.second`, older ones first to that version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from subbyte.errors import Unsupported
from subbyte.families.base import RETIRED
from subbyte.families.wgmma import second
from subbyte.families.wgmma.blocks.config import BlocksConfig
from subbyte.families.wgmma.config import RENAMED, SWITCH_VALUES, WgmmaConfig
from subbyte.families.wgmma.former import (
    EARLIER,
    REMOVED,
    FormerConfig,
    FormerPipelineConfig,
    RetiredConfig,
)
from subbyte.families.wgmma.pipeline.config import ROW_REUSE, STARTS, PipelineConfig
from subbyte.families.wgmma.schedule import Schedule
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.sparse.config import SparseConfig
from subbyte.spaces.configuration import named_once

_BOTH = ("tile_width", "tile_rows", "groups_m", "groups_x", "segments", "split", "unroll", "in_flight", "overlap",
         *SWITCH_VALUES)  # fmt: skip
_SINGLE = (*_BOTH, "bulk_weights", "weights_ahead", "early_start")
_PIPELINE = (*_BOTH, "groups_y", "filter_passes", "tiles_m", "channel_groups", "ring", "load_ahead", "stagger",
             "producers", "image_groups", "half_rows", "producer_registers")  # fmt: skip
_SINGLE_ALONE = ("weights_ahead", "late_parameters", "early_parameters", "early_start")
_SINGLE_NEEDS = {
    name: getattr(Schedule(1), RENAMED.get(name, name))
    for name in RetiredConfig.rows
    if name not in (*_SINGLE, *_SINGLE_ALONE, *REMOVED, "ring")
} | {"duplicate_aware": "full"}
"""The required values of knobs that were meaningless for a kernel with a single tile iteration."""
Found = PipelineConfig | SingleTileConfig | FormerConfig


def without_earlier(values: Mapping[str, Any]) -> dict[str, Any]:
    """Recorded fields without the knobs that were removed first. Raises Unsupported if the kernel used one."""
    for name, without in EARLIER.items():
        if values.get(name, without) != without:
            raise Unsupported(
                f"{name}={values[name]}: this knob was removed, so kernels with it can no longer be built; of "
                f"recorded kernels, those without it ({name}={without}) are known"
            )
    return {name: value for name, value in values.items() if name not in EARLIER}


def former(values: Mapping[str, Any]) -> bool:
    """Whether recorded fields are those of a configuration of an earlier version."""
    return second.recorded(values) or ("groups_m" in values and set(values) <= {*RetiredConfig.rows, *EARLIER})


def former_key(key: str) -> bool:
    """Whether a key is from an earlier version."""
    return key.startswith(RetiredConfig.prefix) or second.named(key)


def decode(values: Mapping[str, Any]) -> Found:
    """The configuration described by recorded fields (case-insensitive; missing ones take their defaults).

    Raises InvalidInput for a name that never existed and for an impossible value, Unsupported for a kernel
    with one of the knobs that were removed first.
    """
    if second.recorded(values):
        return second.today(second.then(values))
    return today(RetiredConfig().with_values(without_earlier(named_once(values))))


def from_key(key: str) -> Found:
    """The configuration that a recorded key names. Raises InvalidInput for an unknown part, or for two parts with the
    same knob."""
    return today(second.from_key(key) if second.named(key) else RetiredConfig.from_key(key))


def refused(config: FormerConfig) -> str | None:
    """Why there is no such configuration today: "retired: ..." if such kernels existed, another kind of reason
    if they never did; None when there is one."""
    if isinstance(config, FormerPipelineConfig):
        return second.refused(config)
    assert isinstance(config, RetiredConfig)
    gone = [f"{name}={getattr(config, name)}" for name, no in REMOVED.items() if getattr(config, name) != no]
    if gone:
        return f"{RETIRED}: {', '.join(gone)} is of a knob that is no more"
    if config.bulk_weights:
        for name, needed in _SINGLE_NEEDS.items():
            if getattr(config, name) != needed:
                return f"stages: bulk_weights needs {name}={needed}"
        if config.early_parameters and config.late_parameters:
            return "stages: parameters are loaded once, early or late (early_parameters=0 or late_parameters=0)"
        return None
    for name in _SINGLE_ALONE:
        if getattr(config, name):
            return f"same program: {name} has no meaning without bulk_weights; leave it at 0"
    if config.row_knobs not in ROW_REUSE.values():
        return "stages: early_release needs kept rows (keep_rows=1), and pass_parts rows that are not (keep_rows=0)"
    return second.no_more(_pixels(config), config.overlap, "overlap")


def _pixels(config: RetiredConfig) -> tuple[int, int, int]:
    return 2 if config.joined else config.flatten, config.image_groups, config.half_rows


def today(config: FormerConfig) -> Found:
    """Today's configuration with the same meaning, or the configuration itself if there is none."""
    if refused(config) is not None:
        return config
    if isinstance(config, FormerPipelineConfig):
        return second.today(config)
    assert isinstance(config, RetiredConfig)
    fields = vars(config)
    if config.bulk_weights:
        parameters = 2 if config.early_parameters else config.late_parameters
        return SingleTileConfig(**{RENAMED.get(name, name): fields[name] for name in _SINGLE}, parameters=parameters)
    then = FormerPipelineConfig(
        **{RENAMED.get(name, name): fields[name] for name in _PIPELINE},
        row_reuse=next(code for code, meant in ROW_REUSE.items() if meant == config.row_knobs),
        start=next(code for code, meant in STARTS.items() if meant == (config.producer_late, config.lean_start)),
        flatten=2 if config.joined else config.flatten,
    )
    return second.today(then)


def nearest(config: FormerConfig) -> PipelineConfig | SingleTileConfig:
    """Today's configuration that is closest to a retired one: the same without removed knobs."""
    if isinstance(config, FormerPipelineConfig):
        return second.nearest(config)
    assert isinstance(config, RetiredConfig)
    kept = {} if config.bulk_weights else {"overlap": 1}
    found = today(config.with_values({**REMOVED, **kept}))
    return PipelineConfig() if isinstance(found, FormerConfig) else found


def before(config: WgmmaConfig, stages: int | None = None, strided: bool = False) -> RetiredConfig:
    """How earlier versions recorded one of today's configurations.

    ``stages`` is that of its plan, which a kernel with a single tile iteration had to name; ``strided``: the
    convolution has a stride, which had to be named for pixels in one sequence across groups of images.
    """
    made = config.schedule
    fields = {name: getattr(made, RENAMED.get(name, name)) for name in RetiredConfig.rows if name not in REMOVED}
    fields["ring"] = stages or made.stages or RetiredConfig().ring
    return RetiredConfig(**{**fields, "flatten": int(strided) if made.flat_batch else made.flatten})


def _of_pipeline(name: str, kind: type[WgmmaConfig]) -> str:
    """Today's name of a knob of earlier versions that only the pipeline has, for the error when another kernel is asked
    for it."""
    now = RENAMED.get(name, name)
    return now if now in PipelineConfig.rows and now not in kind.rows else name


def changed(config: WgmmaConfig, values: Mapping[str, Any]) -> Found:
    """A configuration with some fields replaced, under today's names or those of earlier versions. Setting a knob that
    only the other kernel has changes the kernel; what the two share stays.

    Raises InvalidInput for an unknown name, and for an impossible value.
    """
    kind = type(config)
    given = {_of_pipeline(name, kind): value for name, value in named_once(values).items()}
    of_then = second.of_pipeline(given) if isinstance(config, PipelineConfig) else {}
    if of_then:
        first = changed(config, {name: value for name, value in given.items() if name not in of_then})
        if isinstance(first, PipelineConfig):
            return second.today(second.before(first).with_values(of_then))
    olds = {name: value for name, value in given.items() if name in RetiredConfig.rows and name not in kind.rows}
    news = {name: value for name, value in given.items() if name not in olds}
    for other in (PipelineConfig, SingleTileConfig, SparseConfig, BlocksConfig):
        if not set(news) <= set(kind.rows) and set(news) <= set(other.rows):
            shared = {name: value for name, value in config.to_dict().items() if name in other.rows}
            config = other().with_values(shared)
            break
    made: Any = config.with_values(news)
    if not olds:
        return made
    found = decode({**before(made).to_dict(), **olds})
    if isinstance(made, SparseConfig) and isinstance(found, PipelineConfig):
        return SparseConfig(**found.to_dict(), resident=made.resident)
    if isinstance(made, BlocksConfig) and isinstance(found, PipelineConfig):
        return BlocksConfig(**found.to_dict(), live_pairs=made.live_pairs)
    return found

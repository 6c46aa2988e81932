"""Configurations of earlier versions: read from records, never written.

The first had the 39 knobs of three kernels; logs, landscapes, keys and command lines call it ``warpgroup``. Those of
spaces of version 2 are today's pipeline, with four knobs of which one was removed and three became values of
``pixels``. Their meaning today is in :mod:`subbyte.families.wgmma.translate`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from subbyte.errors import Unsupported
from subbyte.families.wgmma.config import SWITCH_VALUES
from subbyte.spaces.configuration import Configuration, configuration
from subbyte.spaces.knob import Values, choice, flag, knob, switch, whole

REMOVED = {"at_once": 0, "weight_ring": 0, "swizzle": 0, "blocks": 1}
"""Removed knobs that did not pay, with the value for a kernel without them."""
EARLIER = {"groups_k": 1, "share": 1, "staging": 0}
"""The same for knobs that even this configuration no longer had: records name them."""


def _was(key: str, default: int, values: Values | None = None, always: bool = False) -> Any:
    return knob(key, values or whole(), "as recorded", default=default, always=always)


class FormerConfig(Configuration):
    """A configuration of an earlier version. If it corresponds to none of today's it cannot be built; its measurements
    are kept."""

    def unsupported(self, reason: str) -> Unsupported:
        """The error raised when it is to be built."""
        return Unsupported(
            f"{self.key} cannot be built: {reason}; what was measured of it is kept. Take another configuration, such "
            "as the one that subbyte.compile chooses"
        )


@configuration
class RetiredConfig(FormerConfig):
    """A configuration of the first versions."""

    prefix: ClassVar[str] = "wg-"

    tile_width: int = _was("tw", 28, always=True)
    tile_rows: int = _was("tr", 1, always=True)
    groups_m: int = _was("gm", 1, always=True)
    groups_x: int = _was("gx", 1)
    groups_y: int = _was("gy", 1)
    segments: int = _was("sg", 1, always=True)
    filter_passes: int = _was("fp", 1)
    split: int = _was("sp", 1)
    channel_groups: int = _was("cg", 1)
    ring: int = _was("ri", 4, always=True)
    keep_rows: int = _was("kr", 1, flag())
    load_ahead: int = _was("la", 2)
    unroll: int = _was("un", 1)
    weight_ring: int = _was("wr", 0, whole(0))
    in_flight: int = _was("if", 1)
    stagger: int = _was("sta", 1, whole(0, 2))
    swizzle: int = _was("sw", 0, flag())
    blocks: int = _was("bl", 1)
    overlap: int = _was("ov", 1, flag())
    at_once: int = _was("ao", 0, whole(0))
    early_release: int = _was("er", 0, flag())
    flatten: int = _was("fl", 0, flag())
    tiles_m: int = _was("tm", 1)
    producers: int = _was("pr", 1)
    joined: int = _was("jo", 0, flag())
    image_groups: int = _was("ig", 1)
    half_rows: int = _was("hr", 0, flag())
    pass_parts: int = _was("pp", 0, flag())
    producer_late: int = _was("pl", 0, flag())
    lean_start: int = _was("ls", 0, flag())
    producer_registers: int = _was("preg", 0, whole(0))
    bulk_weights: int = _was("bw", 0, whole(0))
    weights_ahead: int = _was("wa", 0, whole(0))
    late_parameters: int = _was("lp", 0, flag())
    early_parameters: int = _was("ep", 0, flag())
    early_start: int = _was("es", 0, whole(0, 2))
    duplicate_aware: str = switch("dup.", choice(*SWITCH_VALUES["duplicate_aware"]), "as recorded", default="full")
    register_packing: bool = switch("rp", choice(*SWITCH_VALUES["register_packing"]), "as recorded", default=True)
    layout: str = switch("", choice(*SWITCH_VALUES["layout"]), "as recorded", default="nhwcnc")

    @property
    def row_knobs(self) -> tuple[int, int, int]:
        """The value of today's single knob for the rows of a stage."""
        return self.keep_rows, self.early_release, self.pass_parts

    @property
    def consumers(self) -> int:
        """Warpgroups that multiplied."""
        return self.groups_m * self.groups_x * self.groups_y


@configuration
class FormerPipelineConfig(FormerConfig):
    """A configuration of the pipeline as spaces of version 2 had it."""

    prefix: ClassVar[str] = "wgp-"

    tile_width: int = _was("tw", 28, always=True)
    tile_rows: int = _was("tr", 1, always=True)
    consumers_m: int = _was("cm", 1, always=True)
    consumers_n: int = _was("cn", 1)
    consumers_rows: int = _was("cr", 1)
    segments: int = _was("sg", 1, always=True)
    m_iterations: int = _was("mi", 1)
    tiles_m: int = _was("tm", 1)
    cluster_split_k: int = _was("sk", 1)
    channel_groups: int = _was("cg", 1)
    stages: int = _was("st", 4, always=True)
    row_reuse: int = _was("rr", 1, whole(0, 3))
    load_ahead: int = _was("la", 2)
    unroll: int = _was("un", 1)
    in_flight: int = _was("if", 1)
    stagger: int = _was("sta", 1, whole(0, 2))
    dependent_launch: int = _was("pdl", 1, flag())
    flatten: int = _was("fl", 0, whole(0, 2))
    producers: int = _was("pr", 1)
    image_groups: int = _was("ig", 1)
    half_rows: int = _was("hr", 0, flag())
    start: int = _was("ls", 0, whole(0, 3))
    producer_registers: int = _was("preg", 0, whole(0))
    duplicate_aware: str = switch("dup.", choice(*SWITCH_VALUES["duplicate_aware"]), "as recorded", default="full")
    register_packing: bool = switch("rp", choice(*SWITCH_VALUES["register_packing"]), "as recorded", default=True)
    layout: str = switch("", choice(*SWITCH_VALUES["layout"]), "as recorded", default="nhwcnc")

    @property
    def pixel_knobs(self) -> tuple[int, int, int]:
        """The value of today's single knob for the pixels of a fragment row."""
        return self.flatten, self.image_groups, self.half_rows

    @property
    def consumers(self) -> int:
        """Warpgroups that multiplied."""
        return self.consumers_m * self.consumers_n * self.consumers_rows


@configuration
class FormerSparseConfig(FormerPipelineConfig):
    """The same for the kernel on 2:4 weights."""

    prefix: ClassVar[str] = "wg24-"
    skips_zeros: ClassVar[bool] = True

    resident: int = _was("res", 0, whole(0, 2), always=True)


@configuration
class FormerBlocksConfig(FormerPipelineConfig):
    """The same for the kernel on block-sparse weights."""

    prefix: ClassVar[str] = "wgb-"
    skips_zeros: ClassVar[bool] = True

    live_pairs: int = _was("lp", 2, always=True)


SECOND = ("flatten", "image_groups", "half_rows")
"""Knobs of version 2 that no configuration has today; ``dependent_launch`` was another one of the pipeline."""

"""The family of kernels on ``mma.sync``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.families.base import ExportParts, Family, Function, PixelTile
from subbyte.families.base import Plan as AnyPlan
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.estimate import estimated_cycles, estimated_first
from subbyte.families.mma.features import PLAN_FEATURES, plan_features
from subbyte.families.mma.plan import Plan
from subbyte.families.mma.rules import hopeless, why_not
from subbyte.families.mma.space import Space, held_fields
from subbyte.families.mma.values import value_lists
from subbyte.families.mma.weights import weights_of_form
from subbyte.families.topic import Topic
from subbyte.info_record import InfoRecord
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.workload.conv import ConvWorkload

_HERE = Path(__file__).parent
RECORDED = 1.08
"""Measured cycles over estimated ones, the geometric mean of the recorded int4 layers (``kernel/best.json``)."""
_SMALL = MmaConfig(blk_row_warps=1, blk_col_warps=1, warp_row_tiles=1, warp_col_tiles=1, reorder_inner=1)
"""The least demanding configuration of the paper's space: if it can be built, nothing else needs to be checked."""


class MmaFamily(Family):
    """Kernels whose warps multiply fragments in their registers."""

    name = "mma"
    adds_values = True
    title = "mma.sync, sm_75 and later"
    rank = 1
    aliases = ("warp",)
    configurations = (MmaConfig,)
    kinds: ClassVar[Mapping[str, str]] = {
        "paper": "the six knobs of the paper", "extended": "these and what the shape of the layer asks for",
    }  # fmt: skip
    features = PLAN_FEATURES

    def from_key(self, key: str) -> Configuration | None:
        """The configuration that a key names. Raises InvalidInput."""
        return MmaConfig.from_key(key) if key.startswith(MmaConfig.rows["blk_row_warps"].key) else None

    def plan(
        self, workload: ConvWorkload, config: Configuration, arch: Arch, output: str = "int4",
        clip: tuple[int, int] = (-8, 7), requant: str = "fixed",
    ) -> AnyPlan:  # fmt: skip
        """The plan of a kernel."""
        return Plan(workload, cast(MmaConfig, config), arch, output, clip, requant)

    def check(self, plan: AnyPlan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return why_not(cast(Plan, plan))

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration at all can be built; None when some may."""
        return hopeless(workload, arch)

    def first_estimate(self, workload: ConvWorkload, arch: Arch) -> float | None:
        """For activations of 8 bits, which no record contains."""
        alike = workload.precision.activations.bits != 8
        return None if alike or hopeless(workload, arch) is not None else _first_estimate(workload, arch)

    def covers(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no kernel computes the workload, None when one does."""
        reason = hopeless(workload, arch)
        if reason is not None or why_not(Plan(workload, _SMALL, arch)) is None:
            return reason
        paper = self.space(workload, arch, "paper", {})
        return None if paper.valid else paper.check(0) or "no configuration of the mma family fits"

    def space(self, workload: ConvWorkload, arch: Arch, kind: str, fixed: Mapping[str, object]) -> Space:
        """The space of a kind. Raises InvalidInput for a knob among the fixed fields."""
        return Space(workload, arch, kind, value_lists(kind, workload), held_fields(fixed))

    def recorded_space(
        self, workload: ConvWorkload, arch: Arch, kind: str, knobs: Mapping[str, tuple[Value, ...]],
        fixed: Mapping[str, Value], recorded_hash: str = "",
    ) -> Space:  # fmt: skip
        """The space of a record's header under today's constraints."""
        lists = cast(Mapping[str, tuple[int, ...]], knobs)  # knobs are numbers here, switches are not
        return Space(workload, arch, kind, lists, fixed)

    def held(self, fixed: Mapping[str, object]) -> dict[str, Value]:
        """Switches and atom, with those of ``fixed`` set. Raises InvalidInput for a knob."""
        return held_fields(fixed)

    def candidates(self, workload: ConvWorkload, arch: Arch) -> Iterable[Configuration]:
        """The configurations of the paper's space, best estimate first."""
        return estimated_first(workload, arch)

    def estimate(self, plan: AnyPlan) -> float:
        """A rough cycle count."""
        return estimated_cycles(cast(Plan, plan))

    def feature_row(self, plan: AnyPlan) -> list[float]:
        """Loop extents, traffic and occupancy."""
        return plan_features(cast(Plan, plan))

    def made_up_share(self, workload: ConvWorkload, config: Configuration) -> float:
        """Mid-sized tiles are fastest, and every technique turned off costs time."""
        one = cast(MmaConfig, config)
        tile = math.log2(one.pixels * one.columns)
        staged = math.log2(one.chunk * max(1, workload.r * workload.s) / max(1, workload.channel_blocks))
        share = 0.6 * math.exp(-(((tile - 10.5) / 3.5) ** 2)) * math.exp(-((staged / 5.0) ** 2))
        share *= 1.0 if one.threads in (128, 256) else 0.8
        share *= 0.92 if one.reorder_inner else 1.0
        share *= {"full": 1.0, "shared": 0.85, "none": 0.6}[one.duplicate_aware]
        share *= 1.0 if one.register_packing else 0.9
        share *= 1.0 if one.layout == "nhwcnc" else 0.7
        return max(share, 0.005)

    def emit(self, plan: AnyPlan) -> Function:
        """The TIRx function of a plan."""
        from subbyte.families.mma.emit.conv import conv_kernel

        return conv_kernel(cast(Plan, plan))

    @property
    def sources(self) -> tuple[Path, ...]:
        """The sources that determine the generated text."""
        return (_HERE / "emit", *(_HERE / name for name in ("plan.py", "operand_sizes.py", "tile.py", "config.py")))

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,R,S,C] for loads of a certain number of words; None for a layout of another family."""
        return weights_of_form(form, w)

    def export(self, plan: AnyPlan) -> ExportParts:
        """What a C header of the kernel needs."""
        from subbyte.families.mma.header import header_parts

        return header_parts(cast(Plan, plan))

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """Tiling, register-level packing, memory accesses, loads step by step."""
        from subbyte.families.mma.explain import TOPICS

        return TOPICS

    def loads_together(self, plan: AnyPlan) -> PixelTile:
        """A block's rectangle of pixels, and that of each warp along it."""
        one = cast(Plan, plan)
        return PixelTile(one.tile, one.config.blk_row_warps, one.warp_tile)


@lru_cache(256)
def _first_estimate(workload: ConvWorkload, arch: Arch) -> float | None:
    first = next(iter(estimated_first(workload, arch)), None)
    return None if first is None else RECORDED * estimated_cycles(Plan(workload, first, arch))


MMA = MmaFamily()

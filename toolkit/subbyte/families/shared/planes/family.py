"""What the families of such kernels have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log2
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.families.base import ExportParts, PixelTile, Plan
from subbyte.families.shared.bit_rules import bit_operands
from subbyte.families.shared.one_by_one.family import OneByOneFamily
from subbyte.families.shared.planes.config import KNOBS, PlaneConfig
from subbyte.families.shared.planes.header import header_parts
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.families.shared.planes.rules import RULES, Rule
from subbyte.families.shared.planes.space import value_lists
from subbyte.families.shared.planes.weights import threshold_words, weight_words
from subbyte.families.shared.reasons import first_reason
from subbyte.families.topic import Topic
from subbyte.info_record import InfoRecord
from subbyte.numerics.thresholds import Thresholds
from subbyte.spaces.configuration import Configuration
from subbyte.workload import workload as workload_named
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.operand import BIPOLAR
from subbyte.workload.precision import SUMS

_PACKAGE = Path(__file__).parents[3]

SMALL = {"blk_row_warps": 1, "blk_col_warps": 1, "warp_row_tiles": 2, "warp_col_tiles": 4, "chunk": 1}
"""The least demanding configuration: if it cannot be built, nothing in the space can."""


class PlaneFamily(OneByOneFamily[PlanePlan]):
    """Kernels whose warps multiply fragments of bit planes in their registers."""

    lanes: ClassVar[bool]
    """The order of the weights' words: by lanes of a warp, or by channels."""
    rules: ClassVar[tuple[Rule, ...]] = RULES
    features = ("estimate", "pixels", "columns", "threads", "iterations", "shared", "blocks")
    varied = KNOBS
    usual_output = (BIPOLAR + "1", (-1, 1))
    in_registers = "counts"

    @property
    def usual(self) -> PlaneConfig:
        """Every knob at its default."""
        return cast(PlaneConfig, self.plain)

    # ---- rules and spaces --------------------------------------------------------------------------------------------

    def why_not(self, plan: PlanePlan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return self.hopeless(plan.workload, plan.arch) or first_reason(self.rules, plan)

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration at all can be built; None when some may."""
        return bit_operands(workload, self.name, "mma")

    def covers(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no kernel of the family computes the workload, None when one does."""
        reason = self.hopeless(workload, arch)
        if reason is not None:
            return reason
        small = self.usual.with_values({**SMALL, "reorder_inner": int(workload.r > 1)})
        outputs = workload.precision.output.name, SUMS
        reasons = [self.check(self.planned(workload, small, arch, output)) for output in outputs]
        return None if None in reasons else reasons[0]

    def value_lists(self, workload: ConvWorkload) -> Mapping[str, tuple[int, ...]]:
        """The value lists for a layer."""
        return value_lists(workload)

    # ---- choosing ----------------------------------------------------------------------------------------------------

    def plans(self, workload: ConvWorkload, arch: Arch) -> Iterable[PlanePlan]:
        """The plans for a layer that can be built; for types with too many thresholds those that return sums."""
        space = self.space(workload, arch, self.kind, {})
        found = [space.plan(index) for index in space.valid]
        sums = (self.planned(workload, space.config(index), arch, SUMS) for index in range(len(space)))
        return found or [plan for plan in sums if self.check(plan) is None]

    def feature_row(self, plan: Plan) -> list[float]:
        """The estimate, and sizes of tiles, stages and launch."""
        one = cast(PlanePlan, plan)
        found = [
            self.cycles(one), one.config.pixels, one.columns, one.threads, one.iterations, one.shared_bytes,
            one.blocks,
        ]  # fmt: skip
        return [log2(1 + value) for value in found]

    def made_up_share(self, workload: ConvWorkload, config: Configuration) -> float:
        """Derived from the estimate."""
        plan = self.planned(workload, cast(PlaneConfig, config), arch_named("sm_80"), SUMS)
        return min(0.9, max(0.005, self.half / (self.half + self.cycles(plan))))

    # ---- generating -------------------------------------------------------------------------------------------------

    @property
    def sources(self) -> tuple[Path, ...]:
        """The sources that determine the generated text, in addition to families/shared."""
        return (_PACKAGE / "families" / self.name, _PACKAGE / "numerics" / "bit_products.py")

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,R,S,C] as the blocks read them; None for a form of another family."""
        plan = self._plan_of_form(form)
        return None if plan is None else weight_words(plan, w, self.lanes)

    def threshold_words(self, form: str, w: NDArray[np.int8], thresholds: Thresholds) -> NDArray[np.int32] | None:
        """The thresholds to compare sums of these weights with; None for a layout of another family."""
        plan = self._plan_of_form(form)
        return None if plan is None else threshold_words(plan, w, thresholds)

    def _plan_of_form(self, form: str) -> PlanePlan | None:
        kind, *parts = form.split(" ")
        if kind != self.name:
            return None
        spec, key, arch, output = parts
        return self.planned(workload_named(spec), type(self.usual).from_key(key), arch_named(arch), output)

    def export(self, plan: Plan) -> ExportParts:
        """What a C header of the kernel needs."""
        return header_parts(cast(PlanePlan, plan), self.lanes)

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """How the product is divided, and how planes are composed."""
        from subbyte.families.shared.planes.explain import topics_of

        return topics_of(self.name)

    def loads_together(self, plan: Plan) -> PixelTile:
        """A block's rectangle of pixels, and that of each warp along it."""
        one = cast(PlanePlan, plan)
        return PixelTile(one.tile, one.config.blk_row_warps, one.warp_tile)

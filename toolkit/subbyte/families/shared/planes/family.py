"""What the families of such kernels have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from functools import cache
from math import log2
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.families.base import ExportParts, Family, PixelTile, Plan
from subbyte.families.shared.bit_rules import bit_operands
from subbyte.families.shared.planes.config import PlaneConfig
from subbyte.families.shared.planes.header import header_parts
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.families.shared.planes.rules import RULES, Rule
from subbyte.families.shared.planes.space import PlaneSpace, held_fields, value_lists
from subbyte.families.shared.planes.weights import threshold_words, weight_words
from subbyte.families.topic import Topic
from subbyte.info_record import InfoRecord
from subbyte.numerics.thresholds import Thresholds
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.workload import workload as workload_named
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.operand import BIPOLAR
from subbyte.workload.precision import SUMS

_PACKAGE = Path(__file__).parents[3]
_SHARE = 2e4
"""Cycles of the estimate at which the fake runner makes up half the peak."""


SMALL = {"blk_row_warps": 1, "blk_col_warps": 1, "warp_row_tiles": 2, "warp_col_tiles": 4, "chunk": 1}
"""What asks for least: where it cannot be built, nothing of the space can."""


class PlaneFamily(Family):
    """Kernels whose warps multiply fragments of bit planes in their registers."""

    planned: ClassVar[type[PlanePlan]]
    """What plans them."""
    lanes: ClassVar[bool]
    """The order of the weights' words: by lanes of a warp, or by channels."""
    rules: ClassVar[tuple[Rule, ...]] = RULES
    features = ("estimate", "pixels", "columns", "threads", "iterations", "shared", "blocks")

    @property
    def usual(self) -> PlaneConfig:
        """Every knob at its default."""
        return cast(PlaneConfig, self.plain)

    # ---- plans and spaces -------------------------------------------------------------------------------------------

    def plan(
        self, workload: ConvWorkload, config: Configuration, arch: Arch, output: str = BIPOLAR + "1",
        clip: tuple[int, int] = (-1, 1), requant: str = "fixed",
    ) -> Plan:  # fmt: skip
        """The plan of a kernel."""
        return self.planned(workload, cast(PlaneConfig, config), arch, output, clip, requant)

    def check(self, plan: Plan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        one = cast(PlanePlan, plan)
        reason = self.hopeless(one.workload, one.arch)
        return reason or next((found for rule in self.rules if (found := rule(one)) is not None), None)

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration can be built, whatever it is; None when some may."""
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

    def space(self, workload: ConvWorkload, arch: Arch, kind: str, fixed: Mapping[str, object]) -> PlaneSpace:
        """The space of a layer. Raises InvalidInput for a knob among the fixed fields."""
        return PlaneSpace(self, workload, arch, value_lists(workload), self.held(fixed), kind)

    def recorded_space(
        self, workload: ConvWorkload, arch: Arch, kind: str, knobs: Mapping[str, tuple[Value, ...]],
        fixed: Mapping[str, Value], recorded_hash: str = "",
    ) -> PlaneSpace:  # fmt: skip
        """The space of a record's header."""
        return PlaneSpace(self, workload, arch, cast("Mapping[str, tuple[int, ...]]", knobs), fixed, kind)

    def held(self, fixed: Mapping[str, object]) -> dict[str, Value]:
        """The fields that do not vary. Raises InvalidInput for a knob."""
        return held_fields(self.usual, fixed)

    # ---- choosing -------------------------------------------------------------------------------------------------

    def candidates(self, workload: ConvWorkload, arch: Arch) -> Iterable[Configuration]:
        """The configurations of the space, the one estimated fastest first."""
        return _candidates(self, workload, arch)

    @abstractmethod
    def cycles(self, plan: PlanePlan) -> float:
        """A rough count of cycles."""

    def estimate(self, plan: Plan) -> float:
        """A rough count of cycles."""
        return self.cycles(cast(PlanePlan, plan))

    def feature_row(self, plan: Plan) -> list[float]:
        """The estimate, and sizes of tiles, stages and launch."""
        one = cast(PlanePlan, plan)
        found = [
            self.cycles(one), one.config.pixels, one.columns, one.threads, one.iterations, one.shared_bytes,
            one.blocks,
        ]  # fmt: skip
        return [log2(1 + value) for value in found]

    def made_up_share(self, workload: ConvWorkload, config: Configuration) -> float:
        """By the estimate."""
        plan = self.planned(workload, cast(PlaneConfig, config), arch_named("sm_80"), SUMS)
        return min(0.9, max(0.005, _SHARE / (_SHARE + self.cycles(plan))))

    # ---- generating -------------------------------------------------------------------------------------------------

    @property
    def sources(self) -> tuple[Path, ...]:
        """What decides the generated text, beside families/shared."""
        return (_PACKAGE / "families" / self.name, _PACKAGE / "numerics" / "bit_products.py")

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,R,S,C] as the blocks read them; None for a form of another family."""
        plan = self._plan_of_form(form)
        return None if plan is None else weight_words(plan, w, self.lanes)

    def threshold_words(self, form: str, w: NDArray[np.int8], thresholds: Thresholds) -> NDArray[np.int32] | None:
        """What sums of these weights are compared with; None for a form of another family."""
        plan = self._plan_of_form(form)
        return None if plan is None else threshold_words(plan, w, thresholds)

    def _plan_of_form(self, form: str) -> PlanePlan | None:
        kind, *parts = form.split(" ")
        if kind != self.name:
            return None
        spec, key, arch, output = parts
        return self.planned(workload_named(spec), type(self.usual).from_key(key), arch_named(arch), output)

    def refused(self, cubin: bytes, log: str, local_bytes: int) -> str | None:
        """Kernels whose counts do not fit the registers."""
        return f"{local_bytes} bytes of local memory: counts do not fit the registers" if local_bytes else None

    def export(self, plan: Plan) -> ExportParts:
        """What a C header of the kernel needs."""
        return header_parts(cast(PlanePlan, plan), self.lanes)

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """How the product is cut, and how planes are composed."""
        from subbyte.families.shared.planes.explain import topics_of

        return topics_of(self.name)

    def loads_together(self, plan: Plan) -> PixelTile:
        """A block's rectangle of pixels, and that of each warp along it."""
        one = cast(PlanePlan, plan)
        return PixelTile(one.tile, one.config.blk_row_warps, one.warp_tile)


@cache
def _candidates(family: PlaneFamily, workload: ConvWorkload, arch: Arch) -> tuple[Configuration, ...]:
    if family.hopeless(workload, arch) is not None:
        return ()
    space = family.space(workload, arch, family.name, {})
    plans = [space.plan(index) for index in space.valid]
    if not plans:  # sums can be had of types that have too many thresholds
        sums = (family.planned(workload, space.config(index), arch, SUMS) for index in range(len(space)))
        plans = [plan for plan in sums if family.check(plan) is None]
    return tuple(plan.config for plan in sorted(plans, key=family.cycles))

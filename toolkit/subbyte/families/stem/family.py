"""The family of kernels for few input channels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.families.base import ExportParts, Family, Function, PixelTile, Plan
from subbyte.families.stem.config import TILE_PIXELS, StemConfig
from subbyte.families.stem.estimate import FEATURES, estimated_cycles, feature_row
from subbyte.families.stem.header import header_parts
from subbyte.families.stem.plan import StemPlan
from subbyte.families.stem.rules import hopeless, why_not
from subbyte.families.stem.space import KIND, StemSpace, held_fields, value_lists
from subbyte.families.stem.weights import weight_words
from subbyte.families.topic import Topic
from subbyte.families.wgmma.family import SERIALIZED
from subbyte.info_record import InfoRecord
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.workload.conv import ConvWorkload

_HERE = Path(__file__).parent
_SHARE = 2e4
"""Cycles of the estimate at which the fake runner makes up half of the most."""


class StemFamily(Family):
    """Kernels whose K is the columns of a kernel row and their channels."""

    name = "stem"
    title = "wgmma on up to 8 input channels, sm_90a"
    rank = 3
    configurations = (StemConfig,)
    kinds: ClassVar[Mapping[str, str]] = {KIND: "rows, channels, warpgroups and turns of a block on few input channels"}
    features = FEATURES
    starts_plain = False
    special = True

    # ---- plans and spaces ---------------------------------------------------------------------------------------

    def plan(
        self, workload: ConvWorkload, config: Configuration, arch: Arch, output: str = "int4",
        clip: tuple[int, int] = (-8, 7), requant: str = "fixed",
    ) -> Plan:  # fmt: skip
        """The plan of a kernel."""
        return StemPlan(workload, cast(StemConfig, config), arch, output, clip, requant)

    def check(self, plan: Plan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return why_not(cast(StemPlan, plan))

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration can be built, whatever it is; None when some may."""
        return hopeless(workload, arch)

    def covers(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no kernel of the family computes the workload, None when one does."""
        reason = hopeless(workload, arch)
        if reason is not None or _candidates(workload, arch):
            return reason
        return self.space(workload, arch, KIND, {}).check(0)

    def space(self, workload: ConvWorkload, arch: Arch, kind: str, fixed: Mapping[str, object]) -> StemSpace:
        """The space of a layer. Raises InvalidInput for a knob among the fixed fields."""
        return StemSpace(workload, arch, value_lists(workload), self.held(fixed), kind)

    def recorded_space(
        self, workload: ConvWorkload, arch: Arch, kind: str, knobs: Mapping[str, tuple[Value, ...]],
        fixed: Mapping[str, Value], recorded_hash: str = "",
    ) -> StemSpace:  # fmt: skip
        """The space of a record's header."""
        return StemSpace(workload, arch, cast("Mapping[str, tuple[int, ...]]", knobs), fixed, kind)

    def held(self, fixed: Mapping[str, object]) -> dict[str, Value]:
        """The fields that do not vary. Raises InvalidInput for a knob."""
        return held_fields(fixed)

    # ---- choosing -----------------------------------------------------------------------------------------------

    def candidates(self, workload: ConvWorkload, arch: Arch) -> Iterable[Configuration]:
        """The configurations of the space, the one estimated fastest first."""
        return _candidates(workload, arch)

    def estimate(self, plan: Plan) -> float:
        """A rough count of cycles."""
        return estimated_cycles(cast(StemPlan, plan))

    def feature_row(self, plan: Plan) -> list[float]:
        """The estimate, and what it is made of."""
        return feature_row(cast(StemPlan, plan))

    def made_up_share(self, workload: ConvWorkload, config: Configuration) -> float:
        """By the estimate."""
        cycles = estimated_cycles(StemPlan(workload, cast(StemConfig, config), arch_named("sm_90a")))
        return min(0.9, max(0.005, _SHARE / (_SHARE + cycles)))

    # ---- generating ---------------------------------------------------------------------------------------------

    def emit(self, plan: Plan) -> Function:
        """The TIRx function."""
        from subbyte.families.stem.emit.kernel import stem_kernel

        function: Function = stem_kernel(cast(StemPlan, plan))
        return function

    @property
    def sources(self) -> tuple[Path, ...]:
        """What decides the generated text."""
        return (_HERE / "emit", *(_HERE / f"{name}.py" for name in ("config", "plan", "strips")))

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,R,S,C] in a plan's ``weight_form``; None for a form of another family."""
        return weight_words(form, w)

    def refused(self, cubin: bytes, log: str, local_bytes: int) -> str | None:
        """Why a kernel is not handed out although it was compiled, None when it is."""
        serialized = SERIALIZED.search(log)
        if serialized:
            return f"the compiler serialized the wgmma instructions ({serialized[1] or 'no reason given'})"
        return f"{local_bytes} bytes of local memory: sums do not fit the registers" if local_bytes else None

    def export(self, plan: Plan) -> ExportParts:
        """What a C header of the kernel needs."""
        return header_parts(cast(StemPlan, plan))

    # ---- showing ------------------------------------------------------------------------------------------------

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """How a layer is cut, and how taps share K."""
        from subbyte.families.stem.explain import TOPICS

        return TOPICS

    def loads_together(self, plan: Plan) -> PixelTile:
        """The output pixels of a turn, and of a warpgroup's tiles."""
        one = cast(StemPlan, plan)
        rows = min(one.config.tile_rows, one.workload.p)
        width = min(one.segment_units * one.strips.unit_pixels, one.workload.q)
        return PixelTile((rows, width), one.config.consumers, (rows, min(TILE_PIXELS, width)))


@cache
def _candidates(workload: ConvWorkload, arch: Arch) -> tuple[Configuration, ...]:
    if hopeless(workload, arch) is not None:
        return ()
    space = StemSpace(workload, arch, value_lists(workload), held_fields({}))
    plans = [space.plan(index) for index in space.valid]
    return tuple(plan.config for plan in sorted(plans, key=estimated_cycles))


STEM = StemFamily()

"""The family of kernels on one-bit warpgroup products."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.families.base import ExportParts, Family, Function, Plan
from subbyte.families.bits.config import BitsConfig
from subbyte.families.bits.estimate import FEATURES, estimated_cycles, feature_row
from subbyte.families.bits.header import header_parts
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.ring import estimate as ring_estimate
from subbyte.families.bits.ring.plan import RingPlan
from subbyte.families.bits.ring.space import KIND as RING
from subbyte.families.bits.ring.space import RingSpace, ring_space
from subbyte.families.bits.ring_config import RingConfig
from subbyte.families.bits.rules import hopeless, why_not
from subbyte.families.bits.space import KIND, held_fields, plan_of, value_lists
from subbyte.families.bits.tiles import PAIR_CHANNELS
from subbyte.families.bits.weights import threshold_words, weight_words
from subbyte.families.shared.one_by_one.space import OneByOneSpace
from subbyte.families.shared.reasons import spilled
from subbyte.families.topic import Topic
from subbyte.info_record import InfoRecord
from subbyte.numerics.thresholds import Thresholds
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.workload import workload as workload_named
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.precision import SUMS

_HERE = Path(__file__).parent


class BitsFamily(Family):
    """Kernels that multiply bit planes."""

    name = "bits"
    title = "wgmma b1, sm_90a"
    rank = 1
    configurations = (BitsConfig, RingConfig)
    kinds: ClassVar[Mapping[str, str]] = {
        KIND: "rows, channels and warpgroups of a block on one-bit products",
        RING: "deep matrix products and 1x1 layers: stages of a ring, clusters",
    }
    features = FEATURES
    fuses = True

    def changed(self, config: Configuration, values: Mapping[str, object]) -> Configuration:
        """A configuration with some fields replaced; it changes its kind if only the other kind has the fields. Raises
        InvalidInput."""
        if not set(values) <= set(config.rows):
            others = (kind for kind in self.configurations if set(values) <= set(kind.rows))
            config = next((kind() for kind in others), config)
        return config.with_values(values)

    def plan(
        self, workload: ConvWorkload, config: Configuration, arch: Arch, output: str = "bipolar1",
        clip: tuple[int, int] = (-1, 1), requant: str = "fixed",
    ) -> Plan:  # fmt: skip
        """The plan of a kernel."""
        if isinstance(config, RingConfig):
            return RingPlan(workload, config, arch, output, clip, requant)
        return BitsPlan(workload, cast(BitsConfig, config), arch, output, clip, requant)

    def check(self, plan: Plan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return why_not(cast(BitsPlan, plan))

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration at all can be built; None when some may."""
        return hopeless(workload, arch)

    def covers(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no kernel of the family computes the workload, None when one does."""
        reason = hopeless(workload, arch)
        if reason is not None:
            return reason
        space = self.space(workload, arch, KIND, {})
        if any(space.check(index) is None for index in range(len(space))) or _candidates(workload, arch):
            return None
        return space.check(0) or "no configuration of the bits family fits"

    def kind_of(self, workload: ConvWorkload, arch: Arch) -> str:
        """The kind of the kernel with the best estimate: a ring for deep matrix products."""
        if ring_space(self, workload, arch, {}).hopeless:
            return KIND
        return RING if isinstance(next(iter(_candidates(workload, arch)), None), RingConfig) else KIND

    def usual_plan(self, workload: ConvWorkload, config: Configuration, arch: Arch) -> BitsPlan:
        """The plan that gives the workload's output type."""
        return plan_of(workload, cast(BitsConfig, config), arch)

    def space(
        self, workload: ConvWorkload, arch: Arch, kind: str, fixed: Mapping[str, object]
    ) -> OneByOneSpace[BitsPlan]:
        """The space of a layer. Raises InvalidInput for a knob among the fixed fields."""
        if kind == RING:
            return ring_space(self, workload, arch, held_fields(fixed))
        return OneByOneSpace(self, BitsConfig(), workload, arch, value_lists(workload), held_fields(fixed), KIND)

    def recorded_space(
        self, workload: ConvWorkload, arch: Arch, kind: str, knobs: Mapping[str, tuple[Value, ...]],
        fixed: Mapping[str, Value], recorded_hash: str = "",
    ) -> OneByOneSpace[BitsPlan]:  # fmt: skip
        """The space of a record's header."""
        lists = cast("Mapping[str, tuple[int, ...]]", knobs)
        if kind == RING:
            return RingSpace(self, RingConfig(), workload, arch, lists, fixed, RING)
        return OneByOneSpace(self, BitsConfig(), workload, arch, lists, fixed, KIND)

    def held(self, fixed: Mapping[str, object]) -> dict[str, Value]:
        """The fields that do not vary. Raises InvalidInput for a knob."""
        return held_fields(fixed)

    def candidates(self, workload: ConvWorkload, arch: Arch) -> Iterable[Configuration]:
        """The configurations of the space, best estimate first; after them those that read plain words and
        write pairs of rows, for a next layer that reads pairs."""
        return _candidates(workload, arch)

    def estimate(self, plan: Plan) -> float:
        """A rough cycle count."""
        return _estimate(cast(BitsPlan, plan))

    def feature_row(self, plan: Plan) -> list[float]:
        """Cycles of products, comparisons and loads; waves."""
        if isinstance(plan, RingPlan):
            return ring_estimate.feature_row(plan)
        return feature_row(cast(BitsPlan, plan))

    def made_up_share(self, workload: ConvWorkload, config: Configuration) -> float:
        """Derived from the estimate."""
        plan = plan_of(workload, cast(BitsConfig, config), arch_named("sm_90a"))
        return min(0.9, 1000.0 / _estimate(plan))

    def emit(self, plan: Plan) -> Function:
        """The TIRx function."""
        from subbyte.families.bits.emit.kernel import bits_kernel
        from subbyte.families.bits.ring.emit.kernel import ring_kernel

        function: Function = ring_kernel(plan) if isinstance(plan, RingPlan) else bits_kernel(cast(BitsPlan, plan))
        return function

    @property
    def sources(self) -> tuple[Path, ...]:
        """The sources that determine the generated text."""
        numerics = (_HERE.parents[1] / "numerics" / f"{name}.py" for name in ("bit_products", "fusion"))
        return (
            _HERE / "emit",
            _HERE / "ring",
            *(_HERE / f"{name}.py" for name in ("config", "geometry", "plan", "tiles")),
            *numerics,
        )

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,R,S,C] as the blocks read them; None for a form of another family."""
        plan = _plan_of_form(form)
        return None if plan is None else weight_words(plan, w)

    def threshold_words(self, form: str, w: NDArray[np.int8], thresholds: Thresholds) -> NDArray[np.int32] | None:
        """The thresholds to compare sums of these weights with; None for a layout of another family."""
        plan = _plan_of_form(form)
        return None if plan is None else threshold_words(plan, w, thresholds)

    def refused(self, cubin: bytes, log: str, local_bytes: int) -> str | None:
        """Rejects kernels whose counts do not fit the registers."""
        return spilled(local_bytes, "counts")

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """How planes are composed."""
        from subbyte.families.bits.explain import TOPICS

        return TOPICS

    def export(self, plan: Plan) -> ExportParts:
        """What a C header of the kernel needs. Raises Unsupported for fused outputs and byte activations."""
        return header_parts(cast(BitsPlan, plan))


def _plan_of_form(form: str) -> BitsPlan | None:
    kind, *parts = form.split(" ")
    if kind != "bits":
        return None
    spec, key, output, *line = parts
    requant = "fixed" if line else "general"
    made = (RingConfig if key.startswith(RingConfig.prefix) else BitsConfig).from_key(key)
    return plan_of(workload_named(spec), made, arch_named("sm_90a"), output, requant)


@cache
def _candidates(workload: ConvWorkload, arch: Arch) -> tuple[Configuration, ...]:
    if hopeless(workload, arch) is not None:
        return ()
    spaces = [BITS.space(workload, arch, KIND, {})]
    rings = ring_space(BITS, workload, arch, {})
    spaces += [] if rings.hopeless else [rings]
    plans = [space.plan(index) for space in spaces for index in space.valid]
    if not plans:  # types with too many thresholds can still return raw sums
        every = (space.config(index) for space in spaces for index in range(len(space)))
        sums = (plan_of(workload, cast(BitsConfig, config), arch, SUMS) for config in every)
        plans = [plan for plan in sums if why_not(plan) is None]
    found = [plan.config for plan in sorted(plans, key=_estimate)]
    if workload.c > PAIR_CHANNELS >= workload.k:
        staged = [config for config in found if isinstance(config, BitsConfig)]
        paired = (plan_of(workload, config.with_values({"paired_rows": 1}), arch) for config in staged)
        found += [plan.config for plan in sorted(paired, key=estimated_cycles) if why_not(plan) is None]
    return tuple(found)


def _estimate(plan: BitsPlan) -> float:
    return ring_estimate.estimated_cycles(plan) if isinstance(plan, RingPlan) else estimated_cycles(plan)


BITS = BitsFamily()

"""The family of kernels that skip the zeros they find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from math import log2
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.families.base import ExportParts, Family, Function, Plan
from subbyte.families.condense.config import CondenseConfig
from subbyte.families.condense.dense import dense_at
from subbyte.families.condense.estimate import estimated_cycles, kept, tile_steps
from subbyte.families.condense.live import kept_of, live_columns, live_rows, steps_of
from subbyte.families.condense.plan import BLOCK_WORDS, FORM, CondensePlan
from subbyte.families.condense.rules import other_layers, why_not
from subbyte.families.condense.space import KIND, VALUES, CondenseSpace, held_fields
from subbyte.families.condense.weights import prepare_weights
from subbyte.families.topic import Topic
from subbyte.info_record import InfoRecord
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.workload.conv import ConvWorkload

_HERE = Path(__file__).parent
_SHARE = 2e5
"""Cycles of the estimate at which the fake runner makes up half of the most."""


class CondenseFamily(Family):
    """Kernels that gather the positions of K where neither side is all zeros."""

    name = "condense"
    title = "mma.sync on gathered positions, sm_80 and later"
    rank = -2
    configurations = (CondenseConfig,)
    kinds: ClassVar[Mapping[str, str]] = {KIND: "tiles and stages of kernels that skip the zeros they find"}
    features = ("estimate", "rows", "columns", "threads", "chunks", "shared", "blocks")

    # ---- plans and spaces -------------------------------------------------------------------------------------------

    def plan(
        self, workload: ConvWorkload, config: Configuration, arch: Arch, output: str = "int4",
        clip: tuple[int, int] = (-8, 7), requant: str = "fixed",
    ) -> Plan:  # fmt: skip
        """The plan of a kernel."""
        return CondensePlan(workload, cast(CondenseConfig, config), arch, output, clip, requant)

    def check(self, plan: Plan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return why_not(cast(CondensePlan, plan))

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration can be built, whatever it is; None when some may."""
        return other_layers(workload, arch)

    def covers(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no kernel of the family computes the workload, None when one does."""
        reason = other_layers(workload, arch)
        if reason is not None or next(iter(self.candidates(workload, arch)), None) is not None:
            return reason
        return self.space(workload, arch, KIND, {}).check(0)

    def space(self, workload: ConvWorkload, arch: Arch, kind: str, fixed: Mapping[str, object]) -> CondenseSpace:
        """The space of a product. Raises InvalidInput for a knob among the fixed fields."""
        return CondenseSpace(workload, arch, VALUES, self.held(fixed), kind)

    def recorded_space(
        self, workload: ConvWorkload, arch: Arch, kind: str, knobs: Mapping[str, tuple[Value, ...]],
        fixed: Mapping[str, Value], recorded_hash: str = "",
    ) -> CondenseSpace:  # fmt: skip
        """The space of a record's header."""
        return CondenseSpace(workload, arch, cast("Mapping[str, tuple[int, ...]]", knobs), fixed, kind)

    def held(self, fixed: Mapping[str, object]) -> dict[str, Value]:
        """The fields that do not vary. Raises InvalidInput for a knob."""
        return held_fields(fixed)

    # ---- choosing ---------------------------------------------------------------------------------------------------

    def candidates(self, workload: ConvWorkload, arch: Arch) -> Iterable[Configuration]:
        """The configurations of the space, the one estimated fastest first, at a density of 5 % on both sides."""
        return _candidates(self, workload, arch)

    finds_zeros = True

    def dense_at(self, workload: ConvWorkload, density: float) -> str | None:
        """By what was measured of this product, or of others."""
        return dense_at(workload, density)

    def keeps(self, plan: Plan, x: NDArray[np.int8], w: NDArray[np.int8]) -> dict[str, float] | None:
        """Shares of K that tiles keep, and steps of 32 positions of a tile."""
        one = cast(CondensePlan, plan)
        rows, columns = live_rows(one, x), live_columns(one, w)
        densities = float(np.mean(x != 0)), float(np.mean(w != 0))
        share = kept(*densities, one.config.tile_columns)
        return {
            "kept": kept_of(rows, columns), "kept_expected": share,
            "steps": steps_of(one, rows, columns), "steps_expected": tile_steps(one, share),
        }  # fmt: skip

    def estimate(self, plan: Plan) -> float:
        """A rough count of cycles, at a density of 5 % on both sides."""
        return estimated_cycles(cast(CondensePlan, plan))

    def feature_row(self, plan: Plan) -> list[float]:
        """The estimate, and sizes of tiles, stages and launch."""
        one = cast(CondensePlan, plan)
        found = (
            estimated_cycles(one), one.block_pixels, one.columns, one.config.threads, one.chunks, one.shared_bytes,
            one.launch.grid[0] * one.launch.grid[1],
        )  # fmt: skip
        return [log2(1 + value) for value in found]

    def made_up_share(self, workload: ConvWorkload, config: Configuration) -> float:
        """By the estimate."""
        cycles = estimated_cycles(CondensePlan(workload, cast(CondenseConfig, config), arch_named("sm_90a")))
        return min(0.9, max(0.005, _SHARE / (_SHARE + cycles)))

    # ---- generating -------------------------------------------------------------------------------------------------

    def emit(self, plan: Plan) -> Function:
        """The TIRx function."""
        from subbyte.families.condense.emit.kernel import condense_kernel

        function: Function = condense_kernel(cast(CondensePlan, plan))
        return function

    @property
    def sources(self) -> tuple[Path, ...]:
        """What decides the generated text."""
        return (_HERE / "emit", _HERE / "plan.py", _HERE / "config.py")

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,1,1,C] with the filters of a position together; None for a form of another family."""
        return prepare_weights(w) if form == FORM else None

    def refused(self, cubin: bytes, log: str, local_bytes: int) -> str | None:
        """Kernels whose sums do not fit the registers."""
        return f"{local_bytes} bytes of local memory: sums do not fit the registers" if local_bytes else None

    def export(self, plan: Plan) -> ExportParts:
        """What a C header of the kernel needs."""
        w = plan.workload
        text = (_HERE / "weights.h").read_text(encoding="utf-8")
        return ExportParts({"weights": text}, (w.filter_blocks, w.channel_blocks, BLOCK_WORDS), {})

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """What tiles keep."""
        from subbyte.families.condense.explain import TOPICS

        return TOPICS


@cache
def _candidates(family: CondenseFamily, workload: ConvWorkload, arch: Arch) -> tuple[Configuration, ...]:
    if other_layers(workload, arch) is not None:
        return ()
    space = family.space(workload, arch, KIND, {})
    plans = [space.plan(index) for index in space.valid]
    return tuple(plan.config for plan in sorted(plans, key=estimated_cycles))


CONDENSE = CondenseFamily()

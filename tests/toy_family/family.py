"""The family object: all that the library asks of a kind of kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import log2
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.families.base import ExportParts, Family, Function, Plan
from subbyte.families.topic import Topic
from subbyte.info_record import InfoRecord
from subbyte.numerics.layout import pad_axis
from subbyte.numerics.values import encode
from subbyte.numerics.words import pack_codes
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.workload import register_encoding
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.precision import Precision
from toy_family.config import VALUES, ToyConfig
from toy_family.plan import ToyPlan, why_not
from toy_family.space import KIND, ToySpace, held, plan_of
from toy_family.threads import TOPICS
from toy_family.types import CHANNELS, POWERS, TYPES, WORDS, other_types

_HERE = Path(__file__).parent
register_encoding(POWERS)  # processes that build for this one import this module, and no more


class ToyFamily(Family):
    """Kernels on CUDA cores, of 2-bit operands."""

    name = "toy"
    title = "imad, every architecture"
    rank = 0
    configurations = (ToyConfig,)
    kinds: ClassVar[Mapping[str, str]] = {KIND: "threads, words and unrolling"}
    features = ("estimate", "threads")

    def plan(
        self, workload: ConvWorkload, config: Configuration, arch: Arch, output: str = "uint2",
        clip: tuple[int, int] = (0, 3), requant: str = "fixed",
    ) -> Plan:  # fmt: skip
        """The plan of a kernel."""
        return ToyPlan(workload, cast(ToyConfig, config), arch, output, clip, requant)

    def check(self, plan: Plan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return why_not(cast(ToyPlan, plan))

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration can be built, None when some may."""
        return other_types(workload)

    def covers(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no kernel computes the workload, None when one does."""
        return other_types(workload)

    def space(self, workload: ConvWorkload, arch: Arch, kind: str, fixed: Mapping[str, object]) -> ToySpace:
        """The space of a layer."""
        return ToySpace(workload, arch, VALUES, held(fixed))

    def recorded_space(
        self, workload: ConvWorkload, arch: Arch, kind: str, knobs: Mapping[str, Any], fixed: Mapping[str, Value]
    ) -> ToySpace:
        """The space of a record's header."""
        return ToySpace(workload, arch, knobs, fixed)

    def held(self, fixed: Mapping[str, object]) -> dict[str, Value]:
        """The switch."""
        return held(fixed)

    def candidates(self, workload: ConvWorkload, arch: Arch) -> Iterable[Configuration]:
        """The one estimated fastest first."""
        if other_types(workload) is not None:
            return []
        space = self.space(workload, arch, KIND, {})
        return sorted(map(space.config, space.valid), key=lambda config: _estimate(plan_of(workload, config, arch)))

    def estimate(self, plan: Plan) -> float:
        """A rough count of cycles."""
        return _estimate(cast(ToyPlan, plan))

    def feature_row(self, plan: Plan) -> list[float]:
        """Logarithms of the estimate and of the threads."""
        return [log2(self.estimate(plan)), log2(plan.launch.block[0])]

    def made_up_share(self, workload: ConvWorkload, config: Configuration) -> float:
        """More words of a thread and written out loops win."""
        one = cast(ToyConfig, config)
        return 0.02 * one.words * (1.5 if one.unroll else 1.0) * (1.0 if one.threads == 64 else 0.8)

    def emit(self, plan: Plan) -> Function:
        """The TIRx function."""
        from toy_family.emit import conv_kernel

        function: Function = conv_kernel(cast(ToyPlan, plan))
        return function

    @property
    def sources(self) -> tuple[Path, ...]:
        """What decides the generated text."""
        return tuple(_HERE / f"{name}.py" for name in ("emit", "plan", "types"))

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,R,S,C] as [filters, filled up][R][S][words]; None for a form of another family."""
        if form != "toy":
            return None
        operand = Precision.of(TYPES).weights
        return pack_codes(pad_axis(pad_axis(encode(w, operand), 3, CHANNELS), 0, CHANNELS), operand)

    def export(self, plan: Plan) -> ExportParts:
        """What a C header needs: all that knows the types of operands."""
        w = plan.workload
        parts = re.split(r"^//@ (\w+)\n", (_HERE / "export.h").read_text(encoding="utf-8"), flags=re.MULTILINE)
        texts = dict(zip(parts[1::2], parts[2::2], strict=True))
        sections = {"index": texts[f"index_{plan.layout}"], "output": texts[f"output_{plan.output}"]}
        sections |= {name: texts[name] for name in ("operands", "weights")}
        return ExportParts(sections, (w.padded_filters, w.r, w.s, w.channel_blocks * WORDS), {})

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """Threads."""
        return TOPICS


def _estimate(plan: ToyPlan) -> float:
    return plan.work / plan.config.threads * (plan.columns + 8.0) * (1.0 if plan.config.unroll else 1.5)


TOY = ToyFamily()

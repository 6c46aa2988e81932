"""The family of kernels for few input channels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.families.base import ExportParts, Function, PixelTile, Plan
from subbyte.families.shared.one_by_one.family import OneByOneFamily
from subbyte.families.stem.config import StemConfig
from subbyte.families.stem.estimate import FEATURES, estimated_cycles, feature_row
from subbyte.families.stem.header import header_parts
from subbyte.families.stem.plan import StemPlan
from subbyte.families.stem.rules import hopeless, why_not
from subbyte.families.stem.space import KIND, KNOBS, value_lists
from subbyte.families.stem.weights import weight_words
from subbyte.families.topic import Topic
from subbyte.info_record import InfoRecord
from subbyte.workload.conv import ConvWorkload

_HERE = Path(__file__).parent


class StemFamily(OneByOneFamily[StemPlan]):
    """Kernels whose K consists of the taps of a window and their few channels."""

    name = "stem"
    title = "wgmma on up to 8 input channels, sm_90a"
    rank = 3
    configurations = (StemConfig,)
    planned = StemPlan
    varied = KNOBS
    kinds: ClassVar[Mapping[str, str]] = {KIND: "rows, channels, warpgroups and turns of a block on few input channels"}
    features = FEATURES
    starts_plain = False
    special = True
    space_version = 3

    # ---- rules and spaces --------------------------------------------------------------------------------------------

    def why_not(self, plan: StemPlan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return why_not(plan)

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration at all can be built; None when some may."""
        return hopeless(workload, arch)

    def value_lists(self, workload: ConvWorkload) -> Mapping[str, tuple[int, ...]]:
        """The value lists for a layer."""
        return value_lists(workload)

    def cycles(self, plan: StemPlan) -> float:
        """A rough count."""
        return estimated_cycles(plan)

    def feature_row(self, plan: Plan) -> list[float]:
        """The estimate, and its components."""
        return feature_row(cast(StemPlan, plan))

    # ---- generating ---------------------------------------------------------------------------------------------

    def emit(self, plan: Plan) -> Function:
        """The TIRx function."""
        from subbyte.families.stem.emit.kernel import stem_kernel

        function: Function = stem_kernel(cast(StemPlan, plan))
        return function

    @property
    def sources(self) -> tuple[Path, ...]:
        """The sources that determine the generated text."""
        return (_HERE / "emit", *(_HERE / f"{name}.py" for name in ("config", "plan", "strings")))

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,R,S,C] in a plan's ``weight_form``; None for a form of another family."""
        return weight_words(form, w)

    def export(self, plan: Plan) -> ExportParts:
        """What a C header of the kernel needs."""
        return header_parts(cast(StemPlan, plan))

    # ---- showing ------------------------------------------------------------------------------------------------

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """How a layer is divided, and how taps share K."""
        from subbyte.families.stem.explain import TOPICS

        return TOPICS

    def loads_together(self, plan: Plan) -> PixelTile:
        """The output pixels of a turn, and of a warpgroup's tiles."""
        one = cast(StemPlan, plan)
        rows = min(one.config.turn_rows, one.workload.p)
        width = min(one.segment_units * one.strings.unit_pixels, one.workload.q)
        return PixelTile((rows, width), one.config.consumers, (rows, min(one.config.pixels, width)))


STEM = StemFamily()

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
from subbyte.families.windows.config import TILE_PIXELS, WindowsConfig
from subbyte.families.windows.estimate import FEATURES, estimated_cycles, feature_row
from subbyte.families.windows.header import header_parts
from subbyte.families.windows.plan import WindowsPlan
from subbyte.families.windows.rules import hopeless, why_not
from subbyte.families.windows.space import KIND, KNOBS, value_lists
from subbyte.families.windows.weights import weight_words
from subbyte.families.topic import Topic
from subbyte.info_record import InfoRecord
from subbyte.workload.conv import ConvWorkload

_HERE = Path(__file__).parent


class WindowsFamily(OneByOneFamily[WindowsPlan]):
    """Kernels whose K is the columns of a kernel row and their channels."""

    name = "windows"
    title = "wgmma on up to 8 input channels, sm_90a"
    rank = 4
    configurations = (WindowsConfig,)
    planned = WindowsPlan
    varied = KNOBS
    kinds: ClassVar[Mapping[str, str]] = {KIND: "rows, channels, warpgroups and turns of a block on few input channels"}
    features = FEATURES
    starts_plain = False
    special = True

    # ---- rules and spaces --------------------------------------------------------------------------------------------

    def why_not(self, plan: WindowsPlan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return why_not(plan)

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration can be built, whatever it is; None when some may."""
        return hopeless(workload, arch)

    def value_lists(self, workload: ConvWorkload) -> Mapping[str, tuple[int, ...]]:
        """What the space offers for a layer."""
        return value_lists(workload)

    def cycles(self, plan: WindowsPlan) -> float:
        """A rough count."""
        return estimated_cycles(plan)

    def feature_row(self, plan: Plan) -> list[float]:
        """The estimate, and what it is made of."""
        return feature_row(cast(WindowsPlan, plan))

    # ---- generating ---------------------------------------------------------------------------------------------

    def emit(self, plan: Plan) -> Function:
        """The TIRx function."""
        from subbyte.families.windows.emit.kernel import windows_kernel

        function: Function = windows_kernel(cast(WindowsPlan, plan))
        return function

    @property
    def sources(self) -> tuple[Path, ...]:
        """What decides the generated text."""
        return (_HERE / "emit", *(_HERE / f"{name}.py" for name in ("config", "plan", "strings")))

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,R,S,C] in a plan's ``weight_form``; None for a form of another family."""
        return weight_words(form, w)

    def export(self, plan: Plan) -> ExportParts:
        """What a C header of the kernel needs."""
        return header_parts(cast(WindowsPlan, plan))

    # ---- showing ------------------------------------------------------------------------------------------------

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """How a layer is cut, and how taps share K."""
        from subbyte.families.windows.explain import TOPICS

        return TOPICS

    def loads_together(self, plan: Plan) -> PixelTile:
        """The output pixels of a turn, and of a warpgroup's tiles."""
        one = cast(WindowsPlan, plan)
        rows = min(one.config.tile_rows, one.workload.p)
        width = min(one.segment_units * one.strings.unit_pixels, one.workload.q)
        return PixelTile((rows, width), one.config.consumers, (rows, min(TILE_PIXELS, width)))


WINDOWS = WindowsFamily()

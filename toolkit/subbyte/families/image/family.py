"""The family of kernels whose columns are pixels of one image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from math import prod
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.families.base import ExportParts, Family, Function, PixelTile, Plan
from subbyte.families.image.config import ImageConfig
from subbyte.families.image.estimate import FEATURES, estimated_cycles, feature_row
from subbyte.families.image.plan import ImagePlan
from subbyte.families.image.rules import hopeless, why_not
from subbyte.families.image.space import KIND, ImageSpace, held_fields, value_lists
from subbyte.families.topic import Topic
from subbyte.families.wgmma.family import FRAGMENT_THREADS, SERIALIZED, WGMMA
from subbyte.info_record import InfoRecord
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.workload.conv import CHANNEL_BLOCK, ConvWorkload

_HERE = Path(__file__).parent
_CLEARLY = 0.9
"""Share of the wgmma family's estimate up to which kernels of one image are taken."""
_SHARE = 2e4
"""Cycles of the estimate at which the fake runner makes up half of the most."""


class ImageFamily(Family):
    """Kernels whose blocks compute pixels of one image each: of batches that are far from a multiple of 8."""

    name = "image"
    title = "wgmma on pixels of one image, sm_90a"
    rank = 1
    configurations = (ImageConfig,)
    kinds: ClassVar[Mapping[str, str]] = {KIND: "pixels, warpgroups and clusters of a block on one image"}
    features = FEATURES
    starts_plain = False
    special = True

    # ---- plans and spaces ---------------------------------------------------------------------------------------

    def plan(
        self, workload: ConvWorkload, config: Configuration, arch: Arch, output: str = "int4",
        clip: tuple[int, int] = (-8, 7), requant: str = "fixed",
    ) -> Plan:  # fmt: skip
        """The plan of a kernel."""
        return ImagePlan(workload, cast(ImageConfig, config), arch, output, clip, requant)

    def check(self, plan: Plan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return why_not(cast(ImagePlan, plan))

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration can be built, whatever it is; None when some may."""
        return hopeless(workload, arch)

    def leads(self, workload: ConvWorkload, arch: Arch) -> bool:
        """Where its estimate is clearly below that of the wgmma family, which multiplies 8 images."""
        return _leads(workload, arch)

    def covers(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no kernel of the family computes the workload, None when one does."""
        reason = hopeless(workload, arch)
        if reason is not None or _candidates(workload, arch):
            return reason
        return self.space(workload, arch, KIND, {}).check(0)

    def space(self, workload: ConvWorkload, arch: Arch, kind: str, fixed: Mapping[str, object]) -> ImageSpace:
        """The space of a layer. Raises InvalidInput for a knob among the fixed fields."""
        return ImageSpace(workload, arch, value_lists(workload), self.held(fixed), kind)

    def recorded_space(
        self, workload: ConvWorkload, arch: Arch, kind: str, knobs: Mapping[str, tuple[Value, ...]],
        fixed: Mapping[str, Value], recorded_hash: str = "",
    ) -> ImageSpace:  # fmt: skip
        """The space of a record's header."""
        return ImageSpace(workload, arch, cast("Mapping[str, tuple[int, ...]]", knobs), fixed, kind)

    def held(self, fixed: Mapping[str, object]) -> dict[str, Value]:
        """The fields that do not vary. Raises InvalidInput for a knob."""
        return held_fields(fixed)

    # ---- choosing -----------------------------------------------------------------------------------------------

    def candidates(self, workload: ConvWorkload, arch: Arch) -> Iterable[Configuration]:
        """The configurations of the space, the one estimated fastest first."""
        return _candidates(workload, arch)

    def estimate(self, plan: Plan) -> float:
        """A rough count of cycles."""
        return estimated_cycles(cast(ImagePlan, plan))

    def feature_row(self, plan: Plan) -> list[float]:
        """The estimate, and what it is made of."""
        return feature_row(cast(ImagePlan, plan))

    def made_up_share(self, workload: ConvWorkload, config: Configuration) -> float:
        """By the estimate."""
        cycles = estimated_cycles(ImagePlan(workload, cast(ImageConfig, config), arch_named("sm_90a")))
        return min(0.9, max(0.005, _SHARE / (_SHARE + cycles)))

    # ---- generating ---------------------------------------------------------------------------------------------

    def emit(self, plan: Plan) -> Function:
        """The TIRx function."""
        from subbyte.families.image.emit.kernel import image_kernel

        function: Function = image_kernel(cast(ImagePlan, plan))
        return function

    @property
    def sources(self) -> tuple[Path, ...]:
        """What decides the generated text."""
        return (_HERE / "emit", *(_HERE / f"{name}.py" for name in ("config", "plan")))

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,R,S,C] in a plan's ``weight_form``; None for a form of another family."""
        return None  # its forms are those of the wgmma family

    def refused(self, cubin: bytes, log: str, local_bytes: int) -> str | None:
        """Why a kernel is not handed out although it was compiled, None when it is."""
        serialized = SERIALIZED.search(log)
        if serialized:
            return f"the compiler serialized the wgmma instructions ({serialized[1] or 'no reason given'})"
        return (
            f"{local_bytes} bytes of local memory: sums and weights do not fit the registers" if local_bytes else None
        )

    def export(self, plan: Plan) -> ExportParts:
        """What a C header of the kernel needs."""
        one = cast(ImagePlan, plan)
        w, config = one.workload, one.config
        sizes = (one.filter_tiles, config.ways, w.r, 1, one.steps, w.s)
        axes = list(zip(("tile", "rank", "row", "group", "step", "column"), sizes, strict=True))
        words = {
            "halves": str(one.halves), "steps": str(one.steps), "weight_groups": "1",
            "fragment_channels": str(one.halves * CHANNEL_BLOCK),
            "weight_axes": ", ".join(f"{name} [{size}]" for name, size in axes),
            **{f"{name}_step": str(prod(sizes[index + 1 :])) for index, (name, _) in enumerate(axes)},
        }  # fmt: skip
        text = (_HERE.parent / "wgmma/weights.h").read_text(encoding="utf-8")
        return ExportParts({"weights": text}, (*sizes, FRAGMENT_THREADS, 4), words)

    # ---- showing ------------------------------------------------------------------------------------------------

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """How a layer is cut."""
        from subbyte.families.image.explain import TOPICS

        return TOPICS

    def loads_together(self, plan: Plan) -> PixelTile:
        """The output pixels of a block: its warpgroups share them."""
        one = cast(ImagePlan, plan)
        return PixelTile(one.tile, one.config.warpgroups, one.tile)


@cache
def _candidates(workload: ConvWorkload, arch: Arch) -> tuple[Configuration, ...]:
    if hopeless(workload, arch) is not None:
        return ()
    space = ImageSpace(workload, arch, value_lists(workload), held_fields({}))
    plans = [space.plan(index) for index in space.valid]
    return tuple(plan.config for plan in sorted(plans, key=estimated_cycles))


@cache
def _leads(workload: ConvWorkload, arch: Arch) -> bool:
    own, other = (next(iter(one.candidates(workload, arch)), None) for one in (IMAGE, WGMMA))
    if own is None or other is None:
        return own is not None
    estimates = [one.estimate(one.plan(workload, config, arch)) for one, config in ((IMAGE, own), (WGMMA, other))]
    return estimates[0] <= _CLEARLY * estimates[1]


IMAGE = ImageFamily()

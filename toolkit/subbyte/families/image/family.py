"""The family of kernels whose columns are pixels of one image."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import prod
from pathlib import Path
from typing import ClassVar, cast

from subbyte.device.arch import Arch
from subbyte.families.base import ExportParts, Function, PixelTile, Plan
from subbyte.families.image.config import ImageConfig
from subbyte.families.image.estimate import FEATURES, estimated_cycles, feature_row
from subbyte.families.image.plan import ImagePlan
from subbyte.families.image.rules import hopeless, why_not
from subbyte.families.image.space import KIND, KNOBS, value_lists
from subbyte.families.shared.one_by_one.family import OneByOneFamily
from subbyte.families.stem.family import STEM
from subbyte.families.topic import Topic
from subbyte.families.wgmma.batches import microseconds
from subbyte.families.wgmma.family import WGMMA
from subbyte.families.wgmma.header import FRAGMENT_THREADS
from subbyte.families.wgmma.model import CLOCK_MHZ
from subbyte.info_record import InfoRecord
from subbyte.workload.conv import BATCH_GROUP, CHANNEL_BLOCK, ConvWorkload

_HERE = Path(__file__).parent
_SHARE = 0.94
"""The fraction of the wgmma family's expected time below which these kernels are used, for fewer than 8 images: of the
layers that were timed in both families it takes the slower one seldom and by little; of the 13 of more images kernels
of one image were 1 % faster at best (notes/tuning.md)."""


class ImageFamily(OneByOneFamily[ImagePlan]):
    """Kernels whose blocks each compute pixels of one image: for batches far from a multiple of 8."""

    name = "image"
    title = "wgmma on pixels of one image, sm_90a"
    rank = 1
    configurations = (ImageConfig,)
    planned = ImagePlan
    varied = KNOBS
    in_registers = "sums and weights"
    kinds: ClassVar[Mapping[str, str]] = {KIND: "pixels, warpgroups and clusters of a block on one image"}
    features = FEATURES
    starts_plain = False
    special = True

    # ---- rules and spaces --------------------------------------------------------------------------------------------

    def why_not(self, plan: ImagePlan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return why_not(plan)

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration at all can be built; None when some may."""
        return hopeless(workload, arch)

    def leads(self, workload: ConvWorkload, arch: Arch) -> bool:
        """Whether its estimate is clearly below the expected time of the wgmma family, whose kernels multiply 8 images,
        for fewer images than that; never where the layer has so few channels that kernels of the stem family fit."""
        return _leads(workload, arch)

    def value_lists(self, workload: ConvWorkload) -> Mapping[str, tuple[int, ...]]:
        """The value lists for a layer."""
        return value_lists(workload)

    def cycles(self, plan: ImagePlan) -> float:
        """A rough count."""
        return estimated_cycles(plan)

    def feature_row(self, plan: Plan) -> list[float]:
        """The estimate, and its components."""
        return feature_row(cast(ImagePlan, plan))

    # ---- generating ---------------------------------------------------------------------------------------------

    def emit(self, plan: Plan) -> Function:
        """The TIRx function."""
        from subbyte.families.image.emit.kernel import image_kernel

        function: Function = image_kernel(cast(ImagePlan, plan))
        return function

    @property
    def sources(self) -> tuple[Path, ...]:
        """The sources that determine the generated text."""
        return (_HERE / "emit", *(_HERE / f"{name}.py" for name in ("config", "plan")))

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
        """How a layer is divided."""
        from subbyte.families.image.explain import TOPICS

        return TOPICS

    def loads_together(self, plan: Plan) -> PixelTile:
        """The output pixels of a block: its warpgroups share them."""
        one = cast(ImagePlan, plan)
        return PixelTile(one.tile, one.config.warpgroups, one.tile)


@cache
def _leads(workload: ConvWorkload, arch: Arch) -> bool:
    if STEM.covers(workload, arch) is None:  # of few channels nothing was timed; they have kernels of their own
        return False
    own, other = (next(iter(one.candidates(workload, arch)), None) for one in (IMAGE, WGMMA))
    if own is None or other is None:
        return own is not None
    expected, cycles = microseconds(workload, arch), IMAGE.estimate(IMAGE.plan(workload, own, arch))
    if expected is None:  # the model covers no such kernels, or finds none: an estimate beside an estimate
        return cycles < WGMMA.estimate(WGMMA.plan(workload, other, arch))
    return workload.n < BATCH_GROUP and cycles / CLOCK_MHZ < _SHARE * expected


IMAGE = ImageFamily()

"""The family of kernels on ``wgmma``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import log2, prod
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.families.base import ExportParts, Family, PixelTile
from subbyte.families.base import Plan as AnyPlan
from subbyte.families.topic import Topic
from subbyte.families.wgmma.config import REMOVED, WarpgroupConfig, without_removed
from subbyte.families.wgmma.estimate import estimated_cycles, warpgroup_candidates
from subbyte.families.wgmma.faults import fault, wrapped_indices
from subbyte.families.wgmma.plan import WarpgroupPlan
from subbyte.families.wgmma.rules import hopeless_warpgroup, why_not_warpgroup
from subbyte.families.wgmma.small_space import SMALL, small_space
from subbyte.families.wgmma.space import WARPGROUP, WarpgroupSpace, held_switches, warpgroup_space, warpgroup_values
from subbyte.families.wgmma.weights import ORDERS, prepare_warpgroup_weights
from subbyte.info_record import InfoRecord
from subbyte.spaces.configuration import Configuration
from subbyte.workload.conv import CHANNEL_BLOCK, ConvWorkload

_HERE = Path(__file__).parent
FORM = "warpgroup-"
"""How the form of the weights begins."""
FRAGMENT_THREADS = 128
AXES = ("tile", "rank", "row", "group", "step", "column")
"""Axes of the weights: 64 filters, block of the cluster, kernel row, part of the input channels, step of 32 or 64
channels within it, kernel column."""
SERIALIZED = re.compile(r"wgmma\.mma_async instructions are serialized(?: due to (.*?) (?:in|for) the function)?")
"""What the CUDA assembler says when it waits behind every wgmma, with its reason (messages C7510 to C7520)."""
WRAPPED = "subbyte: index in too few bits:"
"""How the lines begin that are added to the compiler's report where its PTX holds such a fault."""
LESS = "choose fewer rows, less unroll, load_ahead=1, weight_ring=0, weights_ahead=0 or in_flight=1"


class WgmmaFamily(Family):
    """Kernels whose warpgroups multiply out of shared memory."""

    name = "warpgroup"
    title = "wgmma, sm_90a"
    rank = 2
    aliases = ("wgmma",)
    configurations = (WarpgroupConfig,)
    kinds: ClassVar[Mapping[str, str]] = {
        WARPGROUP: "what the shape of the layer asks for", SMALL: "a part of it that can be measured whole",
    }  # fmt: skip
    parts: ClassVar[Mapping[str, str]] = {WARPGROUP: SMALL}
    features = ("estimate",)
    removed = REMOVED
    slow_to_list = True
    starts_plain = False

    def still_there(self, knobs: Mapping[str, tuple[Any, ...]]) -> Mapping[str, tuple[Any, ...]]:
        """Value lists without removed knobs. Raises Unsupported where some kernels had one."""
        held = without_removed({name: values[0] if len(values) == 1 else values for name, values in knobs.items()})
        return {name: knobs[name] for name in held}

    def decode(self, values: Mapping[str, Any]) -> Configuration | None:
        """The configuration of recorded fields, also of earlier versions. Raises InvalidInput, and Unsupported for a
        kernel with a knob that is no more."""
        known = {*WarpgroupConfig.rows, *REMOVED}
        return WarpgroupConfig.from_dict(values) if "groups_m" in values and set(values) <= known else None

    def plan(
        self, workload: ConvWorkload, config: Configuration, arch: Arch, output: str = "int4",
        clip: tuple[int, int] = (-8, 7), requant: str = "fixed",
    ) -> AnyPlan:  # fmt: skip
        """The plan of a kernel."""
        return WarpgroupPlan(workload, cast(WarpgroupConfig, config), arch, output, clip, requant)

    def why_not(self, plan: AnyPlan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return why_not_warpgroup(cast(WarpgroupPlan, plan))

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration can be built, whatever it is; None when some may."""
        return hopeless_warpgroup(workload, arch)

    def covers(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no kernel computes the workload, None when one does: else the reason that the plainest is refused."""
        reason = hopeless_warpgroup(workload, arch)
        if reason is not None or next(iter(self.candidates(workload, arch)), None) is not None:
            return reason
        narrowest = min(warpgroup_values(workload)["tile_width"])
        plainest = why_not_warpgroup(WarpgroupPlan(workload, WarpgroupConfig(tile_width=narrowest), arch))
        return plainest or "no configuration of the warpgroup family fits"

    def space(self, workload: ConvWorkload, arch: Arch, kind: str, fixed: Mapping[str, Any]) -> WarpgroupSpace:
        """The space of a kind. Raises InvalidInput for a knob among the fixed fields."""
        return (small_space if kind == SMALL else warpgroup_space)(workload, arch, fixed)

    def recorded_space(
        self, workload: ConvWorkload, arch: Arch, kind: str, knobs: Mapping[str, Any], fixed: Mapping[str, Any]
    ) -> WarpgroupSpace:
        """The space of a record's header under today's constraints."""
        return WarpgroupSpace(workload, arch, knobs, kind, fixed)

    def held(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """All switches, with those of ``fixed`` set. Raises InvalidInput for a knob."""
        return held_switches(fixed)

    def candidates(self, workload: ConvWorkload, arch: Arch) -> Iterable[Configuration]:
        """Configurations that can be built, the one estimated fastest first."""
        return () if hopeless_warpgroup(workload, arch) is not None else _ranked(workload, arch)

    def estimate(self, plan: AnyPlan) -> float:
        """A rough count of cycles."""
        return estimated_cycles(cast(WarpgroupPlan, plan))

    def feature_row(self, plan: AnyPlan) -> list[float]:
        """The logarithm of the estimated cycles."""
        return [log2(estimated_cycles(cast(WarpgroupPlan, plan)))]

    def made_up_share(self, workload: ConvWorkload, config: Configuration) -> float:
        """Mid-sized tiles win, and sharing channels among blocks costs."""
        made = cast(WarpgroupConfig, config)
        tile = math.log2(made.tile_width * made.tile_rows * made.consumers)
        return 0.6 * math.exp(-(((tile - 5.5) / 2.0) ** 2)) * (1.0 if made.split == 1 else 0.8)

    def emit(self, plan: AnyPlan) -> Any:
        """The TIRx function of a plan."""
        from subbyte.families.wgmma.emit.conv import warpgroup_kernel

        return warpgroup_kernel(cast(WarpgroupPlan, plan))

    @property
    def sources(self) -> tuple[Path, ...]:
        """What decides the generated text."""
        files = ("config", "geometry", "halves", "memory", "plan")
        return (_HERE / "emit", *(_HERE / f"{name}.py" for name in files))

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,R,S,C] in a plan's ``weight_form``; None for a form of another family."""
        if not form.startswith(FORM):
            return None
        split, groups, order, tiles = form.removeprefix(FORM).split("-")
        return prepare_warpgroup_weights(w, int(split), int(groups), order, int(tiles))

    def report(self, ptx: str) -> list[str]:
        """Indices that the compiler computes in too few bits."""
        return [f"{WRAPPED} {line}" for line in wrapped_indices(ptx)]

    def refused(self, cubin: bytes, log: str, local_bytes: int) -> str | None:
        """Why a kernel is not handed out although it was compiled, None when it is."""
        serialized = SERIALIZED.search(log)
        if serialized:
            return (
                f"the compiler serialized the wgmma instructions ({serialized[1] or 'no reason given'}), which makes "
                f"them several times slower; {LESS}"
            )
        if local_bytes:
            return f"the compiler put {local_bytes} bytes of a thread into local memory; {LESS}"
        if WRAPPED in log:
            return (
                "the compiler computes an index in too few bits; choose another tile_rows, channel_groups or load_ahead"
            )
        reason = fault(cubin)
        return reason and f"{reason}; choose another tile_rows, ring or load_ahead"

    def export(self, plan: AnyPlan) -> ExportParts:
        """What a C header of the kernel needs."""
        one = cast(WarpgroupPlan, plan)
        axes = weight_axes(one)
        places = {name: prod(size for _, size in axes[index + 1 :]) for index, (name, _) in enumerate(axes)}
        words = {
            "halves": str(one.halves), "steps": str(one.steps), "weight_groups": str(dict(axes)["group"]),
            "fragment_channels": str(one.halves * CHANNEL_BLOCK),
            "weight_axes": ", ".join(f"{name} [{size}]" for name, size in axes),
            **{f"{name}_step": str(places[name]) for name in AXES},
        }  # fmt: skip
        return ExportParts("weights_warpgroup", (*(size for _, size in axes), FRAGMENT_THREADS, 4), words)

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """Tiling, packed stores, taps."""
        from subbyte.families.wgmma.explain import TOPICS

        return TOPICS

    def loads_together(self, plan: AnyPlan) -> PixelTile:
        """The output pixels of one warpgroup's pass."""
        one = cast(WarpgroupPlan, plan)
        tile = min(one.config.tile_rows, one.workload.p), min(one.config.tile_width, one.workload.q)
        return PixelTile(tile, 1, tile)


@lru_cache(256)
def _ranked(workload: ConvWorkload, arch: Arch) -> tuple[WarpgroupConfig, ...]:
    return tuple(warpgroup_candidates(workload, arch))


def weight_axes(plan: WarpgroupPlan) -> list[tuple[str, int]]:
    """Name and size of the axes before a fragment of weights, the outermost first."""
    split, groups, order, tiles = plan.weight_form.removeprefix(FORM).split("-")
    sizes = (int(tiles), int(split), plan.workload.r, int(groups), plan.steps, plan.workload.s)
    by_axis = dict(zip(ORDERS["rows"], zip(AXES, sizes, strict=True), strict=True))
    return [by_axis[axis] for axis in ORDERS[order]]


WGMMA = WgmmaFamily()

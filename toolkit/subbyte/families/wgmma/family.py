"""The family of kernels on ``wgmma``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import log2
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.families.base import Expected, ExportParts, Family, Function, PixelTile, Way
from subbyte.families.base import Plan as AnyPlan
from subbyte.families.shared.reasons import serialized
from subbyte.families.topic import Topic
from subbyte.families.wgmma import second, translate
from subbyte.families.wgmma.batches import finds, ranked, searched, told, whole
from subbyte.families.wgmma.blocks.weights import prepare_listed_weights
from subbyte.families.wgmma.check import hopeless, why_not
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.cycles import estimated_cycles
from subbyte.families.wgmma.estimate import candidates
from subbyte.families.wgmma.faults import fault, wrapped_indices
from subbyte.families.wgmma.first_choices import expected_time
from subbyte.families.wgmma.former import EARLIER, FormerConfig, RetiredConfig
from subbyte.families.wgmma.former_space import FORMER, FormerSpace, SecondSpace
from subbyte.families.wgmma.launches import ways
from subbyte.families.wgmma.listed import FORM as LISTED_FORM
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.skipping import SKIPPING, skipping
from subbyte.families.wgmma.space import (
    KINDS,
    SMALL,
    SPACE_VERSION,
    WgmmaSpace,
    held_switches,
    kernel_of,
    own_values,
    wgmma_space,
)
from subbyte.families.wgmma.space import WGMMA as WHOLE
from subbyte.families.wgmma.sparse.weights import prepare_sparse_weights
from subbyte.families.wgmma.values import value_lists
from subbyte.families.wgmma.weights import weights_of_form
from subbyte.info_record import InfoRecord
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.coverage import four_bits_alone

_HERE = Path(__file__).parent
SPARSE_FORM = "warpgroup24-"
"""Prefix of the layouts of 2:4 weights."""
WRAPPED = "subbyte: index in too few bits:"
"""Prefix of the lines that are added to the compiler's report if its PTX contains such a fault."""
RECORDED = 0.95
"""Measured cycles over estimated ones, the geometric mean of the recorded int4 layers (``kernel/best.json``)."""
LESS = "choose fewer rows, less unroll, load_ahead=1, weights_ahead=0 or in_flight=1"


class WgmmaFamily(Family):
    """Kernels whose warpgroups multiply out of shared memory."""

    name = "wgmma"
    title = "wgmma, sm_90a"
    rank = 2
    aliases = ("warpgroup",)
    configurations = (PipelineConfig, SingleTileConfig, *(one.kind for one in SKIPPING))
    kinds = KINDS
    zero_spaces: ClassVar[Mapping[str, str]] = {one.sparsity: one.space for one in SKIPPING}
    old_kinds = FORMER
    parts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        WHOLE: (SMALL, *FORMER), SMALL: tuple(former for former, today in FORMER.items() if today == SMALL),
        **{former: tuple(other for other in FORMER if other != former) for former in FORMER},
    }  # fmt: skip
    features = ("estimate",)
    removed: ClassVar[Mapping[str, Value]] = {**RetiredConfig().to_dict(), **EARLIER}
    space_version = SPACE_VERSION
    slow_to_list = True
    starts_plain = False
    adds_values = True

    def owns(self, config: object) -> bool:
        """Whether a configuration belongs to this family, even one that can no longer be built."""
        return isinstance(config, WgmmaConfig | FormerConfig)

    def decode(self, values: Mapping[str, object]) -> Configuration | None:
        """The configuration with recorded fields, including those of earlier versions; for the knobs of a space, which
        has those of both kernels, that of the kernel they select. Raises InvalidInput, and Unsupported for a kernel
        with one of the knobs that were removed first."""
        if translate.former(values):
            return translate.decode(values)
        if not set(values) <= {name for kind in self.configurations for name in kind.rows}:
            return None
        return kernel_of(values).from_dict(own_values(values))

    def from_key(self, key: str) -> Configuration | None:
        """The configuration that a key names, including keys of earlier versions. Raises InvalidInput."""
        return translate.from_key(key) if translate.former_key(key) else super().from_key(key)

    def changed(self, config: Configuration, values: Mapping[str, object]) -> Configuration:
        """A configuration with some fields replaced; field names from earlier versions are accepted. Raises
        InvalidInput."""
        return translate.changed(config, values) if isinstance(config, WgmmaConfig) else config.with_values(values)

    def stand_in(self, config: Configuration) -> Configuration:
        """For a retired configuration, the same without removed knobs."""
        return translate.nearest(config) if isinstance(config, FormerConfig) else config

    def plan(
        self, workload: ConvWorkload, config: Configuration, arch: Arch, output: str = "int4",
        clip: tuple[int, int] = (-8, 7), requant: str = "fixed",
    ) -> AnyPlan:  # fmt: skip
        """The plan of a kernel. Raises Unsupported for a configuration that can no longer be built."""
        if isinstance(config, FormerConfig):
            raise config.unsupported(str(translate.refused(config)))
        return WgmmaPlan(workload, cast(WgmmaConfig, config), arch, output, clip, requant)

    def check(self, plan: AnyPlan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return why_not(cast(WgmmaPlan, plan))

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration at all can be built; None when some may."""
        return hopeless(workload, arch)

    def first_estimate(self, workload: ConvWorkload, arch: Arch) -> float | None:
        """For activations of 8 bits, which neither records nor the model cover."""
        alike = workload.precision.activations.bits != 8
        first = None if alike else next(iter(self.candidates(workload, arch)), None)
        if first is None:
            return None
        return RECORDED * estimated_cycles(WgmmaPlan(workload, cast(WgmmaConfig, first), arch))

    def covers(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no kernel computes the workload, None when one does: the reason for which the plainest one is
        rejected."""
        reason = hopeless(workload, arch)
        if reason is not None or (skipping(workload) is None and finds(workload, arch)):
            return reason
        if next(iter(self.candidates(workload, arch)), None) is not None:
            return None
        narrowest = min(value_lists(workload)["tile_width"])
        plainest = why_not(WgmmaPlan(workload, PipelineConfig(tile_width=narrowest), arch))
        return plainest or "no configuration of the wgmma family fits"

    def space(self, workload: ConvWorkload, arch: Arch, kind: str, fixed: Mapping[str, object]) -> WgmmaSpace:
        """The space of a kind. Raises InvalidInput for a knob among the fixed fields."""
        return wgmma_space(workload, arch, kind, fixed)

    def recorded_space(
        self, workload: ConvWorkload, arch: Arch, kind: str, knobs: Mapping[str, tuple[Value, ...]],
        fixed: Mapping[str, Value], recorded_hash: str = "",
    ) -> WgmmaSpace | FormerSpace:  # fmt: skip
        """The space of a record's header under today's constraints; for an earlier version, with its own indices."""
        lists = cast(Mapping[str, tuple[int, ...]], knobs)  # knobs are numbers here, switches are not
        if kind in FORMER:
            return FormerSpace(workload, arch, lists, kind, fixed, recorded_hash)
        if second.recorded(lists):
            return SecondSpace(workload, arch, lists, kind, fixed, recorded_hash)
        return WgmmaSpace(workload, arch, lists, kind, fixed)

    def earlier(self, kind: str, knobs: Mapping[str, Sequence[Value]]) -> bool:
        """Whether a kind of space with these value lists is from an earlier version, so that its indices mean something
        else."""
        return super().earlier(kind, knobs) or second.recorded(knobs)

    def still_there(self, knobs: Mapping[str, tuple[Value, ...]]) -> Mapping[str, tuple[Value, ...]]:
        """Value lists without the knobs that were removed first. Raises Unsupported if some recorded kernels used
        one."""
        held = translate.without_earlier({name: v[0] if len(v) == 1 else v for name, v in knobs.items()})
        return {name: knobs[name] for name in held}

    def held(self, fixed: Mapping[str, object]) -> dict[str, Value]:
        """All switches, with those of ``fixed`` set. Raises InvalidInput for a knob."""
        return held_switches(fixed)

    def candidates(self, workload: ConvWorkload, arch: Arch) -> Iterable[Configuration]:
        """Configurations that can be built, the one expected to be fastest first."""
        return () if hopeless(workload, arch) is not None else _ranked(workload, arch)

    def early(self, workload: ConvWorkload, arch: Arch) -> Sequence[Configuration]:
        """What the search finds at the layer's own batch; kernels of larger batches are looked at later."""
        if hopeless(workload, arch) is not None or not _modelled(workload):
            return ()
        return searched(whole(workload), arch)

    def dense_instead(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why its kernels that multiply zeros too are expected to be as fast as those that skip them."""
        own = skipping(workload)
        return _dense_instead(workload, arch, own.weights) if own else SKIPPING[0].other_weights(workload)

    def expectation(self, workload: ConvWorkload, config: Configuration, arch: Arch) -> str:
        """The time that the model expects of a dense kernel, and the model's accuracy; or the kernel's measured time
        at another batch size."""
        if not _modelled(workload):
            return super().expectation(workload, config, arch)
        return told(workload, cast(WgmmaConfig, config), arch)

    def expected(self, workload: ConvWorkload, config: Configuration, arch: Arch) -> Expected | None:
        """The time that the model expects of a dense kernel, with its error bar."""
        return expected_time(workload, cast(WgmmaConfig, config), arch) if _modelled(workload) else None

    def launches(self, workload: ConvWorkload, arch: Arch) -> Sequence[Way]:
        """Ways to split a batch into two launches, with the model's times."""
        return ways(workload, arch) if _modelled(workload) else ()

    def estimate(self, plan: AnyPlan) -> float:
        """A rough cycle count."""
        return estimated_cycles(cast(WgmmaPlan, plan))

    def feature_row(self, plan: AnyPlan) -> list[float]:
        """The logarithm of the estimated cycles."""
        return [log2(estimated_cycles(cast(WgmmaPlan, plan)))]

    def made_up_share(self, workload: ConvWorkload, config: Configuration) -> float:
        """Mid-sized tiles are fastest, and sharing channels among blocks costs time."""
        made = cast(WgmmaConfig | RetiredConfig, config)
        tile = math.log2(made.tile_width * made.tile_rows * made.consumers)
        split = made.split if isinstance(made, RetiredConfig) else made.cluster_split_k
        return 0.6 * math.exp(-(((tile - 5.5) / 2.0) ** 2)) * (1.0 if split == 1 else 0.8)

    def emit(self, plan: AnyPlan) -> Function:
        """The TIRx function of a plan."""
        from subbyte.families.wgmma.kernel import wgmma_kernel

        return wgmma_kernel(cast(WgmmaPlan, plan))

    @property
    def sources(self) -> tuple[Path, ...]:
        """The sources that determine the generated text."""
        kernels = ("pipeline/config", "single/config", "sparse/config", "blocks/config")
        files = ("schedule", "listed", "operands", "geometry", "channels", "halves", "memory", "plan", *kernels)
        folders = ("emit", "pipeline/emit", "single/emit", "blocks/emit")
        return (*(_HERE / name for name in folders), *(_HERE / f"{name}.py" for name in files))

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,R,S,C] in a plan's ``weight_form``; None for a form of another family."""
        if form.startswith(LISTED_FORM):
            return prepare_listed_weights(w, form)
        if form.startswith(SPARSE_FORM):
            groups, order, tiles = form.removeprefix(SPARSE_FORM).split("-")
            return prepare_sparse_weights(w, int(groups), order, int(tiles))
        return weights_of_form(form, w)

    def report(self, ptx: str) -> list[str]:
        """Indices that the compiler computes with too few bits."""
        return [f"{WRAPPED} {line}" for line in wrapped_indices(ptx)]

    def refused(self, cubin: bytes, log: str, local_bytes: int) -> str | None:
        """Why a compiled kernel is rejected, None when it is accepted."""
        if reason := serialized(log):
            return f"{reason}, which makes them several times slower; {LESS}"
        if local_bytes:
            return f"the compiler put {local_bytes} bytes of a thread into local memory; {LESS}"
        if WRAPPED in log:
            return (
                "the compiler computes an index in too few bits; choose another tile_rows, channel_groups or load_ahead"
            )
        found = fault(cubin)
        return found and f"{found}; choose another tile_rows, stages or load_ahead"

    def export(self, plan: AnyPlan) -> ExportParts:
        """What a C header of the kernel needs."""
        from subbyte.families.wgmma.header import header_parts

        return header_parts(cast(WgmmaPlan, plan))

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """Tiling, packed stores, taps."""
        from subbyte.families.wgmma.explain import TOPICS

        return TOPICS

    def loads_together(self, plan: AnyPlan) -> PixelTile:
        """The output pixels of one consumer's tile iteration."""
        one = cast(WgmmaPlan, plan)
        tile = min(one.knobs.tile_rows, one.workload.p), min(one.knobs.tile_width, one.workload.q)
        return PixelTile(tile, 1, tile)


@lru_cache(256)
def _ranked(workload: ConvWorkload, arch: Arch) -> tuple[WgmmaConfig, ...]:
    """Ranked by the model if it covers such kernels, else by the estimate."""
    dense = ranked(workload, arch) if _modelled(workload) else []
    return tuple(dense or candidates(workload, arch))


def _modelled(workload: ConvWorkload) -> bool:
    """Whether the model covers the workload: dense kernels on 4-bit values, without sparse weights or bytes."""
    return skipping(workload) is None and four_bits_alone(workload) is None


@lru_cache(256)
def _dense_instead(workload: ConvWorkload, arch: Arch, weights: str) -> str | None:
    ranked = _ranked(workload, arch) if hopeless(workload, arch) is None else ()
    if ranked and ranked[0].skips_zeros:
        return None
    sparse, dense = (next((one for one in ranked if one.skips_zeros is skips), None) for skips in (True, False))
    if sparse is None or dense is None:
        return f"no {weights} kernel fits"
    share = estimated_cycles(WgmmaPlan(workload, sparse, arch)) / estimated_cycles(WgmmaPlan(workload, dense, arch))
    return f"{weights} kernels are estimated at {share:.0%} of the time of dense ones, too little gain to count on"


WGMMA = WgmmaFamily()

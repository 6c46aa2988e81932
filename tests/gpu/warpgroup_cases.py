"""Kernels of the warpgroup family for the GPU tests: each design variant by name, random ones, and what is shipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from subbyte.device.arch import arch
from subbyte.kernel import lower
from subbyte.kernel.choose import recorded_best
from subbyte.kernel.nvrtc import compile_cubin
from subbyte.kernel.tirx.warpgroup import instructions
from subbyte.kernel.tirx.warpgroup.block import Block
from subbyte.schedule import WarpgroupConfig
from subbyte.schedule.warpgroup_plan import WarpgroupPlan
from subbyte.space.warpgroup_constraints import why_not_warpgroup
from subbyte.workload import ConvWorkload, workload
from subbyte.workload.networks import NETWORKS

Named = tuple[str, ConvWorkload, WarpgroupConfig | None, dict[str, Any]]
"""What a kernel is for, its workload, configuration (None: what compile takes) and the options of its output."""

OPTIONS: tuple[dict[str, Any], ...] = ({}, {"requant": "general"}, {"clip": (0, 7)}, {"output": "int32"})

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("n8h6w6c64k64r3s3p1", {"tile_width": 6, "ring": 6}),
    "one image": ("n1h6w6c64k64r3s3p1", {"tile_width": 6, "ring": 6}),
    "17 images, odd sizes": ("n17h7w9c64k96r3s3p1", {"tile_width": 10, "tile_rows": 2, "segments": 2, "ring": 4}),
    "tails in every dimension": ("n9h5w7c40k40r3s3p1", {"tile_width": 8, "tile_rows": 2, "segments": 2, "ring": 4}),
    "65 filters": ("n3h6w6c64k65r3s3p1", {"tile_width": 6, "ring": 6, "groups_m": 2}),
    "one channel block": ("n8h8w8c32k64r3s3p1", {"tile_width": 8, "tile_rows": 2, "segments": 2, "ring": 5}),
    "three channel blocks": ("n8h6w6c96k64r3s3p1", {"tile_width": 6, "ring": 5}),
    "5x5": ("n8h9w9c32k64r5s5p2", {"tile_width": 10, "segments": 3, "ring": 6}),
    "1x3": ("n8h6w10c64k64r1s3p0", {"tile_width": 8, "ring": 3}),
    "column tiles": ("n8h8w20c64k64r3s3p1", {"tile_width": 6, "groups_x": 2, "tile_rows": 2, "segments": 2, "ring": 5}),
    "four rows": ("n8h8w8c64k64r3s3p1", {"tile_width": 8, "tile_rows": 4, "ring": 6}),
    "segments": ("n8h14w14c64k64r3s3p1", {"tile_width": 14, "segments": 7, "ring": 4}),
    "deep ring": ("n8h14w14c64k64r3s3p1", {"tile_width": 14, "segments": 1, "ring": 14}),
    "loads one ahead": ("n8h9w9c64k64r3s3p1", {"tile_width": 10, "ring": 5, "load_ahead": 1}),
    "unrolled": ("n8h6w6c256k64r3s3p1", {"tile_width": 6, "ring": 6, "unroll": 4}),
    "filters side by side": ("n8h8w8c128k128r3s3p1", {"tile_width": 8, "tile_rows": 2, "groups_m": 2, "ring": 5}),
    "three warpgroups": ("n8h8w8c64k192r3s3p1", {"tile_width": 8, "groups_m": 3, "ring": 5}),
    "filters in passes": ("n8h7w7c128k256r1s1p0", {"tile_width": 26, "ring": 2, "filter_passes": 2, "groups_m": 2}),
    "four passes of filters": ("n8h7w7c64k256r1s1p0", {"tile_width": 26, "ring": 2, "filter_passes": 4}),
    "alternating passes": ("n8h9w9c64k64r3s3p1", {"tile_width": 10, "tile_rows": 2, "groups_y": 2, "ring": 6}),
    "alternating, with stagger": ("n8h12w12c64k64r3s3p1", {"tile_width": 12, "groups_y": 2, "ring": 6, "stagger": 1}),
    "stagger": ("n8h8w8c64k128r3s3p1", {"tile_width": 8, "groups_m": 2, "ring": 6, "stagger": 1}),
    "late start": ("n8h8w8c64k128r3s3p1", {"tile_width": 8, "groups_m": 2, "ring": 6, "stagger": 2}),
    "swizzle": ("n8h6w6c64k64r3s3p1", {"tile_width": 6, "ring": 6, "swizzle": 1, "load_ahead": 1}),
    "swizzle, stride 2": ("n8h12w12c64k64r3s3p1u2", {"tile_width": 6, "ring": 6, "swizzle": 1}),
    "ring of weights": (
        "n8h7w7c256k128r3s3p1",
        {"tile_width": 8, "tile_rows": 2, "segments": 2, "groups_m": 2, "ring": 5, "weight_ring": 6},
    ),
    "deep ring of weights": (
        "n8h14w14c256k128r3s3p1",
        {"tile_width": 14, "tile_rows": 2, "groups_m": 2, "segments": 7, "ring": 4, "weight_ring": 16},
    ),
    "cluster of two": ("n8h7w7c256k64r3s3p1", {"tile_width": 8, "segments": 7, "split": 2, "ring": 3}),
    "cluster of four": ("n8h7w7c256k128r3s3p1", {"tile_width": 8, "segments": 7, "split": 4, "ring": 3, "groups_m": 2}),
    "cluster, odd sizes": ("n9h5w7c128k96r3s3p1", {"tile_width": 8, "segments": 5, "split": 2, "ring": 3}),
    "1x1, own rows": (
        "n8h10w10c256k256r1s1p0",
        {"tile_width": 20, "segments": 2, "keep_rows": 0, "channel_groups": 4, "ring": 4, "filter_passes": 2,
         "groups_m": 2, "weight_ring": 3, "stagger": 0},
    ),
    "1x1, shortest ring": (
        "n8h7w7c128k256r1s1p0",
        {"tile_width": 12, "groups_m": 2, "segments": 2, "filter_passes": 2, "channel_groups": 2, "ring": 2},
    ),
    "1x1, channel groups": ("n8h7w7c256k64r1s1p0", {"tile_width": 26, "channel_groups": 4, "ring": 8}),
    "1x1, odd pixels": ("n11h7w5c96k72r1s1p0", {"tile_width": 12, "ring": 2}),
    "1x1, stride 2": ("n8h14w14c128k128r1s1p0u2", {"tile_width": 8, "tile_rows": 2, "ring": 3}),
    "3x3, stride 2": ("n8h16w16c64k128r3s3p1u2", {"tile_width": 4, "tile_rows": 2, "segments": 2, "ring": 6}),
    "3x3, stride 2, odd": ("n8h9w9c64k64r3s3p1u2", {"tile_width": 6, "ring": 5}),
    "dilation": ("n8h10w10c64k64r3s3p2d2", {"tile_width": 10, "segments": 2, "ring": 6}),
    "7x7 stem": ("n8h24w24c3k64r7s7p3u2", {"tile_width": 12, "segments": 3, "ring": 9}),
    "7x7 stem, three images": ("n3h23w25c3k64r7s7p3u2", {"tile_width": 14, "segments": 2, "ring": 9}),
    "two blocks on a multiprocessor": ("n16h6w6c64k64r3s3p1", {"tile_width": 6, "ring": 6, "blocks": 2}),
    "no padding": ("n8h8w8c64k64r3s3p0", {"tile_width": 6, "ring": 5}),
    "two groups in flight": ("n8h14w14c128k64r3s3p1", {"tile_width": 14, "ring": 5, "unroll": 2, "in_flight": 2}),
    "two rows, two groups in flight": (
        "n8h7w7c128k128r3s3p1",
        {"tile_width": 8, "tile_rows": 2, "channel_groups": 2, "ring": 8, "load_ahead": 1, "weight_ring": 8,
         "in_flight": 2},
    ),
    "everything at once": ("n9h7w9c64k96r3s3p1", {"tile_width": 10, "tile_rows": 2, "segments": 4, "ring": 4,
                                                  "at_once": 1}),
    "at once, filters side by side": (
        "n8h6w6c128k128r3s3p1", {"tile_width": 6, "groups_m": 2, "segments": 6, "ring": 3, "at_once": 2},
    ),
    "at once, cluster": ("n8h7w7c256k64r3s3p1", {"tile_width": 8, "segments": 7, "split": 2, "ring": 3, "at_once": 2}),
    "at once, cluster of four": (
        "n17h7w7c256k128r3s3p1",
        {"tile_width": 8, "segments": 7, "split": 4, "ring": 3, "groups_m": 2, "at_once": 2},
    ),
    "at once, stride 2": ("n8h14w14c64k128r3s3p1u2", {"tile_width": 8, "segments": 7, "ring": 3, "at_once": 2}),
    "at once, 1x1": ("n8h7w7c128k256r1s1p0", {"tile_width": 26, "segments": 2, "ring": 1, "at_once": 1}),
    "at once, nhwc": (
        "n3h6w6c64k72r3s3p1", {"tile_width": 6, "segments": 6, "ring": 3, "at_once": 1, "layout": "nhwc"},
    ),
    "no sharing of duplicates": ("n9h7w9c64k96r3s3p1", {"tile_width": 10, "ring": 4, "duplicate_aware": "none"}),
    "no sharing, stride 2": ("n8h9w9c64k64r3s3p1u2", {"tile_width": 6, "ring": 5, "duplicate_aware": "none"}),
    "packing through shared memory": (
        "n8h7w9c64k96r3s3p1", {"tile_width": 10, "segments": 2, "ring": 4, "register_packing": False},
    ),
    "nhwc": ("n8h8w8c128k128r3s3p1", {"tile_width": 8, "groups_m": 2, "ring": 5, "layout": "nhwc"}),
    "nhwc, 11 images": ("n11h7w9c40k40r3s3p1", {"tile_width": 10, "segments": 2, "ring": 4, "layout": "nhwc"}),
    "nhwc, 1x1": ("n8h7w7c128k256r1s1p0", {"tile_width": 26, "ring": 2, "layout": "nhwc"}),
    "three techniques off": (
        "n8h6w6c64k64r3s3p1",
        {"tile_width": 6, "ring": 6, "duplicate_aware": "none", "register_packing": False, "layout": "nhwc"},
    ),
    "no overlap": ("n8h6w6c64k64r3s3p1", {"tile_width": 6, "ring": 6, "overlap": 0}),
}  # fmt: skip
"""Design variants: a workload that shows them, and the knobs."""

CHAIN = ("n8h14w14c64k128r1s1p0", "n8h14w14c128k128r3s3p1", "n8h14w14c128k256r3s3p1u2", "n8h7w7c256k64r1s1p0",
         "n8h7w7c64k64r3s3p1", "n8h7w7c64k64r3s3p1")  # fmt: skip
"""Layers one behind the other, each reading what the one before it wrote."""

DRAWN_FROM = (
    "n8h6w6c64k64r3s3p1", "n16h7w9c64k96r3s3p1", "n3h8w20c64k64r3s3p1", "n8h9w9c64k64r3s3p1u2", "n8h7w7c128k256r1s1p0",
    "n8h10w10c256k128r1s1p0", "n8h14w14c128k128r1s1p0u2", "n8h24w24c3k64r7s7p3u2", "n8h7w7c256k64r3s3p1",
    "n9h5w11c96k72r3s3p1", "n8h10w10c64k64r3s3p2d2", "n40h7w7c128k128r3s3p1",
)  # fmt: skip
VALUES: dict[str, tuple[Any, ...]] = {
    "tile_width": (2, 4, 6, 8, 10, 12, 14, 20, 26), "tile_rows": (1, 2, 4), "groups_m": (1, 2), "groups_x": (1, 2),
    "groups_y": (1, 2), "segments": (1, 2, 3, 4, 7), "filter_passes": (1, 2), "split": (1, 2, 4),
    "channel_groups": (1, 2, 4), "ring": (2, 3, 4, 5, 6, 8, 9), "keep_rows": (0, 1), "load_ahead": (1, 2),
    "unroll": (1, 2, 4), "weight_ring": (0, 2, 5, 8), "in_flight": (1, 2), "stagger": (0, 1, 2), "swizzle": (0, 1),
    "blocks": (1, 2), "duplicate_aware": ("full", "full", "full", "none"), "layout": ("nhwcnc", "nhwcnc", "nhwc"),
    "register_packing": (True, True, False),
}  # fmt: skip
"""What random configurations are drawn from: more than any space lists."""


def variants() -> Iterator[Named]:
    """Each design variant in one form of output, in turns; the first in all."""
    for number, (name, (spec, knobs)) in enumerate(VARIANTS.items()):
        for options in OPTIONS if number == 0 else (OPTIONS[number % 4],):
            yield name, workload(spec), WarpgroupConfig(stagger=0).with_values(knobs), options


def chain() -> Iterator[Named]:
    """What compile gives for each layer of a chain."""
    for spec in CHAIN:
        yield "chain", workload(spec), None, {}


def drawn(count: int, seed: int = 0) -> Iterator[Named]:
    """``count`` random configurations that no constraint refuses."""
    rng = np.random.default_rng(seed)
    made = 0
    while made < count:
        found = workload(DRAWN_FROM[made % len(DRAWN_FROM)])
        config = WarpgroupConfig(**{name: values[int(rng.integers(len(values)))] for name, values in VALUES.items()})
        plan = WarpgroupPlan(found, config, arch("sm_90a"))
        try:
            refused = why_not_warpgroup(plan)
        except (ArithmeticError, ValueError):  # sizes that a rule further up should have refused
            raise AssertionError(f"{found.spec} {config.key}: a constraint fails instead of answering") from None
        if refused is None:
            yield "drawn", found, config, OPTIONS[made % 4]
            made += 1


def drawn_at_once(count: int, seed: int = 0) -> Iterator[Named]:
    """``count`` random configurations of blocks that load everything at once: a single pass, and room for every row."""
    rng = np.random.default_rng(seed)
    names = ("tile_width", "tile_rows", "groups_m", "groups_x", "split", "swizzle", "blocks", "layout",
             "register_packing")  # fmt: skip
    made = 0
    while made < count:
        found = workload(DRAWN_FROM[made % len(DRAWN_FROM)])
        values = {name: VALUES[name][int(rng.integers(len(VALUES[name])))] for name in names}
        config = WarpgroupConfig(**values, stagger=0, at_once=int(rng.integers(1, 3)))
        height = WarpgroupPlan(found, config, arch("sm_90a")).output_size[0]
        config = config.with_values({"segments": -(-height // config.tile_rows)})
        config = config.with_values({"ring": WarpgroupPlan(found, config, arch("sm_90a")).window})
        if why_not_warpgroup(WarpgroupPlan(found, config, arch("sm_90a"))) is None:
            yield "drawn", found, config, OPTIONS[made % 4]
            made += 1


def shipped() -> Iterator[Named]:
    """The recorded configurations, and what compile gives for each layer of three networks (ResNet-50 in three
    batches)."""
    seen = set()
    for spec, entry in recorded_best().items():
        seen.add(spec)
        yield "recorded", workload(spec), WarpgroupConfig.from_dict(entry["config"]), {}
    for network, layers in NETWORKS.items():
        for batch in (8, 64, 256) if network == "resnet50" else (8,):
            for layer in layers:
                found = layer.workload(batch)
                if network in ("resnet18", "resnet50", "vgg16") and found.spec not in seen:
                    seen.add(found.spec)
                    yield "default", found, None, {}


def with_every_lane_arriving(plan: WarpgroupPlan) -> bytes:
    """Machine code of the same kernel, but for its barriers: all lanes of a warp arrive, instead of one behind
    ``__syncwarp``.

    A control for racecheck, which takes the accesses of the lanes that do not arrive themselves for unordered.
    """
    one_lane, init = Block.arrive, instructions.barrier_init
    try:
        Block.arrive = lambda self, address: instructions.barrier_arrive(address)  # type: ignore[method-assign]
        instructions.barrier_init = lambda address, warps: init(address, warps if warps % 4 else 32 * warps)
        return compile_cubin(lower.cuda(plan, lower.tir(plan)), plan.arch.name)[0]
    finally:
        Block.arrive, instructions.barrier_init = one_lane, init  # type: ignore[method-assign]

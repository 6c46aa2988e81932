"""Kernels of the wgmma family for the GPU tests: each design variant by name, and random ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
from tvm.script import tirx as T

from subbyte.device.arch import arch
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.pipeline.emit.consume import Iteration
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.sparse.config import SparseConfig
from subbyte.kernel.build import generated_text
from subbyte.tirx import instructions
from subbyte.tirx.emit import every, when
from subbyte.workload import ConvWorkload, workload

Named = tuple[str, ConvWorkload, WgmmaConfig | None, dict[str, Any]]
"""What a kernel is for, its workload, configuration (None: what compile takes) and the options of its output."""

OPTIONS: tuple[dict[str, Any], ...] = ({}, {"requant": "general"}, {"clip": (0, 7)}, {"output": "int32"})

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("n8h6w6c64k64r3s3p1", {"tile_width": 6, "stages": 6}),
    "one image": ("n1h6w6c64k64r3s3p1", {"tile_width": 6, "stages": 6}),
    "17 images, odd sizes": ("n17h7w9c64k96r3s3p1", {"tile_width": 10, "tile_rows": 2, "segments": 2, "stages": 4}),
    "tails in every dimension": ("n9h5w7c40k40r3s3p1", {"tile_width": 8, "tile_rows": 2, "segments": 2, "stages": 4}),
    "65 filters": ("n3h6w6c64k65r3s3p1", {"tile_width": 6, "stages": 6, "consumers_m": 2}),
    "one channel block": ("n8h8w8c32k64r3s3p1", {"tile_width": 8, "tile_rows": 2, "segments": 2, "stages": 5}),
    "three channel blocks": ("n8h6w6c96k64r3s3p1", {"tile_width": 6, "stages": 5}),
    "5x5": ("n8h9w9c32k64r5s5p2", {"tile_width": 10, "segments": 3, "stages": 6}),
    "1x3": ("n8h6w10c64k64r1s3p0", {"tile_width": 8, "stages": 3}),
    "column tiles": ("n8h8w20c64k64r3s3p1", {"tile_width": 6, "consumers_n": 2, "tile_rows": 2, "segments": 2,
                                             "stages": 5}),
    "four rows": ("n8h8w8c64k64r3s3p1", {"tile_width": 8, "tile_rows": 4, "stages": 6}),
    "segments": ("n8h14w14c64k64r3s3p1", {"tile_width": 14, "segments": 7, "stages": 4}),
    "deep ring": ("n8h14w14c64k64r3s3p1", {"tile_width": 14, "segments": 1, "stages": 14}),
    "loads one ahead": ("n8h9w9c64k64r3s3p1", {"tile_width": 10, "stages": 5, "load_ahead": 1}),
    "unrolled": ("n8h6w6c256k64r3s3p1", {"tile_width": 6, "stages": 6, "unroll": 4}),
    "filters side by side": ("n8h8w8c128k128r3s3p1", {"tile_width": 8, "tile_rows": 2, "consumers_m": 2, "stages": 5}),
    "three warpgroups": ("n8h8w8c64k192r3s3p1", {"tile_width": 8, "consumers_m": 3, "stages": 5}),
    "filters in passes": ("n8h7w7c128k256r1s1p0", {"tile_width": 26, "stages": 2, "m_iterations": 2, "consumers_m": 2}),
    "four passes of filters": ("n8h7w7c64k256r1s1p0", {"tile_width": 26, "stages": 2, "m_iterations": 4}),
    "alternating passes": ("n8h9w9c64k64r3s3p1", {"tile_width": 10, "tile_rows": 2, "consumers_rows": 2, "stages": 6}),
    "alternating, with stagger": ("n8h12w12c64k64r3s3p1", {"tile_width": 12, "consumers_rows": 2, "stages": 6,
                                                           "stagger": 1}),
    "stagger": ("n8h8w8c64k128r3s3p1", {"tile_width": 8, "consumers_m": 2, "stages": 6, "stagger": 1}),
    "late start": ("n8h8w8c64k128r3s3p1", {"tile_width": 8, "consumers_m": 2, "stages": 6, "stagger": 2}),
    "cluster of two": ("n8h7w7c256k64r3s3p1", {"tile_width": 8, "segments": 7, "cluster_split_k": 2, "stages": 3}),
    "cluster of four": ("n8h7w7c256k128r3s3p1", {"tile_width": 8, "segments": 7, "cluster_split_k": 4, "stages": 3,
                                                 "consumers_m": 2}),
    "cluster, odd sizes": ("n9h5w7c128k96r3s3p1", {"tile_width": 8, "segments": 5, "cluster_split_k": 2, "stages": 3}),
    "1x1, own rows": (
        "n8h10w10c256k256r1s1p0",
        {"tile_width": 20, "segments": 2, "row_reuse": 0, "channel_groups": 4, "stages": 4, "m_iterations": 2,
         "consumers_m": 2, "stagger": 0},
    ),
    "1x1, shortest ring": (
        "n8h7w7c128k256r1s1p0",
        {"tile_width": 12, "consumers_m": 2, "segments": 2, "m_iterations": 2, "channel_groups": 2, "stages": 2},
    ),
    "1x1, channel groups": ("n8h7w7c256k64r1s1p0", {"tile_width": 26, "channel_groups": 4, "stages": 8}),
    "1x1, odd pixels": ("n11h7w5c96k72r1s1p0", {"tile_width": 12, "stages": 2}),
    "1x1, stride 2": ("n8h14w14c128k128r1s1p0u2", {"tile_width": 8, "tile_rows": 2, "stages": 3}),
    "3x3, stride 2": ("n8h16w16c64k128r3s3p1u2", {"tile_width": 4, "tile_rows": 2, "segments": 2, "stages": 6}),
    "3x3, stride 2, odd": ("n8h9w9c64k64r3s3p1u2", {"tile_width": 6, "stages": 5}),
    "dilation": ("n8h10w10c64k64r3s3p2d2", {"tile_width": 10, "segments": 2, "stages": 6}),
    "7x7 stem": ("n8h24w24c3k64r7s7p3u2", {"tile_width": 12, "segments": 3, "stages": 9}),
    "7x7 stem, three images": ("n3h23w25c3k64r7s7p3u2", {"tile_width": 14, "segments": 2, "stages": 9}),
    "no padding": ("n8h8w8c64k64r3s3p0", {"tile_width": 6, "stages": 5}),
    "two groups in flight": ("n8h14w14c128k64r3s3p1", {"tile_width": 14, "stages": 5, "unroll": 2, "in_flight": 2}),
    "two rows, two groups in flight": (
        "n8h7w7c128k128r3s3p1",
        {"tile_width": 8, "tile_rows": 2, "channel_groups": 2, "stages": 8, "load_ahead": 1, "in_flight": 2},
    ),
    "no sharing of duplicates": ("n9h7w9c64k96r3s3p1", {"tile_width": 10, "stages": 4, "duplicate_aware": "none"}),
    "no sharing, nhwc, column tiles": (
        "n8h28w28c128k64r3s3p1",
        {"tile_width": 14, "segments": 28, "stages": 3, "load_ahead": 1, "in_flight": 2, "duplicate_aware": "none",
         "layout": "nhwc"},
    ),
    "no sharing, stride 2": ("n8h9w9c64k64r3s3p1u2", {"tile_width": 6, "stages": 5, "duplicate_aware": "none"}),
    "packing through shared memory": (
        "n8h7w9c64k96r3s3p1", {"tile_width": 10, "segments": 2, "stages": 4, "register_packing": False},
    ),
    "nhwc": ("n8h8w8c128k128r3s3p1", {"tile_width": 8, "consumers_m": 2, "stages": 5, "layout": "nhwc"}),
    "nhwc, 11 images": ("n11h7w9c40k40r3s3p1", {"tile_width": 10, "segments": 2, "stages": 4, "layout": "nhwc"}),
    "nhwc, 1x1": ("n8h7w7c128k256r1s1p0", {"tile_width": 26, "stages": 2, "layout": "nhwc"}),
    "three techniques off": (
        "n8h6w6c64k64r3s3p1",
        {"tile_width": 6, "stages": 6, "duplicate_aware": "none", "register_packing": False, "layout": "nhwc"},
    ),
    "rows given back early": (
        "n8h9w11c64k96r3s3p1u2", {"tile_width": 6, "consumers_m": 2, "stages": 3, "row_reuse": 2},
    ),
    "rows given back early, alternating": (
        "n8h13w8c64k64r3s3p0u2", {"tile_width": 4, "consumers_rows": 2, "stages": 5, "row_reuse": 2},
    ),
    "rows given back early, channel groups": (
        "n8h12w7c128k128r3s3p1u2",
        {"tile_width": 4, "tile_rows": 2, "consumers_m": 2, "channel_groups": 2, "stages": 6, "in_flight": 2,
         "row_reuse": 2},
    ),
    "bulk weights": (
        "n9h7w9c64k96r3s3p1",
        {"tile_width": 10, "segments": 7, "in_flight": 2, "multicast": 1},
    ),
    "bulk weights, two rows, nhwc": (
        "n3h6w6c128k72r3s3p1",
        {"tile_width": 6, "tile_rows": 2, "segments": 3, "multicast": 1, "layout": "nhwc", "dependent_launch": 0},
    ),
    "bulk weights for two, cluster": (
        "n17h6w7c256k96r3s3p1",
        {"tile_width": 8, "segments": 6, "cluster_split_k": 2, "unroll": 2, "in_flight": 3, "multicast": 2},
    ),
    "bulk weights for two, odd rows": (
        "n8h7w7c256k128r3s3p1",
        {"tile_width": 8, "segments": 7, "cluster_split_k": 2, "unroll": 2, "in_flight": 3, "multicast": 2,
         "dependent_launch": 0},
    ),
    "bulk weights for four column tiles": (
        "n8h6w14c64k128r3s3p1",
        {"tile_width": 8, "segments": 6, "consumers_m": 2, "multicast": 4},
    ),
    "one long row": ("n16h9w11c64k96r1s1p0u2", {"tile_width": 8, "stages": 2, "pixels": 1}),
    "joined images": ("n24h5w5c64k64r1s1p0", {"tile_width": 10, "segments": 3, "stages": 3, "pixels": 2}),
    "joined images, stride 2": (
        "n16h6w6c128k64r1s1p0u2",
        {"tile_width": 8, "segments": 2, "stages": 3, "pixels": 2, "channel_groups": 2, "row_reuse": 0},
    ),
    "two producers": (
        "n24h5w5c128k128r1s1p0",
        {"tile_width": 8, "tile_rows": 2, "segments": 3, "stages": 6, "consumers_m": 2, "stagger": 2, "producers": 2,
         "channel_groups": 2, "row_reuse": 0},
    ),
    "two producers, 3x3": ("n8h6w6c64k64r3s3p1", {"tile_width": 6, "stages": 5, "producers": 2}),
    "rows of two groups of images": ("n16h7w7c64k64r3s3p1", {"tile_width": 7, "stages": 6, "pixels": 4}),
    "rows of two groups of images, in segments": (
        "n32h7w7c128k128r3s3p1", {"tile_width": 7, "consumers_m": 2, "segments": 2, "stages": 4, "pixels": 4},
    ),
    "two tiles of channels": (
        "n8h6w6c64k256r3s3p1",
        {"tile_width": 6, "tile_rows": 2, "stages": 6, "consumers_m": 2, "tiles_m": 2, "in_flight": 2},
    ),
    "two tiles of channels, joined images": (
        "n24h5w5c128k320r1s1p0",
        {"tile_width": 8, "segments": 3, "stages": 4, "m_iterations": 2, "tiles_m": 2, "pixels": 2, "unroll": 2},
    ),
    "own rows, divided": (
        "n8h8w6c128k64r3s3p1",
        {"tile_width": 6, "consumers_rows": 2, "segments": 2, "channel_groups": 2, "stages": 9, "row_reuse": 0},
    ),
    "own rows, 3x3": (
        "n8h8w6c128k64r3s3p1",
        {"tile_width": 6, "tile_rows": 2, "segments": 2, "channel_groups": 2, "stages": 9, "row_reuse": 0},
    ),
    "own rows, one part": (
        "n8h7w6c128k64r3s3p1",
        {"tile_width": 6, "tile_rows": 2, "channel_groups": 2, "stages": 3, "row_reuse": 3},
    ),
    "own rows, one part, two groups of images": (
        "n16h7w7c256k64r3s3p1",
        {"tile_width": 7, "tile_rows": 2, "consumers_rows": 2, "channel_groups": 4, "stages": 3, "row_reuse": 3,
         "stagger": 2, "pixels": 4},
    ),
    "own rows, one part, stride 2": (
        "n8h14w14c128k128r3s3p1u2",
        {"tile_width": 8, "tile_rows": 4, "consumers_m": 2, "channel_groups": 2, "stages": 2, "load_ahead": 1,
         "row_reuse": 3},
    ),
    "rows and a half": (
        "n8h14w14c64k64r3s3p1",
        {"tile_width": 14, "tile_rows": 2, "consumers_rows": 2, "segments": 4, "stages": 6, "load_ahead": 1,
         "stagger": 2, "pixels": 3},
    ),
    "rows and a half, own rows": (
        "n8h14w14c128k64r3s3p1",
        {"tile_width": 14, "tile_rows": 2, "consumers_rows": 2, "segments": 4, "channel_groups": 2, "stages": 12,
         "row_reuse": 0, "pixels": 3},
    ),
    "rows and a half, nhwc": (
        "n8h6w8c32k64r3s3p1",
        {"tile_width": 8, "consumers_rows": 2, "segments": 4, "stages": 4, "pixels": 3, "layout": "nhwc"},
    ),
    "the middle row cut, two groups of images": (
        "n16h7w7c256k128r3s3p1",
        {"tile_width": 7, "consumers_rows": 2, "segments": 4, "channel_groups": 4, "stages": 9, "row_reuse": 0,
         "unroll": 1, "stagger": 0, "pixels": 5},
    ),
    "a late producer": (
        "n24h7w28c64k128r3s3p1",
        {"tile_width": 28, "consumers_rows": 2, "segments": 3, "stages": 4, "in_flight": 2, "start": 1},
    ),
    "a late producer, own rows": (
        "n16h7w7c256k128r3s3p1",
        {"tile_width": 7, "consumers_m": 2, "segments": 7, "channel_groups": 4, "stages": 6, "row_reuse": 0,
         "unroll": 1, "stagger": 0, "pixels": 4, "start": 1},
    ),
    "a lean start": (
        "n16h14w28c128k64r3s3p1",
        {"tile_width": 14, "tile_rows": 2, "consumers_rows": 2, "segments": 2, "stages": 6, "in_flight": 2,
         "stagger": 0, "start": 2},
    ),
    "a lean start, a late producer": (
        "n24h14w28c64k128r3s3p1",
        {"tile_width": 28, "consumers_rows": 2, "segments": 2, "stages": 4, "load_ahead": 1, "in_flight": 2,
         "stagger": 2, "start": 3},
    ),
    "a lean start, the rows of a pass": (
        "n16h7w7c256k128r3s3p1",
        {"tile_width": 7, "consumers_rows": 2, "segments": 4, "channel_groups": 4, "stages": 3, "row_reuse": 3,
         "unroll": 1, "load_ahead": 1, "stagger": 0, "pixels": 5, "start": 2},
    ),
    "the middle row cut": (
        "n24h15w14c64k64r3s3p1",
        {"tile_width": 14, "tile_rows": 2, "consumers_rows": 2, "segments": 4, "stages": 6, "load_ahead": 1,
         "stagger": 2, "pixels": 3},
    ),
    "bulk weights, read ahead": (
        "n8h6w7c256k96r3s3p1",
        {"tile_width": 8, "segments": 6, "cluster_split_k": 2, "unroll": 2, "in_flight": 3, "multicast": 2,
         "weights_ahead": 6},
    ),
    "bulk weights, half a loop body ahead, late parameters": (
        "n8h7w7c256k128r3s3p1",
        {"tile_width": 8, "segments": 7, "cluster_split_k": 2, "unroll": 2, "in_flight": 2, "multicast": 2,
         "weights_ahead": 3, "parameters": 1, "dependent_launch": 0},
    ),
    "bulk weights, late parameters": (
        "n9h7w9c64k96r3s3p1",
        {"tile_width": 10, "segments": 7, "in_flight": 2, "multicast": 1, "parameters": 1},
    ),
    "bulk weights, two columns, both": (
        "n17h6w28c64k64r3s3p1",
        {"tile_width": 14, "consumers_n": 2, "segments": 6, "in_flight": 2, "multicast": 2, "weights_ahead": 3,
         "parameters": 1},
    ),
    "bulk weights, early parameters": (
        "n9h7w9c64k96r3s3p1",
        {"tile_width": 10, "segments": 7, "in_flight": 2, "multicast": 1, "parameters": 2},
    ),
    "bulk weights, two columns, early start": (
        "n17h6w28c64k64r3s3p1",
        {"tile_width": 14, "consumers_n": 2, "segments": 6, "in_flight": 2, "multicast": 2, "weights_ahead": 3,
         "parameters": 2, "early_start": 1},
    ),
    "bulk weights, split, early start": (
        "n9h7w7c128k256r3s3p1",
        {"tile_width": 8, "segments": 7, "cluster_split_k": 2, "in_flight": 2, "multicast": 2, "parameters": 1,
         "early_start": 1, "dependent_launch": 0},
    ),
    "bulk weights, a row by all warps": (
        "n17h9w20c128k96r3s3p1",
        {"tile_width": 10, "segments": 9, "unroll": 2, "in_flight": 2, "multicast": 1, "weights_ahead": 6,
         "parameters": 2, "early_start": 2},
    ),
}  # fmt: skip
"""Design variants: a workload that shows them, and the knobs."""

CHAIN = ("n8h14w14c64k128r1s1p0", "n8h14w14c128k128r3s3p1", "n8h14w14c128k256r3s3p1u2", "n8h7w7c256k64r1s1p0",
         "n8h7w7c64k64r3s3p1", "n8h7w7c64k64r3s3p1")  # fmt: skip
CHAIN_SINGLE = ("n8h14w14c64k128r3s3p1", "n8h14w14c128k64r3s3p1", "n8h14w14c64k64r3s3p1u2", "n8h7w7c64k128r3s3p1",
                "n8h7w7c128k64r3s3p1", "n8h7w7c64k64r3s3p1")  # fmt: skip
"""Layers one behind the other, each reading what the one before it wrote."""

DRAWN_FROM = (
    "n8h6w6c64k64r3s3p1", "n16h7w9c64k96r3s3p1", "n3h8w20c64k64r3s3p1", "n8h9w9c64k64r3s3p1u2", "n8h7w7c128k256r1s1p0",
    "n8h10w10c256k128r1s1p0", "n8h14w14c128k128r1s1p0u2", "n8h24w24c3k64r7s7p3u2", "n8h7w7c256k64r3s3p1",
    "n9h5w11c96k72r3s3p1", "n8h10w10c64k64r3s3p2d2", "n40h7w7c128k128r3s3p1",
)  # fmt: skip
VALUES: dict[str, tuple[Any, ...]] = {
    "tile_width": (2, 4, 6, 8, 10, 12, 14, 20, 26), "tile_rows": (1, 2, 4), "consumers_m": (1, 2),
    "consumers_n": (1, 2), "consumers_rows": (1, 2), "segments": (1, 2, 3, 4, 7), "m_iterations": (1, 2),
    "cluster_split_k": (1, 2, 4), "channel_groups": (1, 2, 4), "stages": (2, 3, 4, 5, 6, 8, 9),
    "row_reuse": (0, 1, 1, 2), "load_ahead": (1, 2), "unroll": (1, 2, 4), "in_flight": (1, 2), "stagger": (0, 1, 2),
    "duplicate_aware": ("full", "full", "full", "none"), "layout": ("nhwcnc", "nhwcnc", "nhwc"),
    "register_packing": (True, True, False), "producers": (1, 1, 1, 2),
}  # fmt: skip
"""What random configurations are drawn from: more than any space lists."""
SINGLE_TRIES = 1000
ALWAYS = ("tile_width", "segments", "stages")
"""Knobs that are never left at their default there."""


POINTWISE_FROM = ("n24h5w5c128k128r1s1p0", "n16h6w6c128k256r1s1p0u2", "n16h9w9c64k96r1s1p0u2", "n8h7w7c256k128r1s1p0")
POINTWISE: dict[str, tuple[Any, ...]] = {
    "tile_width": (6, 8, 10, 14), "tile_rows": (1, 2), "consumers_m": (1, 2), "segments": (1, 2, 3),
    "m_iterations": (1, 2), "channel_groups": (1, 2), "stages": (2, 3, 4, 6), "row_reuse": (0, 1), "unroll": (1, 2),
    "in_flight": (1,), "stagger": (0, 2), "pixels": (0, 1, 2), "producers": (1, 2),
}  # fmt: skip
"""The same for 1x1 kernels, whose pixels need no rows."""

SPARSE_FROM = tuple(
    f"{layer}:w4a4:signed-2of4.signed"
    for layer in ("n8h6w6c64k64r3s3p1", "n16h7w9c128k96r3s3p1", "n9h5w11c96k72r3s3p1", "n8h7w7c128k256r1s1p0",
                  "n8h9w9c64k64r3s3p1u2", "n8h7w7c256k64r3s3p1")
)  # fmt: skip
SPARSE = {name: values for name, values in VALUES.items() if name not in ("duplicate_aware", "layout")} | {
    "resident": (0, 1), "register_packing": (True,),
}  # fmt: skip
"""The same for 2:4 sparse weights."""


def variants() -> Iterator[Named]:
    """Each design variant in one form of output, in turns; the first in all."""
    for number, (name, (spec, knobs)) in enumerate(VARIANTS.items()):
        for options in OPTIONS if number == 0 else (OPTIONS[number % 4],):
            yield name, workload(spec), design(knobs), options


def design(knobs: dict[str, Any]) -> WgmmaConfig:
    """The configuration of a design variant."""
    return (SingleTileConfig() if "multicast" in knobs else PipelineConfig(stagger=0)).with_values(knobs)


def chain() -> Iterator[Named]:
    """What compile gives for each layer of a chain."""
    for spec in CHAIN:
        yield "chain", workload(spec), None, {}


def chain_single() -> Iterator[Named]:
    """Layers of a chain whose blocks make a single tile iteration, and begin before the layer ahead has ended."""
    for spec in CHAIN_SINGLE:
        yield "chain of single passes", workload(spec), single_pass(workload(spec), SingleTileConfig(8)), {}


def single_pass(found: ConvWorkload, config: SingleTileConfig) -> SingleTileConfig:
    """The configuration with a block for every tile iteration."""
    return config.with_values({"segments": -(-found.p // config.tile_rows)})


def drawn(count: int, seed: int = 0) -> Iterator[Named]:
    """``count`` random configurations that no constraint refuses."""
    yield from _drawn(count, seed, DRAWN_FROM, VALUES)


def drawn_pointwise(count: int, seed: int = 0) -> Iterator[Named]:
    """The same for 1x1 kernels."""
    yield from _drawn(count, seed, POINTWISE_FROM, POINTWISE)


def drawn_sparse(count: int, seed: int = 0) -> Iterator[Named]:
    """The same on 2:4 sparse weights, some with weights that stay in registers."""
    yield from _drawn(count, seed, SPARSE_FROM, SPARSE, SparseConfig, "2:4 weights")


def _drawn(
    count: int, seed: int, specs: tuple[str, ...], lists: dict[str, tuple[Any, ...]],
    kind: type[PipelineConfig] = PipelineConfig, name: str = "drawn",
) -> Iterator[Named]:  # fmt: skip
    rng = np.random.default_rng(seed)
    made = 0
    while made < count:
        found = workload(specs[made % len(specs)])
        values = {name: values[int(rng.integers(len(values)))] for name, values in lists.items()}
        left = [name for name in values if name not in ALWAYS and rng.random() < 0.4]  # few are valid without defaults
        config = kind(**{name: value for name, value in values.items() if name not in left})
        plan = WgmmaPlan(found, config, arch("sm_90a"))
        try:
            refused = why_not(plan)
        except (ArithmeticError, ValueError):  # sizes that a rule further up should have refused
            raise AssertionError(f"{found.spec} {config.key}: a constraint fails instead of answering") from None
        if refused is None:
            yield name, found, config, OPTIONS[made % 4]
            made += 1


def drawn_single(count: int, seed: int = 0) -> Iterator[Named]:
    """``count`` random configurations of blocks that make a single tile iteration. A shape of which ``SINGLE_TRIES``
    draws in a row are refused is passed over: some have no such kernel."""
    rng = np.random.default_rng(seed)
    names = ("tile_width", "tile_rows", "consumers_m", "consumers_n", "cluster_split_k", "unroll", "in_flight",
             "layout", "register_packing")  # fmt: skip
    made = turn = refused = 0
    while made < count:
        found = workload(DRAWN_FROM[turn % len(DRAWN_FROM)])
        values = {name: VALUES[name][int(rng.integers(len(VALUES[name])))] for name in names}
        if found.r == 1:  # none of its kernels make a single iteration
            found = workload(DRAWN_FROM[0])
        values |= {"multicast": int(rng.integers(1, 3)), "parameters": int(rng.integers(3))}
        config = single_pass(found, SingleTileConfig(**values, early_start=int(rng.integers(2))))
        if why_not(WgmmaPlan(found, config, arch("sm_90a"))) is None:
            yield "drawn", found, config, OPTIONS[made % 4]
            made, turn, refused = made + 1, turn + 1, 0
        elif (refused := refused + 1) == SINGLE_TRIES:
            turn, refused = turn + 1, 0


def text_with_every_lane_arriving(plan: WgmmaPlan) -> str:
    """The text of the same kernel, but for its barriers: all lanes of a warp arrive, instead of one behind
    ``__syncwarp``.

    A control for racecheck, which takes the accesses of the lanes that do not arrive themselves for unordered.
    """
    init = instructions.barrier_init

    def arrive(self: Block, address: Any) -> Any:
        return instructions.barrier_arrive(address)

    def begin(address: Any, warps: int) -> Any:
        return init(address, warps if warps % 4 else 32 * warps)

    # patch.object also leaves behind no attribute of Iteration where it was inherited, as an assignment would.
    with (
        patch.object(Block, "arrive", arrive),
        patch.object(Iteration, "_release_lane_by_lane", _all_lanes_release),
        patch.object(instructions, "barrier_init", begin),
    ):
        return generated_text(plan)


def _all_lanes_release(self: Iteration, before: bool, where: list[Any]) -> None:
    """In the place of ``Iteration._release_lane_by_lane``, where each lane releases another stage buffer."""
    plan, depth = self.block.plan, self.block.plan.stages
    for stage in range(plan.group_stages):
        place = self.first_buffer[0] + T.uint32((depth - plan.group_stages if before else 0) + stage)
        with when(every(where) if where else True):
            instructions.barrier_arrive(self.block.empty(place % T.uint32(depth)))

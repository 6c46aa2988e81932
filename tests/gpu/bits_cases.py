"""Kernels on bit planes for the GPU tests, by name: of the families bits, bmma and popc."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from subbyte.families.bits.config import BitsConfig
from subbyte.families.bmma.config import BmmaConfig
from subbyte.families.popc.config import PopcConfig
from subbyte.families.shared.planes.config import PlaneConfig
from subbyte.workload import ConvWorkload, gemm, workload

Named = tuple[str, ConvWorkload, BitsConfig | PlaneConfig, dict[str, Any]]
"""What a kernel is for, its workload, configuration and the options of its output."""

CASES: dict[str, tuple[str | ConvWorkload, dict[str, Any], dict[str, Any]]] = {
    "zeros beyond the border": ("n9h9w9c200k70r3s3p1:w1a1", {"tile_rows": 4}, {}),
    "minus beyond the border": ("n8h7w7c128k64r3s3p1:w1a1:minus", {"tile_rows": 7, "run_on": 1, "consumers": 3}, {}),
    "plus beyond the border": ("n3h12w11c70k96r5s5p2u2:w1a1:plus", {"channels": 32, "tile_rows": 4}, {}),
    "512 channels": ("n8h7w7c512k512r3s3p1:w1a1", {"channels": 64, "tile_rows": 7, "consumers": 3}, {}),
    "tiles run on": ("n16h14w14c256k256r3s3p1:w1a2", {"channels": 64, "tile_rows": 7, "run_on": 1}, {}),
    "two planes of activations": ("n8h14w14c64k64r3s3p1:w1a2", {"tile_rows": 5, "consumers": 3}, {}),
    "two planes of each": ("n9h9w9c200k70r3s3p1:w2a2", {"channels": 32, "tile_rows": 3}, {}),
    "two and three": ("n9h7w6c200k70r3s3p1u2:w2a3", {"channels": 32, "tile_rows": 4}, {}),
    "doubled": ("n8h8w8c64k64r3s3p1:w1a4", {"doubled": 1, "tile_rows": 4}, {}),
    "signed weights": ("n8h8w8c96k64r1s1p0:w2a2:signed.unsigned", {"tile_rows": 8, "run_on": 1}, {}),
    "stride 4, 11x11": ("n8h31w31c3k64r11s11p2u4:w1a2", {"channels": 32, "consumers": 1}, {}),
    "two rows share a block": ("n9h15w15c64k64r3s3p1:w1a1", {"paired_rows": 1, "tile_rows": 4}, {}),
    "two rows share a block, stride 2": ("n8h16w16c40k64r5s5p2u2:w1a2", {"paired_rows": 1, "tile_rows": 4}, {}),
    "sums": ("n9h9w9c200k70r3s3p1:w1a1", {"tile_rows": 4}, {"output": "int32"}),
    "sums of eight bits": ("n8h8w8c64k96r1s1p0:w1a8", {"channels": 32, "doubled": 1, "tile_rows": 4},
                           {"output": "int32"}),
    "matrix product": (gemm(200, 256, 512, "w1a2"), {"channels": 64, "consumers": 3}, {}),
}  # fmt: skip


def bits() -> Iterator[Named]:
    """Every case."""
    for name, (spec, knobs, options) in CASES.items():
        yield f"bits: {name}", workload(spec), BitsConfig().with_values(knobs), options


PLANES: dict[str, tuple[str | ConvWorkload, PlaneConfig, dict[str, Any]]] = {
    "zeros beyond the border": ("n9h9w9c200k70r3s3p1:w1a1", BmmaConfig(chunk=2), {}),
    "plus, stride 2": ("n3h12w11c70k96r5s5p2u2:w1a1:plus", BmmaConfig(reorder_inner=0, stages=3), {}),
    "512 channels": ("n8h7w7c512k512r3s3p1:w1a1", BmmaConfig(chunk=4, warp_col_tiles=8), {}),
    "two planes of each": ("n9h9w9c200k70r3s3p1:w2a2", BmmaConfig(correction="popcount"), {}),
    "a pair of planes for each warp": ("n8h9w9c128k70r3s3p1:w2a2", BmmaConfig(combine="shared"), {}),
    "equal bits by two products": ("n9h9w9c200k70r3s3p1:w1a2", BmmaConfig(correction="double"), {}),
    "direct": ("n9h7w6c200k70r3s3p1u2:w3a2", BmmaConfig(staging="direct", warp_row_tiles=2), {}),
    "stride 4, 11x11": ("n8h31w31c3k64r11s11p2u4:w1a2", BmmaConfig(), {}),
    "sums": ("n9h9w9c200k70r3s3p1:w1a1", BmmaConfig(), {"output": "int32"}),
    "matrix product": (gemm(200, 256, 512, "w1a2"), BmmaConfig(reorder_inner=0), {}),
    "popcounts": ("n9h9w9c200k70r3s3p1:w1a1", PopcConfig(), {}),
    "popcounts of each word": ("n9h7w6c200k70r3s3p1u2:w3a2", PopcConfig(carry_save=0), {}),
    "popcounts, sums": ("n8h8w8c64k96r1s1p0:w1a8", PopcConfig(reorder_inner=0, staging="direct"), {"output": "int32"}),
}


def planes() -> Iterator[Named]:
    """Every case of the families bmma and popc."""
    for name, (spec, config, options) in PLANES.items():
        yield f"planes: {name}", workload(spec), config, options

"""The levels of a kernel of the wgmma family against what its run on the CPU does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import subbyte
from subbyte import PipelineConfig
from subbyte.emulator.trace import of_kind
from subbyte.errors import Unsupported
from subbyte.families.wgmma.sparse.config import SparseConfig
from subbyte.kernel import Kernel
from subbyte.technique import warpgroup_tiling

MODES: dict[str, tuple[str, dict[str, int]]] = {
    "plain": ("n8h10w10c64k64r3s3p0", {"tile_width": 8, "segments": 2, "stages": 5}),
    "two rows": ("n8h10w10c64k64r3s3p0", {"tile_width": 8, "tile_rows": 2, "segments": 2, "stages": 6}),
    "two columns": ("n8h10w10c64k64r3s3p0", {"tile_width": 6, "consumers_n": 2, "segments": 2, "stages": 5}),
    "two tiles of channels": ("n8h10w10c64k128r3s3p0", {"tile_width": 8, "segments": 2, "consumers_m": 2, "stages": 5}),
    "the same in one warpgroup": ("n8h10w10c64k128r3s3p0", {"tile_width": 8, "segments": 2, "tiles_m": 2, "stages": 5}),
    "taking turns": ("n8h10w10c64k64r3s3p0", {"tile_width": 8, "consumers_rows": 2, "segments": 2, "stages": 6}),
    "a cluster": ("n8h10w10c128k64r3s3p0", {"tile_width": 8, "segments": 8, "cluster_split_k": 2, "stages": 3}),
    "iterations over channels": ("n8h8w8c64k128r1s1p0", {"tile_width": 8, "m_iterations": 2, "stages": 2}),
    "2:4 weights": ("n8h10w10c96k64r3s3p0", {"tile_width": 8, "segments": 2, "stages": 5, "resident": 1}),
    "two groups of images": ("n16h9w9c64k64r3s3p0", {"tile_width": 7, "pixels": 4, "stages": 5}),
}  # fmt: skip


@pytest.mark.deep
@pytest.mark.parametrize("mode", MODES)
def test_a_block_does_what_the_record_says(emulated: Callable[..., Kernel], mode: str) -> None:
    spec, knobs = MODES[mode]
    kind = SparseConfig if "resident" in knobs else PipelineConfig
    config = kind().with_values({"stagger": 0, **knobs})
    if kind is SparseConfig:
        spec += ":w4a4:signed-2of4.signed"
    record = warpgroup_tiling(spec, config)
    kernel = emulated(spec, config)
    assert record.levels[1].count == np.prod(kernel.launch.grid)
    assert record.cluster == kernel.launch.cluster
    rows = kernel.trace().trace
    first = rows[rows["block"] == 0]
    assert len(of_kind(first, "wgmma")) // 128 == record.instructions
    stored = int(of_kind(first, "global_store")["size"].sum())  # of a cluster each block stores its part
    block = record.levels[1]
    held = min(block.channels, kernel.workload.k) * _inside(record.block_pixels, kernel.workload) * record.images
    assert stored * 2 * config.cluster_split_k == held


def _inside(pixels: tuple[int, int], w: subbyte.ConvWorkload) -> int:
    """Output pixels of a block that the image has."""
    return min(pixels[0] * min(pixels[1], w.q), w.p * w.q) if w.r > 1 else min(pixels[0] * pixels[1], w.p * w.q)


def test_levels_fit_into_one_another() -> None:
    record = warpgroup_tiling(
        "resnet50.stage4@8", PipelineConfig(tile_width=14, segments=14, cluster_split_k=2, stages=3, stagger=0)
    )
    product, block, each, warpgroup, instruction = record.levels
    assert (product.channels, product.columns, product.depth) == (256, 8 * 14 * 14, 9 * 256)
    assert (
        block.count * block.channels * block.columns * block.depth == product.channels * product.columns * product.depth
    )
    assert each.name == "tile iteration"
    assert record.to_dict()["levels"][2]["name"] == "pass"  # JSON keeps the names it had
    assert each.count * each.columns == block.columns
    assert warpgroup.count * warpgroup.columns == each.columns
    assert (instruction.channels, instruction.columns, instruction.depth) == (64, 14 * 8, 32)
    assert instruction.count * 32 == warpgroup.depth
    assert f"{record.instructions:,} matrix instructions in a block" in record.text()
    assert "2 blocks in a cluster" in record.text()
    assert record.title().startswith("tiling of resnet50.stage4@8 (wgp-tw14")


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(Unsupported, match="cannot be built: stages"):
        warpgroup_tiling("resnet50.stage4@8", PipelineConfig(tile_width=14, stages=1))
    with pytest.raises(Unsupported, match="sm_80"):
        warpgroup_tiling("resnet50.stage4@8", arch="sm_80")

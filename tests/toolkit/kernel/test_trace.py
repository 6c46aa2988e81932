"""What the generated kernel does, from its trace: each datum copied once, each genuine fragment loaded once.

The records behind the pictures are compared with traces in tests/toolkit/technique/test_trace.py; here the counts and
byte sets are worked out from the convolution itself, for many shapes.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest

from subbyte.emulator.trace import counts, global_bytes_read, of_kind, unique_global_bytes, warp_groups
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import Plan, plan
from subbyte.kernel import Kernel
from subbyte.workload import ConvWorkload

SHAPES = (
    ConvWorkload(3, 9, 9, 64, 32, 3, 3, 1),
    ConvWorkload(3, 9, 9, 64, 32, 3, 3, 1, 2),
    ConvWorkload(3, 9, 9, 64, 32, 2, 3, 1, 2, 2),
    ConvWorkload(3, 9, 9, 64, 32, 1, 1, 0, 2),
    ConvWorkload(3, 8, 9, 64, 32, 5, 2, 2),
)
CONFIG = MmaConfig(2, 1, 4, 2)
Tile = tuple[int, int, int]
"""Batch group, first output row, first output column."""


def _tile(planned: Plan, block: int) -> Tile:
    down, right = planned.pixel_tiles
    group, rest = divmod(block % planned.launch.grid[0], down * right)
    return group, rest // right * planned.tile[0], rest % right * planned.tile[1]


def _input_pixels(planned: Plan, block: int) -> Counter[tuple[int, int]]:
    """Input pixels inside the image that the block's tile reads, with the number of (output pixel, tap) that do."""
    w, (_, top, left) = planned.workload, _tile(planned, block)
    found: Counter[tuple[int, int]] = Counter()
    for i, j, r, s in product(range(planned.tile[0]), range(planned.tile[1]), range(w.r), range(w.s)):
        y = (top + i) * w.stride + r * w.dilation - w.pad
        x = (left + j) * w.stride + s * w.dilation - w.pad
        if 0 <= y < w.h and 0 <= x < w.w:
            found[y, x] += 1
    return found


def _pieces(planned: Plan, group: int, pixel: tuple[int, int]) -> list[int]:
    """Byte offsets of the 16-byte pieces of one pixel: 8 images x channel blocks. Written out for both layouts."""
    w, (y, x) = planned.workload, pixel
    blocks = w.channel_blocks
    if planned.config.layout == "nhwcnc":
        pixel_bytes = ((group * w.h + y) * w.w + x) * blocks * 128
        return [pixel_bytes + 16 * i for i in range(8 * blocks)]
    return [
        (((group * 8 + image) * w.h + y) * w.w + x) * blocks * 16 + 16 * block
        for image, block in product(range(8), range(blocks))
    ]


def _rows(kernel: Kernel, block: int, kind: str, argument: str | None = None) -> Any:
    run = kernel.trace(blocks=(block,))
    assert run.trace is not None
    rows = of_kind(run.trace, kind)
    return rows if argument is None else rows[rows["buffer"] == run.arguments.index(argument)]


def _kernel(workload: ConvWorkload, **changed: Any) -> Kernel:
    return Kernel(plan(workload, CONFIG.with_values(changed), "sm_80"))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("workload", "way"),
    [*((shape, "full") for shape in SHAPES), *((shape, way) for shape in SHAPES[:3:2] for way in ("none", "shared"))],
    ids=lambda given: given if isinstance(given, str) else given.spec,
)
def test_activations_copied_by_a_block(workload: ConvWorkload, way: str) -> None:
    """With sharing each genuine input pixel once; without, once for every output pixel and tap that reads it."""
    kernel = _kernel(workload, duplicate_aware=way, layout="nhwc" if way == "shared" else "nhwcnc")
    planned = kernel.plan
    for block in {0, kernel.launch.grid[0] // 2, kernel.launch.grid[0] - 1}:
        rows = _rows(kernel, block, "copy", "A")
        rows = rows[rows["valid"] > 0]
        assert set(rows["valid"].tolist()) == {16}
        pixels = _input_pixels(planned, block)
        group = _tile(planned, block)[0]
        wanted: Counter[int] = Counter()
        for pixel, uses in pixels.items():
            for piece in _pieces(planned, group, pixel):
                wanted[piece] += uses if way == "none" else 1
        assert Counter(rows["offset"].tolist()) == wanted


def test_row_by_row_shares_along_the_width_only() -> None:
    workload = SHAPES[0]
    planned = _kernel(workload, reorder_inner=1).plan
    rows = _rows(Kernel(planned), 1, "copy", "A")
    seen = Counter(rows["offset"][rows["valid"] > 0].tolist())
    by_row: Counter[int] = Counter()
    w, (group, top, left) = workload, _tile(planned, 1)
    for i, r in product(range(planned.tile[0]), range(w.r)):
        y = top + i + r - w.pad
        xs = {left + j + s - w.pad for j in range(planned.tile[1]) for s in range(w.s)}
        if 0 <= y < w.h and planned.tile[0] == 1:
            by_row.update(piece for x in xs if 0 <= x < w.w for piece in _pieces(planned, group, (y, x)))
    if planned.tile[0] == 1:
        assert seen == by_row
    else:  # rows of the tile share what one kernel row reads
        per_kernel_row = [
            {
                piece
                for i, j, s in product(range(planned.tile[0]), range(planned.tile[1]), range(w.s))
                for y, x in [(top + i + r - w.pad, left + j + s - w.pad)]
                if 0 <= y < w.h and 0 <= x < w.w
                for piece in _pieces(planned, group, (y, x))
            }
            for r in range(w.r)
        ]
        assert seen == sum((Counter(pieces) for pieces in per_kernel_row), Counter())


@pytest.mark.parametrize("way", ["none", "full"])
def test_byte_counts_of_the_trace_helpers_agree(way: str) -> None:
    kernel = _kernel(SHAPES[0], duplicate_aware=way)
    run = kernel.trace(blocks=(1,))
    assert run.trace is not None
    a = run.arguments.index("A")
    pixels = _input_pixels(kernel.plan, 1)
    piece = 128 * SHAPES[0].channel_blocks
    assert unique_global_bytes(run.trace, a) == {1: piece * len(pixels)}
    assert global_bytes_read(run.trace, a) == {1: piece * (pixels.total() if way == "none" else len(pixels))}


@pytest.mark.parametrize("argument", ["Wt", "Prm"])
def test_every_weight_and_parameter_of_the_block_is_copied_once(argument: str) -> None:
    kernel = _kernel(ConvWorkload(3, 9, 9, 64, 64, 3, 3, 1))
    planned = kernel.plan
    last = kernel.launch.grid[0] * kernel.launch.grid[1] - 1
    rows = _rows(kernel, last, "copy", argument)
    assert len(set(rows["offset"].tolist())) == len(rows)
    if argument == "Wt":
        assert rows["valid"].sum() == 2 * 9 * 32 * planned.config.columns // 2
    else:
        assert rows["valid"].sum() == 3 * 4 * planned.config.columns


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("workload", "way", "inner"),
    [
        *((shape, "full", 0) for shape in SHAPES),
        *((SHAPES[at], way, inner) for at in (2, 4) for way, inner in (("full", 1), ("shared", 0), ("none", 1))),
    ],
    ids=lambda given: given.spec if isinstance(given, ConvWorkload) else str(given),
)
def test_fragments_loaded_by_a_warp(workload: ConvWorkload, way: str, inner: int) -> None:
    """``full``: each genuine fragment of the warp once for each channel block. Otherwise one for each pixel and tap."""
    kernel = _kernel(workload, duplicate_aware=way, reorder_inner=inner)
    planned, w = kernel.plan, workload
    rows = _rows(kernel, 0, "shared_load")
    staged = 4 * planned.stage_words
    activations = rows[
        (rows["shared"] < 4 * planned.parameter_base) & (rows["shared"] % staged < 4 * planned.activation_words)
    ]
    high, wide = planned.warp_tile
    genuine = {
        (i * w.stride + r * w.dilation, j * w.stride + s * w.dilation)
        for i, j, r, s in product(range(high), range(wide), range(1 if inner else w.r), range(w.s))
    }
    per_block = len(genuine) * (w.r if inner else 1) if way == "full" else w.r * w.s * planned.config.warp_row_tiles
    for warp in range(planned.config.threads // 32):
        for lane in (0, 17, 31):
            mine = activations[(activations["warp"] == warp) & (activations["lane"] == lane)]
            assert set(mine["size"].tolist()) == {4}
            assert len(mine) == w.channel_blocks * per_block
            if way == "full":
                stages = mine[["phase", "shared"]]
                assert len(np.unique(stages)) == len(stages)


@pytest.mark.parametrize("packing", [True, False])
def test_outputs_are_stored_where_the_layout_puts_them(packing: bool) -> None:
    """Every word of the block's pixels and channels once, and every warp-wide store fills whole 32-byte sectors."""
    kernel = _kernel(SHAPES[0], register_packing=packing, warp_col_tiles=4)
    planned, w = kernel.plan, SHAPES[0]
    block = 1
    run = kernel.trace(blocks=(block,))
    assert run.trace is not None
    rows = of_kind(run.trace, "global_store")
    group, top, left = _tile(planned, block)
    wanted = {
        4 * ((((group * w.p + p) * w.q + q) * w.filter_blocks + tile // 4) * 32 + image * 4 + tile % 4)
        for p, q in product(range(top, top + planned.tile[0]), range(left, left + planned.tile[1]))
        if p < w.p and q < w.q
        for tile, image in product(range(planned.column_tiles), range(8))
    }
    assert sorted(rows["offset"].tolist()) == sorted(wanted)
    assert set(rows["size"].tolist()) == {4}
    for group_rows in warp_groups(run.trace, "global_store"):
        offsets = run.trace["offset"][group_rows[group_rows >= 0]]
        assert len(offsets) == 32
        assert len(np.unique(offsets // 32)) == 4  # 128 bytes, 4 sectors: fully coalesced


def test_nhwc_stores_touch_a_sector_per_image() -> None:
    kernel = _kernel(SHAPES[0], layout="nhwc", warp_col_tiles=4)
    run = kernel.trace(blocks=(0,))
    assert run.trace is not None
    for rows in warp_groups(run.trace, "global_store"):
        assert len(np.unique(run.trace["offset"][rows[rows >= 0]] // 32)) == 8


@pytest.mark.sample(2)
@pytest.mark.parametrize(("pixels", "tiles"), [(4, 4), (2, 8), (4, 2), (4, 1), (7, 1)])
def test_two_shuffles_pack_four_tiles(pixels: int, tiles: int) -> None:
    workload = ConvWorkload(3, 7, 7, 32, 64, 1, 1)
    kernel = Kernel(plan(workload, MmaConfig(1, 1, pixels, tiles), "sm_80"))
    run = kernel.trace(blocks=(0,))
    assert run.trace is not None
    shuffles = of_kind(run.trace, "shuffle")
    exchanges = shuffles[shuffles["mode"] == 0]  # the others make the warp index uniform
    words = -(-pixels // (4 // min(tiles, 4))) * max(tiles // 4, 1)
    assert len(exchanges) == 32 * 2 * words
    for distance in (1, 2):
        rows = exchanges[exchanges["source_lane"] == (exchanges["lane"] ^ distance)]
        assert len(rows) == 32 * words
    assert counts(run.trace)["mma"] == 32 * kernel.plan.pairs * tiles


def test_without_register_packing_nothing_is_exchanged_between_lanes() -> None:
    rows = _rows(_kernel(SHAPES[3], register_packing=False), 0, "shuffle")
    assert not len(rows[rows["mode"] == 0])


def test_trace_of_several_blocks_and_seeds() -> None:
    """Another order of warps gives the same accesses."""
    kernel = _kernel(SHAPES[3])
    first, second = (kernel.trace(blocks=(0, 2), seed=seed).trace for seed in (0, 1))
    assert first is not None
    assert second is not None
    assert set(np.unique(first["block"]).tolist()) == {0, 2}
    assert counts(first) == counts(second)

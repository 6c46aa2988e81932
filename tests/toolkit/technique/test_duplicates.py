"""The lowered index map against the paper's facts, a closed formula and a plain search for equal input pixels."""

from __future__ import annotations

import itertools
import json

import pytest

from subbyte.errors import InvalidInput
from subbyte.technique import Duplicates, duplicates
from subbyte.workload import ConvWorkload

STAGE2 = ConvWorkload(8, 56, 56, 64, 64, 3, 3, 1, name="resnet50.stage2@8")


def test_paper_facts() -> None:
    record = duplicates(STAGE2, (1, 4))
    assert (record.entries, record.genuine) == (36, 18)
    assert (record.genuine_of[9], record.genuine_of[10]) == (1, 2)
    assert record.genuine_of[16] == record.genuine_of[24] == record.genuine_of[8] == 8
    assert len(set(record.genuine_of)) == 18
    assert {len(group) for group in record.copies} == {1, 2, 3}


@pytest.mark.parametrize(
    ("tile", "none", "width", "full"),
    [
        ((1, 2), 18, 12, 12),
        ((1, 4), 36, 18, 18),
        ((1, 8), 72, 30, 30),
        ((1, 14), 126, 48, 48),
        ((2, 4), 72, 36, 24),
        ((4, 4), 144, 72, 36),
        ((8, 8), 576, 240, 100),
    ],
)
def test_load_table(tile: tuple[int, int], none: int, width: int, full: int) -> None:
    record = duplicates(STAGE2, tile)
    assert (record.loads.none, record.loads.width, record.loads.full) == (none, width, full)
    assert record.bytes_loaded.full == 128 * full
    assert record.ratio_full == pytest.approx(none / full)
    assert record.ratio_width == pytest.approx(none / width)
    assert record.halo[0] * record.halo[1] == full


@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (5, 2), (7, 7)], ids=str)
def test_map_against_a_plain_search(kernel: tuple[int, int]) -> None:
    for stride, dilation, tile in itertools.product((1, 2, 3), (1, 2), ((1, 1), (1, 4), (3, 2))):
        _check_map(kernel, stride, dilation, tile)


def _check_map(kernel: tuple[int, int], stride: int, dilation: int, tile: tuple[int, int]) -> None:
    workload = ConvWorkload(8, 40, 40, 32, 32, *kernel, pad=0, stride=stride, dilation=dilation)
    record = duplicates(workload, tile)
    pixels = [
        (ph * stride + r * dilation, pw * stride + s * dilation)
        for ph, pw, r, s in itertools.product(*(range(size) for size in (*tile, *kernel)))
    ]
    assert record.genuine_of == tuple(pixels.index(pixel) for pixel in pixels)
    rows = {ph * stride + r * dilation for ph in range(tile[0]) for r in range(kernel[0])}
    columns = {pw * stride + s * dilation for pw in range(tile[1]) for s in range(kernel[1])}
    assert record.genuine == len(set(pixels)) == len(rows) * len(columns)
    assert record.loads.width == tile[0] * kernel[0] * len(columns)
    if stride == dilation == 1:
        assert record.genuine == (tile[0] + kernel[0] - 1) * (tile[1] + kernel[1] - 1)
    _check_consistent(record)


def _check_consistent(record: Duplicates) -> None:
    """Every map tells the same data apart: equal datum, genuine index, fragment and slot go together."""
    keys = set(zip(record.datum, record.genuine_of, record.fragment, record.slot, strict=True))
    assert len(keys) == record.genuine
    for part in range(4):
        assert len({key[part] for key in keys}) == record.genuine
    assert {key[2] for key in keys} == set(range(record.genuine))
    assert max(record.slot) < record.halo[0] * record.halo[1]
    assert sorted(k for group in record.copies for k in group) == list(range(record.entries))


def test_padding_and_edges_at_a_position() -> None:
    corner = duplicates(STAGE2, (1, 4), at=(0, 0))
    assert sum(corner.padding[group[0]] for group in corner.copies) == 6 + 2
    assert not any(corner.masked)
    edge = duplicates(STAGE2, (2, 4), at=(55, 54))
    assert edge.masked == (False, False, True, True, True, True, True, True)
    inside = duplicates(STAGE2, (2, 4), at=(20, 20))
    assert not any(inside.padding)
    strided = duplicates(ConvWorkload(8, 56, 56, 64, 64, 3, 3, 1, stride=2), (1, 2), at=(27, 27))
    assert sum(strided.padding[group[0]] for group in strided.copies) == 2 * 3
    assert strided.masked == (False, True)


def test_warps_share_the_slots_of_their_block() -> None:
    block = duplicates(STAGE2, (2, 4), at=(0, 0))
    warps = [block.warp(i, 4) for i in range(2)]
    assert [warp.entries for warp in warps] == [36, 36]
    assert [warp.genuine for warp in warps] == [18, 18]
    assert {slot for warp in warps for slot in warp.slot} == set(block.slot)
    for i, warp in enumerate(warps):
        assert warp.slot == block.slot[36 * i : 36 * (i + 1)]
        assert warp.padding == block.padding[36 * i : 36 * (i + 1)]
        _check_consistent(warp)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("pixels", [4, 8])
def test_the_kernels_plan_has_the_same_slots_and_fragments(stride: int, pixels: int) -> None:
    from subbyte.families.mma.config import MmaConfig
    from subbyte.families.mma.plan import plan

    workload = ConvWorkload(8, 28, 28, 64, 64, 3, 3, 1, stride=stride)
    planned = plan(workload, MmaConfig(blk_row_warps=2, warp_row_tiles=pixels))
    block = duplicates(workload, planned.tile)
    assert planned.slots == block.genuine
    assert block.slot == tuple(planned.slot(*index) for index in block.index)
    warp = block.warp(1, pixels)
    assert planned.fragments == warp.genuine
    first_row, first_column = warp.pixels[0]
    held = tuple(planned.fragment(ph - first_row, pw - first_column, r, s) for ph, pw, r, s in warp.index)
    assert warp.fragment == held


def test_record_goes_to_json_table_and_text() -> None:
    record = duplicates(STAGE2, at=(0, 0))
    data = json.loads(record.to_json())
    assert (data["entries"], data["genuine"]) == (36, 18)
    assert data["loads"] == {"none": 36, "width": 18, "full": 18}
    assert data["workload"] == STAGE2.spec
    assert len(record.to_frame()) == 36
    assert "[20]" in record.text()
    assert "=11" in record.text()
    assert record._repr_html_().count("<tr>") == 37


def test_text_names_a_workload() -> None:
    assert duplicates("resnet50.stage2@8", (1, 4)) == duplicates(STAGE2, (1, 4))


@pytest.mark.parametrize("tile", [(0, 4), (1,), (1, 2, 3), (1.5, 2), "1x4", 4, (400, 400)])
def test_wrong_tiles_are_refused(tile: object) -> None:
    with pytest.raises(InvalidInput, match="tile"):
        duplicates(STAGE2, tile)  # type: ignore[arg-type]


def test_wrong_positions_and_warps_are_refused() -> None:
    with pytest.raises(InvalidInput, match="56x56"):
        duplicates(STAGE2, at=(56, 0))
    with pytest.raises(InvalidInput, match="4 pixels"):
        duplicates(STAGE2).warp(0, 3)
    with pytest.raises(InvalidInput, match="warp 2: 2 of them share the tile, counted from 0"):
        duplicates(STAGE2).warp(2, 2)

"""The tiling record: every output once, the plan's own index maps, and the instructions of a kernel that ran."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable

import pytest

from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import plan
from subbyte.kernel import Kernel
from subbyte.technique import tiling
from subbyte.technique.tiling import Tiling, WarpTile
from subbyte.technique.topics import explained
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parsed

CASES = [
    (ConvWorkload(8, 8, 8, 64, 64, 3, 3, 1), MmaConfig(2, 2, 4, 4), "sm_80"),
    (ConvWorkload(9, 9, 7, 64, 32, 3, 3, 1), MmaConfig(2, 1, 4, 4, reorder_inner=1), "sm_90a"),
    (ConvWorkload(8, 11, 10, 64, 64, 5, 3, 2, 2), MmaConfig(1, 2, 2, 4, chunk=2), "sm_80"),
    (ConvWorkload(8, 12, 12, 64, 64, 3, 3, 2, 1, 2), MmaConfig(2, 1, 2, 4, chunk=2, split_channels=2), "sm_80"),
    (ConvWorkload(8, 7, 7, 64, 32, 1, 1, 0), MmaConfig(1, 1, 1, 4), "sm_75"),
    (parsed("n8h7w6c64k64r3s3p1:w8a8"), MmaConfig(2, 1, 2, 4, chunk=2), "sm_90a"),
    (parsed("n8h6w6c64k64r3s3p1:w4a8"), MmaConfig(2, 1, 2, 4, chunk=4, split_channels=2), "sm_80"),
    (parsed("n8h6w6c64k64r3s3p1:w4a4:signed.offset-z3"), MmaConfig(1, 1, 2, 4), "sm_80"),
]


def tiles(record: Tiling) -> range:
    return range(record.blocks // record.column_blocks)


@pytest.mark.parametrize(("workload", "config", "arch"), CASES)
def test_blocks_cover_every_row_and_channel_once(workload: ConvWorkload, config: MmaConfig, arch: str) -> None:
    record = tiling(workload, config, arch=arch)
    assert record.blocks == plan(workload, config, arch).launch.grid[0] * record.column_blocks
    rows: Counter[int] = Counter()
    for tile in tiles(record):
        for first, count in record.block(tile).gemm_rows:
            rows.update(range(first, first + count))
    assert rows == Counter(range(record.padded[0]))
    channels = [record.block(0, block).gemm_columns for block in range(record.column_blocks)]
    assert [c for first, count in channels for c in range(first, first + count)] == list(range(record.padded[1]))
    columns = [c for step in record.steps for first in step.columns for c in range(first, first + record.block_depth)]
    assert sorted(columns) == list(range(record.padded[2]))


@pytest.mark.parametrize(("workload", "config", "arch"), CASES)
def test_every_instruction_reads_what_the_plan_says(workload: ConvWorkload, config: MmaConfig, arch: str) -> None:
    record, planned = tiling(workload, config, arch=arch), plan(workload, config, arch)
    last = record.block(tiles(record)[-1])
    assert last.place[:3] == (record.groups - 1, len(record.rows) - 1, len(record.columns) - 1)
    for _, i, j, _ in (record.block(tile).place for tile in tiles(record)):
        for number, (row, column) in enumerate(record.pixels):
            assert number == row * planned.tile[1] + column
            for step in record.steps:
                kernel_row, _ = planned.step(step.iteration)
                slot = planned.slot(row, column, step.r - kernel_row, step.s)
                down, right = planned.slot_pixel(slot)
                top = i * planned.tile[0] * workload.stride + kernel_row * workload.dilation - workload.pad
                left = j * planned.tile[1] * workload.stride - workload.pad
                assert record.rows[i].reads[row][step.r] == top + down
                assert record.columns[j].reads[column][step.s] == left + right


def test_warps_and_instructions_share_the_tile_without_overlap() -> None:
    for workload, config, arch in CASES:
        record = tiling(workload, config, arch=arch)
        done = Counter(
            (warp.share, warp.pixels[pixel], warp.columns[multiply.column])
            for warp in record.warps
            for multiply in record.multiplies
            for pixel in set(multiply.pixels)
        )
        assert set(done.values()) == {1}
        assert len(done) == config.split_channels * len(record.pixels) * record.block_channels // 8


def test_known_numbers() -> None:
    """ResNet50 stage 2 at batch 8: Choi et al. 2022, section 2.1, and Table 1's operation count."""
    record = tiling("resnet50.stage2@8")
    assert record.gemm == (25088, 64, 576)
    assert 2 * record.gemm[0] * record.gemm[1] * record.gemm[2] == 1_849_688_064
    assert (record.useful, record.instructions) == (1.0, 225_792)
    ragged = tiling("resnet50.stage5@8", MmaConfig(1, 1, 4, 4))
    assert ragged.tile == (1, 4)
    assert ragged.useful == 7 / 8
    assert tiling(ConvWorkload(1, 8, 8, 32, 32, 3, 3, 1), MmaConfig(1, 1, 4, 4)).useful == 1 / 8


def test_edges_and_padding() -> None:
    record = tiling("resnet50.stage5@8", MmaConfig(1, 1, 4, 4))
    corner, edge = record.block(0), record.block(1)
    assert (corner.outputs, corner.inputs) == (((0, 1), (0, 4)), ((0, 2), (0, 5)))
    assert edge.outputs == ((0, 1), (4, 3))
    assert record.rows[0].reads[0] == (-1, 0, 1)
    assert edge.gemm_rows == ((32, 24),)


@pytest.mark.parametrize("number", [(-1, 0), (112, 0), (0, 16)])
def test_a_block_outside_the_grid_is_refused(number: tuple[int, int]) -> None:
    record = tiling("resnet50.stage5@8", MmaConfig(1, 1, 4, 4))
    with pytest.raises(InvalidInput, match="the grid has"):
        record.block(*number)


def test_a_refused_configuration_is_refused_with_its_reason() -> None:
    with pytest.raises(InvalidInput, match="divisibility"):
        tiling("n8h8w8c32k32r3s3p1", MmaConfig(1, 2, 4, 4))


def test_text_and_json() -> None:
    record = tiling("resnet50.stage2@8")
    assert "784 blocks" in record.text()
    assert record.to_dict()["warps"][1]["columns"] == [4, 5, 6, 7]
    assert len(tiling("n8h512w512c64k64r3s3p1").to_json()) < 60_000


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="the emulator needs a C++ compiler")
@pytest.mark.parametrize("case", [0, 3, 5, 6])
def test_the_kernel_issues_these_instructions_and_stores_these_tiles(
    emulated: Callable[..., Kernel], case: int
) -> None:
    from subbyte.emulator.trace import of_kind

    workload, config, arch = CASES[case]
    record, tile = tiling(workload, config, arch=arch), 3
    kernel = emulated(workload, config, arch)
    run = kernel.trace(blocks=(tile,))
    group, i, j, _ = record.block(tile).place
    multiplications, stores = of_kind(run.trace, "mma"), of_kind(run.trace, "global_store")
    for warp in record.warps:
        steps = [step for step in record.steps if step.share == warp.share]
        issued = (multiplications["warp"] == warp.number).sum() / 32
        assert issued == len(steps) * len(record.multiplies)

        def expected(owner: WarpTile) -> set[int]:
            at = kernel.plan.output_word
            return {
                4 * (at(group, record.rows[i].first + p, record.columns[j].first + q, column, image) + word)
                for word in range(kernel.plan.tile_words)
                for p, q in (record.pixels[pixel] for pixel in owner.pixels)
                if p < record.rows[i].outputs and q < record.columns[j].outputs
                for column in owner.columns
                for image in range(8)
            }

        mine = set(stores["offset"][stores["warp"] == warp.number].tolist())
        assert mine == (expected(warp) if warp.share == 0 else set())
        assert mine != expected(record.warps[warp.number - 1]), "another warp's tile would not go unnoticed"


def test_bytes_are_shown_without_a_configuration() -> None:
    """The plain configuration has one block of channels, an instruction on bytes takes two."""
    record = explained(Tiling, "n8h7w6c64k64r3s3p1:w8a8", arch="sm_80")
    assert (record.shape, record.gemm, record.block_depth) == ((16, 8, 32), (336, 64, 576), 16)

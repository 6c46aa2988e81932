"""The exercises on the convolution as a matrix product: the right answer, and what each typical mistake is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from subbyte.errors import InvalidInput
from subbyte.exercises.convolution_as_gemm import check_datum, check_tiling, check_waste
from subbyte.families import space
from subbyte.families.mma.config import MmaConfig
from subbyte.technique import tiling

LAYER, CONFIG = "n16h28w28c128k128r3s3p1", MmaConfig(2, 2, 8, 2)
RIGHT = {"rows": 12544, "columns": 128, "depth": 1152, "blocks": 392, "steps": 36, "instructions": 8}
RAGGED, WIDE = "resnet50.stage5@8", MmaConfig(1, 2, 4, 4)


def test_the_right_counts_are_those_of_the_record() -> None:
    record = tiling(LAYER, CONFIG, arch="sm_80")
    assert record.gemm == (RIGHT["rows"], RIGHT["columns"], RIGHT["depth"])
    assert (record.blocks, len(record.steps), len(record.multiplies)) == (392, 36, 8)
    said = check_tiling(RIGHT, LAYER, CONFIG)
    assert said
    assert "392 blocks" in said.message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": 784}, "pixels of one image"),
        ({"rows": 1152}, "that is the depth"),
        ({"columns": 16}, "tiles of 8 filters"),
        ({"depth": 128}, "one kernel offset only"),
        ({"depth": 9}, "kernel offsets; each brings all input channels"),
        ({"blocks": 98}, "output channels are cut into blocks as well"),
        ({"blocks": 49}, "only the pixel tiles"),
        ({"blocks": 3136}, "the 8 images of a group share one block"),
        ({"steps": 1152}, "many channels at once"),
        ({"steps": 4}, "those are the stages"),
        ({"steps": 9}, "those are the kernel offsets"),
        ({"instructions": 16}, "takes 2 pixels at a time"),
        ({"instructions": 32}, "about one warp"),
        ({"instructions": 288}, "about one step"),
        ({"instructions": 5}, "divide by what one instruction covers"),
        ({"rows": "many"}, "a row for every output pixel"),
        ({"blocks": ...}, "Replace the ... of blocks. So far right: rows"),
    ],
)
def test_a_wrong_count_is_named(change: dict[str, Any], words: str) -> None:
    said = check_tiling({**RIGHT, **change}, LAYER, CONFIG)
    assert not said
    assert words in said.message


def test_tiles_over_the_edge_count_too() -> None:
    right = {"rows": 392, "columns": 512, "depth": 4608, "blocks": 112, "steps": 144, "instructions": 8}
    assert check_tiling(right, RAGGED, WIDE)
    assert "over the edge are launched too" in check_tiling({**right, "blocks": 56}, RAGGED, WIDE).message


def test_every_mistake_is_wrong_somewhere_and_open_answers_are_no_mistakes() -> None:
    assert check_tiling(dict.fromkeys(RIGHT, ...), LAYER, CONFIG).message.startswith("Replace the ... of rows")
    with pytest.raises(InvalidInput, match="did you mean blocks"):
        check_tiling({"block": 3}, LAYER, CONFIG)


@pytest.mark.sample(1)
@pytest.mark.parametrize("layer", [LAYER, "n8h9w7c64k32r5s3p2u2", "n8h12w12c32k32r3s3p2d2"])
def test_the_datum_is_the_one_the_tiling_reads(layer: str) -> None:
    record = tiling(layer, MmaConfig(1, 1, 4, 4), arch="sm_80")
    for tile in range(0, record.blocks // record.column_blocks, 7):
        group, i, j, _ = record.block(tile).place
        for p, q in record.pixels:
            if p >= record.rows[i].outputs or q >= record.columns[j].outputs:
                continue
            row = record.block(tile).gemm_rows[p][0] + 8 * q + 3
            for step in record.steps:
                pixel = (record.rows[i].reads[p][step.r], record.columns[j].reads[q][step.s])
                channel = 32 * step.channel_blocks[0] + 5
                assert check_datum((8 * group + 3, *pixel, channel), layer, row, step.columns[0] + 5)


def test_a_wrong_datum_is_named() -> None:
    """Row 6291: group 1, output pixel (0, 2), image 3 of it; column 650: channel block 2, offset (0, 2), channel 10."""
    row, column = (784 + 2) * 8 + 3, (2 * 9 + 2) * 32 + 10
    assert check_datum((11, -1, 3, 74), LAYER, row, column)
    for answer, words in (
        ((11, 0, 4, 74), "the input is padded"),
        ((11, 0, 2, 74), "that is the output pixel"),
        ((11, 1, 1, 74), "r and s are swapped"),
        ((8, -1, 20, 74), "8 images of a group vary fastest"),
        ((11, 0, 3, 10), "blocks of 32 channels come first"),
        ((11, 3, -1, 74), "y and x are swapped"),
        ((3, -1, 3, 74), "the image is wrong"),
        ((11, 5, 5, 74), "look at the pixel again"),
        ((11, -1, 3, 10), "the channel is wrong"),
        ((1, 1, 1, 1), "split the row into"),
        ((1, 2, 3), "give four numbers"),
        (..., "Replace the ..."),
    ):
        said = check_datum(answer, LAYER, row, column)
        assert not said
        assert words in said.message, (answer, said.message)
    with pytest.raises(InvalidInput, match="12544 x 1152"):
        check_datum((0, 0, 0, 0), LAYER, 12544, 0)


@pytest.mark.deep
def test_few_configurations_waste_least_in_the_fewest_blocks() -> None:
    found = space(RAGGED, "sm_80")
    shapes = [one for one in map(found.config, found.valid) if (one.chunk, one.reorder_inner) == (1, 0)]
    right = [one for one in shapes if check_waste(one, RAGGED)]
    assert {one.key for one in right} == {MmaConfig(2, 4, 4, 16).key, MmaConfig(4, 4, 2, 16).key}
    cell = (Path(__file__).parents[3] / "notebooks/01_convolution_as_gemm.ipynb").read_text(encoding="utf-8")
    printed = re.search(r"check_waste\(.*such as MmaConfig\(([\d, ]+)\)", cell)
    assert printed
    assert not check_waste(MmaConfig(*map(int, printed[1].split(","))), RAGGED)


def test_least_waste() -> None:
    for answer in (MmaConfig(2, 4, 4, 16), MmaConfig(4, 4, 2, 16)):
        said = check_waste(answer, RAGGED)
        assert said
        assert "87.5%" in said.message
        assert "in 7 blocks" in said.message
    for answer, words in (
        (MmaConfig(1, 1, 4, 4), "needs 224 blocks, and 7 are enough"),
        (MmaConfig(1, 1, 7, 4), "not in the space. warp_row_tiles=7"),
        (MmaConfig(2, 4, 4, 16, tile_height=1), "not in the space"),
        (MmaConfig(1, 1, 1, 4), "computes it twice"),
        (MmaConfig(4, 1, 4, 4), "4 x 4 hang over the edge of the 7 x 7 map"),
        (MmaConfig(1, 1, 16, 16), "cannot be built"),
        (7, "give an MmaConfig"),
        (..., "Replace the ..."),
    ):
        said = check_waste(answer, RAGGED)
        assert not said
        assert words in said.message

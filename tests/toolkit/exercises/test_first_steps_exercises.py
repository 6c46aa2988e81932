"""The exercises of the first notebook and of the one on your GPU: right answers, and typical wrong ones by name."""

from __future__ import annotations

from typing import Any

import pytest

from subbyte import MmaConfig
from subbyte.errors import InvalidInput
from subbyte.exercises import check_block, check_pixels, check_rate, check_waves
from subbyte.exercises.feedback import Feedback

STRIDED = "n8h56w56c64k64r3s3p1u2"
LAYER = "resnet50.stage2@8"
KNOBS = {"blk_row_warps": 2, "blk_col_warps": 2, "warp_row_tiles": 8, "warp_col_tiles": 2}


def refused(feedback: Feedback, says: str) -> None:
    assert not feedback
    assert says in feedback.message, feedback.message


def test_the_number_of_pixels() -> None:
    assert check_pixels(45, STRIDED, (2, 4))
    assert "45 of them genuine" in check_pixels(45, STRIDED, (2, 4)).message


@pytest.mark.parametrize(
    ("answer", "says"),
    [(..., "Replace the ..."), (72, "every entry"), (54, "width only"), (24, "without the stride"),
     (60, "tile x stride"),
     (8, "output pixels"),
     (99, "DuplicateExplorer"), ("many", "a number of pixels, not 'many'")],
)  # fmt: skip
def test_a_wrong_number_of_pixels_is_named(answer: Any, says: str) -> None:
    refused(check_pixels(answer, STRIDED, (2, 4)), says)


def block(answer: Any, **options: Any) -> Feedback:
    return check_block(answer, LAYER, **{"pixels": 16, "filters": 32, "warps": 4, **options})


def test_a_block_of_the_wanted_shape() -> None:
    assert block(KNOBS)
    assert block(MmaConfig(2, 2, 8, 2))
    assert block(MmaConfig(4, 1, 4, 4))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"warp_row_tiles": ...}, "Replace each"),
        ({"warp_row_tiles": 16, "warp_col_tiles": 1}, "other way round"),
        ({"warp_col_tiles": 16}, "8 filters wide"),
        ({"warp_row_tiles": 64}, "one pixel of 8 images"),
        ({"warp_row_tiles": 4}, "must compute 16 x 32"),
        ({"blk_row_warps": 1, "warp_row_tiles": 16}, "must have 4 warps"),
        ({"blk_row_warps": "2"}, "blk_row_warps = '2': give a whole number"),
        ({"warp_col_tiles": 2.0}, "give a whole number"),
        ({"chunk": 8}, "refuses this configuration: "),
        ({"warp_row_tile": 8}, "MmaConfig"),
    ],
)
def test_a_wrong_block_is_named(change: dict[str, Any], says: str) -> None:
    refused(block({**KNOBS, **change}), says)


RIGHT = 1_849_688_064 / 4.53e6


def test_the_rate_of_a_layer() -> None:
    assert check_rate(RIGHT, LAYER, 4.53)
    assert check_rate(408, LAYER, 4.53).message == "408 TOPS."


@pytest.mark.parametrize(
    ("answer", "says"),
    [(..., "Replace the ..."), (RIGHT / 2, "each counts as two"), (RIGHT * 2, "not four"), (RIGHT / 8, "one image"),
     (RIGHT / 9, "3 x 3 offsets"), (RIGHT * 1e3, "unit is wrong"), (1_624_064 / 4.53e6, "a bandwidth"),
     (7.7, "by the time"), ("fast", "by the time"), ([1], "by the time")],
)  # fmt: skip
def test_a_wrong_rate_is_named(answer: Any, says: str) -> None:
    refused(check_rate(answer, LAYER, 4.53), says)


def test_the_waves_of_a_launch() -> None:
    assert check_waves(3, 1568, 5, 132).message == "660 blocks at a time; the last wave fills 38% of the GPU."
    assert check_waves(2, 1320, 5, 132).message == "660 blocks at a time; the last wave fills 100% of the GPU."


@pytest.mark.parametrize(
    ("answer", "says"),
    [(..., "Replace the ..."), (2.376, "takes a whole wave"), (2.4, "takes a whole wave"), (2, "another wave"),
     (12, "several of these"), (314, "at the same time"), (660, "How many such waves"), (77, "Divide"),
     ("three", "a number of waves")],
)  # fmt: skip
def test_wrong_waves_are_named(answer: Any, says: str) -> None:
    refused(check_waves(answer, 1568, 5, 132), says)


def test_a_launch_without_blocks_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 1"):
        check_waves(1, 0, 5, 132)

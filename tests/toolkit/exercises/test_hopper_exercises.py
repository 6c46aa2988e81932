"""The exercises on Hopper: the right answer, and what each typical mistake is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import subbyte
from subbyte import PipelineConfig
from subbyte.emulator.trace import of_kind
from subbyte.errors import InvalidInput
from subbyte.exercises.hopper import check_grid, check_operands, check_price, check_tap_start
from subbyte.families import space
from subbyte.records.landscape import Landscape
from subbyte.records.result import Measured
from subbyte.technique.taps import tap_addresses

LAYER = "n8h14w14c64k128r3s3p1"
CONFIG = PipelineConfig(tile_width=14, segments=2, stages=4, stagger=0)
ROW, R, S = 4, 1, 2
BUFFER = (2 * 15 + 1) * 256


@pytest.mark.deep
def test_the_start_is_one_the_kernel_uses() -> None:
    start = 0 * BUFFER + 2 * 256  # input row 4 of 4 stages
    assert check_tap_start(start, LAYER, CONFIG, ROW, R, S)
    rows = of_kind(subbyte.build(LAYER, CONFIG).trace(blocks=(0,)).trace, "wgmma")
    assert start in set(rows["shared"].tolist())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (512 // 16, "units of 16 bytes"),
        (2 * 128, "256 bytes, not 128"),
        (2, "counts pixels"),
        (0, "where the stage buffer begins"),
        (4 * BUFFER + 512, "modulo the number of stages"),
        (1 * BUFFER + 512, "kernel row 1 reads input row 4"),
        (99, "in which stage buffer does it lie"),
        (..., "Replace the ..."),
    ],
)
def test_a_wrong_start_is_named(answer: Any, words: str) -> None:
    said = check_tap_start(answer, LAYER, CONFIG, ROW, R, S)
    assert not said
    assert words in said.message


def test_a_buffer_that_is_left_out_or_too_small_is_named() -> None:
    start = 3 * BUFFER + 256  # input row 3
    assert check_tap_start(start, LAYER, CONFIG, 4, 0, 1)
    assert "the stage buffer is missing" in check_tap_start(256, LAYER, CONFIG, 4, 0, 1).message
    assert "every block of 32 channels" in check_tap_start(3 * 15 * 256 + 256, LAYER, CONFIG, 4, 0, 1).message
    with pytest.raises(InvalidInput, match="outside the image"):
        check_tap_start(0, LAYER, CONFIG, 0, 0, 0)
    with pytest.raises(InvalidInput, match="rows 0 to 6"):
        tap_addresses(LAYER, CONFIG, 7)


def test_operands() -> None:
    assert check_operands(lambda word: (word << 4 & 0xF0F0F0F0, word & 0xF0F0F0F0))
    assert check_operands(lambda word: [int(one) for one in (np.uint32(word) << 4 & 0xF0F0F0F0, word & 0xF0F0F0F0)])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda w: (w & 0xF0F0F0F0, w << 4 & 0xF0F0F0F0), "swapped"),
        (lambda w: (w & 0x0F0F0F0F, w >> 4 & 0x0F0F0F0F), "-1 becomes 15"),
        (lambda w: (w << 4 & 0xFFFFFFFF, w), "mask both"),
        (lambda w: (w << 4, w), "mask both"),
        (lambda w: (w >> 4 & 0xF0F0F0F0, w & 0xF0F0F0F0), "shift to the left"),
        (lambda w: (w << 4 & 0xFF0F0F0F0, w & 0xF0F0F0F0), "A register has 32 bits"),
        (lambda w: (w, w, w), "Return two words"),
        (lambda w: (1, w & 0xF0F0F0F0), "the right answer is"),
        (lambda w: w.nothing, "raised AttributeError"),
        (3, "Give a function"),
    ],
)
def test_wrong_operands_are_named(answer: Any, words: str) -> None:
    said = check_operands(answer)
    assert not said
    assert words in said.message


def test_blocks() -> None:
    layer, config = "resnet50.stage3@8", PipelineConfig(tile_width=14, segments=28, stages=3, stagger=0)
    assert check_grid(1 * 28 * 2 * 2, layer, config)
    for answer, words in (
        (112 * 8, "groups of 8"),
        (56, "output channels are missing"),
        (112 * 4, "input channels are added up"),
        (4, "segments of rows are missing"),
        (112 * 256, "threads"),
        (7, "groups of 8 images x segments"),
        (..., "Replace the ..."),
    ):
        said = check_grid(answer, layer, config)
        assert not said
        assert words in said.message


PRICES = {0: 6.0, 1: 4.0, 2: 9.0, 3: 5.0, 4: 7.5}
"""Made-up times of the first five valid configurations of a space."""


@pytest.fixture(scope="module")
def recorded() -> Landscape:
    known = space("n24h4w6c64k64r3s3p0", kind="wgmma")
    few = {"consumers_n": (1,), "cluster_split_k": (1,), "unroll": (1,)}  # sorting all products takes seconds
    known = replace(known, knobs={**known.knobs, **few})
    chosen = [index for index in known.valid if known.config(index).tile_rows == 1][:4]
    chosen += [index for index in known.valid if known.config(index).tile_rows == 2][:1]
    times = dict(zip(chosen, map(Measured, PRICES.values()), strict=True))
    return Landscape.from_results(known, times, {"name": "none"})


def test_the_price_of_a_value(recorded: Landscape) -> None:
    assert not check_price(..., recorded, "tile_rows", 2).right
    feedback = check_price(1.88, recorded, "tile_rows", 2)
    assert feedback.right
    assert "7.50 us instead of 4.00 us: 1.88 times, the best of 1 configurations with tile_rows=2" in feedback.message
    assert check_price(1.0, recorded, "tile_rows", 1).right


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (7.5, "a time in microseconds"),
        (4 / 7.5, "the other way round"),
        (0.875, "the ratio is 1 more"),
        (3.0, "divided by the least time of all"),
        ("1.88", "divided by the least time of all"),
    ],
)
def test_wrong_prices_are_named(recorded: Landscape, answer: Any, words: str) -> None:
    feedback = check_price(answer, recorded, "tile_rows", 2)
    assert not feedback.right
    assert words in feedback.message


def test_middle_and_slowest_are_not_the_fastest(recorded: Landscape) -> None:
    assert "the middle of all" in check_price(5.5 / 4, recorded, "tile_rows", 1).message
    assert "the slowest" in check_price(9 / 4, recorded, "tile_rows", 1).message


def test_knobs_and_values_that_are_not_there(recorded: Landscape) -> None:
    with pytest.raises(InvalidInput, match="did you mean tile_rows"):
        check_price(1.0, recorded, "tile_row", 2)
    with pytest.raises(InvalidInput, match="cluster_split_k=8: no measured configuration has it; allowed: 1"):
        check_price(1.0, recorded, "cluster_split_k", 8)

"""The exercises on the data layout: the right answer, and what each typical mistake is told."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.exercises.data_layout import check_byte, check_chunk, check_sectors
from subbyte.families.mma.config import MmaConfig
from subbyte.numerics import to_nhwcnc

NARROW, WIDE = "n8h56w56c32k64r3s3p1", "n8h56w56c64k64r3s3p1"


@pytest.mark.parametrize(("layer", "hwnc"), [(NARROW, 4), (WIDE, 8)])
def test_sectors(layer: str, hwnc: int) -> None:
    assert check_sectors({"nhwc": 8, "hwnc": hwnc, "nhwcnc": 4}, layer)


@pytest.mark.parametrize(
    ("layer", "change", "words"),
    [
        (NARROW, {"hwnc": 8}, "neighbouring pieces share a sector"),
        (NARROW, {"nhwc": 4}, "if they lay together; here they do not"),
        (NARROW, {"nhwc": 16}, "half a sector"),
        (NARROW, {"nhwcnc": 1}, "128-byte lines"),
        (NARROW, {"nhwcnc": 128}, "those are bytes"),
        (NARROW, {"nhwc": 256}, "bytes moved"),
        (WIDE, {"hwnc": 2}, "128-byte lines"),
        (WIDE, {"hwnc": 5}, "which pieces share 32 bytes"),
        (WIDE, {"hwnc": ...}, "Replace the ... of hwnc"),
    ],
)
def test_wrong_sectors_are_named(layer: str, change: dict[str, Any], words: str) -> None:
    right = {"nhwc": 8, "hwnc": 4 if layer == NARROW else 8, "nhwcnc": 4}
    said = check_sectors({**right, **change}, layer)
    assert not said
    assert words in said.message


def test_an_unknown_layout_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nhwc"):
        check_sectors({"nwhc": 8}, WIDE)


def test_the_byte_is_where_the_packed_array_has_it() -> None:
    layer, shape = "n16h3w5c64k32r3s3p1", (16, 3, 5, 64)
    for place in product((0, 7, 9), (0, 2), (1, 4), (0, 33, 62)):
        x = np.zeros(shape, np.int8)
        x[place] = 1
        packed = np.ascontiguousarray(to_nhwcnc(x)).view(np.uint8).ravel()
        (byte,) = np.flatnonzero(packed)
        assert check_byte(int(byte), layer, place)


def test_a_wrong_byte_is_named() -> None:
    layer, place = "n16h56w56c64k64r3s3p1", (11, 20, 30, 45)
    block = ((1 * 56 + 20) * 56 + 30) * 2 + 1
    right = block * 128 + 3 * 16 + 6
    assert check_byte(right, layer, place)
    assert f"Block {block}" in check_byte(right, layer, place).message
    nhwc = ((11 * 56 + 20) * 56 + 30) * 64 + 45
    for answer, words in (
        (block * 256 + 3 * 32 + 13, "two int4 values share a byte"),
        (nhwc // 2, "that is NHWC"),
        (block * 128, "where the block begins"),
        (block * 128 + 48, "where the image's 16 bytes begin"),
        (block * 128 + 6, "within its group of 8 is missing"),
        (block * 128 + 11 * 16 + 6, "only n % 8 counts"),
        (block * 128 + 3 * 16 + 13, "two channels share a byte"),
        (right // 4, "32-bit word"),
        (block, "number of the block"),
        (12345, "number the blocks by"),
        (..., "Replace the ..."),
    ):
        said = check_byte(answer, layer, place)
        assert not said
        assert words in said.message, (answer, said.message)
    with pytest.raises(InvalidInput, match="the input is"):
        check_byte(0, layer, (16, 0, 0, 0))


@pytest.mark.parametrize(
    ("answer", "right", "words"),
    [
        (2, True, "one whole sector"),
        (1, False, "50% useful"),
        (4, False, "a smaller one does it too"),
        (3, False, "chunk may be 1, 2, 4 or 8"),
        (8, False, "cannot be built"),
        (..., False, "Replace the ..."),
    ],
)
def test_the_smallest_chunk(answer: Any, right: bool, words: str) -> None:
    said = check_chunk(answer, "n8h56w56c128k64r3s3p1", MmaConfig(2, 2, 4, 4))
    assert bool(said) == right
    assert words in said.message

"""The exercises on bits and planes: the right answers, and what each typical mistake is told."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.exercises import (
    check_combine,
    check_corner,
    check_dot,
    check_instructions,
    check_load,
    check_threshold,
    check_word,
)
from subbyte.families.bits.config import BitsConfig
from subbyte.numerics import pack_planes
from subbyte.workload.operand import BIPOLAR, Operand

LAYER = "n20h3w4c300k64r3s3p1:w1a1"


def refused(feedback: Any, words: str) -> None:
    assert not feedback
    assert words in feedback.message


def test_a_sum_of_bits() -> None:
    assert check_dot(lambda w, x, n: 4 * (w & x).bit_count() - 2 * (w.bit_count() + x.bit_count()) + n)
    assert check_dot(lambda w, x, n: n - 2 * (w ^ x).bit_count())
    assert check_dot(lambda w, x, n: sum((2 * (w >> i & 1) - 1) * (2 * (x >> i & 1) - 1) for i in range(n)))
    refused(check_dot(lambda w, x, n: 2 * (w & x).bit_count() - n), "-1 times -1")
    refused(check_dot(lambda w, x, n: 32 - 2 * (w ^ x).bit_count()), "not the 32 bits")
    refused(check_dot(lambda w, x, n: (w & x).bit_count()), "2 b - 1")
    refused(check_dot(lambda w, x, n: -2 * (w ^ x).bit_count()), "constant is missing")
    refused(check_dot(lambda w, x, n: 7), "the right answer is 1")


def _level(gamma: float, beta: float, mean: float, deviation: float) -> tuple[int, bool]:
    crossing = mean - beta * deviation / gamma
    return (floor(crossing) + 1, True) if gamma < 0 else (ceil(crossing), False)


def test_a_threshold() -> None:
    assert check_threshold(_level)

    def wrong(level: Any, flip: Any) -> Any:
        return lambda g, b, m, d: (level(m - b * d / g), flip(g))

    refused(check_threshold(wrong(round, lambda g: False)), "reverses the comparison")
    refused(check_threshold(wrong(round, lambda g: g < 0)), "Rounding gives the nearest")
    refused(check_threshold(wrong(ceil, lambda g: False)), "reverses the comparison")
    refused(check_threshold(wrong(ceil, lambda g: g < 0)), "one more than the crossing rounded down")
    refused(check_threshold(lambda *norm: 3), "Return two things")


def test_the_word_of_a_bit() -> None:
    def word(n: int, h: int, w: int, c: int) -> int:
        return (((n // 8 * 3 + h) * 4 + w) * 3 + c // 128) * 32 + n % 8 * 4 + c % 128 // 32

    assert check_word(word, LAYER)
    x = -np.ones((20, 3, 4, 300), np.int8)
    x[13, 2, 1, 250] = 1
    packed = pack_planes(x, Operand(1, BIPOLAR)).words.ravel()
    assert packed[word(13, 2, 1, 250)] == 1 << 250 % 32
    refused(check_word(lambda n, h, w, c: ((n * 3 + h) * 4 + w) * 12 + c // 32, LAYER), "plain order")
    refused(check_word(lambda n, h, w, c: 32 * word(n, h, w, c) + c % 32, LAYER), "index of the bit")
    turned = lambda n, h, w, c: word(n, h, w, c) // 32 * 32 + c % 128 // 32 * 8 + n % 8  # noqa: E731
    refused(check_word(turned, LAYER), "the image comes first")
    refused(check_word(lambda *place: -1, LAYER), "you return -1")
    with pytest.raises(InvalidInput, match="activations of one bit"):
        check_word(word, "n8h3w4c64k64r3s3p1:w1a2")


def test_the_load_of_a_tile() -> None:
    assert check_load((4, 8), 1536)
    assert check_load([8, 8], 2048)
    refused(check_load(..., 1536), "Replace the ...")
    refused(check_load((4, 4), 1536), "in one piece")
    refused(check_load((8, 8), 1536), "multiple of 1,024")
    refused(check_load((1, 8), 1536), "which rows begin")
    refused(check_load((4, 48), 1536), "16 bytes of each row")
    refused(check_load((3, 3), 1536), "(cycles, sectors)")


def test_planes_combined() -> None:
    assert check_combine(lambda c: c[0][0] + 2 * c[0][1] - 2 * c[1][0] - 4 * c[1][1])
    refused(check_combine(lambda c: sum(2 ** (s + t) * c[s][t] for s in (0, 1) for t in (0, 1))), "top plane counts -2")
    refused(check_combine(lambda c: c[0][0] - 2 * c[0][1] + 2 * c[1][0] - 4 * c[1][1]), "sign on the pixels")
    refused(check_combine(lambda c: sum(map(sum, c))), "not the same")
    refused(check_combine(lambda c: sum(c[0]) - 2 * sum(c[1])), "Only one of both")
    refused(check_combine(lambda c: 1), "the right answer is")


@pytest.mark.parametrize(
    ("answer", "words"),
    [(36, "columns of the same"), (9, "one of 2 planes"), (..., "Replace"), (5, "taps x blocks")],
)
def test_the_instructions_of_a_window(answer: Any, words: str) -> None:
    config = BitsConfig(channels=64, consumers=1)
    assert check_instructions(18, "n8h8w8c256k64r3s3p1:w2a2", config)
    refused(check_instructions(answer, "n8h8w8c256k64r3s3p1:w2a2", config), words)


def test_the_corner_of_an_image() -> None:
    layer = "n1h4w4c64k1r3s3p1:w1a1"
    assert check_corner((256, -64, 576), layer)
    refused(check_corner((-64, 256, 576), layer), "swapped")
    refused(check_corner((-64, -64, 576), layer), "which no bit has")
    refused(check_corner((256, 256, 256), layer), "real values")
    refused(check_corner((576, -64, 576), layer), "add nothing")
    refused(check_corner((576, 576, 576), layer), "beyond the border")
    refused(check_corner((1, 2, 3), layer), "count the taps")
    with pytest.raises(InvalidInput, match="such as"):
        check_corner((1, 2, 3), "n1h4w4c64k1r3s3p1:w1a2")

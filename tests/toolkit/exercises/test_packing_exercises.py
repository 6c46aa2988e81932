"""The exercises of register-level packing: right answers in several forms, and typical wrong ones by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.exercises import Warp, check_address, check_gather, check_pack


def test_a_word_in_any_form() -> None:
    assert check_pack(lambda values: sum((v & 0xF) << 4 * i for i, v in enumerate(values)))
    assert check_pack(lambda values: int("".join(f"{v & 15:x}" for v in reversed(values)), 16))
    assert check_pack(lambda values: np.uint32(sum((v % 16) * 16**i for i, v in enumerate(values))))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda values: sum(v << 4 * i for i, v in enumerate(values)), "lowest four"),
        (lambda values: sum(v << 4 * i for i, v in enumerate(values)) & 0xFFFFFFFF, "lowest four"),
        (lambda values: sum((v & 0xF) << 4 * (7 - i) for i, v in enumerate(values)), "reversed"),
        (lambda values: sum((v & 0xF) << 8 * i for i, v in enumerate(values)), "not 8"),
        (lambda values: sum((v + 8) << 4 * i for i, v in enumerate(values)), "two's complement"),
        (lambda values: sum((v & 7) << 4 * i for i, v in enumerate(values)), "mask 7 keeps three bits"),
        (lambda values: sum(abs(v) << 4 * i for i, v in enumerate(values)), "abs drops the sign"),
        (lambda values: sum((abs(v) & 0xF) << 4 * i for i, v in enumerate(values)), "abs drops the sign"),
        (lambda values: 5, "is 0x07654321, not 0x5."),
        (lambda values: np.bitwise_or.reduce([(v & 0xF) << i for i, v in enumerate(values)]), "by 4*i bits"),
        (lambda values: np.bitwise_or.reduce([v & 0xF for v in values]), "lowest bits"),
        (lambda values: "word", "Return an integer"),
        (lambda values: values[9], "IndexError"),
    ],
)
def test_a_wrong_word_is_named(answer: Any, says: str) -> None:
    feedback = check_pack(answer)
    assert not feedback
    assert says in feedback.message


def rounds(offsets: tuple[int, ...], bits: Callable[[int], int]) -> Callable[[Warp, Any], Any]:
    """An answer that gathers in rounds."""

    def gather(warp: Warp, word: Any) -> Any:
        for offset in offsets:
            word = word | warp.shuffle_down(word, offset) << np.uint32(bits(offset))
        return word

    return gather


def one_by_one(warp: Warp, word: Any) -> Any:
    gathered = word
    for offset in range(1, 8):
        gathered = gathered | warp.shuffle_down(word, offset) << np.uint32(4 * offset)
    return gathered


def exchanged(warp: Warp, word: Any) -> Any:
    """The same with exchanges: only the lower lane of each pair is right, and that is all that counts."""
    for mask in (1, 2, 4):
        word = word | warp.shuffle_xor(word, mask) << np.uint32(4 * mask)
    return word


@pytest.mark.parametrize("answer", [rounds((4, 2, 1), lambda d: 4 * d), rounds((1, 2, 4), lambda d: 4 * d), exchanged])
def test_a_gather_with_three_shuffles(answer: Any) -> None:
    assert "3 shuffles" in check_gather(answer).message
    assert check_gather(answer)


def test_a_gather_with_more_shuffles_is_right_too() -> None:
    feedback = check_gather(one_by_one)
    assert feedback
    assert "7 shuffles" in feedback.message


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda warp, word: word, "Nothing has moved"),
        (rounds((4, 2, 1), lambda d: d), "shift by 4 * offset"),
        (rounds((4, 2, 1), lambda d: 0), "without moving it up"),
        (rounds((4, 2), lambda d: 4 * d), "missing"),
        (rounds((1,), lambda d: 4), "missing"),
        (lambda warp, word: sum(warp.shuffle_down(word, 7 - i) << np.uint32(4 * i) for i in range(8)), "reversed"),
        (lambda warp, word: word + 1, "no shuffle"),
        (rounds((4, 2, 1), lambda d: 2 * d), "Follow one value"),
        (lambda warp, word: word[0], "32 lanes"),
        (lambda warp, word: warp.shuffle_down(word, 9), "InvalidInput"),
        (lambda warp, word: warp.shuffle_down(word[:4], 1), "InvalidInput"),
    ],
)
def test_a_wrong_gather_is_named(answer: Any, says: str) -> None:
    feedback = check_gather(answer)
    assert not feedback
    assert says in feedback.message


def test_the_warp_shuffles_as_the_gpu_does() -> None:
    warp, word = Warp(), np.arange(32, dtype=np.uint32)
    assert warp.shuffle_down(word, 4)[:10].tolist() == [4, 5, 6, 7, 4, 5, 6, 7, 12, 13]
    assert warp.shuffle_down(word, 4, width=32)[28:].tolist() == [28, 29, 30, 31]
    assert warp.shuffle_xor(word, 1)[:4].tolist() == [1, 0, 3, 2]
    assert warp.shuffles == 3
    for wrong in (lambda: warp.shuffle_down(word, 1, width=5), lambda: warp.shuffle_xor(word, 32)):
        with pytest.raises(InvalidInput):
            wrong()


def test_the_place_of_a_word() -> None:
    assert check_address(lambda image, tile: 4 * (4 * image + tile))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda image, tile: 4 * image + tile, "counts words"),
        (lambda image, tile: 32 * image + 8 * tile, "a byte holds two"),
        (lambda image, tile: 128 * image + 32 * tile, "counts bits"),
        (lambda image, tile: 32 * tile + 4 * image, "images of one tile together"),
        (lambda image, tile: 16 * image, "Tiles are left out"),
        (lambda image, tile: 0, "starts at byte 4, not 0"),
        (lambda image, tile: image / 0, "ZeroDivisionError"),
    ],
)
def test_a_wrong_place_is_named(answer: Any, says: str) -> None:
    feedback = check_address(answer)
    assert not feedback
    assert says in feedback.message

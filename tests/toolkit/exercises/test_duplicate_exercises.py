"""The exercises of the duplicate-aware load: right answers in several forms, and typical wrong ones by name."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from subbyte.exercises import check_genuine_map, check_loads, check_tile
from subbyte.exercises.feedback import Feedback
from subbyte.technique import duplicates
from subbyte.workload import ConvWorkload

Tile = tuple[int, int]


def by_key(key: Callable[[ConvWorkload, int, int, int, int], Any]) -> Callable[[ConvWorkload, Tile], list[int]]:
    """An answer that calls entries with the same key the same."""

    def genuine(w: ConvWorkload, tile: Tile) -> list[int]:
        first: dict[Any, int] = {}
        places = product(range(tile[0]), range(tile[1]), range(w.r), range(w.s))
        return [first.setdefault(key(w, *place), k) for k, place in enumerate(places)]

    return genuine


def test_the_right_map_in_any_form() -> None:
    right = by_key(lambda w, ph, pw, r, s: (ph * w.stride + r * w.dilation, pw * w.stride + s * w.dilation))
    assert check_genuine_map(right)
    assert check_genuine_map(lambda w, tile: iter(right(w, tile)))  # type: ignore[arg-type, return-value]
    assert str(check_genuine_map(right)).startswith("Right.")


def last_use(w: ConvWorkload, tile: Tile) -> list[int]:
    genuine = duplicates(w, tile).genuine_of
    last = {g: k for k, g in enumerate(genuine)}
    return [last[g] for g in genuine]


def counted(w: ConvWorkload, tile: Tile) -> list[int]:
    genuine = duplicates(w, tile).genuine_of
    return [sorted(set(genuine)).index(g) for g in genuine]


def one_wrong(w: ConvWorkload, tile: Tile) -> list[int]:
    return [*duplicates(w, tile).genuine_of[:-1], 0]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda w, tile: range(tile[0] * tile[1] * w.r * w.s), "nothing is shared"),
        (by_key(lambda w, ph, pw, r, s: (ph + r, pw + s)), "stride"),
        (by_key(lambda w, ph, pw, r, s: (ph + r * w.dilation, pw + s * w.dilation)), "the stride is missing"),
        (by_key(lambda w, ph, pw, r, s: (ph * w.stride + r, pw * w.stride + s)), "the dilation is missing"),
        (by_key(lambda w, ph, pw, r, s: (ph, r, pw * w.stride + s * w.dilation)), "along the width only"),
        (by_key(lambda w, ph, pw, r, s: (ph * w.stride + r * w.dilation, pw, s)), "along the height only"),
        (by_key(lambda w, ph, pw, r, s: (ph * w.stride + s * w.dilation, pw * w.stride + r * w.dilation)), "mixed up"),
        (last_use, "last uses"),
        (counted, "you number the distinct pixels"),
        (lambda w, tile: duplicates(w, tile).slot, "by their place"),
        (one_wrong, "entry 53 has genuine index 53, not 0"),
        (lambda w, tile: [0], "54 entries"),
        (lambda w, tile: None, "list of integers"),
        (lambda w, tile: 1 // 0, "raised ZeroDivisionError"),
        ([0, 1], "Give a function"),
    ],
)
def test_a_wrong_map_is_named(answer: Any, says: str) -> None:
    feedback = check_genuine_map(answer)
    assert not feedback
    assert says in feedback.message
    assert str(feedback).startswith("Not yet.")


def distinct(size: int, taps: int, w: ConvWorkload) -> int:
    return len({p * w.stride + t * w.dilation for p in range(size) for t in range(taps)})


def test_the_right_number_of_loads() -> None:
    assert check_loads(lambda w, tile: distinct(tile[0], w.r, w) * distinct(tile[1], w.s, w))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda w, tile: tile[0] * tile[1] * w.r * w.s, "every entry"),
        (lambda w, tile: tile[0] * w.r * distinct(tile[1], w.s, w), "width only"),
        (lambda w, tile: (tile[0] + w.r - 1) * (tile[1] + w.s - 1), "without the stride"),
        (
            lambda w, tile: (
                len({p * w.stride + t for p in range(tile[0]) for t in range(w.r)})
                * len({p * w.stride + t for p in range(tile[1]) for t in range(w.s)})
            ),
            "48, not 24. That is the count without the dilation",
        ),
        (
            lambda w, tile: (
                (tile[0] * w.stride + (w.r - 1) * w.dilation) * (tile[1] * w.stride + (w.s - 1) * w.dilation)
            ),
            "is 45, not 60. That is tile x stride",
        ),
        (
            lambda w, tile: (
                ((tile[0] - 1) * w.stride + (w.r - 1) * w.dilation + 1)
                * ((tile[1] - 1) * w.stride + (w.s - 1) * w.dilation + 1)
            ),
            "whole rectangle",
        ),
        (lambda w, tile: tile[0] * tile[1], "output pixels"),
        (lambda w, tile: -5, "not -5."),
        (lambda w, tile: w.missing, "AttributeError"),
    ],
)
def test_a_wrong_number_of_loads_is_named(answer: Any, says: str) -> None:
    feedback = check_loads(answer)
    assert not feedback
    assert says in feedback.message


def test_the_choice_of_a_tile() -> None:
    assert check_tile((4, 4))
    for tile, says in (((1, 16), "long, thin"), ((2, 8), "squarer"), ((4, 3), "12 pixels"), ((4,), "two whole numbers"),
                       ("44", "not '44'"), ((4, "4"), "whole numbers"), ((4.0, 4.9), "whole numbers")):  # fmt: skip
        assert not check_tile(tile)
        assert says in check_tile(tile).message
    assert not check_tile(4)  # type: ignore[arg-type]


def test_feedback_reads_well_everywhere() -> None:
    assert "&lt;b&gt;" in Feedback(False, "use <b>")._repr_html_()
    assert "Not yet" in Feedback(False, "x")._repr_html_()
    assert "Right" in Feedback(True, "x")._repr_html_()

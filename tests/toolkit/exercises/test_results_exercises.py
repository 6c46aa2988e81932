"""The exercises on results: right answers, and typical wrong ones by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import permutations
from math import exp, log
from typing import Any

import pytest

from subbyte.analysis import speed_of_light
from subbyte.device import measured_peaks
from subbyte.errors import InvalidInput
from subbyte.exercises import check_fair_share, check_floors, check_verdict

LAYER = "resnet50.stage2@8"
MOVING, MULTIPLYING = 1_624_064 / 4.26e12 * 1e6, 1_849_688_064 / 1126e12 * 1e6


def test_the_floors_are_those_of_the_record() -> None:
    one = speed_of_light(LAYER)
    right = {"moving": one.floor_of("bytes"), "multiplying": one.floor_of("arithmetic")}
    limits = measured_peaks()
    feedback = check_floors(right, LAYER, limits.copy_terabytes_per_second, one.peak_tops)
    assert feedback
    assert "limited by multiplying" in feedback.message
    assert check_floors({"moving": 0.381, "multiplying": 1.643}, LAYER, 4.26, 1126)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"moving": 2 * MOVING, "multiplying": MULTIPLYING}, "int8 values"),
        ({"moving": MOVING / 1e6, "multiplying": MULTIPLYING}, "wrong unit"),
        ({"moving": MOVING * 802_816 / 1_624_064, "multiplying": MULTIPLYING}, "have to move as well"),
        ({"moving": MOVING * 821_248 / 1_624_064, "multiplying": MULTIPLYING}, "output has to be written"),
        ({"moving": MOVING * (1_624_064 + 8 * 802_816) / 1_624_064, "multiplying": MULTIPLYING}, "lowered matrix"),
        ({"moving": MOVING, "multiplying": MULTIPLYING / 2}, "counts as two"),
        ({"moving": MOVING, "multiplying": MULTIPLYING / 8}, "one image"),
        ({"moving": MOVING, "multiplying": 77.0}, "amount over measured peak"),
        ({"moving": MOVING, "multiplying": "much"}, "amount over measured peak"),
        ({"moving": MOVING, "multiplying": ...}, "Replace the ... of multiplying"),
        ({}, "moving, multiplying"),
    ],
)
def test_a_wrong_floor_is_named(answer: dict[str, Any], says: str) -> None:
    feedback = check_floors(answer, LAYER, 4.26, 1126)
    assert not feedback
    assert says in feedback.message


def test_an_unknown_floor_is_refused() -> None:
    with pytest.raises(InvalidInput, match="did you mean moving"):
        check_floors({"movin": 1.0}, LAYER, 4.26, 1126)


def gain(times: Mapping[str, float], before: str, name: str) -> float:
    return times["".join(sorted(before))] / times["".join(sorted(before + name))]


def shapley(times: Mapping[str, float]) -> dict[str, float]:
    orders = list(permutations("abc"))
    logs = {name: [log(gain(times, "".join(o[: o.index(name)]), name)) for o in orders] for name in "abc"}
    return {name: exp(sum(found) / 6) for name, found in logs.items()}


def others(name: str) -> str:
    return "".join(n for n in "abc" if n != name)


@pytest.mark.parametrize(
    ("shares", "says"),
    [
        (lambda t: {n: gain(t, "abc"[: "abc".index(n)], n) for n in "abc"}, "one order"),
        (lambda t: {n: gain(t, "", n) for n in "abc"}, "added to nothing"),
        (lambda t: {n: gain(t, others(n), n) for n in "abc"}, "added last"),
        (lambda t: {n: 1 / f for n, f in shapley(t).items()}, "upside down"),
        (
            lambda t: {
                n: sum(gain(t, "".join(o[: o.index(n)]), n) for o in permutations("abc")) / 6 for n in "abc"
            },
            "geometric mean",
        ),
        (
            lambda t: {n: (gain(t, "", n) * gain(t, others(n), n) * gain(t, others(n)[0], n)
                           * gain(t, others(n)[1], n)) ** 0.25 for n in "abc"},
            "twice as often",
        ),
        (lambda t: dict.fromkeys("abc", 2.0), "multiply to 8.00"),
        (lambda t: dict.fromkeys("abc", (t[""] / t["abc"]) ** (1 / 3)), "all six orders"),
        (lambda t: {"a": 1.0}, "a factor for each"),
        (lambda t: t["d"], "raised KeyError"),
    ],
)  # fmt: skip
def test_a_wrong_share_is_named(shares: Callable[[Mapping[str, float]], Any], says: str) -> None:
    feedback = check_fair_share(shares)
    assert not feedback
    assert says in feedback.message


def test_the_fair_share_is_right() -> None:
    assert check_fair_share(shapley)


def verdict(low: float, high: float, margin: float) -> str:
    if low > 0 or high < 0:
        return "better" if low > 0 else "worse"
    return "equivalent" if low > -margin and high < margin else "undecided"


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (lambda a, b, m: "better" if a > 0 else "worse" if b < 0 else "equivalent", "too wide to tell"),
        (lambda a, b, m: "better" if a > 0 else "worse" if b < 0 else "undecided", "never say equivalent"),
        (lambda a, b, m: "better" if a + b > 0 else "worse", "middle of the interval"),
        (lambda a, b, m: "worse" if a > 0 else "better" if b < 0 else verdict(a, b, m), "swapped"),
        (
            lambda a, b, m: "better" if a > m else "worse" if b < -m
            else "equivalent" if a > -m and b < m else "undecided",
            "margin is for equivalence",
        ),
        (lambda a, b, m: "undecided", "it is better, not undecided"),
        (lambda a, b, m: "yes", "return one of better"),
    ],
)  # fmt: skip
def test_a_wrong_verdict_is_named(rule: Callable[[float, float, float], str], says: str) -> None:
    feedback = check_verdict(rule)
    assert not feedback
    assert says in feedback.message


def test_the_verdict_is_right() -> None:
    assert check_verdict(verdict)

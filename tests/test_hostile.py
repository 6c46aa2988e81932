"""Hostile inputs: the harness reports what it must, and some cases of each area end well."""

from __future__ import annotations

import pytest
from hostile import harness
from hostile.harness import Case

from subbyte.errors import InvalidInput


class Loud(InvalidInput):
    """An error that repeats all of its input: those of the library cut what is long."""

    def __str__(self) -> str:
        return "x" * 100_000


def refuse(message: str, kind: type[InvalidInput] = InvalidInput) -> object:
    raise kind(message)


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        ("traceback", Case("a foreign error", lambda: 1 / 0)),
        ("accepted", Case("taken though wrong", lambda: 1, "refuse")),
        ("wrong", Case("a wrong answer", lambda: 1, right=lambda answer: answer == 2)),
        ("wrong", Case("refused though right", lambda: refuse("no"), "answer")),
        ("unclear", Case("no message", lambda: refuse(""))),
        ("unclear", Case("the whole input", lambda: refuse("all of it", Loud))),
        ("slow", Case("too slow", lambda: None, seconds=0.0)),
        ("refused", Case("a clean refusal", lambda: refuse("one sentence"), "refuse")),
        ("answered", Case("a right answer", lambda: 2, right=lambda answer: answer == 2)),
    ],
)
def test_the_harness_names_what_came_of_a_case(kind: str, case: Case) -> None:
    assert harness.attempt(case).kind == kind


STARTS_PROCESSES = ("environments", "imports", "interrupts", "emulator_runs")
"""Areas whose cases take up to a second each."""


@pytest.mark.parametrize(
    ("area", "most"),
    [
        *((area, 4 if area in STARTS_PROCESSES else 12) for area in harness.AREAS),
        *(pytest.param(area, 12, marks=pytest.mark.deep) for area in STARTS_PROCESSES),
    ],
)
def test_a_sample_of_each_area_ends_well(area: str, most: int) -> None:
    tally = harness.try_area(area, every=97, most=most)
    assert tally.tried
    assert not tally.bad, "\n".join(f"{outcome.kind}: {text:.200}: {outcome.detail}" for text, outcome in tally.bad)

"""What a view cannot draw is refused in one sentence that says what to give instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import subbyte
from subbyte.errors import InvalidInput
from subbyte_widgets import DuplicateMap, KernelReader, LiveCurve, LoadStepper, TuningMonitor

LAYER = "resnet50.stage2@8"


@pytest.mark.parametrize("given", [LAYER, 5, ["x"]])
@pytest.mark.parametrize(
    ("view", "says"),
    [
        (DuplicateMap, r"give subbyte.duplicates\(layer, tile\), or use DuplicateExplorer"),
        (LiveCurve, r"LiveCurve.start\(study, runner\)"),
        (TuningMonitor, r"TuningMonitor.start\(studies, runner\)"),
    ],
)
def test_what_cannot_be_drawn_is_refused(view: Callable[[Any], Any], says: str, given: Any) -> None:
    with pytest.raises(InvalidInput, match=says):
        view(given)


def test_a_stepper_of_something_else() -> None:
    with pytest.raises(InvalidInput, match=r"LoadStepper cannot draw 5: give a workload"):
        LoadStepper(5)  # type: ignore[arg-type]


def test_the_reader_says_it_in_the_view() -> None:
    assert KernelReader(5).error.startswith("KernelReader cannot draw 5: give a kernel")  # type: ignore[arg-type]


def test_what_can_be_drawn_is_taken() -> None:
    assert not DuplicateMap(subbyte.duplicates(LAYER, (1, 4))).error
    assert not DuplicateMap().error
    assert not LiveCurve().error
    assert not TuningMonitor(()).error

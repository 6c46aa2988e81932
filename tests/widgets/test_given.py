"""What a view cannot draw is refused in one sentence that says what to give instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import subbyte
from subbyte.errors import InvalidInput
from subbyte_widgets import (
    ConvolutionTiling,
    DuplicateExplorer,
    DuplicateMap,
    KernelReader,
    LayoutExplorer,
    LayoutView,
    LiveCurve,
    LoadStepper,
    PackingStepper,
    TuningMonitor,
)

LAYER = "resnet50.stage2@8"


@pytest.mark.parametrize("given", [LAYER, 5, ["x"]])
@pytest.mark.parametrize(
    ("view", "says"),
    [
        (LiveCurve, r"LiveCurve.start\(study, runner\)"),
        (TuningMonitor, r"TuningMonitor.start\(studies, runner\)"),
    ],
)
def test_what_cannot_be_drawn_is_refused(view: Callable[[Any], Any], says: str, given: Any) -> None:
    with pytest.raises(InvalidInput, match=says):
        view(given)


def test_a_map_is_of_a_record_or_a_layer() -> None:
    record = DuplicateMap(LAYER).record
    assert record is not None
    assert (record.tile, max(map(len, record.copies))) == ((3, 3), 9)
    for given in (5, ["x"]):
        with pytest.raises(InvalidInput, match=r"give subbyte.duplicates\(layer, tile\), or a layer"):
            DuplicateMap(given)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="unknown workload"):
        DuplicateMap("resnet51.stage2@8")


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


def of_tiling(**options: Any) -> ConvolutionTiling:
    return ConvolutionTiling(subbyte.tiling(LAYER), **options)


def of_duplicates(**options: Any) -> DuplicateMap:
    return DuplicateMap(subbyte.duplicates(LAYER, (1, 4)), **options)


@pytest.mark.parametrize(
    ("view", "options", "says"),
    [
        (PackingStepper, {"step": 10**6}, r"PackingStepper: step=1000000 is out of range; the nearest there is: 6$"),
        (of_tiling, {"tile": 10**6}, r"tile=1000000 is out of range; the nearest there is: 783$"),
        (of_tiling, {"step": -3}, r"step=-3 is out of range; the nearest there is: 0$"),
        (of_duplicates, {"selected": 99}, r"selected=99 is out of range$"),
        (of_duplicates, {"warps": 0}, r"DuplicateMap: .*less than 1"),
        (LayoutView, {"lane": 99}, r"LayoutView: lane=99 is out of range$"),
        (LayoutExplorer, {"block": 10**6}, r"block=1000000: this kernel has pixel tiles 0 to 783$"),
    ],
)
def test_a_number_out_of_range_is_refused(view: Callable[..., Any], options: dict[str, int], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        view(**options)


def test_a_number_in_range_is_kept() -> None:
    assert PackingStepper(step=6).step == 6
    assert of_tiling(tile=783, warp=1).chosen.tile == 783
    assert of_duplicates(selected=35).selected == 35
    assert LayoutView(lane=31).lane == 31
    assert KernelReader(line=7).line == 7


def test_an_explorer_keeps_the_number_of_warps_it_is_given() -> None:
    explorer = DuplicateExplorer(LAYER, warps=100)
    assert explorer.warps.value == explorer.view.warps == 100
    assert "100 warps cannot share 4 output pixels evenly" in explorer.to_svg()

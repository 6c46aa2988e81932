"""The network timeline without a browser: what is drawn and said of a layer is the record's."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from subbyte.errors import InvalidInput
from subbyte.networks import Network, network
from subbyte.networks import NetworkTimeline as Record
from subbyte.networks.builder import Builder
from subbyte.numerics.bit_layer import BEFORE
from subbyte_widgets import NetworkTimeline, Selection
from subbyte_widgets.network_timeline.picture import BYTES, TIMES, Drawing, rounded, timeline_svg

SVG = "{http://www.w3.org/2000/svg}"
LAYER = "n8h8w8c32k64r3s3p1u2:w1a2"


@pytest.fixture(scope="module")
def record() -> Record:
    """Of three layers: sums of the first, 32 bits each, wait for the second. Here no kernel takes either as a whole."""
    made = Builder(8, (8, 8, 3), "w1a2", BEFORE).conv(32, 11, name="stem")
    made.conv(64, 3, stride=2, residual="stem", name="added")
    found = Network("two@8", made.fc(10).layers, "made up here").timeline()
    stem, added = (replace(one, estimate=None, config="", cpu="a reason made up here") for one in found.layers[:2])
    return replace(found, layers=(stem, added, found.layers[2]), estimate=None)


def bars(svg: str, number: int) -> dict[str, tuple[float, float]]:
    """Class -> where a layer's bar begins and how wide it is."""
    layer = next(one for one in ElementTree.fromstring(svg).iter(f"{SVG}g") if one.get("data-layer") == str(number))
    return {
        str(one.get("class")): (float(one.get("x", 0)), float(one.get("width", 0))) for one in layer.iter(f"{SVG}rect")
    }


def test_what_is_drawn_is_the_record(record: Record) -> None:
    drawing, svg = Drawing(record), timeline_svg(record)
    for number, one in enumerate(record.layers):
        found = bars(svg, number)
        times = {"launch": one.launch, "move": one.move, "multiply": one.multiply, "estimate": one.estimate}
        waiting = one.residual_read + one.residual_written
        sizes = {"bytes": one.bytes_moved - waiting, "residual": waiting or None}
        for class_, value in (times | sizes).items():
            scale = drawing.wide if class_ in times else drawing.wide_bytes
            drawn = None if class_ not in found else found[class_][1]
            assert drawn == (value if value is None else pytest.approx(scale(value), abs=0.01)), (one.name, class_)
        assert found["launch"][0] == TIMES
        assert found["move"][0] == found["multiply"][0] == pytest.approx(TIMES + drawing.wide(one.launch), abs=0.01)
        if waiting:
            assert found["residual"][0] == pytest.approx(BYTES + found["bytes"][1], abs=0.02)
            assert f">{waiting / one.bytes_moved:.0%}<" in svg
    assert svg.count(">no estimate<") == sum(one.estimate is None for one in record.layers) == 2
    other = replace(record, layers=(replace(record.layers[0], move=9.0), *record.layers[1:]))
    assert bars(timeline_svg(other), 0)["move"] != bars(svg, 0)["move"]


def test_a_layer_is_told_of(record: Record) -> None:
    view = NetworkTimeline(record)
    assert view.chosen == -1
    assert "Of 2 layers there is no estimate" in view.alternative
    view.set_state({"chosen": 9})
    stem, added, last = view.data["says"]
    assert view.chosen == 2
    assert last in view.alternative
    assert f"estimate is {record.layers[2].estimate:.2f} us" in last
    assert "It writes its own for a later layer" in stem
    assert record.layers[0].cpu in stem
    assert "billion operations on bytes" in stem
    assert "billion one-bit operations" in added
    assert "It reads sums of stem" in added
    assert f"Floor {record.layers[1].floor:.2f} us" in added
    assert all("measured" not in said for said in (view.alternative, view.data["whole"], stem, added, last))
    assert view.to_svg().count("layer on over") == 1


def test_a_selected_layer_is_chosen(record: Record) -> None:
    selection = Selection(LAYER)
    view = NetworkTimeline(record, selection=selection)
    selection.settle()
    assert view.chosen == 1
    assert view.note == f"In two@8 layer added has the sizes of {LAYER}."
    selection.workload = "n64h8w8c32k64r3s3p1u2"
    selection.settle()
    assert view.chosen == 1
    selection.workload = "resnet50.stage2@8"
    selection.settle()
    assert (view.chosen, view.note) == (-1, "In two@8 no layer has the sizes of resnet50.stage2@8.")


def test_what_cannot_be_drawn_is_said(record: Record) -> None:
    assert "cannot draw 5: give a network" in NetworkTimeline(5).error  # type: ignore[arg-type]
    assert "tcbnn.resnet18" in NetworkTimeline("tcbnn.resnet19@8").error
    assert "no GPU of this architecture was measured" in NetworkTimeline(network("digits.w1a1@8"), "sm_75").error
    many = replace(record, layers=record.layers * 20)
    assert "has 60 layers; at most 40 are drawn" in NetworkTimeline(many).error
    with pytest.raises(InvalidInput, match="chosen=3 is out of range; the nearest there is: 2"):
        NetworkTimeline(record, chosen=3)


@pytest.mark.parametrize(("wide", "step"), [(0.98, 0.5), (1.0, 1), (3.3, 2), (76, 50), (0.004, 0.002)])
def test_steps_of_an_axis_are_round(wide: float, step: float) -> None:
    assert rounded(wide) == pytest.approx(step)

"""The packing stepper without a browser: what goes to the page, the pictures, the refusals."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from subbyte.errors import InvalidInput
from subbyte.technique.packing import packing_program
from subbyte_widgets import PackingStepper
from subbyte_widgets._base import picture_in
from subbyte_widgets.packing_stepper.picture import Box, Layout, boxes, packing_svg, shown_registers
from subbyte_widgets.packing_stepper.view import EXAMPLE, MOST_BYTES

SVG = "{http://www.w3.org/2000/svg}"


def layout(scheme: str) -> Layout:
    program = packing_program(scheme)
    return Layout(program, program.run(EXAMPLE[: program.tiles]))


def drawn(svg: str, shape: Layout) -> set[tuple[str, int, int]]:
    """(register, lane, output value) of the boxes of the overview, read back from where they are."""
    group = next(g for g in ElementTree.fromstring(svg).iter(f"{SVG}g") if g.get("class") == "over")
    found = set()
    for rect in group.iter(f"{SVG}rect"):
        x, y = float(rect.get("x", "")), float(rect.get("y", ""))
        lane = max(i for i, left in enumerate(shape.lanes) if left <= x + 0.01)
        name = next(name for name in reversed(shape.names) if shape.y(name) <= y)
        found.add((name, lane, int(rect.get("data-o", "-1"))))
    return found


@pytest.mark.parametrize("scheme", ["quad", "width8"])
def test_every_value_is_drawn_in_its_register_and_lane(scheme: str) -> None:
    shape = layout(scheme)
    for step, state in enumerate(shape.trace.states):
        held = {(box.register, box.lane, box.origin) for box in boxes(state.registers)}
        assert drawn(packing_svg(shape, step), shape) == held


def test_another_trace_is_told_apart() -> None:
    shape = layout("quad")
    word = next(register for register in shape.trace.states[3].registers if register.name == "word")
    turned = replace(word, origins=word.origins[::-1])
    held = {(box.register, box.lane, box.origin) for box in boxes((turned,))}
    assert drawn(packing_svg(shape, 3), shape) != held


def test_boxes_say_value_and_bits() -> None:
    trace = layout("quad").trace
    values = list(boxes(trace.states[1].registers))
    assert len(values) == 256
    first = next(box for box in values if box.origin == 64 * 2 + 8 * 3 + 5)  # tile 2, image 3, channel 5
    assert first == Box("word", 4 * 3 + 2, 2 * 2 + 1, 64 * 2 + 8 * 3 + 5, max(-8, min(7, EXAMPLE[2][3][5])))


def test_the_followed_value_is_marked_and_enlarged() -> None:
    shape = layout("width8")
    value = 64 * 3 + 8 * 2 + 6
    for step in range(len(shape.trace.states) + 1):
        root = ElementTree.fromstring(packing_svg(shape, step, value))
        marked = [rect for rect in root.iter(f"{SVG}rect") if " on" in rect.get("class", "")]
        assert [rect.get("data-o") for rect in marked] == [str(value)]
        assert sum(rect.get("class") == "frame" for rect in root.iter(f"{SVG}rect")) == 1
    stored = [g for g in root.iter(f"{SVG}g") if g.get("class") == "word stored on"]
    store = next(s for s in shape.trace.stores if (s.tile, s.row) == (3, 2))
    below = [label.text for label in root.iter(f"{SVG}text") if label.get("class") == "n address"]
    assert len(below) == 8
    assert below[store.lane % 8] == "to byte " + ", ".join(
        str(4 * other.word) for other in shape.trace.stores if other.lane == store.lane
    )
    assert [int(g.get("data-word", -1)) for g in stored] == [store.word]


def test_the_lowest_panels_show_the_records_counts() -> None:
    shape = layout("width8")
    root = ElementTree.fromstring(packing_svg(shape, 8))
    words = [label.text for label in root.iter(f"{SVG}text")]
    assert f"{shape.trace.states[8].useful_lanes} of 32 lanes" in words
    assert "sums of 32 bits: 256 bytes" in words
    assert "packed in registers: 32 bytes" in words
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    for store in shape.trace.stores:
        assert any(f"Lane {store.lane} stores word {store.word} " in t and f"{store.value:#010x}" in t for t in titles)


def test_few_registers_are_enlarged() -> None:
    for scheme in ("quad", "width8"):
        states = layout(scheme).trace.states
        assert max(len(shown_registers(state.registers, 5 % 4)) for state in states) <= 4


def test_all_goes_to_the_page_once_and_is_small() -> None:
    view = PackingStepper()
    assert len(json.dumps(view.data)) < MOST_BYTES
    before = view.data
    view.set_state({"step": 4, "follow": 200})
    assert (view.step, view.follow) == (4, 200)
    view.set_state({"follow": 300})
    assert view.follow == -1  # quad packs four tiles
    view.set_state({"scheme": "width8", "step": 13, "follow": 300})
    assert (view.step, view.follow) == (13, 300)
    view.set_state({"scheme": "quad"})
    assert (view.step, view.follow) == (6, -1)
    assert view.data is before
    words = view.data["schemes"]["quad"]["registers"][0]
    assert len(words["words"]) == len(words["origins"]) == 32


def test_fewer_tiles_and_wrong_values() -> None:
    view = PackingStepper(EXAMPLE[:1], scheme="width8")
    assert view.trace is not None
    assert view.trace.states[-1].useful_lanes == 4
    assert "integers" in PackingStepper([[1.5]]).error
    assert "integers" in PackingStepper(3).error
    assert PackingStepper([[1.5]]).error[:30] in PackingStepper([[1.5]]).to_svg()
    with pytest.raises(InvalidInput, match="did you mean width8"):
        PackingStepper(scheme="width")
    with pytest.raises(InvalidInput, match="no option"):
        PackingStepper(shceme="quad")


@pytest.mark.parametrize("scheme", ["quad", "width8"])
def test_the_bundle_and_the_page_stand_alone(scheme: str, tmp_path: Path) -> None:
    view = PackingStepper(scheme=scheme, follow=77)
    data, _ = view._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert ElementTree.fromstring(picture_in(data)).get("width") == "760"
    assert "var(" not in picture_in(data)
    assert "32 instead of 256 bytes" in data["text/html"]
    assert len(picture_in(data)) < 120_000
    assert len(repr(view)) < 400
    page = view.to_html(tmp_path / "packing.html")
    assert not re.findall(r'(?:src|href|from)\s*=?\s*"?https?:', page)

"""The fragment explorer without a browser: the drawing against the record, refusals, what is sent."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import pytest

from subbyte.errors import InvalidInput
from subbyte.technique.fragments import INSTRUCTIONS, fragments
from subbyte_widgets import FragmentExplorer
from subbyte_widgets._base import picture_in
from subbyte_widgets.fragment_explorer.picture import Chosen, fragments_svg, in_words

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str) -> dict[tuple[str, int, int], tuple[tuple[int, int], ...]]:
    """The matrix elements of each drawn register: (operand, lane, register) -> (row, column) from the lowest bits."""
    found = {}
    for word in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        what = word.get("data-w", "").split()
        if len(what) == 6:
            lane, register, row, column, count = map(int, what[1:])
            across = what[0] != "b"
            places = tuple((row + (0 if across else i), column + (i if across else 0)) for i in range(count))
            assert word.findtext(f"{SVG}text") == str(lane)
            assert f"k{register}" in word.get("class", "").split()
            found[what[0], lane, register] = places
    return found


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_every_register_is_drawn_with_the_elements_it_holds(name: str) -> None:
    record = fragments(name)
    wanted = {
        (operand, lane, register): elements
        for operand in "abc"
        for lane, registers in enumerate(record.map(operand))
        for register, elements in enumerate(registers)
    }
    assert drawn(fragments_svg(record)) == wanted


def test_another_instruction_is_told_apart() -> None:
    assert drawn(fragments_svg(fragments("m16n8k64.s4"))) != drawn(fragments_svg(fragments("m16n8k32.s4")))


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_support_is_shown(name: str) -> None:
    record = fragments(name)
    shown = Counter(re.findall(r"(?:native|emulated|absent)(?=</text>)", fragments_svg(record)))
    assert shown == Counter(support.status for support in record.support)
    words = in_words(record, Chosen("a", 0, 0))
    assert all(f"{support.status} on" in words for support in record.support)


def test_a_selection_marks_one_lane_and_one_register() -> None:
    svg = fragments_svg(fragments("m16n8k64.s4"), Chosen("a", 3, 21))
    marked = re.findall(r'class="([wq]) k\d mine( here)?"[^>]*?data-w="(\w) (\d+) (\d+)', svg)
    assert {lane for _, _, _, lane, _ in marked} == {"14"}
    assert [(kind, operand, register) for kind, here, operand, _, register in marked if here] == [
        ("w", "a", "0"), ("q", "a", "0"),
    ]  # fmt: skip
    assert 'class="bits k0 here"' in svg
    assert "bits 20 to 23 of register a0" in in_words(fragments("m16n8k64.s4"), Chosen("a", 3, 21))


def test_the_browser_may_select_and_what_does_not_exist_is_said() -> None:
    view = FragmentExplorer()
    view.set_state({"instruction": "m16n8k64.s4", "operand": "b", "row": 63, "column": 7})
    assert not view.error
    assert "lane 31" in view.alternative
    view.row = 64
    assert "operand b of m16n8k64.s4 is 64x8" in view.error
    assert "64x8" in view.to_svg()
    view.row = 0
    assert not view.error
    view.instruction = "m16n8k16.f16"
    assert view.error.startswith("unknown instruction")
    view.operand = "e"
    view.instruction = "m16n8k32.s8"
    assert view.error.startswith("unknown operand")


def test_an_atom_names_its_instruction_and_unknown_options_are_refused() -> None:
    assert FragmentExplorer("s8.m16n8k32").instruction == "m16n8k32.s8"
    with pytest.raises(InvalidInput, match="column"):
        FragmentExplorer(colum=3)


def test_what_is_sent_stays_small_and_stands_alone(tmp_path: Path) -> None:
    view = FragmentExplorer("m16n8k64.s4", row=3, column=21)
    sent = len(json.dumps(view.get_state(), default=str))
    assert sent < 400_000
    data, _ = view._repr_mimebundle_()
    assert "var(" not in picture_in(data)
    assert "lane 14" in data["text/html"]
    page = view.to_html(tmp_path / "fragments.html")
    assert not re.findall(r'(?:src|href|from)\s*=?\s*"?https?:', page)

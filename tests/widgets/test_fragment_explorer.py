"""The fragment explorer without a browser: the drawing against the record, refusals, what is sent."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from subbyte.device.fragments import INSTRUCTIONS, LANES, WARPGROUP_INSTRUCTIONS, fragments
from subbyte.errors import InvalidInput
from subbyte.families.wgmma.weights import prepare_warpgroup_weights
from subbyte_widgets import FragmentExplorer
from subbyte_widgets._base import picture_in
from subbyte_widgets.fragment_explorer.picture import Chosen, fragments_svg, in_words

SVG = "{http://www.w3.org/2000/svg}"
NAMES = (*INSTRUCTIONS, *WARPGROUP_INSTRUCTIONS)


def drawn(svg: str) -> dict[tuple[str, int, int], tuple[tuple[int, int], ...]]:
    """The matrix elements of each drawn register: (operand, lane, register) -> (row, column) from the lowest bits."""
    found = {}
    for word in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        what = word.get("data-w", "").split()
        if len(what) == 6:
            lane, register, row, column, count = map(int, what[1:])
            across = what[0] != "b"
            places = tuple((row + (0 if across else i), column + (i if across else 0)) for i in range(count))
            assert word.findtext(f"{SVG}text") == str(lane % LANES)
            assert f"k{register}" in word.get("class", "").split()
            found[what[0], lane, register] = places
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_register_is_drawn_with_the_elements_it_holds(name: str) -> None:
    record = fragments(name)
    wanted = {
        (operand, lane, register): elements
        for operand in "abc"
        for lane, registers in enumerate(record.map(operand))
        for register, elements in enumerate(registers)
    }
    warps = [fragments_svg(record, Chosen("a", 16 * warp, 0)) for warp in range(record.warps)]
    assert {word: held for svg in warps for word, held in drawn(svg).items()} == wanted


@pytest.mark.parametrize("name", WARPGROUP_INSTRUCTIONS)
def test_the_browser_gets_one_warp_and_what_it_needs_to_turn_to_another(name: str) -> None:
    record = fragments(name)
    sent = drawn(fragments_svg(record))
    whole = {
        w: held for warp in range(4) for w, held in drawn(fragments_svg(record, Chosen("a", 16 * warp, 0))).items()
    }
    assert len(sent) < len(whole) / 3
    repeated = {
        (operand, lane + LANES * warp, register): tuple((row + 16 * warp, column) for row, column in held)
        for (operand, lane, register), held in sent.items()
        for warp in range(1 if operand == "b" else record.warps)
    }
    assert repeated == whole
    assert 'data-warps="4"' in fragments_svg(record)
    assert "data-warps" not in fragments_svg(fragments("m16n8k32.s8"))


def test_four_warps_and_the_pieces_of_shared_memory_are_named() -> None:
    record = fragments("wgmma.m64n8k32.s8")
    svg = fragments_svg(record, Chosen("a", 37, 21))
    assert svg.count("warp 2: rows 32 to 47") == 2
    assert "Registers of warp 2" in svg
    assert "Warp 2, lane 21, register a2" in svg
    assert "lane 21 of warp 2, bits 8 to 15 of register a2" in in_words(record, Chosen("a", 37, 21))
    piece = fragments_svg(record, Chosen("b", 20, 5))
    assert "Bytes 208 to 223 of shared memory" in piece
    assert len(re.findall(r'class="[wq] k\d mine', piece)) == 1
    words = in_words(record, Chosen("b", 20, 5))
    assert f"byte {record.address(20, 5)} of the operand" in words
    assert all(f"{record.address(20, 5, swizzle)} with {swizzle}-byte swizzle" in words for swizzle in (32, 64, 128))


def test_another_instruction_is_told_apart() -> None:
    assert drawn(fragments_svg(fragments("m16n8k64.s4"))) != drawn(fragments_svg(fragments("m16n8k32.s4")))


@pytest.mark.parametrize("name", NAMES)
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
    assert sent < 120_000
    data, _ = view._repr_mimebundle_()
    assert "var(" not in picture_in(data)
    assert "lane 14" in data["text/html"]
    page = view.to_html(tmp_path / "fragments.html")
    assert not re.findall(r'(?:src|href|from)\s*=?\s*"?https?:', page)


def test_the_packed_word_of_a_warpgroups_weights_is_the_librarys() -> None:
    """A word of a thread: low nibbles are the bytes of a register of A, high nibbles those of the next instruction."""
    record = fragments("wgmma.m64n8k32.s8")
    svg = FragmentExplorer("wgmma.m64n8k32.s8", operand="a").to_svg()
    shown = re.findall(r'class="nibble( high)?"/><text [^>]*>k(?: \+ (\d+))?<', svg)
    assert [(bool(high), int(offset or 0)) for high, offset in shown] == [
        (h, b) for b in range(4) for h in (False, True)
    ]
    w = np.random.default_rng(0).integers(-8, 8, (64, 1, 1, 64), dtype=np.int8)
    words = prepare_warpgroup_weights(w)[0, 0, 0, 0, 0, 0]  # threads, registers
    for thread, register in ((0, 0), (54, 0), (54, 2), (127, 3)):
        row, column = record.map("a")[thread][register][0]
        filters = row // 16 * 16 + row % 8 * 2 + row % 16 // 8  # rows g and g + 8 are neighbouring filters
        for place, (high, offset) in enumerate(shown):
            k = column + int(offset or 0)
            channel = k % 16 * 2 + k // 16  # unpacked words: even channels are the first half of k
            assert (
                int(words[thread, register]) >> 4 * place & 15 == int(w[filters, 0, 0, channel + 32 * bool(high)]) & 15
            )

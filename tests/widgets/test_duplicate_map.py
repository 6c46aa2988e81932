"""The duplicate map without a browser: traits, pictures, refusals."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from subbyte.errors import InvalidInput
from subbyte.technique.duplicates import Duplicates, duplicates
from subbyte_widgets import DuplicateExplorer, DuplicateMap
from subbyte_widgets._base import picture_in
from subbyte_widgets.duplicate_map.picture import duplicates_svg
from subbyte_widgets.duplicate_map.places import page_data

LAYER = "n8h56w56c64k64r3s3p1"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def record() -> Duplicates:
    return duplicates(LAYER, (1, 4))


def drawn(svg: str) -> dict[str, list[tuple[int, str, bool]]]:
    """Of each panel: (index, label, solid) of the cells, in drawing order."""
    found = {}
    for panel in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        name = panel.get("class", "")
        if name.startswith("panel "):
            key = "data-k" if "lowered" in name else "data-g"
            cells = [cell for cell in panel.iter(f"{SVG}rect") if cell.get("data-g")]
            labels = [label.text or "" for label in panel.iter(f"{SVG}text")] or [""] * len(cells)
            found[name.removeprefix("panel ")] = [
                (int(cell.get(key, "-1")), label, "genuine" in cell.get("class", ""))
                for cell, label in zip(cells, labels, strict=True)
            ]
    return found


def mismatches(svg: str, record: Duplicates) -> int:
    """Lowered cells and input pixels that differ from the record."""
    lowered = [(k, str(g), k == g) for k, g in enumerate(record.genuine_of)]
    area = Counter((group[0], str(group[0]), True) for group in record.copies)
    picture = drawn(svg)
    wrong = sum(a != b for a, b in zip(picture["lowered"], lowered, strict=True))
    return wrong + (area - Counter(picture["input"])).total()


@pytest.mark.parametrize("spec", [LAYER, LAYER + "u2", LAYER + "d2", "n8h56w56c64k64r1s1p0", "n8h9w9c32k8r5s3p2u2"])
@pytest.mark.parametrize("tile", [(1, 1), (1, 4), (2, 3), (3, 2)])
def test_every_cell_is_the_records(spec: str, tile: tuple[int, int]) -> None:
    record = duplicates(spec, tile)
    assert mismatches(duplicates_svg(record), record) == 0


def test_another_record_is_told_apart(record: Duplicates) -> None:
    wrong = replace(record, genuine_of=(*record.genuine_of[:-1], 34))
    assert mismatches(duplicates_svg(record), wrong) == 1
    assert mismatches(duplicates_svg(wrong), record) == 1


def test_a_selection_marks_all_copies_and_nothing_else(record: Duplicates) -> None:
    svg = duplicates_svg(record, 13)
    marked = [cell for cell in re.findall(r'class="(cell[^"]*)" data-k="(\d+)"', svg) if " on" in cell[0]]
    assert svg.count('class="hatches on"') == 1
    assert [int(k) for _, k in marked] == [5, 13, 21]
    assert [int(k) for k in re.findall(r'class="(?:gen|dup)" data-k="(\d+)"', svg)] == [5, 13, 21]


def test_padding_is_drawn_apart() -> None:
    record = duplicates(LAYER, (1, 4), at=(0, 0))
    outlined = duplicates_svg(record).count("face zero") - 1  # one of them explains itself
    zeros = {d for d, zero in zip(record.datum, record.padding, strict=True) if zero}
    assert outlined == sum(record.padding) + 2 * len(zeros)  # the pixel and its slot


def test_the_browser_may_select_and_cannot_leave_the_map(record: Duplicates) -> None:
    view = DuplicateMap(record)
    view.set_state({"selected": 7})
    assert view.selected == 7
    view.set_state({"selected": 36})
    assert view.selected == -1
    view.selected = 30
    view.record = duplicates(LAYER, (1, 2))
    assert view.selected == -1


def test_unknown_options_are_refused(record: Duplicates) -> None:
    with pytest.raises(InvalidInput, match="selected"):
        DuplicateMap(record, selecte=3)
    with pytest.raises(InvalidInput, match="no option"):
        DuplicateExplorer(LAYER, (1, 4), tiles=3)


def test_what_cannot_be_drawn_is_said(record: Duplicates) -> None:
    view = DuplicateMap(duplicates(LAYER, (20, 20)))
    assert view.error.endswith("choose a smaller tile or kernel.")
    assert not view.words
    assert not view.map
    assert view.error in view.to_svg()
    view.record = record
    assert not view.error
    assert view.words


def test_the_controls_drive_the_toolkit() -> None:
    explorer = DuplicateExplorer(LAYER, (1, 4))
    explorer.tile_height.value = 2
    assert explorer.view.record == duplicates(LAYER, (2, 4))
    explorer.stride.value = 2
    assert explorer.view.record == duplicates(LAYER + "u2", (2, 4))
    explorer.corner.value = True
    assert explorer.view.record == duplicates(LAYER + "u2", (2, 4), at=(0, 0))


def test_an_impossible_convolution_is_said_in_the_view() -> None:
    explorer = DuplicateExplorer("n8h4w4c32k8r3s3p0", (1, 1))
    explorer.kernel.value = 7
    assert "kernel 7 was asked, 4 is shown: " in explorer.note
    assert "does not fit" in explorer.note
    assert explorer.kernel.value == 4
    assert explorer.view.record == duplicates("n8h4w4c32k8r4s4p0", (1, 1))
    assert explorer.note in explorer.static()["text/html"]
    explorer.kernel.value = 3
    assert not explorer.note
    assert not explorer.view.error
    assert explorer.view.words


def test_every_slider_can_be_moved_to_its_ends() -> None:
    explorer = DuplicateExplorer("resnet50.stage2@8", (1, 4))
    sliders = (explorer.tile_height, explorer.tile_width, explorer.kernel, explorer.stride, explorer.dilation)
    for end in ("max", "min"):
        for slider in sliders:
            slider.value = asked = getattr(slider, end)
            assert not explorer.error
            assert explorer.view.words
            assert (explorer.note == "") == (slider.value == asked)
    assert explorer.view.record == duplicates("n8h56w56c64k64r1s1p1", (1, 1))


def test_the_bundle_holds_a_picture_that_stands_alone(record: Duplicates) -> None:
    for view in (DuplicateMap(record, selected=13), DuplicateExplorer(LAYER, (1, 4))):
        data, _ = view._repr_mimebundle_()
        assert "application/vnd.jupyter.widget-view+json" in data
        svg = picture_in(data)
        assert ElementTree.fromstring(svg).get("width") == "760"
        assert "var(" not in svg
        assert data["text/html"].startswith("<img ")
        assert "18 distinct input pixels" in data["text/html"]
        assert len(repr(view)) < 400


def test_a_page_holds_everything_it_needs(record: Duplicates, tmp_path: Path) -> None:
    page = DuplicateMap(record).to_html(tmp_path / "map.html")
    assert (tmp_path / "map.html").read_text(encoding="utf-8") == page
    assert not re.findall(r'(?:src|href|from)\s*=?\s*"?https?:', page)


def test_slots_are_those_of_shared_memory() -> None:
    for record in (duplicates("n8h20w20c32k32r3s3p1u2", (2, 3)), duplicates("n8h12w12c32k32r3s3d2", (2, 4))):
        drawn = dict(re.findall(r'class="slot [^"]*" data-slot="(\d+)" data-g="(\d+)"', duplicates_svg(record)))
        assert {int(g): int(slot) for slot, g in drawn.items()} == {
            group[0]: record.slot[group[0]] for group in record.copies
        }


def test_the_page_draws_the_same_record(record: Duplicates) -> None:
    """The lists for the live view say what the record says, and their places are those of the picture."""
    for one in (
        record,
        duplicates(LAYER + "u2", (2, 3), at=(0, 0)),
        duplicates("resnet50.stage2@8", (2, 4)).warp(1, 4),
    ):
        data = page_data(one, 400)
        assert data["genuine"] == one.genuine_of
        assert [(g, (row, column), slot, bool(zero)) for g, row, column, slot, _, zero in data["pixels"]] == [
            (g, one.datum[g], one.slot[g], bool(one.padding) and one.padding[g]) for g, *_ in one.copies
        ]
        assert [(row, column) for row, column, _ in data["outputs"]] == list(one.pixels)
        grid, columns = data["grids"]["lowered"], one.workload.r * one.workload.s
        for rect in ElementTree.fromstring(duplicates_svg(one)).iter(f"{SVG}rect"):
            if k := rect.get("data-k"):
                row, column = divmod(int(k), columns)
                x = grid["x"] + column * grid["width"] + column // grid["group"] * data["gap"] + grid["inset"]
                y = grid["y"] + row * grid["height"] + grid["inset"]
                assert (float(rect.get("x", 0)), float(rect.get("y", 0))) == pytest.approx((x, y), abs=0.2)


def test_what_each_warp_loads_is_said() -> None:
    record = duplicates("resnet50.stage2@8", (2, 4))
    view = DuplicateMap(record, warps=2)
    loads = record.warp(0, 4).loads
    words = f"loads into registers: {loads.none} without sharing, {loads.width} along the width, {loads.full} with full"
    assert words in view.words
    view.warps = 3
    assert "3 warps cannot share 8 output pixels evenly" in view.words
    view.warps = 1
    assert "registers" not in view.words
    explorer = DuplicateExplorer("resnet50.stage2@8", (2, 4))
    explorer.warps.value = 2
    assert words in explorer.view.words

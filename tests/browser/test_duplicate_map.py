"""The duplicate map: what is drawn, clicked and stepped through equals the toolkit's record."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from subbyte.technique.duplicates import Duplicates, duplicates
from subbyte_widgets import DuplicateMap

WORKLOAD, TILE = "n8h56w56c64k64r3s3p1", (1, 4)
CELL = f"from subbyte_widgets import DuplicateExplorer\nDuplicateExplorer({WORKLOAD!r}, {TILE}, selected=13)"
# Remembers what is written on each canvas since it was last cleared, with its place.
NOTED = """(() => {
  const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (words, x, y) {
    (this.canvas.sbWritten ??= []).push([words, x, y]);
    return fillText.call(this, words, x, y);
  };
  CanvasRenderingContext2D.prototype.clearRect = function (...area) {
    this.canvas.sbWritten = [];
    return clearRect.apply(this, area);
  };
})()"""
DRAWN = """() => {
  const written = document.querySelector(".sb-map canvas").sbWritten;
  const side = (rect, name) => Number(rect.getAttribute(name));
  const within = (rect) => written.filter(([, x, y]) => x > side(rect, "x") && x < side(rect, "x") + side(rect, "width")
    && y > side(rect, "y") && y < side(rect, "y") + side(rect, "height"));
  const cells = (panel) => [...document.querySelectorAll(`.sb-map-svg .${panel} .cell[data-g]`)].map((cell) => ({
    k: Number(cell.dataset.k ?? -1), g: Number(cell.dataset.g), row: Number(cell.dataset.row),
    column: Number(cell.dataset.col), text: within(cell).map(([words]) => words).join(" "),
    solid: cell.classList.contains("genuine"), on: cell.classList.contains("on") }));
  const lines = [...document.querySelectorAll(".sb-map-svg .links path")];
  const words = [...document.querySelectorAll(".sb-map-svg [data-loads]")];
  return { input: cells("input"), lowered: cells("lowered"),
    slots: [...document.querySelectorAll(".sb-map-svg .slot")].map((slot) => [
      Number(slot.dataset.g), within(slot).map(([words]) => words).join(" ")]),
    loads: Object.fromEntries(words.map((e) => [e.dataset.loads, e.textContent])),
    links: lines.map((line) => Number(line.dataset.k)),
    ends: lines.map((line) => line.getAttribute("d").split(/[ C]/).slice(-2)),
    centres: cells("lowered").filter((c) => c.on).map(({ k }) => {
      const r = document.querySelector(`.sb-map-svg .lowered .cell[data-k="${k}"]`);
      const middle = (at, size) => side(r, at) + side(r, size) / 2;
      return [middle("x", "width"), middle("y", "height")]; }) };
}"""
# Cells in which the canvas has no pixel of a letter.
BLANK = """() => {
  const canvas = document.querySelector(".sb-map canvas");
  const scale = canvas.width / document.querySelector(".sb-map-svg").viewBox.baseVal.width;
  const blank = (rect) => {
    const [x, y, wide, high] = ["x", "y", "width", "height"].map((name) => Math.round(scale * rect.getAttribute(name)));
    return !canvas.getContext("2d").getImageData(x, y, wide, high).data.some((part, i) => i % 4 === 3 && part > 60);
  };
  return [...document.querySelectorAll(".sb-map-svg :is(.cell, .slot)")].filter(blank).length;
}"""


def differences(drawn: dict[str, Any], record: Duplicates, selected: int = -1) -> list[str]:
    """Everything in which a drawing differs from a record and a selected entry."""
    found = []
    offsets = record.workload.r * record.workload.s
    chosen = record.genuine_of[selected] if selected >= 0 else None
    if [cell["k"] for cell in drawn["lowered"]] != list(range(record.entries)):
        return [f"{len(drawn['lowered'])} lowered cells are drawn, the record has {record.entries} entries"]
    for cell in drawn["lowered"]:
        k = cell["k"]
        genuine = record.genuine_of[k]
        wanted = {"k": k, "g": genuine, "row": k // offsets, "column": k % offsets, "text": str(genuine),
                  "solid": genuine == k, "on": genuine == chosen}  # fmt: skip
        if cell != wanted:
            found.append(f"entry {k}: drawn {cell}, record {wanted}")
    pixels = {record.datum[group[0]]: group[0] for group in record.copies}
    if {(cell["row"], cell["column"]): cell["g"] for cell in drawn["input"]} != pixels:
        found.append("the input pixels differ")
    if any(cell["text"] != str(cell["g"]) for cell in drawn["input"]):
        found.append("the input pixels are numbered otherwise")
    if dict(drawn["slots"]) != {g: str(record.slot[g]) for g, *_ in record.copies}:
        found.append("the slots differ")
    if [cell["g"] for cell in drawn["input"] if cell["on"]] != ([] if chosen is None else [chosen]):
        found.append("another input pixel is marked")
    for way, words in drawn["loads"].items():
        if words != f"{getattr(record.loads, way):,} loads, {getattr(record.bytes_loaded, way):,} bytes":
            found.append(f"{way}: {words}")
    copies = next((list(group) for group in record.copies if selected in group), [])
    if sorted(drawn["links"]) != copies:
        found.append(f"lines to {drawn['links']}, copies {copies}")
    ends = [[float(number) for number in end] for end in drawn["ends"]]
    far = [gap for end, centre in zip(sorted(ends), sorted(drawn["centres"]), strict=False)
           for gap in (abs(end[0] - centre[0]), abs(end[1] - centre[1])) if gap > 0.1]  # fmt: skip
    if len(ends) != len(drawn["centres"]) or far:
        found.append(f"lines end at {ends}, the copies lie at {drawn['centres']}")
    return found


@pytest.fixture(scope="module")
def tab(open_view: Callable[..., Any], record: Duplicates) -> Any:
    """A page with the view."""
    one = open_view(DuplicateMap(record, selected=13), ".sb-map-svg.chosen", width=1000, script=NOTED)
    one.page.wait_for_function("document.querySelector('.sb-map canvas').sbWritten?.length")
    return one


@pytest.fixture(scope="module")
def running(open_tab: Callable[..., Any], lab: Any) -> Any:
    """The explorer, whose sliders ask the kernel, in a running notebook."""
    one = open_tab()
    one.open_notebook(lab.write("map.ipynb", CELL))
    one.page.evaluate(f"() => {{ {NOTED} }}")
    one.run_cell(0)
    one.page.wait_for_selector(".sb-map-svg")
    click(one, "lowered", 13)
    one.page.keyboard.press("Escape")
    return one


@pytest.fixture(scope="module")
def record() -> Duplicates:
    """What must be drawn."""
    return duplicates(WORKLOAD, TILE)


def drawing(tab: Any) -> dict[str, Any]:
    """What is drawn."""
    drawn: dict[str, Any] = tab.page.evaluate(DRAWN)
    return drawn


def click(tab: Any, panel: str, k: int) -> None:
    name = "k" if panel == "lowered" else "g"
    tab.page.locator(f'.sb-map-svg .{panel} .cell[data-{name}="{k}"]').click()


def slide(tab: Any, name: str, key: str) -> None:
    row = tab.page.locator(".widget-slider", has_text=name)
    row.locator(".noUi-handle").focus()
    tab.page.keyboard.press(key)


def wait_until(tab: Any, record: Duplicates, selected: int = -1) -> None:
    """Wait for the drawing of ``record``; on the way nothing but the last drawing counts."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if not differences(drawing(tab), record, selected):
            return
        tab.page.wait_for_timeout(20)
    assert not differences(drawing(tab), record, selected)


def test_the_drawing_is_the_record(tab: Any, record: Duplicates) -> None:
    assert not differences(drawing(tab), record, 13)
    click(tab, "lowered", 13)
    tab.page.keyboard.press("Escape")
    wait_until(tab, record)
    tab.picture("map", ".sb-map")


def test_another_record_is_told_apart(tab: Any, record: Duplicates) -> None:
    moved = list(record.genuine_of)
    moved[13] = 13
    assert differences(drawing(tab), replace(record, genuine_of=tuple(moved)))
    assert differences(drawing(tab), replace(record, loads=replace(record.loads, full=17)))
    assert differences(drawing(tab), replace(record, slot=(1, *record.slot[1:])))
    assert differences(drawing(tab), duplicates(WORKLOAD, (2, 2)))


def test_a_click_marks_every_copy(tab: Any, record: Duplicates) -> None:
    for panel, k in (("lowered", 13), ("input", 14), ("lowered", 35)):
        click(tab, panel, k)
        wait_until(tab, record, k)
    words = tab.page.locator(".sb-map .say").text_content()
    assert "Entry 35: output pixel p3" in words
    assert "is used once" in words
    click(tab, "lowered", 13)
    wait_until(tab, record, 13)
    tab.picture("map_selected", ".sb-map")


def test_arrow_keys_walk_both_pictures(tab: Any, record: Duplicates) -> None:
    press = tab.page.keyboard.press
    click(tab, "lowered", 0)
    walk = [("ArrowRight", 1), ("ArrowDown", 10), ("End", 17), ("ArrowRight", 17), ("Home", 9), ("ArrowUp", 0)]
    for key, k in walk:
        press(key)
        wait_until(tab, record, k)
    press("Shift+Tab")
    press("ArrowRight")  # now in the input: the pixel to the right of entry 0's
    wait_until(tab, record, 1)
    press("ArrowDown")
    wait_until(tab, record, 4)
    press("Escape")
    wait_until(tab, record)


@pytest.mark.deep
def test_sliders_change_the_tile_and_the_counts(running: Any) -> None:
    slide(running, "tile height", "ArrowRight")
    wait_until(running, duplicates(WORKLOAD, (2, 4)))
    slide(running, "tile width", "Home")
    wait_until(running, duplicates(WORKLOAD, (2, 1)))
    slide(running, "stride", "ArrowRight")
    wait_until(running, duplicates(WORKLOAD + "u2", (2, 1)))
    slide(running, "stride", "Home")
    slide(running, "tile height", "Home")
    for _ in range(3):
        slide(running, "tile width", "ArrowRight")
    wait_until(running, duplicates(WORKLOAD, TILE))


def test_the_labels_are_painted(tab: Any) -> None:
    assert tab.page.evaluate(BLANK) == 0
    tab.page.evaluate("() => { const c = document.querySelector('.sb-map canvas'); c.width = c.width; }")
    assert tab.page.evaluate(BLANK) > 50, "an empty canvas is noticed"
    click(tab, "lowered", 0)
    tab.page.keyboard.press("Escape")
    tab.settle()
    assert tab.page.evaluate(BLANK) == 0


COLOURS = """() => {
  const canvas = document.querySelector(".sb-map canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return [canvas.width, data.filter((_, i) => i % 4 === 0 && data[i + 3] > 200).reduce((a, b) => a + b, 0)];
}"""


@pytest.mark.deep
def test_labels_follow_the_theme(running: Any) -> None:
    _, light = running.page.evaluate(COLOURS)
    with running.dark():  # bright on a dark ground
        running.page.wait_for_function(f"(light) => ({COLOURS})()[1] > 1.3 * light", arg=light)


def test_labels_follow_the_width(tab: Any) -> None:
    wide, _ = tab.page.evaluate(COLOURS)
    tab.page.evaluate("() => { document.querySelector('.sb-map').style.maxWidth = '740px'; }")
    tab.settle()
    assert tab.page.evaluate(COLOURS)[0] == 740 < wide
    assert tab.page.evaluate(BLANK) == 0
    tab.page.evaluate("() => { document.querySelector('.sb-map').style.maxWidth = ''; }")


def test_every_hatch_has_its_pattern(tab: Any) -> None:
    missing = """() => [...document.querySelectorAll('.sb-map-svg [fill^="url("]')]
      .filter((e) => !document.getElementById(e.getAttribute("fill").slice(5, -1))).length"""
    assert tab.page.evaluate("document.querySelectorAll('.sb-map-svg [fill^=\"url(\"]').length") > 3
    assert tab.page.evaluate(missing) == 0


@pytest.mark.deep
def test_at_the_end_of_a_slider_the_picture_stays_and_says_why(running: Any, record: Duplicates) -> None:
    top = "document.querySelector('.sb-map-svg').getBoundingClientRect().top + window.scrollY"
    before = running.page.evaluate(top)
    for name in ("kernel", "tile height", "tile width"):
        slide(running, name, "End")
    note = running.page.locator(".note", has_text="tile width 16 was asked, ")
    note.wait_for(state="visible")
    assert "choose a smaller tile" in note.text_content()
    width = int(note.text_content().split("asked, ")[1].split()[0])
    running.page.locator(".widget-slider", has_text="tile width").get_by_text(str(width), exact=True).wait_for()
    height = int(
        running.page.locator(".widget-slider", has_text="tile height").locator(".widget-readout").text_content()
    )
    entries = duplicates(WORKLOAD.replace("r3s3", "r7s7"), (height, width)).entries  # too many to write in each
    running.page.wait_for_function(
        "(entries) => document.querySelectorAll('.sb-map-svg .lowered .cell').length === entries", arg=entries
    )
    assert not running.page.locator(".sb-map .problem").is_visible()
    assert running.page.evaluate(top) - before < 25, "two lines of the note, where one was free"
    running.picture("map_end", ".jp-OutputArea")
    for name, steps in (("kernel", 2), ("tile height", 0), ("tile width", 3)):
        slide(running, name, "Home")
        for _ in range(steps):
            slide(running, name, "ArrowRight")
    wait_until(running, record)
    assert not note.is_visible()


@pytest.mark.deep  # the reader of kernels, the loads, the packing and the space are timed in every run
def test_a_key_press_is_painted_at_once(tab: Any, paints_at_once: Callable[..., None]) -> None:
    click(tab, "lowered", 0)
    paints_at_once(tab.page, ("ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft") * 10)


def test_a_page_without_a_kernel_is_alive(open_page: Callable[..., Any], record: Duplicates) -> None:
    page = open_page(DuplicateMap(record, selected=13), ".sb-map-svg.chosen", script=NOTED)
    page.wait_for_function("document.querySelector('.sb-map canvas').sbWritten?.length")
    assert not differences(page.evaluate(DRAWN), record, 13)
    page.locator('.sb-map-svg .lowered .cell[data-k="0"]').click()
    page.keyboard.press("ArrowDown")
    assert not differences(page.evaluate(DRAWN), record, 9)

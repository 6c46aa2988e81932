"""The kernel reader: tabs, search, differences and the edit loop show what the record says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import subbyte
from subbyte.technique.kernel_reading import KernelReading, kernel_reading
from subbyte_widgets import KernelReader

LAYER = "n8h7w7c32k32r3s3p1"
# All in one task of the page: no frame is drawn between the last letter and Enter.
FIND_AT_ONCE = """(query) => {
  const search = document.querySelector(".sb-reader input[type=search]");
  search.focus();
  search.value = query;
  search.dispatchEvent(new InputEvent("input", { bubbles: true }));
  search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
}"""
# Another text, then the next line of a class in it, or a click on a line of the text before.
TURN_AT_ONCE = """([name, chip]) => {
  const buttons = [...document.querySelectorAll(".sb-reader button")];
  const button = (words) => buttons.find((one) => one.textContent.endsWith(words));
  const row = document.querySelectorAll(".sb-reader .row")[7];
  button(name).click();
  (chip ? button(chip) : row).click();
}"""
STATE = """() => {
  const root = document.querySelector(".sb-reader");
  const on = root.querySelector(".row.on");
  return { tab: root.querySelector('[aria-selected="true"]').dataset.value, on: on && Number(on.dataset.i),
    text: on && on.querySelector("code").textContent, rows: root.querySelectorAll(".row").length,
    high: root.querySelector(".pane > div").offsetHeight / 18, found: root.querySelector(".found").textContent,
    say: root.querySelector(".say").textContent, marks: root.querySelectorAll("mark").length,
    changed: [...root.querySelectorAll(".facts .changed")].map((e) => e.textContent) };
}"""


@pytest.fixture(scope="module")
def record() -> KernelReading:
    first = subbyte.build(LAYER)
    return kernel_reading(first, subbyte.build(LAYER, first.config.with_values({"register_packing": False})))


@pytest.fixture(scope="module")
def tab(open_view: Callable[..., Any], record: KernelReading) -> Any:
    """The view on a page without a kernel."""
    view = KernelReader()
    view.show_record(record)
    return open_view(view, ".sb-reader .row", height=1000)


def settled(tab: Any) -> Any:
    tab.settle()
    return tab.page.evaluate(STATE)


def test_tabs_show_the_rows_of_the_record(tab: Any, record: KernelReading) -> None:
    for language, name in (("tir", "TIRx"), ("cuda", "CUDA"), ("ptx", "PTX"), ("sass", "SASS")):
        tab.page.get_by_role("tab", name=name).click()
        tab.page.locator(".sb-reader .pane").focus()
        tab.page.keyboard.press("End")
        state = settled(tab)
        rows = record.rows[language]
        assert (state["tab"], state["on"], state["high"]) == (language, len(rows) - 1, len(rows))
        assert state["text"] == rows[-1].text
        assert state["rows"] <= 42  # only what is in sight is in the page
    assert len(state["changed"]) == sum(fact.value != fact.other for fact in record.facts)


def test_search_keys_and_differences(tab: Any, record: KernelReading) -> None:
    press = tab.page.keyboard.press
    tab.page.locator(".sb-reader .pane").focus()
    press("Home")
    press("/")
    tab.page.keyboard.type("imma")
    press("Enter")
    places = record.find("sass", "IMMA")
    state = settled(tab)
    assert (state["on"], state["found"]) == (places[0], f"1 of {len(places)} found")
    assert state["marks"] > 0
    assert "matrix instruction" in state["say"]
    tab.picture("reader", ".sb-reader")
    press("Escape")
    press("n")
    assert settled(tab)["on"] == places[1]
    press("Home")
    for begin, _ in record.hunks["sass"][:3]:
        press("d")
        if begin > 0:
            assert settled(tab)["on"] == begin
    tab.page.get_by_role("button", name="shuffle").click()
    assert "shuffle" in settled(tab)["say"]
    tab.page.get_by_label("only changes").check()
    state = settled(tab)
    assert state["high"] < len(record.rows["sass"])
    tab.page.locator(".sb-reader .pane").focus()
    press("2")
    assert settled(tab)["tab"] == "cuda"
    tab.page.get_by_label("only changes").uncheck()


def test_enter_finds_what_was_typed_before_the_next_frame(tab: Any, record: KernelReading) -> None:
    tab.page.get_by_role("tab", name="SASS").click()
    tab.page.locator(".sb-reader .pane").focus()
    tab.page.keyboard.press("Home")
    settled(tab)
    tab.page.evaluate(FIND_AT_ONCE, "ldmatrix")  # finds nothing in machine code
    assert (settled(tab)["on"], settled(tab)["found"]) == (0, "not found")
    tab.page.evaluate(FIND_AT_ONCE, "imma")
    places = record.find("sass", "IMMA")
    state = settled(tab)
    assert (state["on"], state["found"]) == (places[0], f"1 of {len(places)} found")


def test_a_click_before_the_next_frame_is_about_the_text_there_is_now(tab: Any, record: KernelReading) -> None:
    tab.page.get_by_role("tab", name="SASS").click()
    settled(tab)
    tab.page.evaluate(TURN_AT_ONCE, ["CUDA", "shuffle"])
    state = settled(tab)
    shuffles = [place for place, row in enumerate(record.rows["cuda"]) if row.kind == "shuffle"]
    assert (state["tab"], state["on"]) == ("cuda", shuffles[0])
    tab.page.evaluate(TURN_AT_ONCE, ["SASS", ""])
    assert (settled(tab)["tab"], settled(tab)["on"]) == ("sass", record.hunks["sass"][0][0])


def test_a_key_press_is_painted_at_once(tab: Any, paints_at_once: Callable[..., None]) -> None:
    tab.page.locator(".sb-reader .pane").focus()
    paints_at_once(tab.page, ("ArrowDown", "PageDown", "PageUp", "ArrowDown") * 10)


@pytest.mark.deep
def test_an_edit_is_checked_in_the_notebook(open_tab: Callable[..., Any], lab: Any) -> None:
    one = open_tab()
    one.run_notebook(lab.write("edit.ipynb", f"from subbyte_widgets import KernelEditor\nKernelEditor('{LAYER}')"))
    area = one.page.locator(".sb-reader-edit textarea")
    text = area.input_value()
    opened = area.evaluate("(area) => Math.round(area.scrollTop / parseFloat(getComputedStyle(area).lineHeight))")
    assert "__global__" in text.splitlines()[opened]
    area.fill(text.replace("4042322160", "4042322144"))
    one.page.get_by_role("button", name="Build and check").click()
    one.page.get_by_text("differ from the reference").wait_for()
    one.page.wait_for_selector(".sb-reader .row.plus")
    one.picture("editor", ".jp-OutputArea-output .widget-vbox")
    area.fill(text)
    one.page.get_by_role("button", name="Build and check").click()
    one.page.get_by_text("equal the reference").wait_for()


def test_one_kernel_alone_has_no_differences(open_page: Callable[..., Any]) -> None:
    page = open_page(KernelReader(LAYER), ".sb-reader .row", height=1000, scale=1.25)
    page.get_by_role("tab", name="PTX").click()
    page.locator(".sb-reader .row.marked").first.wait_for()
    assert page.locator(".sb-reader .only").is_hidden()

"""The kernel reader in JupyterLab: tabs, search, differences and the edit loop show what the record says."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import pytest

import subbyte
from subbyte.technique.kernel_reading import KernelReading, kernel_reading

LAYER = "n8h7w7c32k32r3s3p1"
CELL = f"""import subbyte
from subbyte_widgets import KernelReader
first = subbyte.build("{LAYER}")
other = subbyte.build("{LAYER}", first.config.with_values({{"register_packing": False}}))
KernelReader(first, other)"""
STATE = """() => {
  const root = document.querySelector(".sb-reader");
  const on = root.querySelector(".row.on");
  return { tab: root.querySelector('[aria-selected="true"]').dataset.value, on: on && Number(on.dataset.i),
    text: on && on.querySelector("code").textContent, rows: root.querySelectorAll(".row").length,
    high: root.querySelector(".pane > div").offsetHeight / 18, found: root.querySelector(".found").textContent,
    say: root.querySelector(".say").textContent, marks: root.querySelectorAll("mark").length,
    changed: [...root.querySelectorAll(".facts .changed")].map((e) => e.textContent) };
}"""
PRESS_TO_PAINT = """() => {
  window.latencies = [];
  document.addEventListener("keydown", () => {
    const pressed = performance.now();
    requestAnimationFrame(() => setTimeout(() => window.latencies.push(performance.now() - pressed)));
  }, true);
}"""


@pytest.fixture(scope="module")
def record() -> KernelReading:
    first = subbyte.build(LAYER)
    return kernel_reading(first, subbyte.build(LAYER, first.config.with_values({"register_packing": False})))


@pytest.fixture(scope="module")
def tab(open_tab: Callable[..., Any], lab: Any) -> Any:
    """The view in a running notebook."""
    one = open_tab()
    one.run_notebook(lab.write("reader.ipynb", CELL))
    one.page.wait_for_selector(".sb-reader .row")
    return one


def settled(tab: Any) -> Any:
    tab.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
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
    cells = tab.page.locator(".jp-Notebook .jp-Cell").count()
    press("b")  # JupyterLab's own shortcut must not reach the notebook
    assert tab.page.locator(".jp-Notebook .jp-Cell").count() == cells
    tab.page.get_by_label("only changes").uncheck()


def test_light_and_dark(tab: Any) -> None:
    ink = "() => getComputedStyle(document.querySelector('.sb-reader .row code')).color"
    tab.page.locator(".sb-reader .pane").focus()
    tab.page.keyboard.press("4")
    tab.page.keyboard.press("d")
    settled(tab)
    light = tab.page.evaluate(ink)
    tab.theme("JupyterLab Dark")
    assert tab.page.evaluate(ink) != light
    settled(tab)
    tab.picture("reader_dark", ".sb-reader")
    tab.theme("JupyterLab Light")


def test_a_key_press_is_painted_at_once(tab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    tab.page.locator(".sb-reader .pane").focus()
    tab.page.evaluate(PRESS_TO_PAINT)
    for _ in range(10):
        for key in ("ArrowDown", "PageDown", "PageUp", "ArrowDown"):
            tab.page.keyboard.press(key)
            tab.page.wait_for_timeout(15)
    times = tab.page.evaluate("() => window.latencies")
    with capsys.disabled():
        print(f"\nkey press to repaint: median {statistics.median(times):.1f} ms, slowest {max(times):.1f} ms")
    assert len(times) == 40
    assert statistics.median(times) < 50


def test_an_edit_is_checked_in_the_notebook(open_tab: Callable[..., Any], lab: Any) -> None:
    one = open_tab()
    one.run_notebook(lab.write("edit.ipynb", f"from subbyte_widgets import KernelEditor\nKernelEditor('{LAYER}')"))
    area = one.page.locator(".sb-reader-edit textarea")
    text = area.input_value()
    area.fill(text.replace("4042322160", "4042322144"))
    one.page.get_by_role("button", name="Build and check").click()
    one.page.get_by_text("differ from the reference").wait_for(timeout=60_000)
    one.page.wait_for_selector(".sb-reader .row.plus")
    one.picture("editor", ".jp-OutputArea-output .widget-vbox")
    area.fill(text)
    one.page.get_by_role("button", name="Build and check").click()
    one.page.get_by_text("equal the reference").wait_for(timeout=60_000)


def test_a_page_without_a_kernel_is_alive(chromium: Any, tmp_path: Any) -> None:
    from subbyte_widgets import KernelReader

    path = tmp_path / "reader.html"
    KernelReader(LAYER).to_html(path)
    page = chromium.new_page(viewport={"width": 700, "height": 1000}, device_scale_factor=1.25)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector(".sb-reader .row")
    page.get_by_role("tab", name="PTX").click()
    page.locator(".sb-reader .row.marked").first.wait_for()
    assert page.locator(".sb-reader .only").is_hidden()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.close()
    assert not errors

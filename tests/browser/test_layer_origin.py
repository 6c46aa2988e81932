"""A layer's origin in JupyterLab: Start, points and times arrive, the store's record shows as own; without a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

START = """from dataclasses import replace
from subbyte.measure.fake import FakeRunner
from subbyte_widgets import LayerTuner

class Gpu(FakeRunner):
    \"\"\"Made-up times that say they are a GPU's.\"\"\"
    def __init__(self, **options):
        super().__init__(**options)
        self.device = {"runner": "cuda", "name": "GPU A", "arch": "sm_90a"}
    def run(self, workload, configs):
        results = super().run(workload, configs)
        return [replace(one, device=self.device, **({"verified": True} if one.ok else {})) for one in results]

tuner = LayerTuner("n8h14w20c48k40r3s3p1", trials=40, runner=Gpu(delay=%s), kind="paper", store=STORE, gpu="GPU A")
tuner"""
START_BUTTON = "button[title='Search for a faster kernel of this layer']"
ROWS = "() => [...document.querySelectorAll('.sb-origin-svg [data-item]')].map((row) => row.textContent)"


@pytest.fixture(scope="module")
def tab(open_tab: Callable[..., Any], lab: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A notebook with a quick search and an endless one."""
    store = f"STORE = {str(tmp_path_factory.mktemp('store') / 'own.sqlite')!r}\n"
    one = open_tab(width=1280, height=900)
    slow = (START % 0.03).replace("trials=40", "trials=500")
    one.open_notebook(lab.write("origin.ipynb", store + START % 0.02, slow))
    return one


@pytest.mark.deep
def test_a_search_is_started_and_its_find_is_shown_as_own(tab: Any) -> None:
    tab.run_cell(0)
    tab.page.wait_for_selector(".sb-origin-svg")
    _, own, shipped, predicted = tab.page.evaluate(ROWS)
    assert "none" in own
    assert "none of this layer" in shipped
    assert re.search(r"[\d.]+ us \([\d.]+ to [\d.]+\)", predicted), "an error bar"
    assert tab.page.locator(".sb-origin-svg .row.taken text.name").text_content() == "predicted"
    tab.picture("origin.before", ".jp-OutputArea")
    tab.page.locator(START_BUTTON).click()
    tab.page.get_by_text("Remembered: compile, build and conv2d take your own record").wait_for()
    tab.page.wait_for_function("document.querySelector('.sb-curve-svg').textContent.includes('40 of 40 trials')")
    _, own, _, _, now = tab.page.evaluate(ROWS)
    assert re.search(r"[\d.]+ us \([\d.]+ to [\d.]+\)GPU A", own)
    assert "GPU A" in now
    assert tab.page.locator(".sb-origin-svg .row.taken text.name").text_content() == "your own record"
    panel = tab.page.locator(".sb-origin [role=application]")
    panel.focus()
    for key in ("Home", "ArrowDown"):
        tab.page.keyboard.press(key)
    expect(tab.page.locator(".sb-origin .say")).to_contain_text("40 results. compile takes it.")
    tab.picture("origin", ".jp-OutputArea")
    with tab.dark():
        tab.picture("origin.dark", ".jp-OutputArea")


@pytest.mark.deep
def test_stop_ends_a_search(tab: Any) -> None:
    tab.command("notebook:clear-all-cell-outputs")
    tab.run_cell(1)
    tab.page.locator(START_BUTTON).click()
    tab.page.wait_for_function(f"({ROWS})().length === 5")  # what it has found so far
    tab.page.locator(".sb-curve button").click()
    tab.page.wait_for_function("document.querySelector('.sb-curve-svg').textContent.includes('(stopped)')")
    expect(tab.page.locator(START_BUTTON)).to_be_enabled()


def test_a_page_without_a_kernel_tells_of_each_row(open_page: Callable[..., Any]) -> None:
    from subbyte_widgets import LayerOrigin

    view = LayerOrigin("resnet50.stage2@8", store="off")
    page = open_page(view, ".sb-origin-svg")
    panel = page.locator(".sb-origin [role=application]")
    panel.focus()
    said = []
    for _ in view.data["says"]:
        page.keyboard.press("ArrowDown")
        said.append(page.locator(".sb-origin .say").text_content())
    assert said == view.data["says"]
    page.locator(".sb-origin [data-item='2']").click()
    expect(page.locator(".sb-origin .say")).to_contain_text("Record of the package: 3.52 us on NVIDIA H200")
    page.keyboard.press("Escape")
    expect(page.locator(".sb-origin .say")).to_contain_text("Taken: wgs-")

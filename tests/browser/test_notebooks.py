"""The notebooks in a real JupyterLab, as they ran: pictures are drawn, views alive, exercises answered, nothing fails.

They are opened with the outputs and views of their one run (the fixture ``executed``), without a cell run again. A
page of JupyterLab with a notebook takes ten CPU seconds, so all of this is deep: `make test` runs the first notebook
in JupyterLab itself (test_start_here.py); tests/test_notebooks.py runs the others and counts their answers.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

LOADING, MISSED = "Loading widget", "Error displaying widget"
"""What JupyterLab shows in place of a view: for a moment, and where it drew an output before it had read the models
that are saved with the notebook, which it does now and then; the page is then loaded anew."""
TRIES = 3
Opened = Callable[[str, int], Any]


@pytest.fixture
def opened(open_tab: Callable[..., Any], lab: Any, repository: Path, executed: Callable[[Path], Path]) -> Opened:
    """Opens a notebook as it ran, in a window so high that all is in sight: what is not is not drawn."""

    def open_one(name: str, height: int) -> Any:
        ran = executed(repository / f"notebooks/{name}.ipynb")
        shutil.copy(ran, lab.folder)
        lab.trust(ran.name)
        tab = open_tab(width=1100, height=height)
        for _ in range(TRIES):
            tab.open_notebook(ran.name)
            tab.page.wait_for_function(f"!document.body.innerText.includes({LOADING!r})")
            if MISSED not in tab.page.locator("body").inner_text():
                break
            tab.loaded = False
            tab.errors[:] = [error for error in tab.errors if "widget model not found" not in error]
        assert not tab.failures()
        return tab

    return open_one


def answered(tab: Any, exercises: int = 3) -> None:
    """Each exercise waits for an answer; the solutions are folded text, which nothing ran."""
    expect(tab.answers("Not yet")).to_have_count(exercises)
    expect(tab.answers("Right")).to_have_count(0)
    solutions = tab.page.locator("details:has(summary:text-is('Solutions'))")
    expect(solutions).to_have_count(1)
    expect(solutions.locator("pre").first).to_be_hidden()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "drawn"),
    [
        ("01_convolution_as_gemm", {".sb-tiling-svg .rt": 128}),
        ("04_data_layout", {".sb-access-svg .sector.moved": 8, ".sb-frag-svg .w": 128}),
    ],
)
def test_tiling_and_layout(name: str, drawn: dict[str, int], opened: Opened) -> None:
    tab = opened(name, 7600)
    for selector, count in drawn.items():
        expect(tab.page.locator(selector), selector).to_have_count(count)
    expect(tab.page.get_by_text("Not yet."), "three exercises wait for an answer").to_have_count(3)
    tab.picture(name, ".jp-Notebook")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "view", "pictures"),
    [("02_duplicate_aware_load", "sb-load", 1), ("03_register_packing", "sb-pack", 2)],
)
def test_the_single_techniques(name: str, view: str, pictures: int, opened: Opened) -> None:
    tab = opened(name, 9000)
    expect(tab.page.locator(f".{view}-svg")).to_have_count(pictures)
    stage = tab.page.locator(f".{view} .stage").first
    stage.focus()
    stage.press("End")
    count = tab.page.locator(f".{view} .count").first.text_content()
    assert count.split()[1] == count.split()[3] != "0"
    answered(tab)
    tab.picture(name, ".jp-Notebook")


@pytest.mark.deep
def test_the_search(opened: Opened) -> None:
    tab = opened("05_search", 8200)
    expect(tab.page.locator(".sb-monitor-svg")).to_have_count(2)
    answered(tab)
    tab.picture("05_search", ".jp-Notebook")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "charts", "views"),
    [("06_results", 3, ("sb-speed", "sb-charts")), ("07_your_own_layer", 1, ("sb-speed", "sb-access", "sb-tiling"))],
)
def test_results_and_ones_own_layer(name: str, charts: int, views: tuple[str, ...], opened: Opened) -> None:
    tab = opened(name, 18000)
    drawn = tab.page.locator(".js-plotly-plot:has(.main-svg)")
    drawn.nth(charts - 1).wait_for()
    for chart in drawn.all():
        assert len(chart.locator(".gtitle").first.text_content()) > 20, "each chart says what it finds"
        assert chart.locator('[data-title*="hare"], [data-title*="cloud"]').count() == 0, "nothing is sent anywhere"
    for view in views:
        tab.page.locator(f".{view} svg").first.wait_for()
    answered(tab)
    tab.picture(name, ".jp-Notebook")
    with tab.dark():
        assert all(chart.bounding_box()["height"] > 150 for chart in drawn.all()), "charts survive a change of theme"
        tab.picture(f"{name}_dark", ".jp-Notebook")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "views", "exercises"),
    [
        ("10_bits", (".sb-bits", ".sb-folding", ".sb-frag", ".sb-strides"), 4),
        ("11_planes", (".sb-bits", ".sb-planes"), 3),
    ],
)
def test_bits_and_planes(name: str, views: tuple[str, ...], exercises: int, opened: Opened) -> None:
    tab = opened(name, 9000)
    for view in views:
        expect(tab.page.locator(f"{view} svg[class]")).to_have_count(1)
    stage = tab.page.locator(".sb-bits .stage")
    stage.focus()
    stage.press("End")
    expect(tab.page.locator(".sb-bits .say")).to_contain_text("Multiplying the values gives")
    answered(tab, exercises)
    tab.picture(name, ".jp-Notebook")


@pytest.mark.deep
def test_a_binary_network(opened: Opened) -> None:
    tab = opened("12_binary_network", 9000)
    timeline = tab.page.locator(".sb-timeline")
    expect(timeline.locator("svg[class]")).to_have_count(1)
    timeline.locator("[data-layer='6'] .name").click()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("ArrowDown")
    expect(timeline.locator(".on .name")).to_have_text("stage2.2b")
    answered(tab, 3)
    tab.picture("12_binary_network", ".jp-Notebook")


@pytest.mark.deep
@pytest.mark.parametrize("name", ["13_dual_side_sparse", "14_sparsity_today"])
def test_sparsity(name: str, opened: Opened) -> None:
    tab = opened(name, 12000)
    expect(tab.page.locator(".sb-bars-svg")).to_have_count(1)
    answered(tab, 4)
    tab.picture(name, ".jp-Notebook")


@pytest.mark.deep
def test_hopper(opened: Opened) -> None:
    tab = opened("09_hopper", 9000)
    taps = tab.page.locator(".sb-taps")
    expect(taps).to_have_count(2)
    taps.first.locator('.tap[data-tap="0"] text').first.click()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("ArrowRight")
    tab.page.wait_for_function(
        "() => document.querySelector('.sb-taps .detail').textContent.includes('Tap (1, 1): a start address')"
    )
    expect(tab.page.locator(".sb-frag")).to_have_count(1)
    stores = tab.page.locator(".sb-stores")
    expect(stores).to_have_count(1)
    stores.locator('[data-u="0"]').dispatch_event("click")
    stores.locator(".stage").focus()
    tab.page.keyboard.press("p")
    pixel = "() => document.querySelector('.sb-stores .say').textContent.includes('pixel 1, image 0')"
    tab.page.wait_for_function(pixel)
    expect(tab.answers("Not yet"), "each exercise begins with a wrong answer").to_have_count(4)
    tab.picture("09_hopper", ".jp-Notebook")

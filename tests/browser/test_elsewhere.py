"""The views in Notebook 7 and in Voila. What an export to HTML shows is in test_every_view.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import TimeoutError  # noqa: A004 - not the built-in one
from real_browser import Lab, Watched, strange

from subbyte.technique.duplicates import duplicates

LAYER = "n8h56w56c64k64r3s3p1"
CELL = f"from subbyte_widgets import DuplicateExplorer\nDuplicateExplorer({LAYER!r}, (1, 4), selected=13)"
LOADS = "() => document.querySelector('.sb-map-svg [data-loads=full]')?.textContent"


@pytest.fixture
def watch(chromium: Any, lab: Lab) -> Iterator[Callable[..., Watched]]:
    """Opens a tab that may talk to the server and read files."""
    tabs: list[Watched] = []

    def open_one(width: int = 1000, height: int = 1300) -> Watched:
        tabs.append(Watched(chromium, (lab.base, "file:"), width, height))
        return tabs[-1]

    yield open_one
    for tab in tabs:
        tab.close()


def follows_the_kernel(tab: Watched) -> None:
    """A click is answered in the browser, a slider by the kernel."""
    page = tab.page
    page.wait_for_selector(".sb-map-svg")
    assert page.evaluate(LOADS).startswith("18 loads")
    page.locator('.sb-map-svg .lowered .cell[data-k="35"]').click()
    page.locator(".sb-map .say", has_text="Entry 35").wait_for()
    slider = page.locator(".widget-slider", has_text="tile width")
    slider.locator(".noUi-handle").hover()
    page.mouse.down()
    page.mouse.move(*(slider.locator(".noUi-base").bounding_box()[side] + far for side, far in (("x", 60), ("y", 2))))
    page.mouse.up()
    slider.locator(".widget-readout").filter(has_not_text=re.compile("^4$")).wait_for()
    width = int(slider.locator(".widget-readout").text_content())
    loads = duplicates(LAYER, (1, width)).loads.full
    page.wait_for_function(f"({LOADS})().startsWith('{loads} loads')")


@pytest.mark.deep
def test_notebook_7(watch: Callable[..., Watched], lab: Lab) -> None:
    tab = watch()
    tab.page.goto(f"{lab.base}/notebooks/{lab.write('seven.ipynb', CELL)}?token={lab.token}")
    drawn = tab.page.locator(".sb-map-svg")
    for _ in range(6):  # the page takes keys before it can run a cell
        accept = tab.page.locator(".jp-Dialog .jp-mod-accept")  # on a slow machine Notebook asks for the kernel
        if accept.count():
            accept.first.click()
        try:
            tab.page.locator(".jp-InputArea-editor").first.click(timeout=10_000)
        except TimeoutError:
            continue
        tab.errors.clear()  # what Notebook itself says while it starts
        tab.page.keyboard.press("Shift+Enter")
        for _ in range(40):
            tab.page.wait_for_timeout(250)
            if drawn.count():
                break
        if drawn.count():
            break
    follows_the_kernel(tab)
    tab.picture("notebook7", "body")
    assert not tab.errors
    assert not tab.outside


@pytest.mark.deep
def test_voila(watch: Callable[..., Watched], lab: Lab) -> None:
    tab = watch()
    tab.page.goto(f"{lab.base}/voila/render/{lab.write('voila.ipynb', CELL)}?token={lab.token}")
    follows_the_kernel(tab)
    tab.picture("voila", "body")
    assert not strange(tab)
    # Voila cannot load the extension that Notebook 7, which is installed beside it here, brings for JupyterLab.
    assert not [line for line in tab.errors if "net::ERR_" not in line and "lab-extension" not in line]

"""The notebook on Hopper in a real JupyterLab: pictures are drawn, views alive, exercises answered, nothing fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect


def test_the_notebook_runs(open_tab: Callable[..., Any], lab: Any) -> None:
    lab.bring("09_hopper")
    tab = open_tab(width=1100, height=9000)  # tall: what is out of sight is not drawn
    tab.run_notebook("09_hopper.ipynb")
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
    tab.page.keyboard.press("Space")
    pixel = "() => document.querySelector('.sb-stores .say').textContent.includes('pixel 1, image 0')"
    tab.page.wait_for_function(pixel)
    expect(tab.answers("Not yet"), "each exercise begins with a wrong answer").to_have_count(4)
    assert not tab.failures()
    tab.picture("09_hopper", ".jp-Notebook")

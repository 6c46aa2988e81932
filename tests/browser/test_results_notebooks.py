"""The notebooks on results and on one's own layer in JupyterLab: charts and views are drawn, exercises answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect


@pytest.mark.parametrize(
    ("name", "charts", "views"),
    [("06_results", 15, ("sb-speed",)), ("07_your_own_layer", 1, ("sb-speed", "sb-access", "sb-tiling"))],
)
def test_the_notebook_runs(
    open_tab: Callable[..., Any], lab: Any, name: str, charts: int, views: tuple[str, ...]
) -> None:
    lab.bring(name)
    tab = open_tab(width=1100, height=18000)  # tall: what is out of sight is not drawn
    tab.run_notebook(f"{name}.ipynb")
    tab.page.wait_for_function(
        "(least) => document.querySelectorAll('.js-plotly-plot .main-svg').length >= least", arg=charts
    )
    drawn = tab.page.locator(".js-plotly-plot")
    assert drawn.count() >= charts
    for chart in drawn.all():
        assert len(chart.locator(".gtitle").first.text_content()) > 20, "each chart says what it finds"
        assert chart.locator('[data-title*="hare"], [data-title*="cloud"]').count() == 0, "nothing is sent anywhere"
    for view in views:
        tab.page.locator(f".{view} svg").first.wait_for()
    expect(tab.answers("Not yet"), "each exercise begins with a wrong answer").to_have_count(3)
    expect(tab.answers("Right"), "each solution is right").to_have_count(3)
    assert not tab.failures()
    tab.picture(name, ".jp-Notebook")
    tab.theme("JupyterLab Dark")
    assert all(chart.bounding_box()["height"] > 150 for chart in drawn.all()), "charts survive a change of theme"
    tab.picture(f"{name}_dark", ".jp-Notebook")
    tab.theme("JupyterLab Light")

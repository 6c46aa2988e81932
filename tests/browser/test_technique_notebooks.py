"""The notebooks of the single techniques in a real JupyterLab: views are alive, exercises answered, nothing fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect


@pytest.mark.parametrize(
    ("name", "view", "pictures"),
    [("02_duplicate_aware_load", "sb-load", 1), ("03_register_packing", "sb-pack", 2)],
)
def test_a_technique_notebook_runs(open_tab: Callable[..., Any], lab: Any, name: str, view: str, pictures: int) -> None:
    lab.bring(name)
    tab = open_tab(width=1100, height=9000)  # tall: what is out of sight is not drawn
    tab.run_notebook(f"{name}.ipynb")
    expect(tab.page.locator(f".{view}-svg")).to_have_count(pictures)
    stage = tab.page.locator(f".{view} .stage").first
    stage.focus()
    stage.press("End")
    count = tab.page.locator(f".{view} .count").first.text_content()
    assert count.split()[1] == count.split()[3] != "0"
    expect(tab.answers("Not yet"), "each exercise begins with a wrong answer").to_have_count(3)
    expect(tab.answers("Right"), "each solution is right").to_have_count(3)
    assert not tab.failures()
    tab.picture(name, ".jp-Notebook")

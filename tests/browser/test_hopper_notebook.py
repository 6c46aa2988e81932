"""The notebook on Hopper in a real JupyterLab: pictures are drawn, views alive, exercises answered, nothing fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_the_notebook_runs(open_tab: Callable[..., Any], lab: Any) -> None:
    lab.bring("09_hopper")
    tab = open_tab(width=1100, height=9000)  # tall: what is out of sight is not drawn
    tab.run_notebook("09_hopper.ipynb")
    assert tab.page.locator('img[alt^="Taps of output row 3"]').count() == 2
    assert tab.page.locator(".sb-frag").count() == 1
    assert tab.answers("Not yet") == 3, "each exercise begins with a wrong answer"
    assert not tab.failures()
    tab.picture("09_hopper", ".jp-Notebook")

"""The first notebook in a real JupyterLab, from top to bottom: its first view is drawn, nothing ends in an error."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

ROWS = "() => [...document.querySelectorAll('.sb-map-svg .lowered .cell')].map((cell) => Number(cell.dataset.g))"


def test_the_first_notebook_runs(open_tab: Callable[..., Any], lab: Any) -> None:
    from subbyte.technique.duplicates import duplicates

    lab.bring("00_start_here")
    tab = open_tab(width=1100, height=6800)  # tall: what is out of sight is not drawn
    tab.run_notebook("00_start_here.ipynb")
    record = duplicates("resnet50.stage2@8", (1, 4))
    expect(tab.page.locator(".sb-map .say")).to_have_text(re.compile("^Entry 13"))
    assert tab.page.evaluate(ROWS) == list(record.genuine_of)
    expect(tab.page.locator(".sb-curve-svg")).to_contain_text("(finished)")
    expect(tab.page.get_by_text("Build and check")).to_be_visible()
    assert not tab.failures()
    tab.picture("start_here", ".jp-Notebook")


def test_the_committed_notebook_shows_its_pictures_before_a_cell_runs(open_tab: Callable[..., Any], lab: Any) -> None:
    lab.bring("00_start_here", "read")
    command = [sys.executable, "-m", "jupyter", "trust", str(lab.folder / "read.ipynb")]
    subprocess.run(command, env=lab.environment, check=True, capture_output=True)
    tab = open_tab(width=1100, height=6800)
    tab.open_notebook("read.ipynb")
    pictures = '.jp-OutputArea img[src^="data:image/svg+xml"]'
    drawn = tab.page.locator(pictures)
    expect(drawn, "the duplicate map and the tuning curve").to_have_count(2)
    assert all(width > 500 for width in drawn.evaluate_all("(all) => all.map((image) => image.naturalWidth)"))
    tab.picture("committed", ".jp-Notebook")

"""The first notebook in a real JupyterLab, from top to bottom: its first view is drawn, nothing ends in an error."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

ROWS = "() => [...document.querySelectorAll('.sb-map-svg .lowered .cell')].map((cell) => Number(cell.dataset.g))"


def test_the_first_notebook_runs(open_tab: Callable[..., Any], lab: Any, repository: Any) -> None:
    from subbyte.technique.duplicates import duplicates

    shutil.copy(repository / "notebooks/00_start_here.ipynb", lab.folder)
    tab = open_tab(width=1100, height=6800)  # tall: what is out of sight is not drawn
    tab.run_notebook("00_start_here.ipynb")
    record = duplicates("resnet50.stage2@8", (1, 4))
    assert tab.page.evaluate(ROWS) == list(record.genuine_of)
    assert tab.page.locator(".sb-map .say").text_content().startswith("Entry 13")
    assert "(finished)" in tab.page.locator(".sb-curve-svg").text_content()
    assert tab.page.get_by_text("Build and check").is_visible()
    failed = tab.page.locator('.jp-RenderedText[data-mime-type="application/vnd.jupyter.error"]')
    assert failed.count() == 0, failed.first.text_content()
    tab.picture("start_here", ".jp-Notebook")

"""The notebooks on tiling and data layout in a real JupyterLab, from top to bottom: views drawn, no cell in error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

NOTEBOOKS = {
    "01_convolution_as_gemm": {".sb-tiling-svg .rt": 128},
    "04_data_layout": {".sb-access-svg .sector.moved": 8, ".sb-frag-svg .w": 128},
}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_notebook_runs(name: str, open_tab: Callable[..., Any], lab: Any) -> None:
    lab.bring(name)
    tab = open_tab(width=1100, height=7600)  # tall: what is out of sight is not drawn
    tab.run_notebook(f"{name}.ipynb")
    for selector, count in NOTEBOOKS[name].items():
        expect(tab.page.locator(selector), selector).to_have_count(count)
    expect(tab.page.get_by_text("Not yet."), "three exercises wait for an answer").to_have_count(3)
    assert not tab.failures()
    tab.picture(name, ".jp-Notebook")

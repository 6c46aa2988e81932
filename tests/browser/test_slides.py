"""Slides: opened from a folder, views alive in their frames, no network, no solutions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import slides
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from real_browser import Watched, reading
from site_pages import MEASURE, PAGE

import subbyte
from subbyte_widgets import DuplicateMap

VIEW = DuplicateMap(subbyte.duplicates("n8h56w56c64k64r3s3p1", (1, 4)), selected=13)
NAMED = {"page": "00_first-0.html", "title": VIEW.alternative, "controls": False, "view": "DuplicateMap"}
CELLS = [
    new_markdown_cell("# The first lesson\n\nAbout *one* minute. See [the second](01_second.ipynb)."),
    new_markdown_cell("## The picture\n\nEqual numbers are the same pixel."),
    new_code_cell("DuplicateMap(...)", outputs=[new_output("display_data", {PAGE: NAMED, **VIEW.static()})]),
    new_markdown_cell("## The numbers\n\n**Exercise 1.** Is it smaller?"),
    new_code_cell("1 < 2", outputs=[new_output("display_data", {"text/plain": "True"})]),
    new_markdown_cell("<details><summary>Solutions</summary>\n\nThe secret.\n\n</details>"),
]
"""A notebook as it comes from its kernel (test_site.py runs one)."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The slides of that notebook."""
    folder = tmp_path_factory.mktemp("slides")
    (folder / "extra/views").mkdir(parents=True)
    page = VIEW.to_html().replace("</body>", MEASURE)
    (folder / "extra/views" / NAMED["page"]).write_text(page, encoding="utf-8")
    assert slides.publish({"00_first": new_notebook(cells=CELLS)}, folder, folder / "built") == 0
    return folder / "built"


@pytest.fixture
def tab(chromium: Any, made: Path) -> Iterator[Watched]:
    """A tab that may read files and nothing else, on the first page."""
    with reading(chromium, made / "index.html", 1280, 800) as one:
        yield one


def test_each_section_is_a_slide_with_its_view_alive(tab: Watched) -> None:
    page = tab.page
    page.get_by_role("link", name="The first lesson").click()
    now = page.locator(".slides > section.present > section.present")
    now.locator("h1", has_text="The first lesson").wait_for()
    assert page.locator(".slides > section").count() == 3
    page.keyboard.press("ArrowRight")
    now.locator("h2", has_text="The picture").wait_for()
    inside = now.frame_locator("figure.view iframe")
    inside.locator('.lowered .cell[data-k="0"]').click()
    page.keyboard.press("ArrowDown")  # the view's own key as long as one is in it
    inside.locator(".say", has_text="Entry 9: output pixel p1").wait_for()
    tab.picture("slides", "body")
    now.locator("h2").click()
    page.keyboard.press("ArrowRight")
    now.locator("h2", has_text="The numbers").wait_for()
    assert now.locator(".cell_output").count() == 0, "the exercise is not answered"
    assert "secret" not in page.content()

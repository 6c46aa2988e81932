"""The site: opened from a folder, views alive in their frames, no network, light and dark, search, a phone's width."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from real_browser import ROOT, Watched, reading

NOTEBOOKS = {
    "00_first": [
        (
            "# The first lesson\n\nAbout *one* minute. See [the second](08_on_your_gpu.ipynb) and the "
            "[words](../GLOSSARY.md#lane), not [this](../tools/pins.py)."
        ),
        (
            "from subbyte_widgets import DuplicateMap, TilingExplorer\nimport subbyte\n"
            "DuplicateMap(subbyte.duplicates('n8h56w56c64k64r3s3p1', (1, 4)), selected=13)"
        ),
        "print('numbers:', 1 < 2)\nTilingExplorer()",
        "from subbyte_widgets import LoadStepper\nview = LoadStepper('-')\nview",
    ],
    "08_on_your_gpu": ["# The second lesson\n\nShort.", "print('on a GPU')"],
}
"""The second is shown as it is: its outputs come from a GPU. To run one takes five CPU seconds."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of two small notebooks."""
    folder = tmp_path_factory.mktemp("site")
    for name, (text, *code) in NOTEBOOKS.items():
        cells = [nbformat.v4.new_markdown_cell(text), *map(nbformat.v4.new_code_cell, code)]
        about = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}  # a kernel would say so
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=about), folder / f"{name}.ipynb")
    command = [sys.executable, ROOT / "tools/site_builder.py", "--notebooks", folder, "--to", folder / "built"]
    command += ["--reference", "subbyte.kernel"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "built"


@pytest.fixture(scope="module")
def tab(chromium: Any, site: Path) -> Iterator[Watched]:
    """A tab that may read files and nothing else, for all tests: errors of any page fail at the end."""
    with reading(chromium, site / "index.html", 1100, 900) as one:
        yield one


def test_the_first_page_leads_everywhere(tab: Watched) -> None:
    cards = tab.page.locator(".cards li")
    assert cards.locator("b").all_text_contents() == ["The first lesson", "The second lesson"]
    assert cards.first.locator("p").text_content() == "About one minute. See the second and the words, not this."
    contents = tab.page.locator(".sidebar-tree a.reference").all_text_contents()
    assert {"Tune my layer", "Gallery", "subbyte.kernel", "Glossary", "Changelog"} <= set(contents)
    guides = tab.page.locator(".sidebar-tree a[href*=howto]").all_text_contents()
    assert guides[:2] == ["Tune my layer", "Read a kernel"], "in the order of need, not of the alphabet"
    assert guides.index("Write a search strategy") < guides.index("Add a kind of kernel")
    cards.first.locator("a").click()
    tab.page.wait_for_function("document.title.startsWith('The first lesson')")
    tab.page.locator("a.next-page").click()
    tab.page.wait_for_function("document.title.startsWith('The second lesson')")
    tab.page.locator("a.prev-page").click()
    tab.page.wait_for_function("document.title.startsWith('The first lesson')")
    links = tab.page.locator("article p a.reference")
    assert [link.text_content() for link in links.all()] == ["the second", "words"]
    links.nth(1).click()
    tab.page.wait_for_function("document.title.startsWith('Glossary')")


def test_every_link_leads_to_a_page_of_the_site(site: Path) -> None:
    for path in site.rglob("*.html"):
        if path.parent.name == "views":
            continue
        for target in re.findall(r'<a [^>]*href="([^"]+)"', path.read_text(encoding="utf-8")):
            name = target.partition("#")[0].partition("?")[0]
            if "://" not in target and name:
                assert (path.parent / name).exists(), f"{path.relative_to(site)}: {target}"


def test_views_are_alive_in_their_frames(tab: Watched, site: Path) -> None:
    tab.page.goto((site / "lessons/00_first.html").as_uri())
    assert tab.page.locator("pre", has_text="numbers: True").count() == 1
    frames = tab.page.locator("figure.view iframe")
    assert frames.count() == 2
    assert "18" in str(frames.first.get_attribute("title"))
    inside = tab.page.frame_locator("figure.view iframe").first
    inside.locator('.lowered .cell[data-k="0"]').click()
    tab.page.keyboard.press("ArrowDown")
    inside.locator(".say", has_text="Entry 9: output pixel p1").wait_for()
    tab.page.wait_for_function(  # as high as the page in it asks for, so that it does not scroll
        "() => Math.abs(parseFloat(document.querySelector('figure.view iframe').style.height || 0) - 560) > 20"
    )
    frames.nth(1).scroll_into_view_if_needed()
    tab.page.frame_locator("figure.view iframe").nth(1).locator(".sb-tiling-svg").wait_for()
    assert tab.page.locator("figcaption", has_text="need a kernel").count() == 1
    tab.picture("site", "body")


def test_the_gallery_has_each_view_once(tab: Watched, site: Path) -> None:
    tab.page.goto((site / "gallery.html").as_uri())
    assert tab.page.locator("article h2").count() == tab.page.locator("figure.view iframe").count() == 2
    tab.page.frame_locator("figure.view iframe").first.locator(".lowered").wait_for()


def test_paper_and_browsers_without_scripts_show_the_pictures(tab: Watched, site: Path) -> None:
    tab.page.goto((site / "lessons/00_first.html").as_uri())
    still = tab.page.locator(".still img").first
    assert not still.is_visible()
    tab.page.emulate_media(media="print")
    assert still.is_visible()
    assert still.evaluate("(image) => image.naturalWidth") > 500
    tab.page.emulate_media(media="screen")


def test_the_theme_is_that_of_the_system_until_it_is_switched(tab: Watched, site: Path) -> None:
    tab.page.emulate_media(color_scheme="dark")
    tab.page.goto((site / "lessons/00_first.html").as_uri())
    inside = tab.page.frame_locator("figure.view iframe").first.locator("body")
    ground = "(body) => getComputedStyle(body).backgroundColor"
    dark, light = "rgb(22, 24, 27)", "rgb(255, 255, 255)"
    assert inside.evaluate(ground) == dark
    switch = tab.page.locator("button.theme-toggle:visible").first
    switch.click()
    while tab.page.locator("body").get_attribute("data-theme") != "light":
        switch.click()
    tab.page.wait_for_function("() => getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)'")
    for _ in range(50):
        if inside.evaluate(ground) == light:
            break
        tab.page.wait_for_timeout(20)
    assert inside.evaluate(ground) == light
    tab.page.evaluate("() => localStorage.clear()")
    tab.page.emulate_media(color_scheme="light")


def test_search_finds_a_word_of_a_lesson_and_of_the_reference(tab: Watched, site: Path) -> None:
    tab.page.goto((site / "search.html").as_uri() + "?q=zzyzx")
    tab.page.locator("#search-results", has_text="did not match").wait_for()
    tab.page.goto((site / "search.html").as_uri() + "?q=lesson")
    tab.page.locator("#search-results li", has_text="The first lesson").wait_for()
    tab.page.goto((site / "search.html").as_uri() + "?q=load_chain")
    tab.page.locator("#search-results li", has_text="subbyte.kernel").first.wait_for()


def test_a_phone_shows_it_without_scrolling_sideways(tab: Watched, site: Path) -> None:
    tab.page.set_viewport_size({"width": 390, "height": 800})
    for page in ("index", "lessons/00_first", "api/subbyte.kernel", "glossary", "gallery"):
        tab.page.goto((site / f"{page}.html").as_uri())
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390, page
    tab.page.set_viewport_size({"width": 1100, "height": 900})


def test_a_view_with_a_problem_keeps_its_sentence(tab: Watched, site: Path) -> None:
    tab.page.goto((site / "lessons/00_first.html").as_uri())
    assert tab.page.locator("figure.view").count() == 2
    assert tab.page.locator(".cell_output img:not(figure img)").count() == 1


def test_nothing_in_the_pages_points_outside(site: Path) -> None:
    for path in [*site.rglob("*.html"), *site.rglob("*.css"), *site.rglob("*.js")]:
        text = re.sub(r"data:[\w/+]+;base64,[\w+/=]+|https?://www\.w3\.org/\S+", "", path.read_text(encoding="utf-8"))
        assert not re.findall(r'<(?:script|img|link|iframe)[^>]*(?:src|href)="(?:https?:)?//[^"]*"', text), path.name
        assert not re.findall(r"@import|url\((?:https?:)?//[^)]*\)", text), path.name

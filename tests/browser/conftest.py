"""One JupyterLab and one Chromium for the whole session; what several browser tests check in the same way.

A machine without Chromium fails these tests, it never skips them: a view nobody drew is a view nobody tested. Set
``SUBBYTE_PICTURES`` to a folder to keep screenshots, ``SUBBYTE_THROTTLE=4`` to see the tests on pages that are four
times slower.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from real_browser import PATIENCE, CannotStart, Lab, Tab, Watched, find_browser, launch, press_to_paint, slowness

expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder carries the marker."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


def found_browser() -> str:
    """Path of an installed Chromium; fails the test with one sentence when there is none."""
    try:
        return find_browser()
    except CannotStart as problem:
        pytest.fail(str(problem), pytrace=False)


@pytest.fixture
def browser_program() -> Callable[[], str]:
    """The search for Chromium, for the test of its refusal."""
    return found_browser


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The server."""
    try:
        folder = tmp_path_factory.mktemp("lab")
        # notebooks find the records beside their folder
        (folder.parent / "benchmarks").symlink_to(Path(__file__).parents[2] / "benchmarks", target_is_directory=True)
        server = Lab(folder)
    except CannotStart as problem:
        pytest.fail(str(problem), pytrace=False)
    yield server
    server.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser."""
    found_browser()
    with launch() as browser:
        yield browser


def no_complaint(tabs: list[Any]) -> None:
    """Close the tabs; none of them may have reported an error or asked for anything outside this machine."""
    errors = [line for tab in tabs for line in tab.errors]
    outside = [address for tab in tabs for address in tab.outside]
    for tab in tabs:
        tab.close()
    assert not errors, errors
    assert not outside, outside


@pytest.fixture(scope="module")
def open_tab(chromium: Any, lab: Lab) -> Iterator[Callable[..., Tab]]:
    """Opens tabs of JupyterLab; at the end of the module none of them may have complained."""
    tabs: list[Tab] = []

    def open_one(**size: Any) -> Tab:
        tabs.append(Tab(chromium, lab, **size))
        return tabs[-1]

    yield open_one
    no_complaint(tabs)


@pytest.fixture
def open_page(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens the page that a view writes with ``to_html()``, from a file, and waits for ``selector``; gives the page.

    Nothing may be fetched but the file itself, no error may occur, and the page must be as wide as its window.
    """
    tabs: list[Watched] = []

    def open_one(view: Any, selector: str, *, width: int = 700, height: int = 900, scale: float = 1) -> Any:
        path = tmp_path / f"page{len(tabs)}.html"
        view.to_html(path)
        tabs.append(Watched(chromium, ("file:",), width, height, scale))
        page = tabs[-1].page
        page.goto(path.as_uri())
        page.wait_for_selector(selector)
        return page

    yield open_one
    wide = [tab.page.evaluate("document.documentElement.scrollWidth - window.innerWidth") for tab in tabs]
    no_complaint(tabs)
    assert all(extra <= 0 for extra in wide), f"wider than the window by {wide} pixels"


@pytest.fixture
def paints_at_once(capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Presses keys in the focused element and prints the times to repaint; their median must stay below a limit.

    The limit holds for a machine as quick as the one it was set on: on a slower one, or while another program holds
    the processor, it is longer by as much as a fixed piece of work is. The keys are pressed again, up to twice, before
    it fails.
    """

    def check(page: Any, keys: Iterable[str], *, pause: int = 15, limit: float = 50) -> None:
        keys = list(keys)
        rounds = []
        while len(rounds) < 3 and (not rounds or rounds[-1][0] >= rounds[-1][1]):
            before = slowness(page)
            times = press_to_paint(page, keys, pause)
            assert len(times) == len(keys)
            rounds.append((statistics.median(times), limit * max(before, slowness(page))))
        middle, allowed = rounds[-1]
        with capsys.disabled():
            print(f"\n  key press to repaint: median {middle:.1f} ms of {allowed:.0f}, slowest {max(times):.1f} ms")
        assert middle < allowed, rounds

    return check


@pytest.fixture
def keeps_keys_to_itself() -> Callable[[Tab], None]:
    """JupyterLab's own shortcuts must not reach the notebook while the view has the focus."""

    def check(tab: Tab) -> None:
        cells = tab.page.locator(".jp-Notebook .jp-Cell").count()
        tab.page.keyboard.press("b")  # in a notebook: insert a cell below
        assert tab.page.locator(".jp-Notebook .jp-Cell").count() == cells

    return check

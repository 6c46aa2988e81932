"""One JupyterLab and one Chromium for the whole session; what several browser tests check in the same way.

A machine without Chromium fails these tests, it never skips them: a view nobody drew is a view nobody tested. Set
``SUBBYTE_PICTURES`` to a folder to keep screenshots, ``SUBBYTE_THROTTLE=4`` to see the tests on pages that are four
times slower.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from real_browser import PATIENCE, CannotStart, Lab, Tab, Watched, find_browser, launch, press_to_paint, slowness
from sample_views import sample_names, sample_view

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


def no_complaint(tab: Watched) -> None:
    """The tab may not have reported an error or asked for anything outside this machine."""
    errors, outside = list(tab.errors), list(tab.outside)
    tab.errors.clear()
    tab.outside.clear()
    assert not errors, errors
    assert not outside, outside


@pytest.fixture(scope="session")
def lab_tab(chromium: Any, lab: Lab) -> Iterator[Tab]:
    """The one page of JupyterLab, in which the notebooks of all modules are opened one after the other."""
    tab = Tab(chromium, lab)
    yield tab
    tab.close()


@pytest.fixture(scope="module")
def open_tab(lab_tab: Tab, request: pytest.FixtureRequest) -> Iterator[Callable[..., Tab]]:
    """Gives JupyterLab's page in some size; at the end of the module it may not have complained.

    A notebook that is opened takes the place of the one before. After a failure the page is loaded anew, so that the
    next module does not find what the failed one left.
    """
    failed = request.session.testsfailed
    lab_tab.errors.clear()
    lab_tab.outside.clear()

    def open_one(*, width: int = 1000, height: int = 1100) -> Tab:
        lab_tab.resize(width, height)
        return lab_tab

    yield open_one
    if request.session.testsfailed != failed or lab_tab.errors or lab_tab.outside:
        lab_tab.loaded = False
    no_complaint(lab_tab)


class Pages:
    """Opens pages that views write with ``to_html()``, from files in ``folder``, one after the other in one tab.

    Nothing may be fetched but the file itself, no error may occur, and the page must be as wide as its window.
    """

    def __init__(self, tab: Watched, folder: Path) -> None:
        self.tab, self.folder = tab, folder
        self.wide: list[int] = []
        self.opened = 0
        self.screen = tab.context.new_cdp_session(tab.page)
        tab.errors.clear()
        tab.outside.clear()

    def open(
        self, view: Any, selector: str, *, width: int = 700, height: int = 900, scale: float = 1, script: str = ""
    ) -> Watched:
        """The tab with the page of a view, once ``selector`` is there; ``script`` runs before the page's own. Without
        a view the last page is opened again."""
        self._left()
        if view is not None:
            self.opened += 1
            view.to_html(self.folder / f"page{self.opened}.html")
        path = self.folder / f"page{self.opened}.html"
        if script:
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace("<head>", f"<head><script>{script}</script>", 1), encoding="utf-8")
        self.tab.resize(width, height)
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.screen.send("Emulation.setDeviceMetricsOverride", size)
        self.tab.page.goto(path.as_uri())
        self.tab.page.wait_for_selector(selector)
        return self.tab

    def _left(self) -> None:
        if self.opened:
            wider = "document.documentElement.scrollWidth - window.innerWidth"
            self.wide.append(self.tab.page.evaluate(wider))

    def check(self) -> None:
        """None of the pages may have complained."""
        self._left()
        self.screen.detach()
        no_complaint(self.tab)
        assert all(extra <= 0 for extra in self.wide), f"wider than the window by {self.wide} pixels"


@pytest.fixture(scope="session")
def papers(chromium: Any) -> Iterator[tuple[Watched, Watched]]:
    """The two tabs in which pages are opened from files: one for modules, one for single tests."""
    tabs = Watched(chromium, ("file:",), 700, 900), Watched(chromium, ("file:",), 700, 900)
    yield tabs
    for tab in tabs:
        tab.close()


@pytest.fixture(scope="module")
def open_view(
    papers: tuple[Watched, Watched], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Any]]:
    """Opens the page of a view for the tests of a module, gives the tab: see :class:`Pages`."""
    pages = Pages(papers[0], tmp_path_factory.mktemp("views"))
    yield pages.open
    pages.check()


@pytest.fixture
def open_page(papers: tuple[Watched, Watched], tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens the page of a view for one test, gives the page: see :class:`Pages`."""
    pages = Pages(papers[1], tmp_path)
    yield lambda *view, **options: pages.open(*view, **options).page
    pages.check()


class Kept:
    """The page of a view that was made once, in place of the view."""

    def __init__(self, view: Any) -> None:
        self.page = view.to_html()

    def to_html(self, path: Path) -> None:
        path.write_text(self.page, encoding="utf-8")


@pytest.fixture(scope="session")
def kept() -> Callable[[str], Kept]:
    """The page of each sample view; to make it takes longer than to look at it."""
    names = cache(sample_names)
    return cache(lambda selector: Kept(sample_view(selector, names())))


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

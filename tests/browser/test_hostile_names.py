"""Hostile names in a real browser: everything that becomes HTML on one page, and every view alive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile import samples, views
from real_browser import Watched

from subbyte.html import Markup, join

NAME = "\"'></text></td></title></style><img src=q onerror=alert(1)><script>alert(1)</script>"
WATCH = "window.called = []; window.alert = (words) => window.called.push(words);"
STRANGE = "() => [window.called, document.querySelectorAll('img[src=q]').length, document.scripts.length]"


@pytest.fixture
def watched(chromium: Any, tmp_path: Path) -> Iterator[Callable[[str], Watched]]:
    """Opens pages that note each call of ``alert``."""
    tab = Watched(chromium, ("file:",), 900, 900)
    tab.page.add_init_script(WATCH)

    def open_one(page: str) -> Watched:
        path = tmp_path / "page.html"
        path.write_text(page, encoding="utf-8")
        tab.page.goto(path.as_uri())
        tab.settle()
        return tab

    yield open_one
    tab.close()


def everything(name: str) -> str:
    """All that is static: records, reports, charts, views and their errors."""
    parts = [samples.sample(kind, name)._repr_html_() for kind in samples.kinds()]
    parts += [samples.tuning_report(name, kind).to_html() for kind in (samples.TuningReport, samples.NetworkReport)]
    for kind in views.CHARTS:
        figure = samples.sample(kind, name).plot()
        parts += [figure._repr_mimebundle_()["text/html"], figure.to_svg()]
    parts += [views.page_of(make(name)) for make in views.VIEWS.values()]
    parts += [views.page_of_error("StorePath", name), views.page_of_parts(name)]
    return join(*map(Markup, parts))


@pytest.mark.deep
def test_no_static_page_runs_a_name(watched: Callable[[str], Watched]) -> None:
    page = everything(NAME)
    tab = watched(page)
    assert page.count("onerror") > 50  # the name is there, as text
    assert tab.page.evaluate(STRANGE) == [[], 0, 0]
    assert not tab.errors


def test_no_live_view_runs_a_name(watched: Callable[[str], Watched]) -> None:
    for name, make in views.VIEWS.items():
        view = make(NAME)
        assert not view.error, name
        tab = watched(view.to_html())
        tab.page.wait_for_selector("#view svg, #view canvas, #view .row")
        assert tab.page.evaluate(STRANGE) == [[], 0, 2], name
        assert not tab.errors, name


def test_no_live_chart_runs_a_name(watched: Callable[[str], Watched]) -> None:
    figure = samples.sample(samples.StudyRecord, NAME).plot()
    tab = watched(figure.to_html(full_html=True))
    tab.page.wait_for_selector(".main-svg")
    assert tab.page.evaluate(STRANGE)[:2] == [[], 0]
    assert "onerror" in tab.page.locator(".js-plotly-plot").text_content()


def test_a_name_that_is_not_escaped_is_noticed(watched: Callable[[str], Watched]) -> None:
    tab = watched(f"{NAME}")
    tab.page.wait_for_function("window.called.length > 0")
    assert tab.page.evaluate(STRANGE)[1] == 1

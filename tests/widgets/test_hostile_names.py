"""Views and charts of records with hostile names: no element, attribute or label comes from a name."""

from __future__ import annotations

import pytest
from hostile import samples, views

import subbyte_widgets
from subbyte_widgets.charts.style import label

NAME = "\"'></text></title><img src=q onerror=alert(1)>&<b>"


@pytest.mark.parametrize("view", views.VIEWS)
def test_no_name_in_a_view_becomes_an_element(view: str) -> None:
    page, plain = (views.page_of(views.VIEWS[view](name)) for name in (NAME, views.PLAIN))
    assert not views.injected(page, plain)


def test_every_drawn_view_is_among_them() -> None:
    assert {kind.__name__ for kind in views.drawn_views()} == set(views.VIEWS)


@pytest.mark.parametrize("view", ["SpeedOfLight", "StorePath", "DuplicateMap"])
def test_no_name_in_an_error_becomes_an_element(view: str) -> None:
    page, plain = (views.page_of_error(view, name) for name in (NAME, views.PLAIN))
    assert not views.injected(page, plain)


@pytest.mark.sample(6)
@pytest.mark.parametrize("kind", views.CHARTS, ids=lambda kind: kind.__name__)
def test_no_name_in_a_chart_becomes_an_element(kind: type) -> None:
    page, plain = (views.page_of_chart(kind, name) for name in (NAME, views.PLAIN))
    assert not views.injected(page, plain)


def test_a_chart_shows_a_name_as_it_is_written() -> None:
    """Plotly reads the escaped label, the picture drawn here shows what it stands for, escaped once."""
    figure = samples.sample(subbyte_widgets.charts.SideBySide, "a <b>&").plot()
    assert label("a <b>&") in figure.data[0].y
    assert "&amp;lt;" not in figure.to_svg()
    assert "a &lt;b&gt;&amp;" in figure.to_svg()


def test_parts_of_views() -> None:
    assert not views.injected(views.page_of_parts(NAME), views.page_of_parts(views.PLAIN))

"""What a cell displayed before it is run again is closed; what is still in use stays open."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets
import pytest

from subbyte_widgets import DuplicateExplorer, FragmentExplorer, TuningMonitor, _cells


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Says which cell runs: ``run("a", "1")``."""
    monkeypatch.setattr(_cells, "_shown", {})
    return lambda cell, number: monkeypatch.setattr(_cells, "running_cell", lambda: (cell, number))


def is_open(widget: ipywidgets.Widget) -> bool:
    return widget.comm is not None


def test_a_cell_run_again_closes_what_it_showed(run: Callable[[str, str], None]) -> None:
    run("a", "1")
    first, second = FragmentExplorer(), DuplicateExplorer()
    for view in (first, second):
        _cells.displayed(view)
    assert is_open(first)
    assert is_open(second)
    run("a", "2")
    _cells.displayed(FragmentExplorer())
    parts = [first, second, second.view, second.kernel, second.kernel.layout, *second.children]
    assert not [part for part in parts if is_open(part)]


def test_what_another_cell_or_widget_shows_stays_open(run: Callable[[str, str], None]) -> None:
    run("a", "1")
    twice, inside, same = (FragmentExplorer() for _ in range(3))
    running = TuningMonitor(running=True)
    for view in (twice, inside, running, same):
        _cells.displayed(view)
    box = ipywidgets.VBox([inside])
    run("b", "2")
    _cells.displayed(twice)
    run("a", "3")
    _cells.displayed(same)
    for view in (twice, inside, running, same, *box.children):
        assert is_open(view)
    run("b", "4")
    _cells.displayed(FragmentExplorer())
    assert not is_open(twice), "neither cell shows it any longer"


def test_without_a_cell_nothing_is_closed(run: Callable[[str, str], None]) -> None:
    views = [FragmentExplorer() for _ in range(2)]
    for number, view in enumerate(views):
        run("", str(number))
        _cells.displayed(view)
    assert all(map(is_open, views))


def test_a_closed_view_is_opened_when_it_is_displayed_after_all() -> None:
    view = DuplicateExplorer()
    _cells.close(view)
    assert not is_open(view.view)
    _cells.opened(view)
    assert all(is_open(part) for part in _cells.tree(view))
    data, _ = view._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == view.model_id

"""A chart in a notebook without a view: its words and lines take the ink of the page's theme."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

CHART = """import subbyte, subbyte_widgets
subbyte.landscape("resnet50.stage2@8").plot()"""
INK = """() => { const words = document.querySelector('.js-plotly-plot .ytick text, .js-plotly-plot .gtitle');
  const probe = document.createElement('i');
  probe.style.color = 'var(--jp-content-font-color1)';
  document.body.append(probe);
  const wanted = getComputedStyle(probe).color;
  probe.remove();
  return [getComputedStyle(words).fill, wanted]; }"""
ROOM = "() => document.querySelector('.sb-ink').closest('.jp-OutputArea-child').getBoundingClientRect().height"


@pytest.mark.deep
def test_a_chart_alone_takes_the_ink_of_the_theme(open_tab: Callable[..., Any], lab: Any) -> None:
    tab = open_tab(height=900)
    tab.run_notebook(lab.write("chart_alone.ipynb", CHART))
    tab.page.locator(".js-plotly-plot:has(.main-svg) .gtitle").first.wait_for()
    light, wanted = tab.page.evaluate(INK)
    assert light == wanted
    assert tab.page.evaluate(ROOM) == 0, "the style takes no room"
    with tab.dark():
        tab.page.wait_for_function(f"(before) => ({INK})()[1] !== before", arg=wanted)
        dark, wanted = tab.page.evaluate(INK)
        assert dark == wanted != light
        tab.picture("chart_alone.dark", ".jp-Notebook")

"""The shared selection in JupyterLab: a click in one view opens in all, hidden ones wait, links run in the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from real_browser import slowness

import subbyte
from subbyte.technique.tiling import tiling

NAME = "resnet50.stage2@8"
CELLS = (
    """import subbyte
from subbyte_widgets import Selection, SpaceExplorer, TuningMonitor
found = subbyte.landscape("resnet50.stage2@8")
report = subbyte.tune("resnet50.stage2@8", runner="replay", strategy="random", landscape=found, trials=40, top_k=0)
s = Selection()
monitor = TuningMonitor(report.records[0], selection=s)
monitor""",
    "SpaceExplorer(found, selection=s)",
    """from subbyte_widgets import ConvolutionTiling, DuplicateMap, KernelReader, LoadStepper
import ipywidgets
tiles, reader = ConvolutionTiling(selection=s), KernelReader(selection=s)
views = ipywidgets.Tab([tiles, reader], titles=["Tiling", "Kernel"], selected_index=0)
views""",
    """slider = ipywidgets.IntSlider(value=-1, min=-1, max=39, description="trial")
ipywidgets.jslink((slider, "value"), (s, "trial"))
seen = ipywidgets.Label()
s.observe(lambda change: setattr(seen, "value", f"sees {change.new}"), "configuration")
ipywidgets.VBox([slider, seen])""",
    "found.plot()",
)
TEXT = "(selector) => document.querySelector(selector)?.textContent ?? ''"


@pytest.fixture(scope="module")
def trials() -> Any:
    """The trials of the same study."""
    found = subbyte.landscape(NAME)
    report = subbyte.tune(NAME, runner="replay", strategy="random", landscape=found, trials=40, top_k=0)
    return report.records[0].trials


@pytest.fixture(scope="module")
def tab(open_tab: Callable[..., Any], lab: Any) -> Any:
    """The views in a running notebook, tall enough for all of them."""
    one = open_tab(height=3400)
    one.run_notebook(lab.write("selection.ipynb", *CELLS))
    one.page.wait_for_selector(".sb-tiling-svg")
    return one


def says(tab: Any, selector: str, words: str) -> None:
    """Wait until a view says something; fails with what it says instead."""
    try:
        tab.page.wait_for_function(f"([selector, words]) => ({TEXT})(selector).includes(words)", arg=[selector, words])
    except Exception:
        pytest.fail(f"{selector} does not say {words!r} but {tab.page.evaluate(TEXT, selector)!r}", pytrace=False)


def drawn_tiles(tab: Any) -> tuple[int, int]:
    """Squares of the block tile and steps, as they are drawn."""
    count = "(name) => document.querySelectorAll(`.sb-tiling-svg ${name}`).length"
    return tab.page.evaluate(count, ".rt"), tab.page.evaluate(count, ".st")


def expected_tiles(config: Any) -> tuple[int, int]:
    """The same, of the record."""
    cut = tiling(NAME, config)
    return len(cut.pixels) * cut.block_channels // 8, len(cut.steps)


def follows(tab: Any, config: Any) -> None:
    """Wait until the tiling of ``config`` is drawn."""
    tab.page.wait_for_function(
        """([squares, steps]) => document.querySelectorAll(".sb-tiling-svg .rt").length === squares
          && document.querySelectorAll(".sb-tiling-svg .st").length === steps""",
        arg=list(expected_tiles(config)),
    )


def test_a_trial_opens_in_all_views(tab: Any, trials: Any) -> None:
    stage = tab.page.locator(".sb-monitor .stage")
    stage.focus()
    tab.page.keyboard.press("Home")
    for _ in range(4):
        tab.page.keyboard.press("ArrowRight")
    config = trials[4].config
    says(tab, ".sb-monitor .say", "Trial 4")
    says(tab, ".sb-space .say", f"{trials[4].microseconds:.2f} us")
    tab.page.get_by_text(f"sees {config.key}", exact=True).wait_for()
    follows(tab, config)
    assert drawn_tiles(tab) != expected_tiles(trials[5].config) or config == trials[5].config
    tab.picture("selection", ".jp-Notebook")


def test_a_point_of_the_space_opens_too(tab: Any, trials: Any) -> None:
    tab.page.locator(".sb-space .lines").focus()
    tab.page.keyboard.press("Home")
    best = subbyte.landscape(NAME).best[0]
    says(tab, ".sb-space .say", f"Configuration {best},")
    follows(tab, subbyte.landscape(NAME).config(best))


def test_a_hidden_view_waits_and_catches_up(tab: Any, lab: Any) -> None:
    assert tab.page.locator(".sb-reader .row").count() < 2  # nothing was built for it
    tab.page.get_by_role("tab", name="Kernel", exact=True).click()
    tab.page.locator(".sb-reader .row").nth(20).wait_for()
    tab.page.get_by_role("tab", name="Tiling", exact=True).click()
    tab.page.wait_for_function("document.querySelector('.sb-tiling-svg')?.getBoundingClientRect().width > 0")


def test_a_slider_linked_in_the_page_chooses_trials(tab: Any, trials: Any) -> None:
    tab.page.locator(".noUi-handle").focus()
    for _ in range(3):
        tab.page.keyboard.press("ArrowRight")
    tab.page.get_by_text(f"sees {trials[tab.page.evaluate(SLIDER)].config.key}", exact=True).wait_for()
    says(tab, ".sb-monitor .say", f"Trial {tab.page.evaluate(SLIDER)}:")
    follows(tab, trials[tab.page.evaluate(SLIDER)].config)


def test_a_chart_is_drawn_sends_nothing_and_survives_a_change_of_theme(tab: Any) -> None:
    chart = tab.page.locator(".js-plotly-plot:has(.main-svg)")
    chart.wait_for()
    assert len(chart.locator(".gtitle").first.text_content()) > 20, "it says what it finds"
    assert chart.locator('[data-title*="hare"], [data-title*="cloud"]').count() == 0
    with tab.dark():
        assert chart.bounding_box()["height"] > 150


SLIDER = "() => Number(document.querySelector('.noUi-handle').getAttribute('aria-valuenow'))"


def test_an_impossible_choice_is_said_and_nothing_breaks(tab: Any, trials: Any) -> None:
    tab.page.locator(".sb-space .lines").focus()
    for _ in range(3):
        tab.page.keyboard.press("ArrowRight")
    for _ in range(5):
        tab.page.keyboard.press("+")
    says(tab, ".sb-tiling .problem", "cannot be built")
    tab.page.keyboard.press("Home")
    tab.page.wait_for_function("document.querySelector('.sb-tiling .problem').hidden")


SIX = (
    """import subbyte
from subbyte_widgets import (
    ConvolutionTiling, DuplicateMap, FragmentExplorer, LayoutView, PackingStepper, Selection, SpaceExplorer)
found = subbyte.landscape("resnet50.stage2@8")
s = Selection("resnet50.stage2@8", found.config(found.best[0]))
s.config""",
    """views = [kind(selection=s) for kind in (
    ConvolutionTiling, DuplicateMap, PackingStepper, LayoutView, FragmentExplorer, SpaceExplorer)]
for view in views:
    display(view)""",
)
DRAWN = """() => {
  const names = [".sb-tiling-svg .rt", ".sb-map-svg .slot", ".sb-pack-svg .box", ".sb-access-svg .lane",
    ".sb-frag-svg .w", ".sb-space td"];
  return names.every((name) => document.querySelector(name)) && performance.now();
}"""
RUN_SECOND = """() => {
  const panel = [...window.jupyterapp.shell.widgets("main")].find((w) => w.content?.rendermime);
  panel.content.activeCellIndex = 1;
  window.jupyterapp.commands.execute("notebook:run-cell");
  return performance.now();
}"""


@pytest.mark.deep
def test_six_views_are_drawn_in_two_seconds(
    open_tab: Callable[..., Any], lab: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a machine as quick as the one the limit was set on; the quickest of up to three runs counts."""
    one = open_tab(height=6500)
    one.run_notebook(lab.write("six.ipynb", *SIX))
    assert not one.failures()
    one.page.wait_for_function(DRAWN)
    times = []
    while len(times) < 3 and (not times or min(times)[0] >= 2):
        one.command("notebook:clear-all-cell-outputs")
        one.page.wait_for_function("document.querySelectorAll('.sb-tiling, .sb-space').length === 0")
        began = one.page.evaluate(RUN_SECOND)
        seconds = (one.page.wait_for_function(DRAWN, polling="raf").json_value() - began) / 1000
        times.append((seconds / slowness(one.page), seconds))
    with capsys.disabled():
        print(f"\n  six views in one notebook: {min(times)[1]:.2f} s, counted as {min(times)[0]:.2f} s")
    assert min(times)[0] < 2, times

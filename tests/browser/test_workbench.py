"""The workbench in JupyterLab: a search is started, its trials open below, closed tabs wait, keys stay inside."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from subbyte.technique.duplicates import duplicates
from subbyte.technique.tiling import tiling

CELLS = (
    "import subbyte_widgets\nbench = subbyte_widgets.workbench()\nbench",
    """import ipywidgets
seen = ipywidgets.Label()
def see(_change):
    seen.value = f"sees {bench.selection.configuration} of trial {bench.selection.trial}"
bench.selection.observe(see, ["configuration", "trial"])
seen""",
)


@pytest.fixture(scope="module")
def tab(open_tab: Callable[..., Any], lab: Any) -> Any:
    """The workbench in a running notebook."""
    one = open_tab(width=1250, height=2000)
    one.run_notebook(lab.write("workbench.ipynb", *CELLS))
    one.page.wait_for_selector(".sb-space td")
    one.page.wait_for_selector(".sb-tiling-svg")
    return one


def test_no_name_of_a_tab_is_cut(tab: Any) -> None:
    tab.resize(1280, 900)
    tab.settle()
    names = tab.page.evaluate("""() => [...document.querySelectorAll(".sb-tabs .lm-TabBar-tabLabel")].map(
      (e) => [e.textContent, e.scrollWidth <= e.clientWidth, e.getBoundingClientRect().right < innerWidth])""")
    assert len(names) > 10
    assert [name for name, whole, inside in names if not (whole and inside)] == []
    tab.resize(1250, 2000)


def test_a_search_is_watched_and_its_trials_open_below(tab: Any) -> None:
    page = tab.page
    page.locator(".widget-dropdown", has_text="strategy").locator("select").select_option("random")
    page.locator("button.widget-button", has_text="Tune").click()
    page.locator(".sb-monitor .stage").wait_for()
    page.wait_for_function("document.querySelector('.sb-monitor-svg')?.textContent.includes('(finished)')")
    page.get_by_role("tab", name="Duplicates", exact=True).click()
    page.locator(".sb-monitor .stage").focus()
    page.keyboard.press("Home")
    page.get_by_text(re.compile("^sees brw.* of trial 0$")).wait_for()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    seen = page.get_by_text(re.compile("^sees brw.* of trial 3$"))  # the trials on the way are seen too
    key = seen.text_content().removeprefix("sees ").removesuffix(" of trial 3")
    cut = tiling("resnet50.stage2@8", key_config(key))
    record = duplicates("resnet50.stage2@8", cut.tile)
    page.wait_for_function(
        "([entries, slots]) => document.querySelectorAll('.sb-map-svg .lowered [data-k]').length === entries"
        " && document.querySelectorAll('.sb-map-svg .slot').length === slots",
        arg=[record.entries, record.genuine],
    )
    other = duplicates("resnet50.stage2@8", (1, 1))
    assert page.locator(".sb-map-svg .lowered [data-k]").count() != other.entries
    tab.picture("workbench", ".jp-OutputArea")


def key_config(key: str) -> Any:
    """The configuration of a key."""
    from subbyte.families.mma.config import MmaConfig

    return MmaConfig.from_key(key)


def test_menus_of_the_laboratory_choose_and_follow(tab: Any) -> None:
    page = tab.page
    page.get_by_role("tab", name="Laboratory", exact=True).click()
    menu = page.locator(".widget-dropdown", has_text="reorder_inner").locator("select").first
    before = menu.input_value()
    menu.select_option("0" if before == "1" else "1")
    page.get_by_text("sees brw").filter(has_text=f"ri{1 - int(before)}").wait_for()
    page.locator("button.widget-button", has_text="Best known").click()
    page.get_by_text("best known configuration").wait_for()


def test_a_workload_that_means_nothing_is_said(tab: Any) -> None:
    box = tab.page.locator(".widget-combobox, .widget-text", has_text="workload").locator("input").first
    box.fill("resnet50.stage77")
    box.press("Enter")
    tab.page.get_by_text("stage77").first.wait_for()
    box.fill("resnet50.stage5@8")
    box.press("Enter")
    tab.page.wait_for_function("document.querySelector('.sb-tiling, .sb-map')?.textContent.length > 0")
    tab.page.get_by_text("best known configuration").wait_for()

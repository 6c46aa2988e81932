"""Traits of the views with ipywidgets' own means: jslink in the page alone, link and interact through the kernel."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

CELLS = (
    """import ipywidgets
from subbyte_widgets import FragmentExplorer, LayoutView, PackingStepper, SpeedOfLight
lane = ipywidgets.IntSlider(value=-1, min=-1, max=31, description="lane")
layout = LayoutView("resnet50.stage2@8", data_layout="nhwcnc", kind="activation load")
ipywidgets.jslink((lane, "value"), (layout, "lane"))
ipywidgets.VBox([lane, layout])""",
    """first, second = PackingStepper(), PackingStepper(scheme="width8")
ipywidgets.link((first, "step"), (second, "step"))
ipywidgets.VBox([first, second])""",
    """fragments = FragmentExplorer("m16n8k32.s8", operand="b")
seen = ipywidgets.Label()
fragments.observe(lambda change: setattr(seen, "value", f"sees {change.new}"), "row")
def element(row=0, column=0):
    fragments.row, fragments.column = row, column
ipywidgets.interact(element, row=(0, 31), column=(0, 7))
ipywidgets.VBox([fragments, seen])""",
    """one, other = SpeedOfLight(), SpeedOfLight()
ipywidgets.jslink((one, "item"), (other, "item"))
ipywidgets.VBox([one, other])""",
    "import os\nprint(f'process {os.getpid()}')",
)


@pytest.fixture(scope="module")
def tab(open_tab: Callable[..., Any], lab: Any) -> Any:
    """The linked views in a running notebook, tall enough for all of them."""
    one = open_tab(height=5000)
    one.open_notebook(lab.write("links.ipynb", *CELLS))
    for number in range(len(CELLS)):
        one.run_cell(number)
    for view in (".sb-access-svg", ".sb-pack-svg", ".sb-frag-svg", ".sb-speed-svg"):
        one.page.wait_for_selector(view)
    assert not one.failures()
    return one


def handle(tab: Any, name: str) -> Any:
    """The part of a slider that takes the keys."""
    return tab.page.locator(".widget-slider", has_text=name).locator(".noUi-handle").first


def value(tab: Any, name: str) -> int:
    """Where a slider stands."""
    return int(float(handle(tab, name).get_attribute("aria-valuenow")))


def says(tab: Any, selector: str, words: str, which: int = 0) -> None:
    """Wait until a view says something."""
    tab.page.locator(f"{selector} .say").nth(which).filter(has_text=words).wait_for()


@pytest.mark.deep
def test_jslink_needs_no_kernel(tab: Any) -> None:
    """While the kernel's process stands still, a slider moves a view, and a view another one."""
    words = tab.page.locator(".jp-OutputArea-output", has_text="process ").last.text_content()
    kernel = int(str(words).removeprefix("process "))
    os.kill(kernel, signal.SIGSTOP)
    try:
        handle(tab, "lane").focus()
        for _ in range(4):
            tab.page.keyboard.press("ArrowRight")
        says(tab, ".sb-access", "Lane 3 moves")
        assert tab.page.locator(".sb-access-svg .lane.on").get_attribute("data-lane") == "3"
        tab.page.locator(".sb-speed .stage").first.focus()
        for _ in range(3):
            tab.page.keyboard.press("ArrowDown")
        marked = tab.page.locator(".sb-speed-svg .row.on")
        assert [marked.nth(i).get_attribute("data-item") for i in range(marked.count())] == ["2", "2"]
        tab.page.locator('.sb-access-svg .lane[data-lane="9"]').click()
        assert value(tab, "lane") == 9, "and back"
    finally:
        os.kill(kernel, signal.SIGCONT)


@pytest.mark.deep
def test_link_goes_through_the_kernel_both_ways(tab: Any) -> None:
    count = tab.page.locator(".sb-pack .count")
    for pressed, follower in ((0, 1), (1, 0)):
        before = int(str(count.nth(follower).text_content()).split()[1])
        tab.page.locator(".sb-pack .stage").nth(pressed).focus()
        tab.page.keyboard.press("ArrowRight")
        count.nth(follower).filter(has_text=f"step {before + 1} of").wait_for()


@pytest.mark.deep
def test_interact_drives_a_view_and_observe_hears_of_it(tab: Any) -> None:
    handle(tab, "row").focus()
    before = value(tab, "row")
    tab.page.keyboard.press("ArrowRight")
    says(tab, ".sb-frag", f"B[{before + 1},{value(tab, 'column')}] is element")
    tab.page.get_by_text(f"sees {before + 1}", exact=True).wait_for()
    assert not tab.failures()

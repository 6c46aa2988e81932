"""The layout view: buttons, keys and pointing lead to the accesses of the record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from subbyte.technique import accesses
from subbyte_widgets import LayoutView

STATE = """() => {
  const svg = document.querySelector(".sb-access-svg");
  return { checked: [...document.querySelectorAll('.sb-access [aria-checked="true"]')].map((e) => e.dataset.value),
    lanes: [...svg.querySelectorAll(".lane.on")].map((e) => Number(e.dataset.lane)),
    pieces: [...svg.querySelectorAll(".piece.on")].map((e) => e.dataset.lanes),
    moved: svg.querySelectorAll(".sector.moved").length,
    say: document.querySelector(".sb-access .say").textContent };
}"""


@pytest.fixture(scope="module")
def tab(open_view: Callable[..., Any]) -> Any:
    """The view on a page without a kernel."""
    return open_view(LayoutView("resnet50.stage2@8", where={"block": (30, 0)}), ".sb-access-svg", height=1100)


def pick(tab: Any, *names: str) -> None:
    for name in names:
        tab.page.get_by_role("radio", name=name, exact=True).click()


def test_buttons_show_the_access_in_each_layout(tab: Any) -> None:
    for kind, name in (("tile", "one operand tile"), ("activation load", "activation load"),
                       ("output store", "output store")):  # fmt: skip
        for layout, title in (("nhwc", "NHWC"), ("hwnc", "HWNC"), ("nhwcnc", "NHWCnc")):
            pick(tab, name, title)
            record = accesses("resnet50.stage2@8", None, layout, block=(30, 0))
            use = (record.tile if kind == "tile" else record.of(kind)[0]).sectors
            state = tab.page.evaluate(STATE)
            assert state["checked"] == [kind, layout]
            assert state["moved"] == len(use.sectors)


def test_keys_and_pointing_choose_a_lane(tab: Any) -> None:
    pick(tab, "activation load", "NHWC")
    press = tab.page.keyboard.press
    tab.page.locator(".sb-access-svg .panel").focus()
    walk = [("ArrowRight", 0), ("ArrowRight", 1), ("ArrowDown", 9), ("End", 31), ("ArrowDown", 31), ("Home", 0)]
    for key, lane in walk:
        press(key)
        state = tab.page.evaluate(STATE)
        assert (state["lanes"], state["pieces"]) == ([lane], [str(lane)])
        assert state["say"].startswith(f"Lane {lane} moves 16 bytes")
    tab.page.locator('.sb-access-svg .piece[data-lanes="21"]').hover()
    assert tab.page.evaluate(STATE)["lanes"] == [21]
    tab.picture("layout", ".sb-access")
    tab.page.mouse.move(5, 5)
    assert tab.page.evaluate(STATE)["lanes"] == [0]
    pick(tab, "NHWCnc")  # the chosen lane stays chosen
    assert tab.page.evaluate(STATE)["lanes"] == [0]
    tab.page.locator(".sb-access-svg .panel").focus()
    press("Escape")
    assert tab.page.evaluate(STATE)["lanes"] == []


@pytest.mark.deep  # the reader of kernels, the loads, the packing and the space are timed in every run
def test_a_key_press_is_painted_at_once(tab: Any, paints_at_once: Callable[..., None]) -> None:
    pick(tab, "weight fragment")
    tab.page.locator(".sb-access-svg .panel").focus()
    paints_at_once(tab.page, ("ArrowRight", "ArrowDown", "ArrowUp", "ArrowRight") * 10)

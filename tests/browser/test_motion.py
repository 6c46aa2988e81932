"""Motion: at a given time everything is where it must be, lines are lit that the record names, calm pages have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from subbyte_widgets import DuplicateMap, LayoutOrder, LoadStepper, PackingStepper, StorePath, TapWindows
from subbyte_widgets.load_stepper.view import SMALL

LAYER = "n8h9w9c32k32r3s3p1"
FLYING = """(stage) => [...document.querySelectorAll(`${stage} :is(.flight g.swarm, .flight rect.u, .over rect)`)]
  .map((e) => e.getAttribute("transform")).filter(Boolean)"""
AT = "([stage, t]) => document.querySelector(stage).sbFlight(t)"
LIT = "() => [...document.querySelectorAll('.code .lit')].map((e) => e.value)"
VIEWS: dict[str, tuple[Callable[[], Any], str, int]] = {
    "load": (lambda: LoadStepper(LAYER, SMALL, ways=("full",)), ".sb-load .stage", 2),
    "packing": (PackingStepper, ".sb-pack .stage", 2),
    "stores": (StorePath, ".sb-stores .stage", 2),
    "taps": (lambda: TapWindows("n8h8w8c64k64r3s3p1"), ".sb-taps .stage", 1),
    "orders": (LayoutOrder, ".sb-order .stage", 3),
}


def at(page: Any, stage: str, t: float) -> list[str]:
    """Where everything that flies is at a time of the step's flight."""
    page.evaluate(AT, [stage, t])
    return list(page.evaluate(FLYING, stage))


@pytest.mark.parametrize("name", VIEWS)
def test_a_flight_is_where_its_time_says(name: str, open_page: Callable[..., Any]) -> None:
    make, stage, steps = VIEWS[name]
    page = open_page(make(), stage, width=1100)
    page.locator(stage).focus()
    for _ in range(steps):
        page.keyboard.press("ArrowRight")
    still = page.locator(f"{stage} > svg").inner_html()
    assert page.evaluate(FLYING, stage) == [], "a page that asks for less motion has none"
    early, late = at(page, stage, 0.55), at(page, stage, 0.8)
    assert early
    assert len(early) == len(late)
    assert early != late
    assert at(page, stage, 0.55) == early, "the same time is the same picture"
    assert at(page, stage, 1) == []
    assert page.locator(f"{stage} > svg").inner_html() == still, "what has landed is the step"


def test_data_fill_their_cells_when_they_arrive(open_page: Callable[..., Any]) -> None:
    view = LoadStepper(LAYER, SMALL, ways=("full",))
    page = open_page(view, ".sb-load-svg", width=1100)
    record = view.records["full"]
    slot = f'.sb-load [data-id="s{record.steps[0].slots[1]}"] text'
    page.locator(".sb-load .stage").focus()
    page.keyboard.press("ArrowRight")
    page.evaluate(AT, [".sb-load .stage", 0.9])
    assert page.locator(slot).text_content() == ""
    assert page.locator(".sb-load [data-count]").first.text_content() == "0"
    page.evaluate(AT, [".sb-load .stage", 1])
    assert page.locator(slot).text_content() == str(record.steps[0].data[1])
    assert page.locator(".sb-load .saving:not(.later)").count() == 0, "nothing is saved before all is loaded"


def test_the_line_that_is_executed_is_lit_and_tells_its_lanes(open_page: Callable[..., Any]) -> None:
    view = LoadStepper(LAYER, SMALL, ways=("full",))
    page = open_page(view, ".sb-load-svg", width=1100)
    record = view.records["full"]
    page.locator(".sb-load .stage").focus()
    for step in record.steps[:14]:
        page.keyboard.press("ArrowRight")
        assert page.evaluate(LIT) == [step.line]
    first = next(step for step in record.steps if step.kind == "load")
    page.locator(f'.code li[data-line="{first.line}"]').click()
    said = page.locator(".code .doing").text_content()
    assert f"Line {first.line}: load from shared memory, 32 lanes at once, 4 bytes each; 6 times" in said
    assert "shared: lanes 0 to 31, bytes" in said
    ink = "() => [...document.querySelectorAll('.sb-load .lined text')].map((e) => getComputedStyle(e).stroke)"
    assert set(page.evaluate(ink)) == {"none"}, "a frame around a cell, none around its number"
    marked = page.evaluate("() => [...document.querySelectorAll('.sb-load .lined')].map((e) => e.dataset.id)")
    mine = [step for step in record.steps if step.line == first.line]
    assert {name for name in marked if name[0] in "sf"} == {
        name for step in mine for name in (f"s{step.slots[0]}", f"f{step.registers[0]}")
    }
    assert page.locator(".code .warp .on").count() == 32
    page.keyboard.press("Escape")


def test_a_pause_holds_what_flies(open_page: Callable[..., Any]) -> None:
    page = open_page(StorePath(), ".sb-stores-svg", width=1100)
    page.emulate_media(reduced_motion="no-preference")
    page.locator(".sb-stores select").select_option("0.5")
    page.locator(".sb-stores .stage").focus()
    page.keyboard.press("Space")
    page.wait_for_function(f"(stage) => ({FLYING})(stage).length === 128", arg=".sb-stores .stage")
    page.keyboard.press("Space")
    held = page.evaluate(FLYING, ".sb-stores .stage")
    page.wait_for_timeout(120)
    assert page.evaluate(FLYING, ".sb-stores .stage") == held
    page.keyboard.press("Space")
    page.wait_for_function(
        f"([stage, held]) => ({FLYING})(stage).join() !== held", arg=[".sb-stores .stage", ",".join(held)]
    )
    page.emulate_media(reduced_motion="reduce")


def test_one_pixel_is_fetched_nine_times_and_then_once(open_page: Callable[..., Any]) -> None:
    view = DuplicateMap(LAYER)
    page = open_page(view, ".sb-map-svg")
    record = view.record
    assert record is not None
    uses = next(group for group in record.copies if group[0] == record.most_used)
    told = page.locator(".sb-map .told[aria-live]")
    step = page.locator('.sb-map [data-do="step"]')
    cells = "() => [...document.querySelectorAll('.sb-map-svg .told[data-k]')].map((e) => Number(e.dataset.k))"
    for count in range(1, len(uses) + 1):
        step.click()
        assert f"im2col: fetched {count} of 9 times." in told.text_content()
    page.wait_for_function(f"() => ({cells})().length === 9")
    assert sorted(page.evaluate(cells)) == sorted(uses)
    step.click()
    assert "Shared: fetched once, 0 of 9 uses by address." in told.text_content()
    step.click()
    page.wait_for_function(f"() => ({cells})().length === 1")
    assert page.evaluate(cells) == [uses[0]]
    slot = page.locator(".sb-map-svg .slot.told")
    assert int(slot.get_attribute("data-slot")) == record.slot[uses[0]]
    page.locator(f'.sb-map-svg .lowered .cell[data-k="{uses[3]}"]').click()
    assert page.locator(".sb-map-svg .told").count() == 0, "another choice ends the story"


def test_a_datum_lights_up_in_all_three(open_page: Callable[..., Any]) -> None:
    view = LayoutOrder()
    page = open_page(view, ".sb-order-svg")
    page.locator('.sb-order-svg [data-d="37"]').nth(1).click()
    page.mouse.move(5, 5)
    assert page.locator(".sb-order-svg .on:not([data-lane])").count() == 3
    assert view.data["says"][37] in page.locator(".sb-order .say").text_content()
    page.locator(".sb-order .stage").focus()
    page.keyboard.press("End")
    moved = {name: page.locator(f'.sb-order-svg .moved[data-sector^="{name} "]').count() for name in view.record.moved}
    assert moved == {name: counts[-1] for name, counts in view.record.moved.items()}

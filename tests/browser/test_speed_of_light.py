"""The speed of light: keys and clicks, and what is drawn against the records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from subbyte.analysis.speed import SpeedLimits, roofline, speed_of_light, studied_workloads
from subbyte_widgets import SpeedOfLight
from subbyte_widgets.speed_of_light.picture import BAR_END, BAR_X

FIRST = "resnet50.stage2@8"
DRAWN = """() => [...document.querySelectorAll(".sb-speed [data-item]")].map((row) => ({
  words: [...row.querySelectorAll("text")].map((line) => line.textContent),
  wide: [...row.querySelectorAll(".bar")].reduce((sum, bar) => sum + bar.getBBox().width, 0),
  end: Number(row.dataset.end), title: row.querySelector("title").textContent,
}))"""
# Words that a point of the roofline or the line of an interval covers.
COVERED = """() => {
  const marks = [...document.querySelectorAll(".sb-speed :is(.point, .span)")].map((e) => e.getBoundingClientRect());
  return [...document.querySelectorAll(".sb-speed .stage text")].filter((words) => {
    const { left, right, top, bottom } = words.getBoundingClientRect();
    return marks.some((box) => box.left < right && left < box.right && box.top < bottom && top < box.bottom);
  }).map((words) => words.textContent);
}"""
SAY = "() => document.querySelector('.sb-speed .say').textContent"


@pytest.fixture(scope="module")
def tab(open_view: Callable[..., Any]) -> Any:
    """The view on a page without a kernel."""
    return open_view(SpeedOfLight(FIRST), ".sb-speed [data-item]", height=1100)


def settle(tab: Any) -> None:
    tab.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def differences(drawn: list[dict[str, Any]], record: SpeedLimits) -> list[str]:
    """Bars whose words, length or explanation are not those of the record."""
    assert record.measured is not None
    assert record.ablation is not None
    times = [*(floor.microseconds for floor in record.floors), record.floor]
    times += [side.microseconds for side in (record.measured, *record.others)]
    factors = [*record.ablation.accumulated.values(), *record.ablation.marginal.values()]
    values = [*times, *(factor.speed_up for factor in factors)]
    found = [] if len(values) == len(drawn) else [f"{len(drawn)} bars instead of {len(values)}"]
    for place, (bar, value) in enumerate(zip(drawn, values, strict=False)):
        right = bar["words"][1].startswith(f"{value:.2f}") and f"{value:.2f}" in bar["title"]
        if place < len(times):
            right = right and abs(bar["wide"] - min(value / bar["end"], 1) * (BAR_END - BAR_X)) < 1
        if not right:
            found.append(f"bar {place}: {bar}, instead of {value}")
    return found


def test_keys_lead_through_bars_and_layers(tab: Any) -> None:
    record = speed_of_light(FIRST)
    names = [w.label for w in studied_workloads()]
    stage = tab.page.locator(".sb-speed .stage")
    stage.focus()
    press = tab.page.keyboard.press
    for floor in record.floors:
        press("ArrowDown")
        settle(tab)
        said = tab.page.evaluate(SAY)
        assert f"{floor.microseconds:.2f}" in said
        assert floor.why in said
    press("End")
    settle(tab)
    assert record.ablation is not None
    assert f"{record.ablation.marginal['layout'].speed_up:.2f} times as fast" in tab.page.evaluate(SAY)
    press("Escape")
    place = names.index(FIRST)
    press("ArrowRight")
    settle(tab)
    assert tab.page.locator(".sb-speed select").input_value() == names[place + 1]
    press("ArrowLeft")
    settle(tab)
    assert tab.page.locator(".sb-speed select").input_value() == FIRST
    tab.picture("speed_of_light", ".sb-speed")


def test_what_is_drawn_is_the_record_and_a_mutated_one_is_noticed(tab: Any) -> None:
    for name in ("resnet50.stage5@8", FIRST):
        tab.page.locator(".sb-speed select").select_option(name)
        settle(tab)
        record = speed_of_light(name)
        drawn = tab.page.evaluate(DRAWN)
        assert differences(drawn, record) == []
        assert record.measured is not None
        mutated = replace(record, measured=replace(record.measured, microseconds=record.measured.microseconds + 0.1))
        assert differences(drawn, mutated)
    here = "() => [...document.querySelectorAll('.sb-speed [data-spec].here')].map((p) => Number(p.dataset.value))"
    points = [point.tops for point in roofline().points if point.workload == FIRST]
    assert sorted(tab.page.evaluate(here)) == pytest.approx(sorted(points), rel=1e-5)


def test_nothing_lies_over_the_words(tab: Any) -> None:
    record = speed_of_light(FIRST)
    assert record.ablation is not None
    assert any(factor.low < 1 for factor in record.ablation.marginal.values()), "an interval on the side of the names"
    assert tab.page.evaluate(COVERED) == []
    tab.page.evaluate("() => document.querySelector('.sb-speed .span').setAttribute('d', 'M480 100H620m0 -40v80')")
    assert tab.page.evaluate(COVERED) != [], "a longer line is noticed"
    tab.page.locator(".sb-speed select").select_option("resnet50.stage5@8")  # drawn anew


def test_a_click_on_the_roofline_shows_its_layer(tab: Any) -> None:
    shown = {w.spec for w in studied_workloads()}
    target = next(p for p in roofline().points if p.ours and p.workload != FIRST and p.spec in shown)
    tab.page.locator(f'.sb-speed [data-spec="{target.spec}"].ours').first.click(force=True)
    settle(tab)
    assert tab.page.locator(".sb-speed select").input_value() == target.workload
    tab.page.locator(".sb-speed .row").nth(1).click()
    settle(tab)
    assert "Floor of bytes" in tab.page.evaluate(SAY)

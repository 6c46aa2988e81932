"""The load stepper: every step in the browser equals the record; keys, buttons, playing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from subbyte.technique.load_steps import LoadSteps, load_steps
from subbyte_widgets import LoadStepper
from subbyte_widgets.load_stepper.view import SMALL, WAYS

WORKLOAD = "n8h9w9c32k32r3s3p1"
DRAWN = """() => {
  const cells = [...document.querySelectorAll(".sb-load-svg [data-id]")];
  return { words: Object.fromEntries(cells.map((c) => [c.dataset.id, c.querySelector("text").textContent])),
    on: cells.filter((c) => c.classList.contains("on")).map((c) => c.dataset.id),
    done: [...document.querySelectorAll(".sb-load-svg [data-count]")].map((e) => Number(e.textContent)),
    bars: [...document.querySelectorAll(".sb-load-svg [data-bar]")]
      .map((e) => e.getAttribute("width") / e.dataset.unit),
    links: document.querySelectorAll(".sb-load-svg .links path").length,
    step: document.querySelector(".sb-load .count").textContent };
}"""


def expected(record: LoadSteps, done: int) -> dict[str, str]:
    """Words of the cells after ``done`` steps."""
    words = {f"s{i}": "" for i in range(len(record.slots))} | {f"f{i}": "" for i in range(record.fragments)}
    sums = {f"a{p}.{c}": 0 for p in range(len(record.pixels)) for c in range(record.columns)}
    for step in record.steps[:done]:
        for slot, datum in zip(step.slots if step.kind == "copy" else (), step.data, strict=False):
            words[f"s{slot}"] = str(datum)
        if step.kind == "load":
            words[f"f{step.registers[0]}"] = str(step.data[0])
        for pixel in set(step.pixels):
            sums[f"a{pixel}.{step.column}"] += 1
    return words | {name: f"{count}/{len(record.taps)}" for name, count in sums.items()}


def differences(drawn: dict[str, Any], record: LoadSteps, done: int) -> list[str]:
    """Everything in which the drawing differs from the record after ``done`` steps."""
    wanted = expected(record, done)
    found = [f"{name}: {drawn['words'].get(name)}, not {words}" for name, words in wanted.items()
             if drawn["words"].get(name) != words]  # fmt: skip
    step = record.steps[done - 1] if done else None
    counts = list(step.done) if step else [0, 0, 0]
    if drawn["done"] != counts or [round(bar) for bar in drawn["bars"]] != counts:
        found.append(f"counters {drawn['done']} and bars {drawn['bars']}, not {counts}")
    on = {name for name in drawn["on"] if name[0] in "gsf"}
    if on != (
        {f"g{i}" for i in step.data} | {f"s{i}" for i in step.slots} | {f"f{i}" for i in step.registers}
        if step
        else set()
    ):
        found.append(f"marked: {sorted(on)}")
    ways = 0
    if step is not None:  # padding comes from nowhere; a pair of operands goes into the instruction and to the sums
        ways = {"copy": sum(not record.padding[datum] for datum in step.data), "load": 1, "mma": 4}[step.kind]
    if drawn["links"] != ways:
        found.append(f"{drawn['links']} ways are drawn, not {ways}")
    if drawn["step"] != f"step {done} of {len(record.steps)}":
        found.append(drawn["step"])
    return found


@pytest.fixture(scope="module")
def records() -> dict[str, LoadSteps]:
    """What must be drawn."""
    return {way: load_steps(WORKLOAD, replace(SMALL, duplicate_aware=way)) for way in WAYS}


@pytest.fixture(scope="module")
def tab(open_view: Callable[..., Any], records: dict[str, LoadSteps]) -> Any:
    """The stepper on a page without a kernel."""
    one = open_view(LoadStepper(list(records.values())), ".sb-load-svg", height=1100)
    one.page.locator(".sb-load .stage").focus()
    return one


def check(tab: Any, record: LoadSteps, done: int) -> None:
    assert not differences(tab.page.evaluate(DRAWN), record, done)


def test_keys_walk_through_every_step(tab: Any, records: dict[str, LoadSteps]) -> None:
    record = records["full"]
    press = tab.page.keyboard.press
    press("Home")
    check(tab, record, 0)
    for done in range(1, len(record.steps) + 1):
        press("ArrowRight")
        check(tab, record, done)
    for done in range(len(record.steps) - 1, len(record.steps) - 8, -1):
        press("ArrowLeft")
        check(tab, record, done)
    press("End")
    check(tab, record, len(record.steps))
    assert "18 instead of 36 loads" in tab.page.locator(".sb-load .say").text_content()
    press("Home")
    press("PageDown")
    check(tab, record, 6)
    press("PageDown")
    check(tab, record, 12)
    press("PageUp")
    check(tab, record, 6)


def test_another_record_is_told_apart(tab: Any, records: dict[str, LoadSteps]) -> None:
    tab.page.keyboard.press("End")
    drawn, record = tab.page.evaluate(DRAWN), records["full"]
    assert not differences(drawn, record, len(record.steps))
    steps = list(record.steps)
    steps[7] = replace(steps[7], registers=(3,))
    assert differences(drawn, replace(record, steps=tuple(steps)), len(steps))
    assert differences(drawn, record, len(steps) - 1)
    assert differences(drawn, records["shared"], len(steps))


def test_the_three_ways_of_sharing(tab: Any, records: dict[str, LoadSteps]) -> None:
    tab.page.keyboard.press("End")
    for way in ("none", "shared", "full"):
        tab.page.locator(f'.sb-load input[value="{way}"]').check(force=True)
        check(tab, records[way], len(records[way].steps))
    tab.page.locator(".sb-load .stage").focus()
    tab.page.keyboard.press("Home")
    for _ in range(14):
        tab.page.keyboard.press("ArrowRight")
    before = records["full"].steps[13]
    tab.page.locator('.sb-load input[value="none"]').check(force=True)
    step = int(tab.page.evaluate(DRAWN)["step"].split()[1])
    after = records["none"].steps[step - 1]
    assert (after.kind, after.done[2]) == (before.kind, before.done[2]) == ("mma", 2)
    check(tab, records["none"], step)
    tab.picture("load_none", ".sb-load")
    tab.page.locator('.sb-load input[value="full"]').check(force=True)
    check(tab, records["full"], 14)
    tab.picture("load_full", ".sb-load")


def test_playing_both_ways(tab: Any, records: dict[str, LoadSteps]) -> None:
    record = records["full"]
    tab.page.locator(".sb-load select").select_option("8")
    tab.page.locator(".sb-load .stage").focus()
    tab.page.keyboard.press("Home")
    tab.page.keyboard.press("Space")
    tab.page.wait_for_function("() => Number(document.querySelector('.sb-load input[type=range]').value) >= 4")
    tab.page.keyboard.press("Space")
    reached = int(tab.page.locator(".sb-load input[type=range]").input_value())
    tab.page.wait_for_timeout(200)
    check(tab, record, reached)
    tab.page.locator('[data-do="reverse"]').click()
    tab.page.wait_for_function("() => Number(document.querySelector('.sb-load input[type=range]').value) === 0")
    check(tab, record, 0)
    assert tab.page.locator('[data-do="reverse"]').is_disabled()
    tab.page.locator('[data-do="next"]').click()
    check(tab, record, 1)


def test_a_key_press_is_painted_at_once(tab: Any, paints_at_once: Callable[..., None]) -> None:
    tab.page.locator(".sb-load .stage").focus()
    tab.page.keyboard.press("Home")
    paints_at_once(tab.page, ["ArrowRight"] * 30 + ["ArrowLeft"] * 10)


def test_the_radio_buttons_keep_the_keyboard(open_page: Callable[..., Any], records: dict[str, LoadSteps]) -> None:
    page = open_page(LoadStepper(list(records.values())), ".sb-load-svg", height=800)
    page.locator('.sb-load input[value="none"]').focus()
    for key, way in (("Space", "none"), ("ArrowRight", "shared"), ("ArrowRight", "full"), ("ArrowLeft", "shared")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.value") == way
        assert not differences(page.evaluate(DRAWN), records[way], 0)


def test_a_problem_is_said_in_place_of_the_picture(open_page: Callable[..., Any]) -> None:
    view = LoadStepper(WORKLOAD, replace(SMALL, chunk=8))
    page = open_page(view, ".sb-load .problem")
    assert page.locator(".sb-load .problem").text_content() == view.error
    assert not page.locator(".sb-load .tools").is_visible()
    assert not page.locator(".sb-load .stage").is_visible()

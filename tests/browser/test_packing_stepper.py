"""The packing stepper: every step in the browser equals the trace; values are followed; both schemes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from subbyte.technique.packing import PackingTrace, packing_program
from subbyte_widgets import PackingStepper
from subbyte_widgets.packing_stepper.picture import Layout, address, boxes, shown_registers, window
from subbyte_widgets.packing_stepper.view import EXAMPLE

DRAWN = """() => {
  const number = (node, name) => Number(node.getAttribute(name));
  const box = (node) => ({ o: Number(node.dataset.o), x: number(node, "x"), y: number(node, "y") });
  const all = (selector) => [...document.querySelectorAll(".sb-pack-svg " + selector)];
  return { over: all(".over rect").map(box), zoom: all(".zoom rect.box").map(box),
    values: all(".zoom text.v").map((e) => [Number(e.dataset.o), e.textContent]),
    addresses: all(".zoom text.address").map((e) => e.textContent),
    lanes: all(".zoom text.n:not(.address)").map((e) => e.textContent),
    live: all(".reg.live").map((e) => e.dataset.reg),
    marks: all("rect.mark").map((e) => Number(e.dataset.o)), frames: all(".frame").length,
    useful: all(".lanes")[0].textContent, now: all(".use.now").map((e) => Number(e.dataset.step)),
    stored: all(".word.stored").map((e) => Number(e.dataset.word)) };
}"""


def layout(scheme: str) -> Layout:
    """What must be drawn."""
    program = packing_program(scheme)
    return Layout(program, program.run(EXAMPLE[: program.tiles]))


def differences(drawn: dict[str, Any], shape: Layout, step: int, follow: int) -> list[str]:
    """Everything in which the drawing differs from the trace."""
    trace: PackingTrace = shape.trace
    state = trace.states[min(step, len(trace.states) - 1)]
    unit = (shape.lane - 1.6) / 8
    wanted = sorted(
        (box.origin, round(shape.lanes[box.lane] + max(box.nibble, 0) * unit), shape.names.index(box.register))
        for box in boxes(state.registers)
    )
    rows = [shape.y(name) for name in shape.names]
    found = []
    over = sorted((b["o"], round(b["x"]), max(i for i, y in enumerate(rows) if y <= b["y"])) for b in drawn["over"])
    if over != wanted:
        found.append("the overview differs")
    if drawn["live"] != [name for name in shape.names if name in {r.name for r in state.registers}]:
        found.append(f"registers in use: {drawn['live']}")
    first = window(state.registers, follow)
    near = [b for b in boxes(shown_registers(state.registers, max(follow, 0) // 64)) if first <= b.lane < first + 8]
    if sorted(drawn["values"]) != sorted([b.origin, str(b.value)] for b in near):
        found.append("the enlarged values differ")
    if drawn["lanes"] != [f"lane {first + i}" for i in range(8)]:
        found.append(f"enlarged: {drawn['lanes']}")
    words = [[store.word for store in trace.stores if store.lane == first + i] for i in range(8)]
    if drawn["addresses"] != ([address(lane) for lane in words] if step == len(trace.states) else []):
        found.append(f"addresses: {drawn['addresses']}")
    copies = sum(b.origin == follow for b in boxes(state.registers))
    if drawn["marks"] != [follow] * copies:
        found.append(f"marked: {drawn['marks']}")
    if drawn["useful"] != f"{state.useful_lanes} of 32 lanes" or drawn["now"] != [step]:
        found.append(f"{drawn['useful']} at {drawn['now']}")
    if drawn["stored"] != ([store.word for store in trace.stores] if step == len(trace.states) else []):
        found.append(f"stored: {drawn['stored']}")
    return found


@pytest.fixture(scope="module")
def tab(open_view: Callable[..., Any]) -> Any:
    """The stepper on a page without a kernel."""
    one = open_view(PackingStepper(follow=77), ".sb-pack-svg", height=1300)
    one.page.locator(".sb-pack .stage").focus()
    return one


def check(tab: Any, shape: Layout, step: int, follow: int) -> None:
    assert not differences(tab.page.evaluate(DRAWN), shape, step, follow)


@pytest.mark.sample("quad")
@pytest.mark.parametrize(("scheme", "steps"), [("quad", 6), ("width8", 13)])
def test_keys_walk_through_every_step(tab: Any, scheme: str, steps: int) -> None:
    shape, press = layout(scheme), tab.page.keyboard.press
    tab.page.locator(f'.sb-pack input[value="{scheme}"]').check(force=True)
    tab.page.locator(".sb-pack .stage").focus()
    press("Home")
    check(tab, shape, 0, 77)
    for step in range(1, steps + 1):
        press("ArrowRight")
        check(tab, shape, step, 77)
        if step in (2, 3, 9, steps):
            tab.picture(f"packing_{scheme}_{step}", ".sb-pack")
    for step in range(steps - 1, -1, -1):
        press("ArrowLeft")
        check(tab, shape, step, 77)
    press("End")
    check(tab, shape, steps, 77)
    words = tab.page.locator(".sb-pack .say").text_content()
    store = next(s for s in shape.trace.stores if 64 * s.tile + 8 * s.row <= 77 < 64 * s.tile + 8 * s.row + 8)
    assert f"Lane {store.lane} stores word {store.word} of the block" in words
    assert f"{store.value:#010x}" in words


def test_another_trace_is_told_apart(tab: Any) -> None:
    shape = layout("width8")
    tab.page.keyboard.press("Home")
    for _ in range(4):
        tab.page.keyboard.press("ArrowRight")
    drawn = tab.page.evaluate(DRAWN)
    assert not differences(drawn, shape, 4, 77)
    states = list(shape.trace.states)
    registers = list(states[4].registers)
    registers[3] = replace(registers[3], origins=registers[2].origins)
    states[4] = replace(states[4], registers=tuple(registers))
    assert differences(drawn, Layout(shape.program, replace(shape.trace, states=tuple(states))), 4, 77)
    assert differences(drawn, shape, 5, 77)
    assert differences(drawn, shape, 4, 78)


def test_a_value_is_followed_by_keys_pointer_and_click(tab: Any) -> None:
    shape, press = layout("quad"), tab.page.keyboard.press
    tab.page.locator('.sb-pack input[value="quad"]').check(force=True)
    tab.page.locator(".sb-pack .stage").focus()
    press("Home")
    press("ArrowRight")
    press("ArrowDown")
    check(tab, shape, 1, 78)
    press("Shift+ArrowDown")
    check(tab, shape, 1, 86)
    press("ArrowUp")
    check(tab, shape, 1, 85)
    first = tab.page.locator('.sb-pack-svg .zoom rect.box[data-o="22"]').first
    first.hover()
    check(tab, shape, 1, 22)
    tab.page.mouse.move(5, 5)
    check(tab, shape, 1, 85)
    tab.page.locator('.sb-pack-svg .zoom rect.box[data-o="22"]').first.click()
    tab.page.mouse.move(5, 5)
    check(tab, shape, 1, 22)
    assert "tile 0, image 2, channel 6" in tab.page.locator(".sb-pack .say").text_content()
    press("Escape")
    check(tab, shape, 1, -1)


@pytest.mark.sample("quad")
@pytest.mark.parametrize("scheme", ["quad", "width8"])
def test_a_key_press_is_painted_at_once(tab: Any, scheme: str, paints_at_once: Callable[..., None]) -> None:
    tab.page.locator(f'.sb-pack input[value="{scheme}"]').check(force=True)
    tab.page.locator(".sb-pack .stage").focus()
    tab.page.keyboard.press("Home")
    paints_at_once(tab.page, (["ArrowRight"] * 6 + ["ArrowLeft"] * 6 + ["ArrowDown"] * 2) * 3, pause=20)


def test_the_radio_buttons_keep_the_keyboard(open_page: Callable[..., Any]) -> None:
    page = open_page(PackingStepper(scheme="width8"), ".sb-pack-svg .over rect")
    page.locator('.sb-pack input[value="width8"]').focus()
    for key, scheme in (("ArrowRight", "quad"), ("ArrowRight", "width8"), ("ArrowLeft", "quad")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.value") == scheme
        assert not differences(page.evaluate(DRAWN), layout(scheme), 0, -1)
    page.locator(".sb-pack .stage").focus()
    page.locator('.sb-pack input[value="width8"]').evaluate("(e) => e.dispatchEvent(new Event('change'))")
    assert page.evaluate("document.activeElement.className") == "stage"  # and take it from nobody

"""The fragment explorer: clicks and keys lead where the record says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from subbyte.device.fragments import fragments
from subbyte_widgets import FragmentExplorer

STATE = """() => {
  const svg = document.querySelector(".sb-frag-svg");
  const own = (all) => [...svg.querySelectorAll(all)].map((e) => e.dataset.w.split(" ").slice(0, 3).join(" "));
  return { instruction: document.querySelector('.sb-frag [aria-checked="true"]').textContent,
    lanes: [...new Set(own(".mine").map((w) => w.split(" ")[1]))].map(Number), here: [...new Set(own(".here[data-w]"))],
    say: document.querySelector(".sb-frag .say").textContent,
    detail: [...svg.querySelectorAll(".detail .bits")].findIndex((e) => e.classList.contains("here")) };
}"""


@pytest.fixture(scope="module")
def tab(open_view: Callable[..., Any]) -> Any:
    """The explorer on a page without a kernel."""
    return open_view(FragmentExplorer("m16n8k64.s4", row=3, column=21), ".sb-frag-svg.chosen")


def check(tab: Any, instruction: str, operand: str, row: int, column: int) -> None:
    """What is marked must be what the record says of this element."""
    state = tab.page.evaluate(STATE)
    lane, register, index = fragments(instruction).owner(operand, row, column)
    assert state["instruction"] == instruction
    assert state["lanes"] == [lane]
    assert state["here"] == [f"{operand} {lane} {register}"]
    assert state["detail"] == index
    assert state["say"].startswith(f"{operand.upper()}[{row},{column}] is element {index} of register")


def test_keys_walk_matrices_and_registers(tab: Any) -> None:
    press = tab.page.keyboard.press
    check(tab, "m16n8k64.s4", "a", 3, 21)
    tab.picture("fragments", ".sb-frag")
    tab.page.locator(".sb-frag-svg .panel.a").focus()
    for key, row, column in (("ArrowRight", 3, 22), ("ArrowDown", 4, 22), ("End", 4, 63), ("ArrowRight", 4, 63),
                             ("Home", 4, 0), ("ArrowUp", 3, 0)):  # fmt: skip
        press(key)
        check(tab, "m16n8k64.s4", "a", row, column)
    tab.page.locator(".sb-frag-svg .panel.lanes").focus()
    press("ArrowDown")  # the same register of the next lane
    check(tab, "m16n8k64.s4", "a", 3, 8)
    press("ArrowRight")
    check(tab, "m16n8k64.s4", "a", 11, 8)


def test_a_click_finds_the_element_under_it(tab: Any) -> None:
    word = tab.page.locator('.sb-frag-svg .panel.b .w[data-w="b 9 1 40 2 8"] path')
    box = word.bounding_box()
    word.click(position={"x": box["width"] / 2, "y": box["height"] * 3.5 / 8})
    check(tab, "m16n8k64.s4", "b", 43, 2)
    tab.page.locator('.sb-frag-svg .q[data-w="c 31 3"]').click()
    check(tab, "m16n8k64.s4", "c", 15, 7)


def test_the_four_warps_of_a_warpgroup(tab: Any) -> None:
    name = "wgmma.m64n8k32.s8"
    press = tab.page.keyboard.press
    tab.page.get_by_role("radio", name=name).click()
    check_warpgroup(tab, name, "a", 0, 0)
    tab.page.get_by_role("radio", name="warp 2").click()
    check_warpgroup(tab, name, "a", 32, 0)
    tab.page.locator('.sb-frag-svg .panel.a .w[data-w="a 85 2 37 20 4"] path').click(position={"x": 1, "y": 4})
    check_warpgroup(tab, name, "a", 37, 20)
    tab.picture("fragments_warpgroup", ".sb-frag")
    tab.page.locator('.sb-frag-svg .q[data-w="c 31 3"]').click()  # lane 31 of the same warp
    check_warpgroup(tab, name, "c", 47, 7)
    tab.page.locator(".sb-frag-svg .panel.lanes").focus()
    press("ArrowDown")  # the first lane of the next warp
    check_warpgroup(tab, name, "c", 56, 1)
    tab.page.locator(".sb-frag-svg .panel.b").focus()
    press("ArrowRight")
    press("ArrowRight")
    check_warpgroup(tab, name, "b", 0, 1)


def check_warpgroup(tab: Any, name: str, operand: str, row: int, column: int) -> None:
    """As ``check``, where the register panel shows one warp and B lies in shared memory."""
    state = tab.page.evaluate(STATE)
    lane, register, index = fragments(name).owner(operand, row, column)
    assert state["instruction"] == name
    assert f"{operand} {lane} {register}" in state["here"]
    assert state["detail"] == index
    if operand == "b":
        assert f"bytes {16 * lane} to {16 * lane + 15} of shared memory" in state["say"]
    else:
        assert f"in lane {lane % 32} of warp {lane // 32}" in state["say"]
        assert f"{operand} {lane % 32} {register}" in state["here"]
        assert set(state["lanes"]) == {lane, lane % 32}


@pytest.mark.parametrize("name", ["m8n8k32.s4", "m16n8k256.b1", "m16n8k32.s8"])
def test_every_instruction_is_one_click_away(tab: Any, name: str) -> None:
    tab.page.get_by_role("radio", name=name).click()
    check(tab, name, "a", 0, 0)


@pytest.mark.deep  # the reader of kernels, the loads, the packing and the space are timed in every run
def test_a_key_press_is_painted_at_once(tab: Any, paints_at_once: Callable[..., None]) -> None:
    tab.page.get_by_role("radio", name="m16n8k64.s4").click()
    tab.page.locator(".sb-frag-svg .panel.a").focus()
    paints_at_once(tab.page, ("ArrowRight", "ArrowDown", "ArrowUp", "ArrowRight") * 10)

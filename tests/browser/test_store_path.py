"""The store path on a page without a kernel: pointing, clicking and keys choose the byte that is marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from subbyte_widgets import StorePath

MARKED = "() => [...document.querySelectorAll('.sb-stores .on[data-u]')].map((e) => Number(e.dataset.u))"
VALUES = (
    "() => [...document.querySelectorAll('.sb-stores .value')].map((e) => [...e.children].map((t) => t.textContent))"
)

FIRST_PLACE = """(byte) => {
  const path = document.querySelector(`.sb-stores path[data-u="${byte}"]`);
  const [x, y] = path.getAttribute("d").match(/[\\d.]+/g).map(Number);
  const at = new DOMPoint(x + 4, y + 4).matrixTransform(path.getScreenCTM());
  return [at.x, at.y];
}"""
"""A byte is one path with a square in each of its places: where the first of them is."""

# Words that the edge of a veil cuts: half of them would be dim.
HALF_DIM = """() => [...document.querySelectorAll(".sb-stores-svg .veil")].flatMap((veil) => {
  const dim = veil.getBoundingClientRect();
  return [...document.querySelectorAll(".sb-stores-svg text")].filter((words) => {
    const box = words.getBoundingClientRect(), middle = (box.top + box.bottom) / 2;
    const cut = [dim.left, dim.right].some((x) => box.left < x - 1 && box.right > x + 1);
    return cut && middle > dim.top && middle < dim.bottom;
  }).map((words) => words.textContent);
})"""


def test_a_panel_is_dim_as_a_whole(open_page: Callable[..., Any]) -> None:
    page = open_page(StorePath(), ".sb-stores-svg", width=1100)
    assert page.evaluate(HALF_DIM) == []
    page.locator(".sb-stores-svg .veil").nth(1).evaluate("(veil) => veil.setAttribute('x', 390)")
    assert "28" in page.evaluate(HALF_DIM)


def test_keys_pointing_and_clicks_choose_a_byte(open_page: Callable[..., Any]) -> None:
    view = StorePath()
    page = open_page(view, ".sb-stores-svg")
    last = len(view.sentences) - 1
    page.mouse.move(5, 5)
    page.locator(".sb-stores .stage").focus()
    steps = [("Escape", None), ("ArrowDown", 0), ("ArrowUp", 0), ("ArrowDown", 1), ("Shift+ArrowDown", 17), ("p", 25),
             ("p", 17), ("Shift+ArrowUp", 1), ("Escape", None), ("ArrowUp", last), ("ArrowDown", last)]  # fmt: skip
    for key, byte in steps:
        page.keyboard.press(key)
        assert page.evaluate(MARKED) == ([] if byte is None else [byte]), key
        said = "Point at a byte" if byte is None else view.sentences[byte]
        assert said in page.locator(".sb-stores .say").text_content()
        assert page.evaluate(VALUES) == (
            [["", ""]] * 5 if byte is None else [list(v) for v in view.data["values"][byte]]
        )
    place = page.evaluate(FIRST_PLACE, 40)
    page.mouse.move(*place)
    assert page.evaluate(MARKED) == [40]
    page.mouse.move(5, 5)
    assert page.evaluate(MARKED) == [last]
    page.evaluate("document.activeElement.blur()")
    page.mouse.click(*place)
    page.mouse.move(5, 5)
    assert page.evaluate(MARKED) == [40]
    page.keyboard.press("ArrowDown")  # a click gives the keyboard to the picture
    assert page.evaluate(MARKED) == [41]

"""The store path on a page without a kernel: pointing, clicking and keys choose the byte that is marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from subbyte_widgets import StorePath

MARKED = "() => [...document.querySelectorAll('.sb-stores .on[data-u]')].map((e) => Number(e.dataset.u))"

FIRST_PLACE = """(byte) => {
  const path = document.querySelector(`.sb-stores path[data-u="${byte}"]`);
  const [x, y] = path.getAttribute("d").match(/[\\d.]+/g).map(Number);
  const at = new DOMPoint(x + 4, y + 4).matrixTransform(path.getScreenCTM());
  return [at.x, at.y];
}"""
"""A byte is one path with a square in each of its places: where the first of them is."""


def test_keys_pointing_and_clicks_choose_a_byte(open_page: Callable[..., Any]) -> None:
    view = StorePath()
    page = open_page(view, ".sb-stores svg")
    last = len(view.sentences) - 1
    page.mouse.move(5, 5)
    page.locator(".sb-stores .panel").focus()
    steps = [("Home", 0), ("ArrowLeft", 0), ("ArrowUp", 0), ("ArrowRight", 1), ("ArrowDown", 17), (" ", 25), (" ", 17),
             ("ArrowUp", 1), ("End", last), ("ArrowRight", last), ("ArrowDown", last), ("Escape", None),
             ("ArrowLeft", 0), ("Escape", None), (" ", 0)]  # fmt: skip
    for key, byte in steps:
        page.keyboard.press(key)
        assert page.evaluate(MARKED) == ([] if byte is None else [byte]), key
        said = "Point at a byte, or press Tab and the arrow keys." if byte is None else view.sentences[byte]
        assert page.locator(".sb-stores .say").text_content() == said
    place = page.evaluate(FIRST_PLACE, 40)
    page.mouse.move(*place)
    assert page.evaluate(MARKED) == [40]
    page.mouse.move(5, 5)
    assert page.evaluate(MARKED) == [0]
    page.evaluate("document.activeElement.blur()")
    page.mouse.click(*place)
    page.mouse.move(5, 5)
    assert page.evaluate(MARKED) == [40]
    page.keyboard.press("ArrowRight")  # a click gives the keyboard to the picture
    assert page.evaluate(MARKED) == [41]

"""Measures what a reader of a view cannot read, in Chromium, in the sizes and themes that readers have.

Clipped and overlapping words, contrast below 4.5 to 1, what scrolls sideways, a view that is taller than the room
JupyterLab leaves it, a sentence or a control below the first screen; controls that move while a slider does. What is
painted on a canvas holds no words that could be asked for; such places are looked at, see ``make gallery``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MEASURE = (Path(__file__).parent / "page_faults.js").read_text(encoding="utf-8")
_COMMENTS = _MEASURE[: _MEASURE.index("({")]
MEASURE = _MEASURE.removeprefix(_COMMENTS)
"""The function that is run in the page."""
PAGE_WIDTH = """([width]) => {
  if (window.jupyterapp) return;
  document.body.style.maxWidth = `${width}px`;
  document.body.style.marginTop = document.body.style.marginBottom = 0;
}"""


@dataclass(frozen=True)
class Screen:
    """A screen: its size in pixels of style sheets, how many of its own pixels make one of these, its theme.

    ``room`` is the width and height that JupyterLab leaves there for what a cell shows, with its side bar closed.
    """

    name: str
    width: int
    height: int
    room: tuple[int, int]
    scale: float = 1
    dark: bool = False


ROOM, SMALL_ROOM = (1112, 780), (856, 600)
SCREENS = (
    Screen("light", 1280, 900, ROOM),
    Screen("dark", 1280, 900, ROOM, dark=True),
    Screen("125%.light", 1024, 720, SMALL_ROOM, 1.25),
    Screen("125%.dark", 1024, 720, SMALL_ROOM, 1.25, dark=True),
)
"""A laptop's window, as it is and zoomed to 125 %."""


def show_on(page: Any, screen: Screen) -> None:
    """Give the page the size and the theme of a screen, and a plain page the width that JupyterLab has there."""
    page.emulate_media(color_scheme="dark" if screen.dark else "light")
    page.set_viewport_size({"width": screen.width, "height": screen.height})
    page.evaluate(PAGE_WIDTH, screen.room)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def page_faults(page: Any, selector: str, screen: Screen) -> list[str]:
    """What cannot be read in the view below ``selector`` on a screen, one line each; empty when all is well."""
    show_on(page, screen)
    found: list[str] = page.evaluate(MEASURE, {"selector": selector, "fold": screen.height, "room": screen.room[1]})
    return found


# Where each control and sentence stands, from the corner of the view; a slider's handle may move, its rail may not.
PLACES = """(selector) => {
  const root = document.querySelector(selector), from = root.getBoundingClientRect();
  const all = root.querySelectorAll("button, input, select, .noUi-base, .say");
  return [...all].filter((one) => one.checkVisibility()).map((one) => {
    const box = one.getBoundingClientRect();
    const name = one.ariaLabel ?? (one.textContent.trim().slice(0, 30) || one.className || one.tagName);
    return [name, Math.round(box.left - from.left), Math.round(box.top - from.top)];
  }).concat([["the end of the view", 0, Math.round(from.height)]]);
}"""
SLIDERS = ":is(input[type=range], .noUi-handle)"
KEYS = ("Home", "ArrowRight", "ArrowRight", "ArrowRight", "End", "ArrowLeft")


def jumps(page: Any, selector: str, after: float = 0, *, grows: bool = False) -> list[str]:
    """Which control moves while a slider of the view does, one line for each slider. ``after``: milliseconds in which
    a kernel answers; ``grows``: what a slider adds may make the view longer, below its controls."""
    found = []
    sliders = page.locator(f"{selector} {SLIDERS}")
    for number in range(sliders.count()):
        slider = sliders.nth(number)
        if not slider.is_visible():
            continue
        slider.focus()
        before = page.evaluate(PLACES, selector)
        for key in KEYS:
            slider.press(key)
            page.wait_for_timeout(after)
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            now = page.evaluate(PLACES, selector)
            now[-1] = before[-1] if grows else now[-1]
            if len(now) != len(before):
                found.append(f"jump: slider {number}, {key}: controls come and go")
                break
            moved = [(was, one) for was, one in zip(before, now, strict=True) if was[1:] != one[1:]]
            if moved:
                found.append(f"jump: slider {number}, {key}: {moved[0][0]} to {moved[0][1]}")
                break
    return found

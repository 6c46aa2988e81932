"""The views of the dual-side sparse unit on pages without a kernel: the browser shows what Python draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.browser.drawn import SENTENCE_IN_SIGHT, SHOWN, states, visible

from subbyte import sparse
from subbyte_widgets import BitmapStepper, LayerBars, SparseIm2col, SpeedSurface
from subbyte_widgets._revealed import Revealer, said
from subbyte_widgets.bitmap_stepper import picture as bitmap
from subbyte_widgets.bitmap_stepper.words import SENTENCES as BITMAP
from subbyte_widgets.sparse_im2col import picture as im2col
from subbyte_widgets.sparse_im2col.words import SENTENCES as IM2COL

STATES = (
    "(selector) => [...document.querySelectorAll(`${selector} [data-kind=states] rect`)].map((e) => e.classList[0])"
)
STEPS = [
    ("Home", 0, 0),
    ("ArrowRight", 1, 0),
    ("PageDown", 3, 0),
    ("ArrowDown", 3, 1),
    ("End", -1, 1),
    ("ArrowUp", -1, 0),
]
FEWER = [("Home", 0, 0), ("ArrowDown", 0, 1), ("End", -1, 1)]


@pytest.mark.parametrize(
    ("view", "selector", "module", "draw", "sentences"),
    [
        (BitmapStepper(), ".sb-bitmap", bitmap, bitmap.stepper_svg, BITMAP),
        (SparseIm2col(), ".sb-im2col", im2col, im2col.im2col_svg, IM2COL),
    ],
    ids=["bitmaps", "im2col"],
)
def test_step_by_step_in_both_pictures(
    view: Revealer, selector: str, module: Any, draw: Any, sentences: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(view, f"{selector} svg", width=1280, height=780)
    for name, record in view.records.items():  # type: ignore[attr-defined]
        page.locator(f"{selector} label", has_text=name).last.click()
        drawing = module.Drawing(record)
        found, start = module.places(drawing), view.data["sets"][name]["start"]
        page.locator(f"{selector} .stage").focus()
        page.keyboard.press("PageUp")
        for key, step, further in STEPS if name == view.variant else FEWER:
            page.keyboard.press(key)
            place, step = found[start + further], step if step >= 0 else len(sentences) - 1
            svg = draw(drawing, place, step)
            assert page.evaluate(SHOWN, selector) == visible(svg), (name, key)
            assert page.locator(f"{selector} .say").text_content() == said(sentences[step], place)
            assert page.evaluate(SENTENCE_IN_SIGHT, selector)
        assert page.evaluate(STATES, selector) == states(svg)


def test_a_click_on_a_ghost_tells_its_reason(open_page: Callable[..., Any]) -> None:
    page = open_page(BitmapStepper(step=5), ".sb-bitmap svg", width=1280, height=780)
    page.locator(".sb-bitmap .slot.t[data-go]").first.click()
    assert "level 1: the warp tile of A is empty" in page.locator(".sb-bitmap .say").text_content()


@pytest.mark.parametrize("selector", [".sb-surface", ".sb-bars"])
def test_pairs_and_layers_are_chosen(selector: str, open_page: Callable[..., Any]) -> None:
    axis = (0.1, 0.3, 0.6, 1.0)
    view: Any = LayerBars("alexnet@1")
    if selector == ".sb-surface":
        view = SpeedSurface(sparse.speed_map("gemm128", "alexnet@1", activations=axis, weights=axis))
    page = open_page(view, f"{selector} svg", width=1280, height=780)
    says, say, row = view.data["says"], page.locator(f"{selector} .say"), view.data["row"]
    assert say.text_content() == view.data["whole"]
    for name, svg in view.data["pictures"].items():
        page.locator(f"{selector} .sb-ways label").nth(list(view.data["pictures"]).index(name)).click()
        assert page.evaluate(SHOWN, selector) == visible(svg)
        page.locator(f"{selector} .panel").focus()
        for key, number in {
            "Home": 0,
            "ArrowDown": row,
            "ArrowRight": row + 1,
            "End": len(says) - 1,
            "Escape": -1,
        }.items():
            page.keyboard.press(key)
            assert say.text_content() == (says[number] if number >= 0 else view.data["whole"]), key
            assert page.locator(f"{selector} .stage [data-item].on").count() == (number >= 0)
            assert page.evaluate(SENTENCE_IN_SIGHT, selector)

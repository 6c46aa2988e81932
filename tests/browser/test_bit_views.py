"""The views of bit kernels on pages without a kernel: what the browser shows is what the pictures in Python show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.browser.drawn import SENTENCE_IN_SIGHT, SHOWN, visible

from subbyte_widgets import BitProduct, NetworkTimeline, PlaneComposition, ThresholdFolding, TileStrides
from subbyte_widgets._revealed import said
from subbyte_widgets._turned import Turner
from subbyte_widgets.bit_product.picture import Drawing, bits_svg, places
from subbyte_widgets.plane_composition import picture as planes

FOLDING = ThresholdFolding("n8h7w7c64k32r3s3p1:w1a2")


def test_bit_products_step_by_step(open_page: Callable[..., Any]) -> None:
    view = BitProduct("n8h7w7c72k32r3s3p1:w1a2", at=(0, 3))
    assert view.record is not None
    drawing = Drawing(view.record)
    found = places(drawing)
    page = open_page(view, ".sb-bits svg", width=1280, height=780)
    page.locator(".sb-bits .stage").focus()
    for key, step, place in [
        ("Home", 0, 12), ("ArrowRight", 1, 12), ("PageDown", 2, 12), ("ArrowDown", 2, 13), ("ArrowDown", 2, 14),
        ("Shift+ArrowUp", 2, 11), ("ArrowRight", 3, 11), ("PageDown", 4, 11), ("End", 6, 11), ("ArrowLeft", 5, 11),
    ]:  # fmt: skip
        page.keyboard.press(key)
        assert page.evaluate(SHOWN, ".sb-bits") == visible(bits_svg(drawing, found[place], step)), key
        assert page.locator(".sb-bits .say").text_content() == said(view.data["steps"][step], found[place])
        assert page.evaluate(SENTENCE_IN_SIGHT, ".sb-bits")
    page.locator(".sb-bits .tap").first.click()
    assert page.evaluate(SHOWN, ".sb-bits") == visible(bits_svg(drawing, found[0], 5))


def test_the_composition_of_planes_step_by_step(open_page: Callable[..., Any]) -> None:
    view = PlaneComposition("n8h8w8c64k64r3s3p1:w2a2", image=5, pixel=3)
    assert view.record is not None
    drawing = planes.Drawing(view.record)
    found = planes.places(drawing)
    page = open_page(view, ".sb-planes svg", width=1280, height=780)
    page.locator(".sb-planes .stage").focus()
    marked = "() => [...document.querySelectorAll('.sb-planes .lane')].findIndex((e) => e.matches('.on'))"
    for key, step, place in [
        ("Home", 0, 0), ("ArrowRight", 1, 0), ("PageDown", 3, 0), ("ArrowDown", 3, 1), ("Shift+ArrowDown", 3, 9),
        ("ArrowRight", 4, 9), ("ArrowRight", 5, 9), ("End", 6, 9), ("ArrowUp", 6, 8),
    ]:  # fmt: skip
        page.keyboard.press(key)
        assert page.evaluate(SHOWN, ".sb-planes") == visible(planes.composition_svg(drawing, found[place], step)), key
        assert page.locator(".sb-planes .say").text_content() == said(view.data["steps"][step], found[place])
        assert page.evaluate(marked) == view.record.outputs[place].lane
        assert page.evaluate(SENTENCE_IN_SIGHT, ".sb-planes")


@pytest.mark.parametrize(("view", "selector"), [(TileStrides(), ".sb-strides"), (FOLDING, ".sb-folding")])
def test_turning_to_other_pictures(view: Turner, selector: str, open_page: Callable[..., Any]) -> None:
    page = open_page(view, f"{selector} svg", width=1280, height=780)
    page.locator(f"{selector} .panel").focus()
    last = len(view.data) - 1
    keys = {"Home": 0, "ArrowLeft": 0, "ArrowRight": 1, "PageDown": 6, "End": last, "ArrowUp": last - 5}
    for key, number in keys.items():
        page.keyboard.press(key)
        assert page.evaluate(SHOWN, selector) == visible(view.data[number]["svg"]), key
        assert page.locator(f"{selector} .say").text_content() == view.data[number]["say"]
        assert page.locator(f"{selector} output").text_content() == view.data[number]["label"]
        assert page.evaluate(SENTENCE_IN_SIGHT, selector)
    page.locator(f"{selector} input").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(f"{selector} output").text_content() == view.data[last - 4]["label"]
    if selector == ".sb-strides":
        page.locator(".sb-strides .pick").nth(2).click()
        assert page.locator(".sb-strides output").text_content() == "384 bits"


def test_layers_of_a_network(open_page: Callable[..., Any]) -> None:
    view = NetworkTimeline()
    page = open_page(view, ".sb-timeline svg", width=1280, height=780)
    says, say = view.data["says"], page.locator(".sb-timeline .say")
    assert page.evaluate(SHOWN, ".sb-timeline") == visible(view.data["svg"])
    assert say.text_content() == view.data["whole"]
    page.locator(".sb-timeline .panel").focus()
    keys = {"ArrowDown": 0, "PageDown": 5, "ArrowUp": 4, "End": 18, "ArrowLeft": 17, "Escape": -1, "Home": 0}
    for key, number in keys.items():
        page.keyboard.press(key)
        assert say.text_content() == (says[number] if number >= 0 else view.data["whole"]), key
        assert page.locator(".sb-timeline .on").count() == (number >= 0)
        assert page.evaluate(SENTENCE_IN_SIGHT, ".sb-timeline")
    page.locator(".sb-timeline [data-layer='6'] .name").click()
    page.mouse.move(2, 2)
    assert say.text_content() == says[6]
    assert "96% of its bytes" in says[6]

"""The tiling view: clicks and keys move the markers to where the toolkit puts them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from subbyte.families.mma.config import MmaConfig
from subbyte.technique import Tiling, tiling
from subbyte_widgets import ConvolutionTiling
from subbyte_widgets.convolution_tiling.layout import geometry
from subbyte_widgets.convolution_tiling.picture import Selection, loupe_labels, loupe_marks, markers

LAYER, CONFIG = "n16h28w28c64k128r3s3p1", MmaConfig(2, 2, 8, 4)
CELL = f"""from subbyte_widgets import TilingExplorer
from subbyte import MmaConfig
explorer = TilingExplorer({LAYER!r}, {CONFIG!r}, tile=16, warp=1, multiply=5, step=4)
explorer"""
DRAWN = """() => {
  const svg = document.querySelector(".sb-tiling-svg");
  const at = (all) => [...svg.querySelectorAll(all)].map((e) => e.dataset.at).sort();
  const marks = [...svg.querySelectorAll("[data-mark]")].map((e) => [e.dataset.mark, e.getAttribute("d")]);
  return { marks: Object.fromEntries(marks),
    own: at(".rt.own"), now: at(".rt.now"),
    loupe: Object.fromEntries(["pad", "warp", "window", "now"].map((name) => [name, at(`.px.${name}`)])),
    labels: Object.fromEntries([...svg.querySelectorAll("[data-tick]")].map((e) => [e.dataset.tick, e.textContent])),
    step: [...svg.querySelectorAll(".st.now")].map((e) => Number(e.dataset.step)),
    say: document.querySelector(".sb-tiling .say").textContent };
}"""


def differences(drawn: dict[str, Any], record: Tiling, wanted: Selection) -> list[str]:
    """Everything in which a drawing differs from a record and a selection."""
    chosen = wanted.inside(record)
    found = []
    for name, path in markers(record, chosen, geometry(record)).items():
        numbers = [[float(n) for n in re.findall(r"-?[\d.]+", d)] for d in (drawn["marks"][name], path)]
        if len(numbers[0]) != len(numbers[1]) or any(abs(a - b) > 0.11 for a, b in zip(*numbers, strict=True)):
            found.append(f"marker {name}")
    warp, multiply = record.warps[chosen.warp], record.multiplies[chosen.multiply]
    if drawn["own"] != sorted(f"{p},{c}" for p in warp.pixels for c in warp.columns):
        found.append("squares of the warp")
    if drawn["now"] != sorted({f"{warp.pixels[p]},{warp.columns[multiply.column]}" for p in multiply.pixels}):
        found.append("squares of the instruction")
    marks = loupe_marks(record, chosen)
    for name, cells in drawn["loupe"].items():
        if cells != sorted(f"{i},{j}" for (i, j), classes in marks.items() if name in classes.split()):
            found.append(f"enlarged pixels: {name}")
    labels = loupe_labels(record, chosen)
    if any(labels[tick] != label for tick, label in drawn["labels"].items()):
        found.append("labels of the enlarged pixels")
    if drawn["step"] != [chosen.step]:
        found.append("step")
    return found


@pytest.fixture(scope="module")
def tab(open_view: Callable[..., Any], record: Tiling) -> Any:
    """A page with the view."""
    return open_view(ConvolutionTiling(record, tile=16, warp=1, multiply=5, step=4), ".sb-tiling-svg", width=1000)


@pytest.fixture(scope="module")
def record() -> Tiling:
    """What must be drawn."""
    return tiling(LAYER, CONFIG)


def check(tab: Any, record: Tiling, *chosen: int) -> None:
    found = differences(tab.page.evaluate(DRAWN), record, Selection(*chosen))
    assert not found, found


def test_keys_walk_every_panel(tab: Any, record: Tiling) -> None:
    check(tab, record, 16, 0, 1, 5, 4)
    tab.picture("tiling", ".sb-tiling")
    focus = lambda panel: tab.page.locator(f".sb-tiling-svg .panel.{panel}").focus()  # noqa: E731
    press = tab.page.keyboard.press
    focus("out")
    for key, tile in (("ArrowRight", 17), ("ArrowDown", 24), ("ArrowLeft", 23), ("Home", 21), ("ArrowUp", 14),
                      ("ArrowLeft", 14), ("End", 20)):  # fmt: skip
        press(key)
        check(tab, record, tile, 0, 1, 5, 4)
    focus("c")
    press("ArrowRight")
    check(tab, record, 20, 1, 1, 5, 4)
    for _ in range(30):
        press("ArrowDown")  # into the second group of images
    check(tab, record, 50, 1, 1, 5, 4)
    focus("block")
    press("ArrowRight")
    check(tab, record, 50, 1, 1, 6, 4)
    press("ArrowUp")
    check(tab, record, 50, 1, 1, 2, 4)
    press("ArrowUp")  # into the warp above: its last pixel is the partner of pixel 3
    check(tab, record, 50, 1, 0, 14, 4)
    press("ArrowUp")
    check(tab, record, 50, 1, 0, 10, 4)
    focus("steps")
    press("End")
    check(tab, record, 50, 1, 0, 10, 17)


def test_another_record_is_told_apart(tab: Any, record: Tiling) -> None:
    drawn = tab.page.evaluate(DRAWN)
    assert differences(drawn, record, Selection(51, 1, 0, 10, 17))
    assert differences(drawn, tiling(LAYER, MmaConfig(2, 2, 8, 4, reorder_inner=1)), Selection(50, 1, 0, 10, 17))


def test_pointing_shows_and_a_click_chooses(tab: Any, record: Tiling) -> None:
    tab.page.locator('.sb-tiling-svg .rt[data-at="3,6"]').hover()
    check(tab, record, 50, 1, 2, 14, 17)
    tab.page.locator('.sb-tiling-svg .st[data-step="2"]').hover()
    check(tab, record, 50, 1, 0, 10, 2)
    tab.page.mouse.move(3, 3)
    check(tab, record, 50, 1, 0, 10, 17)
    tab.page.locator('.sb-tiling-svg .rt[data-at="3,6"]').click()
    tab.page.locator('.sb-tiling-svg .st[data-step="2"]').click()
    tab.page.mouse.move(3, 3)
    check(tab, record, 50, 1, 2, 14, 2)
    map_ = tab.page.locator(".sb-tiling-svg .panel.out .ground")
    box = map_.bounding_box()
    map_.click(position={"x": box["width"] * 0.5, "y": box["height"] * 0.9})  # row 6, column 3 of the second group
    tab.page.mouse.move(3, 3)
    check(tab, record, 49 + 6 * 7 + 3, 1, 2, 14, 2)
    assert "images 8 to 15" in tab.page.evaluate(DRAWN)["say"]


@pytest.mark.deep
def test_a_knob_changes_the_tiling_and_a_refusal_is_said(open_tab: Callable[..., Any], lab: Any) -> None:
    tab = open_tab()
    tab.run_notebook(lab.write("tiling.ipynb", CELL))
    tab.page.wait_for_selector(".sb-tiling-svg")
    knob = lambda name: tab.page.locator(".widget-dropdown", has_text=name).locator("select")  # noqa: E731
    knob("warp_col_tiles").select_option("16")
    note = tab.page.locator(".note", has_text="Refused: ")
    note.wait_for(state="visible")
    assert "divisibility" in note.text_content() or "registers" in note.text_content()
    assert tab.page.locator(".sb-tiling-svg").is_visible(), "the picture stays"
    knob("warp_col_tiles").select_option("2")
    note.wait_for(state="hidden")
    tab.page.wait_for_function("document.querySelectorAll('.sb-tiling-svg .rt').length === 64")
    check(tab, tiling(LAYER, MmaConfig(2, 2, 8, 2)), 16, 0, 1, 5, 4)


@pytest.mark.deep  # the reader of kernels, the loads, the packing and the space are timed in every run
def test_a_key_press_is_painted_at_once(open_page: Callable[..., Any], paints_at_once: Callable[..., None]) -> None:
    """The largest sensible size: 512 x 512 pixels, 64 pixels and 8 warps a block; in a page without a kernel."""
    large = tiling("n16h512w512c128k128r3s3p1", MmaConfig(4, 2, 16, 2, chunk=2))
    page = open_page(ConvolutionTiling(large, tile=60), ".sb-tiling-svg", scale=1.25)
    for panel in ("out", "block"):
        page.locator(f".sb-tiling-svg .panel.{panel}").focus()
        paints_at_once(page, ("ArrowRight", "ArrowDown", "ArrowUp", "ArrowRight") * 5)
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
    assert not differences(page.evaluate(DRAWN), large, Selection(1, 0, 0, 1, 0))


ODD = [
    ("n9h9w7c64k32r3s3p1u2", MmaConfig(2, 1, 4, 4, reorder_inner=1), "sm_90a", Selection(3, 0, 1, 2, 11)),
    ("n8h12w12c64k64r3s3p2d2", MmaConfig(2, 1, 2, 4, chunk=2, split_channels=2), "sm_80", Selection(5, 1, 0, 1, 14)),
    ("n8h7w7c128k64r1s1p0", MmaConfig(1, 2, 1, 4), "sm_75", Selection(48, 0, 1, 3, 2)),
    ("n8h7w7c64k64r3s3p1", MmaConfig(1, 1, 8, 8, chunk=2), "sm_80", Selection(6, 0, 0, 31, 17)),
    ("n8h20w11c64k32r5s2p1", MmaConfig(4, 1, 4, 2, duplicate_aware="none"), "sm_80", Selection(4, 1, 3, 1, 9)),
]


@pytest.mark.parametrize(("layer", "config", "arch", "chosen"), ODD, ids=[layer for layer, *_ in ODD])
def test_odd_layers_are_marked_as_the_toolkit_marks_them(
    layer: str, config: MmaConfig, arch: str, chosen: Selection, open_page: Callable[..., Any]
) -> None:
    """Stride, dilation, edges, kernels that are not square, one pixel a warp, warps that share the channels."""
    from dataclasses import asdict

    odd = tiling(layer, config, arch=arch)
    page = open_page(ConvolutionTiling(odd, **asdict(chosen)), ".sb-tiling-svg")
    assert not differences(page.evaluate(DRAWN), odd, chosen)

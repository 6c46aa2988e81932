"""The space explorer: keys, clicks and the map lead to the configurations of the record."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import subbyte
from subbyte.analysis.landscape_view import landscape_map, landscape_points
from subbyte.families import space
from subbyte.records.landscape import Landscape, find_landscape
from subbyte.records.result import Measured
from subbyte_widgets import SpaceExplorer

NAME = "resnet50.stage2@8"
SAY = "() => document.querySelector('.sb-space .say').textContent"


@pytest.fixture(scope="module")
def landscape() -> Landscape:
    return subbyte.landscape(NAME)


@pytest.fixture(scope="module")
def tab(open_view: Callable[..., Any], landscape: Landscape) -> Any:
    """The view on a page without a kernel."""
    return open_view(SpaceExplorer(landscape), ".sb-space td", height=1100)


def said(tab: Any) -> str:
    tab.settle()
    return str(tab.page.evaluate(SAY))


def test_keys_go_by_speed_and_by_knob(tab: Any, landscape: Landscape) -> None:
    ranked = sorted(landscape.results, key=lambda index: landscape.results[index].microseconds)  # type: ignore[union-attr]
    tab.page.locator(".sb-space .lines").focus()
    press = tab.page.keyboard.press
    press("Home")
    assert said(tab).startswith(f"Configuration {ranked[0]}, ")
    press("ArrowUp")
    assert said(tab).startswith(f"Configuration {ranked[1]}, ")
    press("End")
    assert said(tab).startswith(f"Configuration {ranked[-1]}, ")
    press("ArrowDown")
    assert said(tab).startswith(f"Configuration {ranked[-2]}, ")
    press("Home")
    known = space(NAME, "sm_90a")
    digits = {name: values.index(getattr(known.config(ranked[0]), name)) for name, values in known.knobs.items()}
    for _ in range(3):  # to warp_col_tiles, then up to a value that is refused
        press("ArrowRight")
    for _ in range(4 - digits["warp_col_tiles"]):
        press("+")
    refused = known.index(known.config(ranked[0]).with_values({"warp_col_tiles": 16}))
    reason = known.check(refused)
    assert reason is not None
    assert said(tab).startswith(f"Configuration {refused}, refused: {reason}")
    tab.picture("space_refused", ".sb-space")


def test_the_map_selects(tab: Any, landscape: Landscape) -> None:
    tab.page.locator(".sb-space select.y").select_option("chunk")
    tab.page.locator(".sb-space select.x").select_option("blk_col_warps")
    found = landscape_map(landscape, "blk_col_warps", "chunk")
    said(tab)
    for i, j in ((0, 0), (1, 2)):
        tab.page.locator(f'.sb-space td[data-i="{i}"][data-j="{j}"]').click()
        cell = found.cells[i][j]
        assert said(tab).startswith(f"Configuration {cell.index}, {cell.best:.2f}")
    tab.page.locator(".sb-space .grid").focus()
    tab.page.keyboard.press("ArrowLeft")
    assert said(tab).startswith(f"Configuration {found.cells[1][1].index}, ")
    tab.page.locator(".sb-space canvas").click(position={"x": 300, "y": 200})
    assert said(tab).startswith("Configuration ")


def test_the_map_is_the_record_and_a_mutated_one_is_noticed(tab: Any, landscape: Landscape) -> None:
    tab.page.locator(".sb-space select.y").select_option("chunk")
    tab.page.locator(".sb-space select.x").select_option("warp_row_tiles")
    said(tab)
    drawn = tab.page.evaluate("""() => [...document.querySelectorAll(".sb-space tr")].slice(1).map((row) =>
      [...row.querySelectorAll("td")].map((cell) => cell.firstChild.textContent))""")

    def differences(known: Landscape) -> int:
        cells = landscape_map(known, "warp_row_tiles", "chunk").cells
        return sum(
            words != cell.reason.split(":")[0] if cell.best is None else abs(float(words) - cell.best) > 0.0051
            for one, row in zip(drawn, cells, strict=True)
            for words, cell in zip(one, row, strict=True)
        )

    assert differences(landscape) == 0
    results = {**landscape.results, landscape.best[0]: Measured(1000.0)}
    assert differences(Landscape.from_results(space(NAME, "sm_90a"), results, {"name": "none"})) == 1


def test_what_all_share_is_folded_away_and_a_drag_keeps_a_range(open_view: Callable[..., Any]) -> None:
    known = subbyte.landscape(find_landscape(subbyte.workload("resnet50.stage2@8"), "sm_90a", "wgmma"))
    tab = open_view(SpaceExplorer(known), ".sb-space td", height=1100)
    view, canvas = tab.page.locator(".sb-space"), tab.page.locator(".sb-space canvas")
    folded = view.locator(".folded")
    names = landscape_points(known).constant
    assert names
    assert [one.split()[0] for one in folded.locator("span").inner_text().partition(": ")[2].split(", ")] == list(names)
    before = canvas.bounding_box()
    axes = [name for name in landscape_points(known).knobs if name not in names]
    x = 34 + axes.index("segments") / len(axes) * (before["width"] - 100)
    tab.page.mouse.move(before["x"] + x, before["y"] + 20)
    tab.page.mouse.down()
    tab.page.mouse.move(before["x"] + x, before["y"] + 60)
    tab.page.mouse.up()
    tab.settle()
    fast = [one for i, one in known.results.items() if known.config(i).segments == 56 and isinstance(one, Measured)]
    kept = f"Kept by segments: {len(fast)}, the fastest {min(one.microseconds for one in fast):.2f}"
    assert view.locator(".kept span").inner_text().startswith(kept)
    assert canvas.bounding_box() == before, "nothing moves when a range is kept"
    folded.locator("button").click()
    tab.settle()
    tab.page.locator(".sb-space .lines").focus()
    for _ in range(2 + len(names)):
        tab.page.keyboard.press("ArrowRight")
    assert folded.locator("button").inner_text() == "Fold their axes away"
    tab.picture("space_unfolded", ".sb-space")


def test_ten_thousand_configurations_are_painted_at_once(
    open_page: Callable[..., Any], paints_at_once: Callable[..., None]
) -> None:
    known = space("n8h14w14c256k256r3s3p1", "sm_90a", kind="extended")
    draw = random.Random(0)
    results = {i: Measured(5 + 40 * draw.random() ** 2) for i in draw.sample(range(len(known)), 10_000)}
    view = SpaceExplorer(Landscape.from_results(known, results, {"name": "none"}))
    page = open_page(view, ".sb-space td", height=1000, scale=1.25)
    page.locator(".sb-space .lines").focus()
    page.keyboard.press("Home")
    paints_at_once(page, ("ArrowUp", "PageUp", "ArrowDown", "ArrowRight") * 10)
    page.locator(".sb-space select.statistic").select_option("median")
    page.locator(".sb-space td:not(.none)").first.click()
    page.wait_for_selector(".sb-space td.on")

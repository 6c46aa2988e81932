"""Pages without a kernel under the mouse: every picture of the tiling answers, a drag brushes, slots are linked.

For each view that marks what its record says: what is drawn equals the record, and a changed record is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import subbyte
from subbyte.analysis.landscape_view import landscape_points
from subbyte.analysis.monitoring import study_state
from subbyte.families.mma.config import MmaConfig
from subbyte.technique import access_map, accesses, duplicates, fragments
from subbyte.technique.kernel_reading import kernel_reading
from subbyte.technique.tiling import tiling

CONFIG = MmaConfig(2, 2, 8, 4, chunk=2)
LAYER = "n8h56w56c64k64r3s3p1"
SAY = "(name) => document.querySelector(name + ' .say').textContent"


def at(page: Any, selector: str, across: float, down: float) -> tuple[float, float]:
    """A point inside an element, as shares of its width and height."""
    box = page.locator(selector).first.bounding_box()
    return box["x"] + across * box["width"], box["y"] + down * box["height"]


def said(page: Any, view: str) -> str:
    """A view's sentence, after the next frame."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return str(page.evaluate(SAY, view))


def test_every_picture_of_the_tiling_answers_to_the_pointer(open_page: Callable[..., Any]) -> None:
    from subbyte_widgets import ConvolutionTiling

    record = tiling(LAYER, CONFIG)
    page = open_page(ConvolutionTiling(record, multiply=3), ".sb-tiling-svg", width=900, height=1000)
    first = said(page, ".sb-tiling")

    def pointed(selector: str, across: float, down: float) -> str:
        page.mouse.move(*at(page, selector, across, down))
        words = said(page, ".sb-tiling")
        page.mouse.move(3, 3)
        assert said(page, ".sb-tiling") == first
        return words

    # the input map: a block that reads the pixel in the middle
    words = pointed(".sb-tiling-svg .in .ground", 0.5, 0.5)
    block = int(words.split()[1].rstrip(","))
    _, i, j, _ = record.block(block).place
    middle = record.workload.h // 2
    assert any(middle in taps for taps in record.rows[i].reads)
    assert any(middle in taps for taps in record.columns[j].reads)
    # the lowered matrix: its row says block and pixel, its column the step
    for across, down in ((16 / 576, 0.501), (304 / 576, 0.25), (560 / 576, 0.99)):
        words = pointed(".sb-tiling-svg .a .ground", across, down)
        column = int(across * record.padded[2])
        named = re.findall(r"\((\d+), (\d+)\)", words.partition("output pixel")[2].partition(", kernel")[0])
        rows = [(int(p) * record.workload.q + int(q)) * 8 for p, q in named]
        row = min(rows, key=lambda one: abs(one - down * record.padded[0]))
        assert abs(row - down * record.padded[0]) < 1.5 / 200 * record.padded[0]  # pixels of the screen
        block = int(words.split()[1].rstrip(","))
        assert any(0 <= row - start < count for start, count in record.block(block).gemm_rows)
        step = next(s for s in record.steps if any(0 <= column - c < 32 for c in s.columns))
        assert f"kernel offset ({step.r}, {step.s}), input channels {32 * step.channel_blocks[0]} " in words
    # the weights: the column says the output channels, the row the step
    words = pointed(".sb-tiling-svg .b .ground", 20 / 64, 432 / 576)
    channel, depth = 16, 432
    step = next(s for s in record.steps if any(0 <= depth - c < 32 for c in s.columns))
    assert f"output channels {channel} to {channel + 7}." in words
    assert f"kernel offset ({step.r}, {step.s})" in words
    # the sums: both
    assert "output channels 56 to 63." in pointed(".sb-tiling-svg .c .ground", 60 / 64, 0.5)
    # a click keeps it; then the enlarged pixels: the kernel offset that meets them
    page.mouse.click(*at(page, ".sb-tiling-svg .b .ground", 20 / 64, 432 / 576))
    page.mouse.move(3, 3)
    assert said(page, ".sb-tiling") == words
    page.mouse.move(*at(page, ".sb-tiling-svg .px.window:not(.now)", 0.5, 0.5))
    other = said(page, ".sb-tiling")
    assert other != words
    assert other.split("Warp")[0] == words.split("Warp")[0]


def test_slots_follow_the_selection(open_page: Callable[..., Any]) -> None:
    from subbyte_widgets import DuplicateMap

    record = duplicates("n8h20w20c32k32r3s3p1u2", (2, 3))
    page = open_page(DuplicateMap(record, warps=2), ".sb-map-svg")
    drawn = "() => [...document.querySelectorAll('.sb-map-svg .slot.on')].map((e) => Number(e.dataset.slot))"
    for entry in (4, 20, 50):
        page.locator(f'.sb-map-svg .lowered [data-k="{entry}"]').click()
        assert page.evaluate(drawn) == [record.slot[entry]]
        assert f"slot {record.slot[entry]} of the block's" in said(page, ".sb-map")
    wrong = replace(record, slot=tuple(slot + 1 for slot in record.slot))
    assert page.evaluate(drawn) != [wrong.slot[50]]
    page.locator('.sb-map-svg .slot[data-slot="9"]').click()
    assert page.evaluate(drawn) == [9]
    genuine = next(group[0] for group in record.copies if record.slot[group[0]] == 9)
    assert said(page, ".sb-map").startswith(f"Entry {genuine}:")


def test_a_brush_keeps_what_it_covers(open_page: Callable[..., Any]) -> None:
    from subbyte_widgets import SpaceExplorer

    found = subbyte.landscape("resnet50.stage2@8")
    points = landscape_points(found)
    page = open_page(SpaceExplorer(found), ".sb-space td", width=800, height=1000)
    kept = "() => document.querySelector('.sb-space .kept').textContent"
    names = list(points.knobs)

    def expected(test: Callable[[Any, float], bool]) -> tuple[int, float]:
        rows = zip(points.digits, points.microseconds, strict=True)
        times = [
            time for digits, time in rows if time is not None and test(dict(zip(names, digits, strict=True)), time)
        ]
        return len(times), min(times)

    lines = page.locator(".sb-space .lines")
    lines.focus()
    page.keyboard.press("Home")
    best = dict(zip(names, points.digits[points.indices.index(found.best[0])], strict=True))
    page.keyboard.press("f")  # the first knob, at its value in the fastest configuration
    said(page, ".sb-space")
    count, least = expected(lambda digits, _time: digits[names[0]] == best[names[0]])
    assert page.evaluate(kept).startswith(f"Kept by {names[0]}: {count}, the fastest {least:.2f}")
    wrong, _ = expected(lambda digits, _time: digits[names[0]] != best[names[0]])
    assert f": {wrong}," not in page.evaluate(kept)
    page.keyboard.press("End")
    slowest = max(t for d, t in zip(points.digits, points.microseconds, strict=True)
                  if t is not None and d[0] == best[names[0]])  # fmt: skip
    assert f"{slowest:.2f} us" in said(page, ".sb-space")
    page.keyboard.press("f")
    said(page, ".sb-space")
    page.locator(".sb-space .kept button").wait_for(state="hidden")
    # drag along the third axis: its two greatest values
    canvas = page.locator(".sb-space canvas").bounding_box()
    x = canvas["x"] + 34 + 2 / len(names) * (canvas["width"] - 100)
    page.mouse.move(x, canvas["y"] + 20)
    page.mouse.down()
    page.mouse.move(x, canvas["y"] + 100, steps=6)
    page.mouse.up()
    said(page, ".sb-space")
    values = points.knobs[names[2]]
    low = int((254 - 100) / 240 * len(values))
    count, least = expected(lambda digits, _time: digits[names[2]] >= low)
    assert page.evaluate(kept).startswith(f"Kept by {names[2]}: {count}, the fastest {least:.2f}")
    page.get_by_role("button", name="Keep all").click()
    page.locator(".sb-space .kept button").wait_for(state="hidden")
    lines.focus()
    page.keyboard.press("Home")
    for _ in names:
        page.keyboard.press("ArrowRight")
    page.keyboard.press("PageUp")
    page.keyboard.press("f")  # the time axis: as fast as this one or faster
    said(page, ".sb-space")
    assert page.evaluate(kept).startswith("Kept by time: 21,")
    page.keyboard.press("Escape")
    said(page, ".sb-space")
    page.locator(".sb-space .kept button").wait_for(state="hidden")


def test_fragments_are_those_of_the_record(open_page: Callable[..., Any]) -> None:
    from subbyte_widgets import FragmentExplorer

    record = fragments("m16n8k32.s8")
    page = open_page(FragmentExplorer("m16n8k32.s8", operand="b", row=17, column=3), ".sb-frag-svg")

    def differs(one: Any) -> bool:
        lane, register, element = one.owner("b", 17, 3)
        return f"element {element} of register b{register} in lane {lane} " not in said(page, ".sb-frag")

    assert not differs(record)
    lanes = list(record.b)
    lanes[record.owner("b", 17, 3)[0]], lanes[0] = lanes[0], lanes[record.owner("b", 17, 3)[0]]
    assert differs(replace(record, b=tuple(lanes)))


def test_sectors_are_those_of_the_record(open_page: Callable[..., Any]) -> None:
    from subbyte_widgets import LayoutView

    view = LayoutView("resnet50.stage2@8", data_layout="nhwc", kind="activation load")
    page = open_page(view, ".sb-access-svg")
    access = view.access("activation load", "nhwc")

    def differences(record: Any) -> int:
        drawn = page.evaluate("""() => [...document.querySelectorAll(".sb-access-svg .piece")].map((e) =>
          e.dataset.lanes)""")
        wanted = [" ".join(map(str, piece.lanes)) for piece in access_map(record).pieces]
        return sum(one != other for one, other in zip(sorted(drawn), sorted(wanted), strict=False)) + abs(
            len(drawn) - len(wanted)
        )

    assert differences(access) == 0
    assert differences(replace(access, addresses=(None, *access.addresses[1:]))) > 0
    assert differences(accesses("resnet50.stage2@8", None, "nhwcnc").tile) > 0


def test_instructions_are_those_of_the_record(open_page: Callable[..., Any]) -> None:
    from subbyte_widgets import KernelReader

    record = kernel_reading(subbyte.build("n8h7w7c32k32r3s3p1"))
    view = KernelReader()
    view.show_record(record)
    page = open_page(view, ".sb-reader .row")

    def differences(one: Any) -> int:
        rows = page.evaluate("""() => [...document.querySelectorAll(".sb-reader .row")].map((e) =>
          [Number(e.dataset.i), e.querySelector("code").textContent, e.querySelector("i")?.className ?? ""])""")
        facts = page.locator(".sb-reader .facts > div").all_text_contents()
        wrong = sum(one.rows["sass"][i].text != text for i, text, _ in rows)
        return wrong + sum(f"{row[0]}{row[1]}" not in facts for row in one.table().rows)

    assert differences(record) == 0
    changed = [*record.rows["sass"]]
    drawn = int(page.locator(".sb-reader .row").nth(2).get_attribute("data-i") or 0)
    changed[drawn] = changed[drawn]._replace(text="NOP")
    assert differences(replace(record, rows={**record.rows, "sass": tuple(changed)})) == 1


@pytest.fixture(scope="module")
def study() -> Any:
    """A finished study."""
    found = subbyte.landscape("resnet50.stage2@8")
    return subbyte.tune("resnet50.stage2@8", runner="replay", landscape=found, trials=40, top_k=0).records[0]


@pytest.mark.parametrize("view", ["TuningMonitor", "LiveCurve"])
def test_trials_are_those_of_the_record(view: str, study: Any, open_page: Callable[..., Any]) -> None:
    import subbyte_widgets

    name = {"TuningMonitor": ".sb-monitor", "LiveCurve": ".sb-curve"}[view]
    page = open_page(getattr(subbyte_widgets, view)(study), f"{name}-svg")
    best = 'path[data-of="best0"]' if view == "TuningMonitor" else 'path.best[data-of="study"]'
    page.locator(f"{name} .stage").focus()

    def differences(times: list[float]) -> int:
        wrong = 0
        page.keyboard.press("Home")
        for number, time in enumerate(times):
            if number:
                page.keyboard.press("ArrowRight")
            wrong += not said(page, name).startswith(f"Trial {number}: {time:.2f} ")
        drops = sum(time < min(times[:number]) for number, time in enumerate(times) if number)
        return wrong + (page.locator(f"{name}-svg {best}").get_attribute("d").count("V") != drops)

    state = study_state(study)
    times = [time for time in state.microseconds if time is not None]
    assert differences(times) == 0
    assert differences([*times[:7], times[7] * 2, *times[8:]]) > 0

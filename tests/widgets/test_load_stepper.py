"""The load stepper without a browser: what goes to the page, the pictures, the refusals."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.technique.load_steps import LoadSteps, load_steps
from subbyte_widgets import LoadStepper
from subbyte_widgets._base import picture_in
from subbyte_widgets.load_stepper.picture import Layout, steps_svg
from subbyte_widgets.load_stepper.view import MOST_BYTES, SMALL, WAYS, telling_step
from subbyte_widgets.load_stepper.words import sentence

if not (shutil.which("g++") or shutil.which("clang++")):
    pytest.skip("the emulator needs g++ or clang++", allow_module_level=True)

LAYER = "n8h9w9c32k32r3s3p1"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def records() -> list[LoadSteps]:
    return [load_steps(LAYER, replace(SMALL, duplicate_aware=way)) for way in WAYS]


def contents(record: LoadSteps, done: int) -> dict[str, str]:
    """What must stand in slots, fragments and sums after ``done`` steps, from the record alone."""
    held = {f"a{p}.{c}": 0 for p in range(len(record.pixels)) for c in range(record.columns)}
    found: dict[str, str] = {f"s{i}": "" for i in range(len(record.slots))}
    found |= {f"f{i}": "" for i in range(record.fragments)}
    for step in record.steps[:done]:
        if step.kind == "copy":
            found |= {f"s{slot}": str(datum) for slot, datum in zip(step.slots, step.data, strict=True)}
        elif step.kind == "load":
            found[f"f{step.registers[0]}"] = str(step.data[0])
        else:
            for pixel in set(step.pixels):
                held[f"a{pixel}.{step.column}"] += 1
    return found | {name: f"{count}/{len(record.taps)}" for name, count in held.items()}


def drawn(svg: str) -> dict[str, str]:
    """Words in the cells of slots, fragments and sums."""
    cells = ElementTree.fromstring(svg).iter(f"{SVG}g")
    named = {cell.get("data-id", ""): cell.findtext(f"{SVG}text", "") for cell in cells}
    return {name: words for name, words in named.items() if re.fullmatch(r"[sf]\d+|a\d+\.\d+", name)}


@pytest.mark.parametrize("way", range(3))
def test_every_step_shows_what_the_record_says(records: list[LoadSteps], way: int) -> None:
    record = records[way]
    layout = Layout.of(record)
    for done in (0, 1, 7, 20, 33, len(record.steps)):
        assert drawn(steps_svg(layout, done)) == contents(record, done)


def test_another_record_is_told_apart(records: list[LoadSteps]) -> None:
    record = records[2]
    steps = list(record.steps)
    load = next(i for i, step in enumerate(steps) if step.kind == "load")
    steps[load] = replace(steps[load], registers=(5,))
    changed = replace(record, steps=tuple(steps))
    assert drawn(steps_svg(Layout.of(changed), load + 1)) != contents(record, load + 1)


def test_counters_and_marks_of_a_step(records: list[LoadSteps]) -> None:
    record = records[2]
    done = telling_step(record)
    step = record.steps[done - 1]
    assert (step.kind, step.repeats > 0) == ("mma", True)
    root = ElementTree.fromstring(steps_svg(Layout.of(record), done))
    counted = [int(label.text or -1) for label in root.iter(f"{SVG}tspan") if label.get("data-count")]
    assert tuple(counted) == step.done
    on = {cell.get("data-id") for cell in root.iter(f"{SVG}g") if cell.get("class") == "cell on"}
    assert {f"f{i}" for i in step.registers} <= on
    assert {f"a{pixel}.{step.column}" for pixel in step.pixels} <= on
    assert "48 of 72 saved" in steps_svg(Layout.of(record), done)


def test_sentences_name_what_moves(records: list[LoadSteps]) -> None:
    none, _, full = records
    assert sentence(full, full.steps[0]).startswith(
        "Copy: one instruction of a warp brings input pixels 0 to 3 into slots"
    )
    assert "outside the image" in sentence(full, full.steps[0])
    assert "already in shared memory" in " ".join(sentence(none, step) for step in none.steps)
    assert "still in registers" in " ".join(sentence(full, step) for step in full.steps)
    assert "still in registers" not in " ".join(sentence(none, step) for step in none.steps)


def test_all_goes_to_the_page_once_and_is_small(records: list[LoadSteps]) -> None:
    view = LoadStepper(records)
    assert len(json.dumps(view.data)) < MOST_BYTES
    before = view.data
    view.set_state({"step": 12})
    view.set_state({"way": "none", "step": 80})
    assert (view.way, view.step, view.data) == ("none", 80, before)
    view.set_state({"way": "full", "step": 80})
    assert view.step == 60
    view.step = -3
    assert view.step == 0
    assert LoadStepper(records, step=9).step == 9


def test_unknown_ways_and_options_are_refused(records: list[LoadSteps]) -> None:
    with pytest.raises(InvalidInput, match="full"):
        LoadStepper(records, way="ful")
    with pytest.raises(InvalidInput, match="no option"):
        LoadStepper(records, stepp=3)


def test_what_cannot_be_stepped_through_is_said() -> None:
    refused = LoadStepper(LAYER, replace(SMALL, chunk=8))
    assert "cannot be built" in refused.error
    assert refused.steps == 0
    assert refused.error[:30] in refused.to_svg()
    large = LoadStepper("n8h28w28c32k32r3s3p1", MmaConfig(2, 1, 16, 4), ways=("none", "shared"))
    assert "choose" in large.error


def test_the_bundle_and_the_page_stand_alone(records: list[LoadSteps], tmp_path: Path) -> None:
    view = LoadStepper(records, step=30)
    data, _ = view._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert ElementTree.fromstring(picture_in(data)).get("width") == "760"
    assert "var(" not in picture_in(data)
    assert "18 instead of 36 loads" in data["text/html"]
    assert len(repr(view)) < 400
    page = view.to_html(tmp_path / "load.html")
    assert not re.findall(r'(?:src|href|from)\s*=?\s*"?https?:', page)
    assert len(picture_in(data)) < 60_000

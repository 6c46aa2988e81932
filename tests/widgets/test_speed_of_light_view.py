"""The speed-of-light view without a browser: what is drawn against the records, choices, refusals, size."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

import subbyte
from subbyte.analysis.speed import Roofline, SpeedLimits, roofline, speed_of_light, studied_workloads
from subbyte.errors import InvalidInput
from subbyte_widgets import SpeedOfLight
from subbyte_widgets._base import picture_in
from subbyte_widgets.speed_of_light.picture import BAR_END, BAR_X

SVG = "{http://www.w3.org/2000/svg}"
LAYER = "resnet50.stage3@8"


@pytest.fixture(scope="module")
def record() -> SpeedLimits:
    return speed_of_light(LAYER)


@pytest.fixture(scope="module")
def roofs() -> Roofline:
    return roofline().of_workloads({w.spec for w in studied_workloads()})


def differences(svg: str, record: SpeedLimits, roofs: Roofline) -> list[str]:
    """What the picture says otherwise than the records: numbers, lengths of bars, places of points."""
    root = ElementTree.fromstring(svg)
    rows = [row for row in root.iter(f"{SVG}g") if "data-item" in row.attrib]
    sides = [side for side in (record.measured, *record.others) if side]
    factors = [*record.ablation.accumulated.values(), *record.ablation.marginal.values()] if record.ablation else []
    right = [*(floor.microseconds for floor in record.floors), record.floor, *(side.microseconds for side in sides)]
    right += [factor.speed_up for factor in factors]
    found = []
    for number, (row, value) in enumerate(zip(rows, right, strict=True)):
        words = row.find(f"{SVG}text[last()]")
        assert words is not None
        if row.get("data-value") != f"{value:.6g}" or not (words.text or "").startswith(f"{value:.2f}"):
            found.append(f"bar {number}: {row.get('data-value')}, {words.text!r} instead of {value}")
        bars = [bar for bar in row.iter(f"{SVG}rect") if "bar" in (bar.get("class") or "")]
        if "factor" not in (row.get("class") or ""):
            length = sum(float(bar.get("width", 0)) for bar in bars)
            wanted = min(value / float(row.get("data-end", 1)), 1) * (BAR_END - BAR_X)
            if abs(length - wanted) > 1.0:
                found.append(f"bar {number}: {length} long instead of {wanted}")
    points = {(p.get("data-spec"), p.get("data-side")): p for p in root.iter(f"{SVG}g") if "data-spec" in p.attrib}
    for point in roofs.points:
        drawn = points.pop((point.spec, point.side))
        if (drawn.get("data-value"), drawn.get("data-intensity")) != (f"{point.tops:.6g}", f"{point.intensity:.6g}"):
            found.append(f"point of {point.workload}, {point.side}")
    roof = {line.get("data-atom"): line.get("data-value") for line in root.iter(f"{SVG}path") if line.get("data-atom")}
    if points or roof != {atom: f"{tops:g}" for atom, tops in roofs.roofs.items()}:
        found.append("roofs, or points of nothing")
    return found


def test_the_picture_says_what_the_records_say(record: SpeedLimits, roofs: Roofline) -> None:
    view = SpeedOfLight(LAYER)
    assert view.layer == LAYER
    assert view.alternative == record.finding
    assert differences(view.to_svg(), record, roofs) == []


def test_a_mutated_record_is_noticed(record: SpeedLimits, roofs: Roofline) -> None:
    assert record.measured is not None
    assert record.ablation is not None
    slow = replace(record, measured=replace(record.measured, microseconds=record.measured.microseconds * 1.1))
    low = replace(record, floors=(replace(record.floors[0], microseconds=0.2), *record.floors[1:]))
    brought = {**record.ablation.marginal, "layout": replace(record.ablation.marginal["layout"], speed_up=1.5)}
    more = replace(record, ablation=replace(record.ablation, marginal=brought))
    moved = replace(roofs, points=(replace(roofs.points[0], tops=roofs.points[0].tops * 1.01), *roofs.points[1:]))
    for wrong, under in ((slow, roofs), (low, roofs), (more, roofs), (record, moved)):
        view = SpeedOfLight()
        view.show([wrong], under)
        assert differences(view.to_svg(), wrong, under) == []
        assert differences(view.to_svg(), record, roofs)


def test_the_layer_can_be_chosen_from_both_sides(record: SpeedLimits) -> None:
    view = SpeedOfLight()
    view.set_state({"layer": LAYER})
    assert view.alternative == record.finding
    view.set_state({"item": 4})
    assert 'class="on row"' in view.to_svg()
    own = subbyte.workload("n16h10w10c32k32r3s3p1")
    view.choose(own)
    assert view.layer == own.label
    assert "nothing is recorded" in view.alternative
    assert "No ablation" in view.to_svg()
    view.choose(subbyte.workload(record.spec))  # the same sizes under another name
    assert view.layer == LAYER
    with pytest.raises(InvalidInput, match="did you mean resnet50"):
        view.layer = "resnet50.stage3"


def test_what_cannot_be_shown_is_one_sentence() -> None:
    view = SpeedOfLight("resnet50.stage9@8")
    assert "stage9" in view.error
    assert "stage9" in view.to_svg()
    assert "no peaks of" in SpeedOfLight(device="T4").error
    with pytest.raises(InvalidInput, match="did you mean layer"):
        SpeedOfLight(layr="x")


def test_it_is_small_and_alive_without_a_kernel(tmp_path: Path) -> None:
    view = SpeedOfLight()
    assert len(json.dumps(view.get_state(), default=str)) < 400_000
    assert picture_in(view._repr_mimebundle_()[0])
    page = view.to_html(tmp_path / "speed.html")
    assert "sb-speed" in page
    assert len(page) < 400_000

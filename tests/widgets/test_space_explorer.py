"""The space explorer without a browser: what is sent against the records, selection, links, refusals, size."""

from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import traitlets

import subbyte
from subbyte.analysis.landscape_view import knob_effects, landscape_map, landscape_points
from subbyte.errors import InvalidInput
from subbyte.families import space
from subbyte.records.landscape import Landscape
from subbyte.records.result import Measured
from subbyte_widgets import SpaceExplorer
from subbyte_widgets._base import picture_in, unpacked

NAME = "resnet50.stage2@8"


@pytest.fixture(scope="module")
def landscape() -> Landscape:
    return subbyte.landscape(NAME)


@pytest.fixture(scope="module")
def many() -> Landscape:
    known = space("n8h14w14c256k256r3s3p1", "sm_90a", kind="extended")
    draw = random.Random(0)
    chosen = sorted(draw.sample(range(len(known)), 10_000))
    return Landscape.from_results(known, {i: Measured(5 + 40 * draw.random() ** 2) for i in chosen}, {"name": "none"})


def test_the_page_gets_every_configuration(landscape: Landscape) -> None:
    view = SpaceExplorer(landscape)
    columns = view.points
    assert columns["index"] == list(range(1800))
    for place, index in enumerate(columns["index"]):
        values = {
            k: v[int(d, 16)] for (k, v), d in zip(columns["knobs"].items(), columns["digits"][place], strict=True)
        }
        config = landscape.config(index).to_dict()
        assert values == {knob: config[knob] for knob in values}
        result = landscape.results.get(index)
        reason = columns["reasons"][columns["reason"][place]]
        if isinstance(result, Measured):
            assert columns["time"][place] == pytest.approx(result.microseconds, rel=1e-4)
            assert reason == ""
        else:
            assert columns["time"][place] is None
            assert reason == space(NAME, "sm_90a").check(index)
    for key, cells in view.maps.items():
        x, y = key.split("|")
        record = [cell for row in landscape_map(landscape, x, y).cells for cell in row]
        assert cells["index"] == [cell.index for cell in record]
        assert cells["best"] == [cell.best and pytest.approx(cell.best, rel=1e-3) for cell in record]


def test_axes_of_one_value_are_folded_away(landscape: Landscape) -> None:
    points = landscape_points(landscape)
    assert points.constant == ()
    best = {index: landscape.results[index] for index in landscape.results if landscape.config(index).chunk == 2}
    fewer = Landscape.from_results(space(NAME, "sm_90a"), best, {"name": "none"})
    assert landscape_points(fewer).constant == ("chunk",)
    view = SpaceExplorer(fewer)
    assert view.points["constant"] == ["chunk"]
    drawn = re.search(r'<path d="M([^M"]*)[^"]*" class="line l', view.to_svg())
    assert drawn is not None
    assert drawn[1].count("L") == len(points.knobs) - 1


def test_ten_thousand_points_stay_small(many: Landscape, tmp_path: Path) -> None:
    view = SpaceExplorer(many)
    assert len(view.points["index"]) == 10_000
    assert len(json.dumps(view.get_state(), default=str)) + len(view.static()["text/html"]) < 400_000
    assert len(view.to_html(tmp_path / "space.html")) < 500_000


def test_columns_travel_as_text_and_come_back(landscape: Landscape) -> None:
    view = SpaceExplorer(landscape)
    sent, columns = unpacked(view.get_state("points")["points"]), view.points
    sums, total = [], 0
    for step in map(int, sent["index"].split()):
        total += step
        sums.append(total)
    assert sums == columns["index"]
    assert [None if time == "-" else float(time) for time in sent["time"].split()] == columns["time"]
    assert [int(reason) for reason in sent["reason"].split()] == columns["reason"]
    assert sent["digits"] == "".join(columns["digits"])
    assert len(sent["digits"]) == len(columns["knobs"]) * len(columns["index"])


def test_other_views_follow_the_selection(landscape: Landscape) -> None:
    first, second = SpaceExplorer(landscape), SpaceExplorer(landscape)
    assert first.selected == landscape.best[0]
    assert first.config == landscape.config(landscape.best[0])
    seen = []
    first.observe(lambda change: seen.append(change.new), "config")
    link = traitlets.link((first, "selected"), (second, "selected"))
    first.set_state({"selected": 7})
    assert second.config == first.config == landscape.config(7) == seen[-1]
    second.selected = 8
    assert first.config == landscape.config(8)
    link.unlink()
    first.selected = 10**6
    assert first.selected == -1
    assert first.config is None


def test_the_picture_holds_lines_map_and_effects(landscape: Landscape) -> None:
    view = SpaceExplorer(landscape, x="chunk", y="warp_row_tiles", statistic="median")
    root = ElementTree.fromstring(view.to_svg())
    name = "{http://www.w3.org/2000/svg}"
    drawn = sum(path.get("d", "").count("M") for path in root.iter(f"{name}path") if "line l" in path.get("class", ""))
    assert 400 < drawn <= 500  # lines that coincide are drawn once
    cells = [element for element in root.iter(f"{name}rect") if "cell" in element.get("class", "")]
    assert len(cells) == 20
    words = [element.text for element in root.iter(f"{name}text")]
    record = view.map
    assert all(f"{c.median:.2f}" in words for row in record.cells for c in row if c.median is not None)
    for effect in knob_effects(landscape):
        assert f"{effect.share:.0%}" in words
        assert effect.title() in view.alternative
    assert picture_in(view._repr_mimebundle_()[0])
    assert len(re.findall("divisibility", view.to_svg())) > 2


def test_wrong_names_are_refused_with_the_closest(landscape: Landscape) -> None:
    view = SpaceExplorer(landscape)
    with pytest.raises(InvalidInput, match="did you mean chunk"):
        view.x = "chnk"
    with pytest.raises(InvalidInput, match="did you mean statistic"):
        SpaceExplorer(landscape, statistics="best")
    with pytest.raises(traitlets.TraitError):
        view.statistic = "mean"


def test_what_cannot_be_shown_is_one_sentence(landscape: Landscape) -> None:
    view = SpaceExplorer("resnet50.stage9@8")
    assert "no landscape" in view.error
    assert "no landscape" in view.to_svg()
    view.show(landscape)
    assert view.error == ""
    empty = Landscape.from_results(space("n8h7w7c32k32r3s3p1", "sm_90a"), {}, {"name": "x"})
    assert "no configuration was measured" in SpaceExplorer(empty).error
    assert "no landscape yet" in SpaceExplorer().to_svg()


def test_what_the_fastest_share_is_counted_from_the_record() -> None:
    from subbyte.analysis.landscape_view import shared_by_fastest
    from subbyte.records.landscape import landscape

    found = landscape("resnet50.stage5@8")
    frame = landscape_points(found).to_frame().dropna(subset="microseconds").sort_values("microseconds")
    fast = frame.head(round(0.05 * len(frame)))
    said = shared_by_fastest(found)
    assert f"({len(fast)})" in said
    for knob in landscape_points(found).knobs:
        share = fast[knob].value_counts(normalize=True).max()
        assert (f"{knob} " in said) == (share >= 0.8 and frame[knob].nunique() > 1), knob
    assert SpaceExplorer(found).fastest == said

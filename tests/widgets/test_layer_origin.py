"""A layer's origin without a browser: what is drawn is the record, a search tells of itself and is remembered."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

import subbyte
from subbyte.analysis.origin import Origin, Source
from subbyte.errors import InvalidInput, MissingDependency
from subbyte.measure.fake import FakeRunner
from subbyte.records.store import Store
from subbyte_widgets import LayerOrigin, LayerTuner, Selection
from subbyte_widgets._base import picture_in
from subbyte_widgets.layer_origin.picture import END, LEFT, origin_svg
from subbyte_widgets.layer_origin.words import Row, Search, rows

SVG = "{http://www.w3.org/2000/svg}"
LAYER = "n8h14w20c48k40r3s3p1"
MADE = Origin(
    "mine", LAYER, "sm_90a", "a reason",
    (Source("own", "mma", "brw2", 4.0, 3.9, 4.4, "NVIDIA H200"),
     Source("predicted", "wgmma", "wgs-tw3", 5.0, 3.5, 6.5, "NVIDIA H200", 11)),
    "2026-11-26 12:00", 16, 1.0, "NVIDIA H200", ("an old one, of another GPU",),
)  # fmt: skip


def differences(svg: str, found: list[Row]) -> list[str]:
    """What the picture says otherwise than the rows: times, lengths of bars, ranges, which is taken."""
    drawn = [node for node in ElementTree.fromstring(svg).iter(f"{SVG}g") if "data-item" in node.attrib]
    longest = max(one.high or one.microseconds or 0 for one in found)
    wrong = []
    for row, one in zip(drawn, found, strict=True):
        bar = next((node for node in row.iter(f"{SVG}rect") if "bar" in (node.get("class") or "")), None)
        said = " ".join(node.text or "" for node in row.iter(f"{SVG}text"))
        if one.microseconds is None:
            if bar is not None or one.nothing not in said:
                wrong.append(f"{one.kind}: a bar, or no reason why there is none")
        elif bar is None or abs(float(bar.get("width")) - one.microseconds / longest * (END - LEFT)) > 0.1:
            wrong.append(f"{one.kind}: no bar of {one.microseconds}")
        elif f"{one.microseconds:.2f}" not in said or one.device not in said:
            wrong.append(f"{one.kind}: says {said}")
        if (one.low is not None) != (f"({one.low or 0:.2f} to {one.high or 0:.2f})" in said):
            wrong.append(f"{one.kind}: another range")
        if one.taken != ("taken" in (row.get("class") or "")):
            wrong.append(f"{one.kind}: taken or not")
    return wrong


@pytest.mark.parametrize("search", [None, Search(3.8, "NVIDIA H200", 9, True), Search(None, "x", 1, False)])
def test_the_picture_is_the_record(search):
    found = rows(MADE, search)
    assert [one.kind for one in found] == ["floor", "own", "shipped", "predicted", *(["search"] if search else [])]
    svg = origin_svg(MADE, found)
    assert differences(svg, found) == []
    for change in ({"microseconds": 4.2}, {"low": 3.0}, {"taken": False}, {"device": "NVIDIA A100"}):
        other = [*found[:1], replace(found[1], **change), *found[2:]]
        assert differences(svg, other), change


def test_every_row_is_told_of():
    view = LayerOrigin(MADE, chosen=1)
    floor, own, shipped, predicted = view.data["says"]
    assert "explains 25% of the recorded time" in floor
    assert "16 results. compile takes it" in own
    assert own in view.alternative
    assert "none of this layer" in shipped
    assert "11 layers that the model was not trained on" in predicted
    assert "compile takes another one first" in predicted
    view.draw(Search(3.6, "NVIDIA H200", 9, True))
    assert "0.90 times the recorded time" in view.data["says"][4]
    view.chosen = -1
    assert "Not taken: an old one" in view.alternative
    assert picture_in(view.static()).count("data-") == 0
    other = LayerOrigin("no such layer")
    assert "unknown workload" in other.error
    assert "give a layer" in LayerOrigin(7).error


def test_it_follows_a_selection():
    selection = Selection(LAYER, arch="sm_80")
    view = LayerOrigin(selection=selection)
    view.catch_up()
    assert (view.record.spec, view.record.arch) == (LAYER, "sm_80")


class Gpu(FakeRunner):
    """Made-up times that say they are a GPU's."""

    def __init__(self, delay=0.0):
        super().__init__(failures={"wrong": 0.2}, delay=delay)
        self.device = {"runner": "cuda", "name": "GPU A", "arch": "sm_90a"}

    def run(self, workload, configs):
        results = super().run(workload, configs)
        return [replace(one, device=self.device, **({"verified": True} if one.ok else {})) for one in results]


def test_a_search_is_remembered_and_shown_as_own(tmp_path):
    tuner = LayerTuner(LAYER, trials=6, runner=Gpu(), kind="paper", store=tmp_path / "own.sqlite", gpu="GPU A")
    before = tuner.view.record
    assert before.source == "predicted"
    tuner.start()
    record = tuner.wait()
    assert len(record.trials) == 6
    (row,) = Store(tmp_path / "own.sqlite").rows()
    own = tuner.view.record
    assert (own.source, own.taken.config, own.taken.microseconds) == (
        "own", row.record.config, row.record.microseconds,
    )  # fmt: skip
    assert own.of("predicted") == before.taken
    assert "Remembered" in tuner.status.value
    assert tuner.view.search == Search(record.best_microseconds, "GPU A", 6, True)
    assert not tuner.button.disabled
    assert tuner.curve.curve == record.curve.to_dict()
    assert tuner.static()["text/html"].count("<img") == 2
    assert subbyte.origin(LAYER, store=tmp_path / "own.sqlite", gpu="GPU A").source == "own"


def test_stop_reaches_the_search(tmp_path):
    tuner = LayerTuner(LAYER, trials=300, runner=Gpu(0.01), kind="paper", store="off")
    tuner.start()
    tuner.start()  # one at a time: the second press does nothing
    with pytest.raises(InvalidInput, match="the search goes on"):
        tuner.wait(0.05)
    tuner.curve.set_state({"stop_requested": True})
    assert len(tuner.wait().trials) < 300
    tuner.close()


def test_without_a_gpu_recorded_times_are_searched_and_nothing_is_remembered(tmp_path):
    tuner = LayerTuner("resnet50.stage5@8", trials=8, store=tmp_path / "own.sqlite")
    tuner.start()
    tuner.wait()
    assert "nothing was measured, nothing is stored" in tuner.status.value
    assert "search, not measured" in tuner.to_svg()
    assert tuner.view.record.source == "shipped"
    assert Store(tmp_path / "own.sqlite").rows() == []


def test_what_is_missing_is_one_sentence():
    tuner = LayerTuner(LAYER, store="off")
    with pytest.raises(InvalidInput, match="press Start"):
        tuner.wait()
    tuner.start()
    with pytest.raises(MissingDependency, match="nothing can measure"):
        tuner.wait()
    tuner._search[1].join()
    assert tuner.status.value.startswith("No search: nothing can measure n8h14w20c48k40r3s3p1")
    assert tuner.children == (tuner.view, tuner._row)
    assert not tuner.button.disabled


def test_a_gpu_of_another_architecture_is_not_searched_on(monkeypatch):
    monkeypatch.setattr("subbyte_widgets.layer_origin.tuner.has_gpu", lambda: True)
    tuner = LayerTuner(LAYER, store="off")
    tuner.start()
    assert "no GPU of this machine is sm_90a" in tuner.status.value
    assert not tuner.running

"""A network as a whole: allocation of trials, warm starts, one budget, resuming, re-measurement, the page."""

from __future__ import annotations

import json
import math
import re

import pytest

import subbyte.families as space_module
from subbyte.errors import InvalidInput, MissingDependency, Unsupported
from subbyte.measure.fake import FakeRunner
from subbyte.records.result import Failed, Measured
from subbyte.tune import Landscape, NetworkReport, Study, network_layers, read_log, start_tuning, tune, tune_network
from subbyte.tune.allocation import LayerState, expected_gain, next_layer, portion_of
from subbyte.tune.network import is_network
from subbyte.tune.remeasurement import remeasure
from subbyte.workload import ConvWorkload

PAIRS = [
    (ConvWorkload(8, 14, 14, 64, 64, 3, 3, 1, name="big"), 4),
    (ConvWorkload(8, 7, 7, 64, 64, 3, 3, 1, name="small"), 1),
    (ConvWorkload(8, 14, 14, 64, 64, 1, 1, name="pointwise"), 2),
]


@pytest.fixture(autouse=True)
def toy_spaces(make_space, monkeypatch, tmp_path):
    """Toy spaces, no GPU, no shipped landscape."""

    def space(workload, arch="sm_90a", kind="paper", layout="nhwcnc"):
        if workload.c == 3:
            raise Unsupported(f"{workload.spec}: too few channels")
        return make_space(workload, layout)

    (tmp_path / "landscapes").mkdir()
    monkeypatch.setattr(space_module, "space", space, raising=False)
    monkeypatch.setattr("subbyte.tune.sources.has_gpu", lambda: False)
    monkeypatch.setattr("subbyte.records.landscape_file.SHIPPED", tmp_path / "landscapes")


def outcome(report):
    return [[(t.number, t.index, t.ask, t.result.ok and t.microseconds) for t in r.trials] for r in report.records]


# ---- the rule --------------------------------------------------------------------------------------------------------


def test_every_layer_is_looked_at_first_the_costly_ones_before_the_cheap():
    layers = [LayerState(1, 100), LayerState(5, 100), LayerState(1, 1000)]
    seen = []
    while any(not layer.trials for layer in layers):
        place, gain = next_layer(layers, 4)
        assert gain is None
        seen.append(place)
        layers[place] = LayerState(layers[place].count, layers[place].operations, (5.0,) * 4)
    assert seen == [2, 1, 0]


def test_trials_go_where_they_pay():
    settled = LayerState(1, 1000, (10.0,) * 64)
    improving = LayerState(1, 1000, (20.0,) * 60 + (12.0, 11.0, 10.5, 10.0))
    often = LayerState(9, 1000, (10.0,) * 64)
    slow = LayerState(1, 1000, (100.0,) * 64)
    assert next_layer([settled, improving], 4)[0] == 1
    assert next_layer([settled, often], 4)[0] == 1
    assert next_layer([settled, slow], 4)[0] == 1
    gains = [expected_gain(layer, [settled, improving], 4) for layer in (settled, improving)]
    assert gains[0] == pytest.approx(0.1 * 10 / 64)  # nothing gained, already as fast as the best: the steady share
    assert gains[1] == pytest.approx(0.2 * 10 / 4 + 0.1 * 10 / 64)


def test_a_layer_without_success_goes_first_then_last():
    young, old = LayerState(1, 1000, (None,) * 4), LayerState(1, 1000, (None,) * 12)
    fine = LayerState(1, 1000, (10.0,) * 4)
    assert expected_gain(young, [young, fine], 4) == math.inf
    assert next_layer([fine, young], 4)[0] == 1
    assert next_layer([fine, old], 4)[0] == 0
    assert next_layer([LayerState(1, 1, (), True), old], 4)[0] == 1
    assert next_layer([LayerState(1, 1, (), True)], 4) is None


def test_portions_shrink_with_the_budget():
    assert portion_of(None, 23, 8) == 8
    assert portion_of(1000, 23, 8) == 8
    assert portion_of(300, 23, 8) == 4
    assert portion_of(50, 23, 8) == 2
    assert portion_of(50, 23, 1) == 1


# ---- networks --------------------------------------------------------------------------------------------------------


def test_layers_of_a_network_are_counted():
    layers = network_layers("ResNet50@4")
    assert len(layers) == 23
    assert sum(count for _, count in layers) == 53  # 1 + 3*16 + 4 shortcuts
    assert {workload.n for workload, _ in layers} == {4}
    assert sum(count for _, count in network_layers("vgg16")) == 13
    planes = network_layers("resnet50@4:w1a1")
    assert [(one.precision.text, count) for one, count in planes] == [("w1a1", count) for _, count in layers]
    assert is_network("resnet50:w1a1")
    with pytest.raises(InvalidInput, match=r"no network; networks: .*resnet50"):
        network_layers("resnet50.stage2@8")


def test_a_network_by_name_shares_one_budget():
    report = tune("resnet18@8", "fake", trials=60, batch=4)
    assert isinstance(report, NetworkReport)
    assert report.skipped == {"resnet18.conv1@8": "n8h224w224c3k64r7s7p3u2: too few channels"}
    assert sum(len(record.trials) for record in report.records) == 60
    assert all(record.trials for record in report.records)
    assert sum(trials for _, trials, _ in report.grants) == 60
    rows = report.rows()
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)
    assert report.microseconds == pytest.approx(sum(row["count"] * row["best_microseconds"] for row in rows))
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert (data["network"], data["budget"], data["ended"]) == ("resnet18@8", 60, "trials")
    assert list(report.to_frame().index) == list(report.best)
    assert "resnet18@8" in report._repr_html_()


def test_a_layer_begins_with_what_was_best_for_those_before_it():
    report = tune_network(PAIRS, "fake", trials=72, batch=8)
    by_label = {record.workload.label: record for record in report.records}
    first = min(by_label["big"].trials[:8], key=lambda trial: trial.microseconds or math.inf)
    warm = by_label["pointwise"].trials[0]
    assert (warm.config, warm.ask) == (first.config, None)
    assert by_label["big"].trials[0].ask is not None
    small = [trial.config for trial in by_label["small"].trials if trial.ask is None]
    assert small[0] == first.config
    assert len(small) == len(set(small)) <= 3


@pytest.mark.deep
def test_the_whole_space_of_every_layer():
    report = tune_network(PAIRS, "fake", trials=None, batch=64)
    assert report.ended == "exhausted"
    assert {len(record.trials) for record in report.records} == {len(report.records[0].trials)}
    assert len({trial.index for trial in report.records[0].trials}) == len(report.records[0].trials)


@pytest.mark.sample(1)
@pytest.mark.parametrize("cut", [1, 5, 8, 11, 20, 37])
def test_interrupted_and_resumed_it_ends_as_if_nothing_had_been(tmp_path, cut):
    class Interrupting(FakeRunner):
        left = cut

        def run(self, workload, configs):
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
            return super().run(workload, configs)

    log = tmp_path / "net.jsonl"
    options = {"trials": 50, "batch": 8, "seed": 4}
    first = tune_network(PAIRS, Interrupting(failures={"timeout": 0.1}), log=log, **options)
    assert (first.interrupted, first.ended) == (True, "interrupted")
    assert sum(len(record.trials) for record in first.records) == cut
    resumed = tune_network(PAIRS, FakeRunner(failures={"timeout": 0.1}), log=log, resume=True, **options)
    straight = tune_network(PAIRS, FakeRunner(failures={"timeout": 0.1}), **options)
    assert outcome(resumed) == outcome(straight)
    assert resumed.best == straight.best
    for record in resumed.records:
        assert read_log(tmp_path / f"net.{record.workload.label}.jsonl").trials == record.trials


def test_stop_ends_the_whole_network():
    report = tune_network(PAIRS, "fake", trials=48, stop=[lambda study: len(study.trials) >= 3])
    assert report.ended == "stopped"
    assert [len(record.trials) for record in report.records] == [3, 0, 0]


@pytest.mark.deep
def test_replay_of_the_layers_that_were_recorded(tmp_path, make_space):
    for workload, _ in PAIRS[:2]:
        record(make_space(workload), {"runner": "cuda", "name": "H200"}).save(
            tmp_path / "landscapes" / f"{workload.label}.json.gz"
        )
    report = tune_network(PAIRS, "replay", trials=40)
    assert list(report.best) == ["big", "small"]
    assert "no landscape" in report.skipped["pointwise"]
    assert all(0 < row["fraction_of_optimum"] <= 1 for row in report.rows())
    assert set(report.remeasurements) == {"big", "small"}
    assert not report.remeasurements["big"].remeasured
    record(make_space(PAIRS[2][0]), {"runner": "cuda", "name": "A100"}).save(tmp_path / "landscapes/other.json.gz")
    with pytest.raises(InvalidInput, match=r"name 'H200', not 'A100'.*cannot be compared"):
        tune_network(PAIRS, "replay", trials=40)


def record(space, device):
    results = FakeRunner().run(space.workload, [space.config(index) for index in space.valid])
    return Landscape.from_results(space, dict(zip(space.valid, results, strict=True)), device)


def test_odd_requests_are_refused():
    with pytest.raises(InvalidInput, match="integer >= 1"):
        tune_network(PAIRS, "fake", trials=0)
    with pytest.raises(InvalidInput, match="resume needs the log"):
        tune_network(PAIRS, "fake", resume=True)
    with pytest.raises(InvalidInput, match="did you mean replay"):
        tune("resnet18@8", "reply")
    with pytest.raises(MissingDependency, match="nothing was tuned"):
        tune("resnet18@8", "replay")


# ---- re-measurement and the page -----------------------------------------------------------------------------------


class Rival(FakeRunner):
    """Trials 0 and 1 are equally fast, though the first measurements say otherwise; trial 2 is slower."""

    def rematch(self, workload, configs, rounds):
        wobble = [1 + 0.001 * (place % 3) for place in range(rounds)]
        return [[base * w for w in wobble] for base in (5.0, 4.9999, 5.5)[: len(configs)]]


def test_ties_are_reported_as_ties_and_remeasuring_decides(toy):
    study = Study(toy)
    for index, time in zip(toy.valid[:3], (4.0, 4.2, 4.4), strict=True):
        study.tell(index, Measured(time))
    final = remeasure(study.record, Rival(), 3)
    assert final.tied == (1, 0)
    assert final.winner.number == 1
    assert [row["tied"] for row in final.rows()] == [True, True, False]
    assert remeasure(study.record, Rival(), 1) is None
    assert remeasure(study.record, object(), 3) is None

    class Broken(FakeRunner):
        def rematch(self, workload, configs, rounds):
            raise Unsupported("not today")

    lost = remeasure(study.record, Broken(), 3)
    assert (lost.winner, lost.tied) == (None, ())
    assert "not today" in lost.notice


def test_the_report_says_what_the_remeasurement_said(capsys):
    from subbyte.cli.main import main

    report = tune("n8h7w7c64k64r3s3p1", Rival(), trials=9, top_k=3)
    final = report.remeasurements["n8h7w7c64k64r3s3p1"]
    assert report.best["n8h7w7c64k64r3s3p1"] == final.winner_config
    assert report.rows()[0]["finals"]["tied"] == list(final.tied)
    assert main(["tune", "n8h7w7c64k64r3s3p1", "--runner", "fake", "--trials", "5", "--top-k", "2"]) == 0
    assert "wins with" in capsys.readouterr().out


def test_the_page_needs_nothing_from_anywhere(tmp_path, monkeypatch):
    def failures(config):
        return Failed("crash", "a <nasty> reason & more") if config.chunk == 2 else None

    class Noted(FakeRunner):
        def run(self, workload, configs):
            from dataclasses import replace

            results = super().run(workload, configs)
            return [replace(r, notes=("the clock fell",)) if r.ok else r for r in results]

    report = tune_network(PAIRS, Noted(failures=failures), trials=40, top_k=3)
    page = report.to_html()
    assert "Where the trials went" in page
    assert page.count("<svg") == 1 + len(report.records)
    assert "a &lt;nasty&gt; reason &amp; more" in page
    assert "the clock fell" in page
    assert "Top-k re-measurement" in page
    for foreign in ("http:", "https:", "//", "@import", "url(", "<script", "<link", "<img", "src="):
        assert foreign not in page, foreign
    assert not re.search(r"\bnan\b|None", page)
    assert report.save(tmp_path / "deep" / "report.html").read_text() == page
    with pytest.raises(InvalidInput, match="cannot write"):
        report.save(tmp_path)
    single = tune("n8h7w7c64k64r3s3p1", FakeRunner(failures={"launch": 1.0}), trials=3).to_html()
    assert "no configuration worked" in single


# ---- in the background -----------------------------------------------------------------------------------------------


def test_a_network_in_the_background_is_stopped_and_keeps_its_best():
    handle = start_tuning("resnet18@8", FakeRunner(delay=0.002), trials=None)
    while handle.done < 12:
        assert handle.running
    handle.stop()
    report = handle.wait(20)
    assert report.ended == "stopped"
    assert 12 <= handle.done == sum(len(record.trials) for record in report.records)
    assert handle.best == {row["workload"]: row["best_microseconds"] for row in report.rows() if row["trials"]}
    assert not handle.running
    assert "ended" in repr(handle)
    failing = start_tuning("resnet18@8", "reply")
    with pytest.raises(InvalidInput, match="did you mean replay"):
        failing.wait()


def test_the_words_of_earlier_versions_still_mean_a_remeasurement():
    from subbyte.cli.main import main

    with pytest.warns(DeprecationWarning, match="finalists= is now top_k="):
        report = tune("n8h7w7c64k64r3s3p1", Rival(), trials=9, finalists=3)
    with pytest.warns(DeprecationWarning, match=r"TuningReport\.finals is now TuningReport\.remeasurements"):
        assert report.finals is report.remeasurements
    assert len(report.remeasurements["n8h7w7c64k64r3s3p1"].standings) == 3
    assert main(["tune", "n8h7w7c64k64r3s3p1", "--runner", "fake", "--trials", "5", "--finalists", "2"]) == 0
    with pytest.raises(AttributeError, match="no attribute 'finale'"):
        _ = report.finale

"""tune(): which runner is chosen, one log per workload, the report; replay against a landscape."""

from __future__ import annotations

import time

import pytest

import subbyte
import subbyte.families as space_module
from subbyte.errors import InvalidInput, MissingDependency, Unsupported
from subbyte.measure.fake import FakeRunner
from subbyte.tune import Landscape, Study, read_log, tune
from subbyte.tune.sources import has_gpu
from subbyte.workload import ConvWorkload

DEVICE = {"runner": "cuda", "name": "GPU"}


@pytest.fixture(autouse=True)
def toy_spaces(make_space, monkeypatch):
    """tune() meets toy spaces, no GPU, and no shipped landscape."""

    def space(workload, arch="sm_90a", kind="paper", layout="nhwcnc"):
        if workload.c == 3:
            raise Unsupported(f"{workload.spec}: too few channels")
        return make_space(workload, layout)

    monkeypatch.setattr(space_module, "space", space, raising=False)
    monkeypatch.setattr("subbyte.tune.sources.has_gpu", lambda: False)


@pytest.fixture(autouse=True)
def empty_package(tmp_path, monkeypatch):
    folder = tmp_path / "landscapes"
    folder.mkdir()
    monkeypatch.setattr("subbyte.records.landscape_file.SHIPPED", folder)
    return folder


@pytest.fixture
def recorded(toy):
    results = FakeRunner(failures={"timeout": 0.1}).run(toy.workload, [toy.config(index) for index in toy.valid])
    return Landscape.from_results(toy, dict(zip(toy.valid, results, strict=True)), DEVICE)


def test_the_fake_runner_tunes_several_workloads_each_with_its_log(tmp_path):
    report = tune(["resnet50.stage2@8", "n8h7w7c64k64r3s3p1"], "fake", trials=12, log=tmp_path / "all.jsonl")
    assert [len(record.trials) for record in report.records] == [12, 12]
    assert list(report.best) == ["resnet50.stage2@8", "n8h7w7c64k64r3s3p1"]
    for label, config in report.best.items():
        assert read_log(tmp_path / f"all.{label}.jsonl").best_config == config
    assert list(report.to_frame().index) == list(report.best)
    assert "resnet50.stage2@8" in report._repr_html_()
    assert report.rows()[0]["fraction_of_optimum"] is None


def test_replay_reports_the_fraction_of_the_optimum(recorded, toy):
    report = tune(toy.workload, "replay", trials=20, landscape=recorded)
    row = report.rows()[0]
    assert row["fraction_of_optimum"] == recorded.best[1].microseconds / row["best_microseconds"] <= 1.0
    whole = tune(toy.workload, "replay", trials=None, strategy="exhaustive", landscape=recorded)
    assert whole.rows()[0]["fraction_of_optimum"] == 1.0
    assert whole.records[0].ended == "exhausted"
    assert whole.records[0].best.index == recorded.best[0]


def test_auto_replays_what_is_shipped_where_there_is_no_gpu(recorded, toy, empty_package):
    recorded.save(empty_package / "toy.json.gz")
    report = tune(toy.workload, trials=5)
    assert report.records[0].header["device"]["runner"] == "replay"
    with pytest.raises(MissingDependency, match="no GPU and no landscape"):
        tune("resnet50.stage2@8", trials=5)
    both = tune([toy.workload, "resnet50.stage2@8"], trials=5)
    assert list(both.best) == ["toy@8"]
    assert "no landscape" in both.skipped["resnet50.stage2@8"]


def test_workloads_without_kernels_are_skipped_with_the_reason():
    report = tune(["n8h7w7c3k64r3s3p1", "n8h7w7c64k64r3s3p1"], "fake", trials=3)
    assert report.skipped == {"n8h7w7c3k64r3s3p1": "n8h7w7c3k64r3s3p1: too few channels"}
    assert repr(report).startswith("TuningReport(StudyRecord(")
    assert repr(report).endswith(", 1 not tuned)")
    with pytest.raises(Unsupported, match="too few channels"):
        tune("n8h7w7c3k64r3s3p1", "fake", trials=3)


def test_resume_is_passed_on(tmp_path):
    first = tune("n8h7w7c64k64r3s3p1", "fake", trials=5, log=tmp_path / "a.jsonl")
    again = tune("n8h7w7c64k64r3s3p1", "fake", trials=9, log=tmp_path / "a.jsonl", resume=True)
    assert again.records[0].trials[:5] == first.records[0].trials


def test_ctrl_c_ends_the_whole_tuning():
    def interrupt(study, trial, result):
        if trial.number == 3:
            raise KeyboardInterrupt

    report = tune(["n8h7w7c64k64r3s3p1", "resnet50.stage2@8"], "fake", trials=9, callbacks=[interrupt])
    assert report.interrupted
    assert [len(record.trials) for record in report.records] == [4]


def test_odd_requests_are_refused(recorded):
    with pytest.raises(InvalidInput, match="did you mean replay"):
        tune("resnet50.stage2@8", "reply")
    with pytest.raises(InvalidInput, match="did you mean random"):
        tune("resnet50.stage2@8", "fake", strategy="randm")
    with pytest.raises(InvalidInput, match="needs the runner replay"):
        tune(recorded.workload, "fake", landscape=recorded)
    with pytest.raises(InvalidInput, match="tune exactly that workload"):
        tune("resnet50.stage2@8", "replay", landscape=recorded)


@pytest.mark.parametrize("arguments", [{"trials": "x"}, {"trials": 0}, {"batch": 1.5}, {"top_k": "five"}])
@pytest.mark.parametrize("what", ["n8h7w7c64k64r3s3p1", "resnet50@8"])
def test_odd_numbers_are_named(what, arguments):
    (name,) = arguments
    with pytest.raises(InvalidInput, match=f"{name}=.*(must be|expected) an integer"):
        tune(what, "fake", **arguments)


def test_tune_is_called_by_either_name():
    assert subbyte.tune("n8h7w7c64k64r3s3p1", "fake", trials=2).records
    assert subbyte.tune.tune is tune


def test_without_a_driver_there_is_no_gpu(monkeypatch):
    def detect():
        raise MissingDependency("no NVIDIA driver")

    monkeypatch.setattr("subbyte.gpu.driver.detect", detect)
    assert has_gpu() is False


def test_a_whole_replayed_study_takes_less_than_half_a_second(recorded, toy):
    from subbyte.measure.replay import ReplayRunner

    started = time.perf_counter()
    for seed in range(4):
        Study(toy, seed=seed).run(ReplayRunner(recorded))
    assert time.perf_counter() - started < 0.5 * 4 * len(toy.valid) / 420


def test_best_kernel_is_built_from_the_record(monkeypatch, toy, tmp_path):
    import subbyte.kernel

    built = []
    monkeypatch.setattr(subbyte.kernel, "build", lambda *arguments: built.append(arguments), raising=False)
    with Study(toy, log=tmp_path / "a.jsonl") as study:
        best = study.run(FakeRunner(), 5).best
    read_log(tmp_path / "a.jsonl").build_best()
    assert built == [(ConvWorkload(8, 14, 14, 64, 64, 3, 3, 1), best.config, "sm_90a")]

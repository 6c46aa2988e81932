"""The small space of the wgmma family: what it holds, recorded whole, and searched again without a GPU."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from subbyte.cli.main import main
from subbyte.device import ARCHS
from subbyte.errors import BrokenRecord, InvalidInput, MissingDependency, Unsupported
from subbyte.families import space
from subbyte.families.registry import config_from_dict, family_named, settings_text
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.former import RetiredConfig
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.space import SMALL
from subbyte.measure.fake import FakeRunner
from subbyte.measure.replay import ReplayRunner
from subbyte.records import landscape_file, landscape_space
from subbyte.records.recorded_space import space_of
from subbyte.tune import Landscape, Study, find_landscape, sources, tune
from subbyte.workload import ConvWorkload, workload

LAYER = ConvWorkload(8, 7, 7, 64, 64, 3, 3, 1, name="layer@8")


@pytest.fixture(scope="module")
def made():
    return space(LAYER, kind=SMALL)


@pytest.fixture
def recorded(made, tmp_path, monkeypatch):
    """The one landscape that is shipped here, and no GPU."""
    monkeypatch.setattr(landscape_file, "SHIPPED", tmp_path)
    monkeypatch.setattr(sources, "has_gpu", lambda: False)
    results = dict(zip(made.valid, FakeRunner().run(LAYER, [made.config(i) for i in made.valid]), strict=True))
    return Landscape.from_results(made, results, {"name": "fake"}).save(
        tmp_path / f"{LAYER.label}.{SMALL}.sm_90a.json.gz"
    )


@pytest.mark.deep
def test_it_is_a_part_of_the_whole_space():
    for stage, least in ((2, 150), (5, 300)):
        layer = workload(f"resnet50.stage{stage}@8")
        some, whole = space(layer, kind=SMALL), space(layer, kind="wgmma")
        assert least <= len(some.valid) <= 400
        assert len(some.valid) + sum(some.refused.values()) == len(some)
        for index in some.valid:
            config = some.config(index)
            assert some.index(config) == index
            assert whole.check(config) is None


def test_1x1_kernels_and_other_architectures_have_none():
    with pytest.raises(InvalidInput, match="several rows"):
        space("resnet50.stage2.reduce1x1@8", kind=SMALL)
    with pytest.raises(InvalidInput, match="cannot be fixed"):
        space(LAYER, kind=SMALL, stages=4)
    with pytest.raises(Unsupported, match=r"wgmma-small space .* has no configuration that can be built"):
        tune(LAYER, FakeRunner(), kind=SMALL, arch="sm_80")


def test_the_wgmma_space_is_searched_on_what_was_recorded(made, recorded):
    name = f"layer@8.{SMALL}.sm_90a"
    assert find_landscape(LAYER, None, "wgmma") == find_landscape(LAYER, "sm_90a", SMALL) == name
    assert find_landscape(LAYER, None, "paper") is None
    held = Landscape.load(name)
    assert (held.space_hash, list(held.results), held.missing) == (made.hash, list(made.valid), ())
    assert {type(held.config(index)) for index in held.results} == {PipelineConfig, SingleTileConfig}
    report = tune(LAYER, trials=None, kind="wgmma")
    row = report.rows()[0]
    assert (row["space"], row["trials"], row["fraction_of_optimum"]) == (SMALL, len(made.valid), 1.0)
    assert tune(LAYER, trials=20, kind="wgmma").rows()[0]["best_index"] in made.valid
    with Study(made, "random", 0) as study:
        assert len(study.run(ReplayRunner(held), 10).trials) == 10


def test_the_command_line_searches_it_too(recorded, capsys):
    assert main(["tune", LAYER.spec, "--space", "wgmma", "--trials", "12", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["workloads"][0]["space"] == SMALL
    assert isinstance(config_from_dict(found["workloads"][0]["best_config"]), WgmmaConfig)


def test_the_command_line_prints_what_is_not_at_its_default(recorded, capsys):
    assert main(["tune", LAYER.spec, "--space", "wgmma", "--trials", "5"]) == 0
    said = capsys.readouterr().out
    assert "tile_width=" in said
    assert "segments=" in said
    assert "row_reuse" not in said
    assert "wgmma-small" in said
    assert settings_text({"a": 1}) == "a=1"


@pytest.mark.deep
@pytest.mark.parametrize("stage", [2, 3, 4, 5])
def test_the_stages_are_searched_without_a_gpu(stage, monkeypatch):
    monkeypatch.setattr(sources, "has_gpu", lambda: False)
    row = tune(f"resnet50.stage{stage}@8", kind="wgmma", trials=100).rows()[0]
    assert (row["space"], row["device"], row["trials"]) == ("warpgroup-small", "NVIDIA H200", 100)
    assert row["fraction_of_optimum"] > 0.95


def test_what_was_not_recorded_is_refused_by_name(recorded):
    with pytest.raises(MissingDependency, match=r"of it \(wgmma space, layout=nhwc\) is shipped; shipped of this "):
        tune(LAYER, kind="wgmma", fixed={"layout": "nhwc"})
    with pytest.raises(MissingDependency, match=r"resnet50\.stage2@8.*layer@8.wgmma-small"):
        tune("resnet50.stage2@8", kind="wgmma")
    with pytest.raises(InvalidInput, match="holds no result of configuration"):
        ReplayRunner(Landscape.load(recorded)).run(LAYER, [PipelineConfig(stages=99)])


def test_what_is_refused_today_is_left_out(made, recorded, monkeypatch):
    first = made.config(made.valid[0])
    whole = type(made).check

    def stricter(self, which):
        config = which if isinstance(which, WgmmaConfig) else self.config(which)
        return "stages: refused in this test" if config == first else whole(self, which)

    monkeypatch.setattr(type(made), "check", stricter)
    held = Landscape.load(recorded)
    assert held.dropped == {made.valid[0]: "stages: refused in this test"}
    assert len(held) == len(made.valid) - 1
    assert held.space_hash == landscape_space.space_today(held.header).hash


FORMER = family_named("warpgroup").recorded_space(
    LAYER, ARCHS["sm_90a"], "warpgroup-small",
    {"tile_width": (10, 8), "segments": (4, 7), "ring": (3, 4), "load_ahead": (2, 1), "at_once": (0, 2),
     "bulk_weights": (0, 1), "stagger": (0,)},
    family_named("warpgroup").held({}), "0123456789abcdef",
)  # fmt: skip
"""A space of an earlier version; half of it had a knob that is no more."""


def test_a_knob_that_was_removed_first_is_left_out_where_no_kernel_had_it(tmp_path):
    valid = FORMER.valid
    results = dict(zip(valid, FakeRunner().run(LAYER, [FORMER.config(i) for i in valid]), strict=True))
    held = Landscape.from_results(FORMER, results, {"name": "fake"})

    def then(**more):
        """What was recorded while a knob was there: ``more`` are its values."""
        space = replace(FORMER, knobs={**FORMER.knobs, **more})
        described = {**held.header["space"], "knobs": {name: list(values) for name, values in space.knobs.items()},
                     "index_hash": space.index_hash}  # fmt: skip
        return {**held.header, "space": described}

    loaded = Landscape.load(Landscape.fitted(then(staging=(0,)), results).save(tmp_path / "then.json.gz"))
    assert (loaded.dropped, loaded.missing, len(loaded)) == ({}, (), len(valid))
    assert {index: loaded.config(index) for index in valid} == {index: FORMER.config(index) for index in valid}
    assert loaded.rows()[0].keys() == held.rows()[0].keys()
    assert landscape_space.space_today(loaded.header) == FORMER
    for values in ((0, 4), (4,)):
        other = Landscape.fitted(then(staging=values), results)
        assert landscape_space.space_today(other.header) is None
        with pytest.raises(Unsupported, match="staging=4: this knob was removed"):
            other.config(valid[0] + len(FORMER) * (len(values) - 1))


def test_results_of_knobs_that_are_no_more_are_replayed():
    """Whoever searches a landscape of an earlier version finds all of it, and cannot build what is no more."""
    at_once = [i for i in range(len(FORMER)) if "retired" in str(FORMER.check(i))][:4]
    indices = [*FORMER.valid[:6], *at_once]
    results = dict(zip(indices, FakeRunner().run(LAYER, [FORMER.config(i) for i in indices]), strict=True))
    held = Landscape.fitted(Landscape.from_results(FORMER, results, {"name": "fake"}).header, results)
    assert (held.dropped, len(held), held.space_hash) == ({}, 10, FORMER.hash)
    kinds = {type(held.config(index)) for index in at_once}
    assert kinds == {RetiredConfig}
    assert [row["at_once"] for row in held.rows()] == [2 if row["index"] in at_once else 0 for row in held.rows()]
    runner = ReplayRunner(held)
    for strategy in ("random", "auto", "exhaustive"):
        with Study(space_of(held), strategy, 0) as study:
            record = study.run(runner, 10)
        assert {trial.index for trial in record.trials} == set(indices)
        assert all(trial.microseconds == results[trial.index].microseconds for trial in record.trials)


def test_a_log_of_an_earlier_version_goes_on(tmp_path):
    """In the space that its header describes, whatever kind of space took its place."""
    log = tmp_path / "log.jsonl"
    with Study(FORMER, "random", 1, log) as study:
        study.run(FakeRunner(), 4)
    before = [(trial.index, trial.config) for trial in study.trials]
    today = space(LAYER, kind="warpgroup-small")
    assert today.kind == SMALL
    with Study(today, "random", 1, log, resume=True) as study:
        assert (study.space.kind, study.space.hash) == ("warpgroup-small", FORMER.hash)
        assert [(trial.index, trial.config) for trial in study.trials] == before
        study.run(FakeRunner(), 6)
    assert [trial.config for trial in study.trials] == [FORMER.config(trial.index) for trial in study.trials]
    other = space(replace(LAYER, c=32), kind=SMALL)
    with pytest.raises(InvalidInput, match="cannot resume"):
        Study(other, "random", 1, log, resume=True)


def test_a_damaged_file_is_refused(recorded):
    recorded.write_bytes(recorded.read_bytes()[:-20])
    with pytest.raises(BrokenRecord, match="damaged or cut short"):
        Landscape.load(recorded)

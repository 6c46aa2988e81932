"""The small space of the warpgroup family: what it holds, recorded whole, and searched again without a GPU."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from subbyte.cli.main import main
from subbyte.errors import BrokenRecord, InvalidInput, MissingDependency, Unsupported
from subbyte.families import space
from subbyte.families.registry import settings_text
from subbyte.families.wgmma.config import WarpgroupConfig
from subbyte.families.wgmma.small_space import SMALL
from subbyte.measure.fake import FakeRunner
from subbyte.measure.replay import ReplayRunner
from subbyte.records import landscape_file, landscape_space
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


def test_it_is_a_part_of_the_whole_space():
    for stage, least in ((2, 150), (3, 200), (4, 300), (5, 300)):
        layer = workload(f"resnet50.stage{stage}@8")
        some, whole = space(layer, kind=SMALL), space(layer, kind="warpgroup")
        assert least <= len(some.valid) <= 400
        assert len(some.valid) + sum(some.refused.values()) == len(some)
        for index in some.valid:
            config = some.config(index)
            assert some.index(config) == index
            assert whole.why_not(config) is None


def test_1x1_kernels_and_other_architectures_have_none():
    with pytest.raises(InvalidInput, match="several rows"):
        space("resnet50.stage2.reduce1x1@8", kind=SMALL)
    with pytest.raises(InvalidInput, match="cannot be fixed"):
        space(LAYER, kind=SMALL, ring=4)
    with pytest.raises(Unsupported, match=r"warpgroup-small space .* holds nothing that can be built"):
        tune(LAYER, FakeRunner(), kind=SMALL, arch="sm_80")


def test_the_warpgroup_space_is_searched_on_what_was_recorded(made, recorded):
    name = f"layer@8.{SMALL}.sm_90a"
    assert find_landscape(LAYER, None, "warpgroup") == find_landscape(LAYER, "sm_90a", SMALL) == name
    assert find_landscape(LAYER, None, "paper") is None
    held = Landscape.load(name)
    assert (held.space_hash, list(held.results), held.missing) == (made.hash, list(made.valid), ())
    assert {type(held.config(index)) for index in held.results} == {WarpgroupConfig}
    report = tune(LAYER, trials=None, kind="warpgroup")
    row = report.rows()[0]
    assert (row["space"], row["trials"], row["fraction_of_optimum"]) == (SMALL, len(made.valid), 1.0)
    assert tune(LAYER, trials=20, kind="warpgroup").rows()[0]["best_index"] in made.valid
    with Study(made, "random", 0) as study:
        assert len(study.run(ReplayRunner(held), 10).trials) == 10


def test_the_command_line_searches_it_too(recorded, capsys):
    assert main(["tune", LAYER.spec, "--space", "warpgroup", "--trials", "12", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["workloads"][0]["space"] == SMALL
    WarpgroupConfig.from_dict(found["workloads"][0]["best_config"])


def test_the_command_line_prints_what_is_not_at_its_default(recorded, capsys):
    assert main(["tune", LAYER.spec, "--space", "warpgroup", "--trials", "5"]) == 0
    said = capsys.readouterr().out
    assert "tile_width=" in said
    assert "stagger=0" in said
    assert "keep_rows" not in said
    assert "warpgroup-small" in said
    assert settings_text({"a": 1}) == "a=1"


@pytest.mark.parametrize("stage", [2, 3, 4, 5])
def test_the_stages_are_searched_without_a_gpu(stage, monkeypatch):
    monkeypatch.setattr(sources, "has_gpu", lambda: False)
    row = tune(f"resnet50.stage{stage}@8", kind="warpgroup", trials=100).rows()[0]
    assert (row["space"], row["device"], row["trials"]) == (SMALL, "NVIDIA H200", 100)
    assert row["fraction_of_optimum"] > 0.95


def test_what_was_not_recorded_is_refused_by_name(recorded):
    with pytest.raises(MissingDependency, match=r"of it \(warpgroup space, layout=nhwc\) is shipped; shipped of this "):
        tune(LAYER, kind="warpgroup", fixed={"layout": "nhwc"})
    with pytest.raises(MissingDependency, match=r"resnet50\.stage2@8.*layer@8.warpgroup-small"):
        tune("resnet50.stage2@8", kind="warpgroup")
    with pytest.raises(InvalidInput, match="holds no result of configuration"):
        ReplayRunner(Landscape.load(recorded)).run(LAYER, [WarpgroupConfig(ring=99)])


def test_what_is_refused_today_is_left_out(made, recorded, monkeypatch):
    first = made.config(made.valid[0])
    whole = type(made).why_not

    def stricter(self, which):
        config = which if isinstance(which, WarpgroupConfig) else self.config(which)
        return "stages: refused in this test" if config == first else whole(self, which)

    monkeypatch.setattr(type(made), "why_not", stricter)
    held = Landscape.load(recorded)
    assert held.dropped == {made.valid[0]: "stages: refused in this test"}
    assert len(held) == len(made.valid) - 1
    assert held.space_hash == landscape_space.space_today(held.header).hash


def test_a_knob_that_is_no_more_is_left_out_where_no_kernel_had_it(made, tmp_path):
    results = dict(zip(made.valid, FakeRunner().run(LAYER, [made.config(i) for i in made.valid]), strict=True))
    held = Landscape.from_results(made, results, {"name": "fake"})

    def then(**more):
        """What was recorded while a knob was there: ``more`` are its values."""
        space = replace(made, knobs={**made.knobs, **more})
        described = {**held.header["space"], "knobs": {name: list(values) for name, values in space.knobs.items()},
                     "index_hash": space.index_hash}  # fmt: skip
        return {**held.header, "space": described}

    loaded = Landscape.load(Landscape.fitted(then(staging=(0,)), results).save(tmp_path / "then.json.gz"))
    assert (loaded.dropped, loaded.missing, len(loaded)) == ({}, (), len(made.valid))
    assert {index: loaded.config(index) for index in made.valid} == {index: made.config(index) for index in made.valid}
    assert loaded.rows()[0].keys() == held.rows()[0].keys()
    assert landscape_space.space_today(loaded.header) == made
    for values in ((0, 4), (4,)):
        other = Landscape.fitted(then(staging=values), results)
        assert landscape_space.space_today(other.header) is None
        with pytest.raises(Unsupported, match="staging=4: a knob that was removed"):
            other.config(made.valid[0] + len(made) * (len(values) - 1))


def test_a_damaged_file_is_refused(recorded):
    recorded.write_bytes(recorded.read_bytes()[:-20])
    with pytest.raises(BrokenRecord, match="damaged or cut short"):
        Landscape.load(recorded)

"""The sample of schedules of the wgmma family: valid with every switch, the recorded ones among them, buildable."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.paper import wgmma_sample as sample
from subbyte.analysis import recorded_ablation
from subbyte.analysis.ablation import ablation, meant
from subbyte.errors import BrokenRecord, BuildFailed, InvalidInput
from subbyte.families.registry import config_from_dict
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.kernel.choose import recorded_best
from subbyte.records.landscape import Landscape
from subbyte.records.result import Measured
from subbyte.workload import workload

LAYERS = [(stage, batch) for batch in (8, 256) for stage in (2, 3, 4, 5)]
LEAST = 12
DEVICE = {"runner": "fake", "name": "Test GPU"}
NONE_RECORDED = Path("nothing is recorded here")


@pytest.fixture(scope="module")
def layer():
    """One layer as if it had no records: its spaces, its best configuration, and what is known of it."""
    found = workload("resnet50.stage2@256")
    best = config_from_dict(recorded_best()[found.spec]["config"])
    knobs = {sharing: meant(lists, "wgmma") for sharing, lists in sample.knobs_near(found, best).items()}
    one = sample.Layer(knobs)
    return one.spaces(found), best, one


def chosen(one, spaces, count, seed, refused=()):
    """What is chosen when all builds, but for some indices."""
    one = sample.Layer(one.knobs, list(one.schedules), dict(one.refused))
    for index in sample.candidates(one, spaces, count, seed):
        if index in refused:
            one.refused[str(index)] = "reason"
        else:
            one.schedules.append(index)
    return one


@pytest.mark.deep
def test_schedules_are_the_same_with_every_switch(layer):
    spaces, best, one = layer
    drawn = chosen(one, spaces, 11, 1).schedules
    assert len(drawn) == len(set(drawn)) == 11
    assert drawn == chosen(one, spaces, 11, 1).schedules != chosen(one, spaces, 11, 2).schedules
    assert spaces["full-rp-nhwcnc"].config(drawn[0]) == best
    for index in drawn:
        knobs = [
            {**space.config(index).to_dict(), **spaces["full-rp-nhwcnc"].fixed, "stagger": 0}
            for space in spaces.values()
        ]
        assert all(one == knobs[0] for one in knobs)
        assert all(space.check(index) is None for space in spaces.values())


def test_what_does_not_build_is_left_out_and_choosing_goes_on(layer):
    spaces, _, one = layer
    drawn = chosen(one, spaces, 9, 1).schedules
    without = chosen(one, spaces, 9, 1, refused=drawn[:3])
    assert len(without.schedules) == 9
    assert not set(without.schedules) & set(drawn[:3])
    assert set(without.refused) == {str(index) for index in drawn[:3]}
    begun = sample.Layer(one.knobs, drawn[:5])
    assert set(chosen(begun, spaces, 9, 1).schedules) == set(drawn)
    assert chosen(without, spaces, 9, 1).schedules == without.schedules


def test_the_first_combination_that_does_not_build_is_named(layer, monkeypatch):
    spaces = layer[0]
    index = sample.common(spaces)[0]

    def built(workload, config):
        return "local memory" if config.duplicate_aware == "none" and not config.register_packing else None

    monkeypatch.setattr(sample, "built", built)
    with ThreadPoolExecutor(1) as pool:
        assert sample.why_not(spaces, index, pool) == "none-sp-nhwc: local memory"
        monkeypatch.setattr(sample, "built", lambda *_: None)
        assert sample.why_not(spaces, index, pool) is None


def test_the_layer_with_the_fewest_schedules_comes_next(tmp_path, monkeypatch, capsys):
    path, asked = tmp_path / "chosen.json", []

    def candidates(one, spaces, count, seed):
        yield from (number for number in range(10) if len(one.schedules) < count)

    def why_not(spaces, index, pool):
        asked.append(index)
        if len(asked) == stop_at:
            raise KeyboardInterrupt
        return "reason" if index == 1 else None

    monkeypatch.setattr(sample, "begun", lambda workload, name: sample.Layer({}, [90, 91] if "2" in name else []))
    monkeypatch.setattr(sample.Layer, "spaces", lambda self, layer: {})
    monkeypatch.setattr(sample, "candidates", candidates)
    monkeypatch.setattr(sample, "why_not", why_not)
    stop_at = 5
    with pytest.raises(KeyboardInterrupt):
        sample.choose([(2, 8), (3, 8)], 4, math.inf, 1, path)
    found = sample.read_chosen(path)
    assert found["stage3-b8"] == sample.Layer({}, [0, 2], {"1": "reason"})
    assert found["stage2-b8"].schedules == [0, 90, 91]
    stop_at = 0
    assert sample.choose([(2, 8), (3, 8)], 4, math.inf, 1, path) == 0
    assert [len(one.schedules) for one in sample.read_chosen(path).values()] == [4, 4]
    assert sample.choose([(2, 8), (3, 8)], 9, -math.inf, 1, path) == 1
    assert "stage3-b8: 4 schedules, 1 refused" in capsys.readouterr().out


def test_why_a_configuration_does_not_build():
    def fails(*_):
        raise BuildFailed("layer with wg-tw8: 16 bytes of local memory")

    found, config = workload("resnet50.stage2@256"), PipelineConfig()
    assert sample.built(found, config, fails) == "16 bytes of local memory"
    assert sample.built(found, config, lambda *_: None) is None


def test_what_was_chosen_is_written_at_once_and_read_again(tmp_path, layer):
    path = tmp_path / "chosen.json"
    one = sample.Layer(layer[2].knobs, [9, 3], {"4": "reason"})
    sample.write_chosen({"stage4-b256": one}, path)
    assert sample.read_chosen(path) == {"stage4-b256": sample.Layer(one.knobs, [3, 9], {"4": "reason"})}
    assert [left.name for left in tmp_path.iterdir()] == ["chosen.json"]


@pytest.mark.parametrize(("stage", "batch"), LAYERS)
def test_the_committed_schedules_extend_the_records(stage, batch):
    name, found = sample.name_of(stage, batch), workload(f"resnet50.stage{stage}@{batch}")
    one = sample.read_chosen()[name]
    spaces = one.spaces(found)
    assert len(set(one.schedules)) >= LEAST
    assert sample.measured_with_all(name) <= set(one.schedules)
    assert not {str(index) for index in one.schedules} & set(one.refused)
    for combination, (space, _) in sample.recorded(name).items():
        knobs = {key: list(values) for key, values in spaces[combination].knobs.items()}
        assert meant(space["knobs"], "warpgroup") == knobs  # an index means the same schedule
        assert space["fixed"] == spaces[combination].fixed
        reasons = [str(spaces[combination].check(index) or "") for index in one.schedules]
        assert all(not reason or reason.startswith("retired: weight_ring") for reason in reasons)


def test_a_record_of_another_space_is_noticed(tmp_path, monkeypatch):
    for number in (1, 2):
        (tmp_path / f"stage2-b8-full-rp-nhwc.{number}.json.gz").touch()
    knobs = {"1": {"ring": [3, 4], "share": [1]}, "2": {"ring": [3, 4]}}

    def read_file(path):
        return {"space": {"knobs": knobs[path.name.split(".")[1]]}}, {int(path.name[-9]): Measured(1.0)}, None

    monkeypatch.setattr(sample, "read_file", read_file)
    assert sample.recorded("stage2-b8", tmp_path)["full-rp-nhwc"][1] == {1, 2}
    for other in ({"ring": [3, 5]}, {"ring": [3, 4], "share": [2]}):
        knobs["2"] = other
        with pytest.raises(BrokenRecord, match=r"2\.json\.gz: of another space"):
            sample.recorded("stage2-b8", tmp_path)
    assert sample.measured_with_all("stage2-b8", NONE_RECORDED) == set()


def test_only_what_no_record_has_is_built(tmp_path, monkeypatch):
    asked = []

    def build_bundle(space, folder, workers, indices):
        asked.append((folder.name, indices))
        return type("Report", (), {"built": len(indices), "failed": 0})

    monkeypatch.setattr(sample, "build_bundle", build_bundle)
    assert sample.build_all([(2, 8)], tmp_path, 1) == 0
    there = sample.read_chosen()["stage2-b8"].schedules
    missing = sorted(set(there) - sample.measured_with_all("stage2-b8"))
    assert asked == [(f"stage2-b8-{name}", missing) for name in sample.NAMES if missing]
    monkeypatch.setattr(sample, "measured_with_all", lambda name: set(there))
    asked.clear()
    assert sample.build_all([(2, 8)], tmp_path, 1) == 0
    assert asked == []
    with pytest.raises(InvalidInput, match="stage2-b64: no schedules were chosen"):
        sample.build_all([(2, 64)], tmp_path, 1)


def test_what_was_measured_extends_the_records(tmp_path, monkeypatch, capsys):
    one, found = sample.read_chosen()["stage2-b8"], workload("resnet50.stage2@8")
    results, folder, times = tmp_path / "results", tmp_path / "records", {}
    for made in (results, folder):
        made.mkdir()
    for name in sample.NAMES:
        (results / f"stage2-b8-{name}.jsonl").touch()

    def to_landscape(path):
        space = one.spaces(found)[path.stem.removeprefix("stage2-b8-")]
        made = Landscape.from_results(space, {index: Measured(time) for index, time in times.items()}, DEVICE)
        made.header["created"] = created
        return made

    monkeypatch.setattr(sample, "to_landscape", to_landscape)
    created, times = "2026-11-22", dict.fromkeys(one.schedules[:3], 4.0)
    assert sample.assemble(results, folder) == 0
    assert sample.measured_with_all("stage2-b8", folder) == set(one.schedules[:3])
    times = dict.fromkeys(one.schedules[:5], 4.0)
    assert sample.assemble(results, folder) == 0
    assert len(list(folder.iterdir())) == len(sample.NAMES)
    created, times = "2026-11-23", dict.fromkeys(one.schedules[5:12], 5.0)
    assert sample.assemble(results, folder) == 0
    assert len(list(folder.iterdir())) == 2 * len(sample.NAMES)
    assert sample.measured_with_all("stage2-b8", folder) == set(one.schedules[:12])
    assert "stage2-b8: 12 schedules with every combination" in capsys.readouterr().out
    assert ablation(map(Landscape.load, sorted(folder.iterdir()))).schedules == 12
    with pytest.raises(InvalidInput, match="holds no measurements"):
        sample.assemble(tmp_path, folder)


def test_records_of_a_family():
    layer = workload("resnet50.stage3@256").spec
    assert recorded_ablation(layer, "NVIDIA H200", "wgmma").schedules >= 6
    assert recorded_ablation(layer, "NVIDIA H200") is None
    with pytest.raises(InvalidInput, match="allowed: bits, bmma, condense, image, mma, popc, stem, wgmma"):
        recorded_ablation(layer, "NVIDIA H200", "warpgruop")

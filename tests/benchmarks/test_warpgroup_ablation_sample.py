"""The sample of schedules of the warpgroup family: valid with every switch, the fastest known one among them."""

import importlib.util
from pathlib import Path

import pytest

from subbyte.analysis import recorded_ablation
from subbyte.errors import InvalidInput
from subbyte.kernel.choose import recorded_best
from subbyte.schedule import WarpgroupConfig
from subbyte.workload import workload

PLACE = Path(__file__).parents[2] / "benchmarks" / "warpgroup_ablation_sample.py"
spec = importlib.util.spec_from_file_location("warpgroup_ablation_sample", PLACE)
sample = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sample)


def test_schedules_are_the_same_with_every_switch(monkeypatch):
    monkeypatch.setattr(sample, "_compiles", lambda spaces, index: True)
    layer = workload("resnet50.stage4@256")
    best = WarpgroupConfig.from_dict(recorded_best()[layer.spec]["config"])
    spaces = sample.spaces_near(layer, best)
    drawn = sample.draw(spaces, best, 11, 1)
    assert len(drawn) == len(set(drawn)) == 11
    assert drawn == sample.draw(spaces, best, 11, 1) != sample.draw(spaces, best, 11, 2)
    assert best in [spaces["full-rp-nhwcnc"].config(index) for index in drawn]
    for index in drawn:
        knobs = [
            {**one.config(index).to_dict(), **spaces["full-rp-nhwcnc"].fixed, "stagger": 0} for one in spaces.values()
        ]
        assert all(one == knobs[0] for one in knobs)
        assert all(one.why_not(index) is None for one in spaces.values())


def test_records_of_a_family():
    layer = workload("resnet50.stage3@256").spec
    assert recorded_ablation(layer, "NVIDIA H200", "warpgroup").schedules >= 6
    assert recorded_ablation(layer, "NVIDIA H200") is None
    with pytest.raises(InvalidInput, match="did you mean warpgroup"):
        recorded_ablation(layer, "NVIDIA H200", "warpgruop")

"""The control without unpacking: known gains come out, gaps and damage are refused."""

import gzip
import json

import numpy as np
import pytest

from subbyte.analysis.unpacking import FORMAT, read_unpacking, unpacking
from subbyte.errors import BrokenRecord, InvalidInput

GAINS = {
    "none-s4": 1.0, "shared-s4": 1.2, "full-s4": 1.2 * 1.1 * 1.05,
    "none-s8": 0.9, "shared-s8": 0.9 * 1.2, "full-s8": 0.9 * 1.2 * 1.1,
}  # fmt: skip


def control(count=12, without=()):
    rng = np.random.default_rng(0)
    schedules = []
    for index in range(count):
        base = 5 + rng.random()
        samples = {arm: [base / gain * f for f in (0.99, 1.0, 1.02)] for arm, gain in GAINS.items()}
        for arm in without if index == 0 else ():
            del samples[arm]
        schedules.append({"index": index, "samples": samples})
    return {
        "format": FORMAT, "schema": 1, "workload": {"name": "resnet50.stage2@8"}, "device": {"name": "Test GPU"},
        "schedules": schedules,
    }  # fmt: skip


def test_what_registers_add_is_split_into_loads_and_unpacking(tmp_path):
    path = tmp_path / "stage2.json.gz"
    path.write_bytes(gzip.compress(json.dumps(control()).encode()))
    found = read_unpacking(path)
    assert found.schedules == 12
    assert found.sharing["s4"]["full over shared"].speed_up == pytest.approx(1.1 * 1.05)
    assert found.sharing["s8"]["full over shared"].speed_up == pytest.approx(1.1)
    assert found.unpacking.speed_up == pytest.approx(1.05)
    assert found.stored_as_bytes["none"].speed_up == pytest.approx(0.9)
    assert ("bytes", "shared over none", "1.20 (1.20 to 1.20)") in found.table().rows
    assert found.microseconds["s4"]["none"] > found.microseconds["s4"]["full"]
    assert "12 schedules" in found.text()


def test_schedules_without_every_arm_are_left_out_and_too_few_refused():
    assert unpacking(control(without=("full-s8",))).schedules == 11
    with pytest.raises(InvalidInput, match="only 9 schedules"):
        unpacking(control(10, without=("none-s4",)))


def test_damage_is_refused(tmp_path):
    with pytest.raises(BrokenRecord, match="not a control"):
        unpacking({**control(), "format": "other"})
    with pytest.raises(BrokenRecord, match="damaged"):
        unpacking({**control(), "device": {}})
    with pytest.raises(InvalidInput, match="no such file"):
        read_unpacking(tmp_path / "nothing.json.gz")
    (tmp_path / "text").write_text("text")
    with pytest.raises(BrokenRecord, match="not gzip"):
        read_unpacking(tmp_path / "text")

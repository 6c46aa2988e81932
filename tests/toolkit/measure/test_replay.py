"""Replay gives recorded results and refuses what was not recorded."""

from __future__ import annotations

import pytest

from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.measure.fake import FakeRunner
from subbyte.measure.replay import ReplayRunner
from subbyte.measure.runner import Runner
from subbyte.records.result import Failed
from subbyte.tune import Landscape
from subbyte.workload import ConvWorkload

WORKLOAD = ConvWorkload(8, 14, 14, 64, 64, 3, 3, 1, name="toy@8")


class TwoChunks:
    """A space of two knobs: four configurations, all valid."""

    workload, arch, kind, hash = WORKLOAD, "sm_90a", "paper", "a" * 64
    knobs, fixed, valid = {"chunk": (1, 2), "reorder_inner": (0, 1)}, {}, (0, 1, 2, 3)

    def __len__(self):
        return 4

    def config(self, index):
        return MmaConfig(chunk=1 + index % 2, reorder_inner=index // 2)


@pytest.fixture
def space():
    return TwoChunks()


@pytest.fixture
def recorded(space):
    results = FakeRunner(failures=lambda c: Failed("wrong", "1 of 9 differ") if c.chunk == 2 else None).run(
        WORKLOAD, [space.config(index) for index in range(4)]
    )
    return Landscape.from_results(space, dict(enumerate(results)), {"name": "GPU", "driver": "580"})


def test_it_replays_times_and_failures(space, recorded, tmp_path):
    recorded.save(tmp_path / "a.json.gz")
    with ReplayRunner(tmp_path / "a.json.gz") as runner:
        assert isinstance(runner, Runner)
        results = runner.run(WORKLOAD, [space.config(index) for index in (3, 0)])
    assert results[0] == Failed("wrong", "1 of 9 differ")
    assert results[1].microseconds == recorded.results[0].microseconds
    assert results[1].device["name"] == "GPU"
    assert (runner.device["runner"], runner.device["landscape"]) == ("replay", "a")


def test_another_workload_is_refused(space, recorded):
    with pytest.raises(InvalidInput, match="is of n8h14w14c64k64r3s3p1, not of n8h7w7"):
        ReplayRunner(recorded).run(ConvWorkload(8, 7, 7, 64, 64, 3, 3, 1), [space.config(0)])


def test_another_space_is_refused(space, recorded):
    runner = ReplayRunner(recorded)
    runner.check(space)
    space.hash = "b" * 64
    with pytest.raises(InvalidInput, match="recorded for another space"):
        runner.check(space)


def test_a_configuration_that_was_not_recorded_is_refused(recorded):
    with pytest.raises(InvalidInput, match="holds no result of configuration"):
        ReplayRunner(recorded).run(WORKLOAD, [MmaConfig(chunk=8)])

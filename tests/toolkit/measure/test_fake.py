"""The fake runner: the same every time, failures on demand, and openly fake."""

from __future__ import annotations

import pytest

from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.measure.fake import FakeRunner
from subbyte.measure.runner import Runner
from subbyte.records.result import Failed, Measured
from subbyte.workload import ConvWorkload

WORKLOAD = ConvWorkload(8, 14, 14, 64, 64, 3, 3, 1)
CONFIGS = [MmaConfig(chunk=chunk, warp_row_tiles=rows) for chunk in (1, 2, 4, 8) for rows in (1, 2, 4, 8, 16)]


def test_it_is_a_runner_and_says_that_it_is_fake():
    with FakeRunner() as runner:
        assert isinstance(runner, Runner)
        (result,) = runner.run(WORKLOAD, CONFIGS[:1])
    assert isinstance(result, Measured)
    assert result.device["name"] == "fake"
    assert not result.verified


def test_results_depend_on_seed_and_configuration_alone():
    one, again, other = FakeRunner(1), FakeRunner(1), FakeRunner(2)
    assert one.run(WORKLOAD, CONFIGS) == [again.run(WORKLOAD, [config])[0] for config in CONFIGS]
    assert one.run(WORKLOAD, CONFIGS) != other.run(WORKLOAD, CONFIGS)
    assert len({result.microseconds for result in one.run(WORKLOAD, CONFIGS)}) == len(CONFIGS)


def test_switching_an_optimization_off_costs_time():
    runner = FakeRunner(noise=0.0)
    full, lowered = runner.run(WORKLOAD, [MmaConfig(), MmaConfig(duplicate_aware="none")])
    assert full.microseconds < lowered.microseconds


def test_failures_by_share_and_by_function():
    results = FakeRunner(failures={"timeout": 0.3, "build": 0.3}).run(WORKLOAD, CONFIGS)
    kinds = {result.kind for result in results if isinstance(result, Failed)}
    assert kinds == {"timeout", "build"}
    assert any(result.ok for result in results)
    broken = FakeRunner(failures=lambda config: Failed("wrong", "odd") if config.chunk == 2 else None)
    assert [result.ok for result in broken.run(WORKLOAD, CONFIGS)] == [config.chunk != 2 for config in CONFIGS]


def test_impossible_failures_are_refused():
    with pytest.raises(InvalidInput, match="did you mean timeout"):
        FakeRunner(failures={"time-out": 0.1})
    with pytest.raises(InvalidInput, match="at most 1"):
        FakeRunner(failures={"timeout": 0.7, "build": 0.7})

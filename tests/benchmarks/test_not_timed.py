"""Configurations that wait for a GPU: each can be built, lies in its layer's space, and is not the recorded one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import subbyte
from subbyte.kernel.choose import recorded_best
from subbyte.schedule import WarpgroupConfig

FILE = Path(__file__).parents[2] / "benchmarks" / "warpgroup_not_timed.json"
WAITING = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("spec", WAITING)
def test_each_is_new_and_can_be_built(spec: str) -> None:
    configs = [WarpgroupConfig.from_dict(one) for one in WAITING[spec]]
    assert len({config.key for config in configs}) == len(configs)
    space = subbyte.space(spec, kind="warpgroup")
    for config in configs:
        assert space.why_not(space.index(config)) is None
        assert config != WarpgroupConfig.from_dict(recorded_best()[spec]["config"])

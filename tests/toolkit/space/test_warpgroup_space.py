"""The space of the warpgroup family: the same interface as the others, so that tuning works with it."""

from dataclasses import replace
from math import log2

import pytest

import subbyte
from subbyte.errors import InvalidInput
from subbyte.families.mma.config import ConvConfig
from subbyte.families.wgmma.config import WarpgroupConfig
from subbyte.families.wgmma.estimate import estimated_cycles
from subbyte.families.wgmma.plan import WarpgroupPlan
from subbyte.families.wgmma.rules import why_not_warpgroup
from subbyte.families.wgmma.space import WarpgroupSpace
from subbyte.measure.fake import FakeRunner
from subbyte.records.describe import config_at, describe_space
from subbyte.tune.bundle import build_bundle
from subbyte.tune.search.features import Features
from subbyte.workload import ConvWorkload

SMALL = ConvWorkload(8, 4, 4, 64, 64, 3, 3, 1)


@pytest.fixture(scope="module")
def small():
    return subbyte.space(SMALL, kind="warpgroup")


def narrow(space):
    """The space with fewer values: sorting half a million products takes seconds."""
    few = {"groups_x": (1,), "segments": (2, 4), "split": (1,), "ring": (3, 4), "unroll": (1,)}
    return replace(space, knobs={**space.knobs, **few})


def test_indices_go_both_ways_and_valid_ones_have_no_reason(small):
    assert small.kind == "warpgroup"
    assert len(small.valid) + sum(small.refused.values()) == len(small)
    for index in small.valid[:: max(1, len(small.valid) // 50)]:
        config = small.config(index)
        assert isinstance(config, WarpgroupConfig)
        assert small.index(config) == index
        assert small.why_not(index) is None
        assert small.plan(index).config == config
    valid = set(small.valid)
    refused = next(index for index in range(len(small)) if index not in valid)
    assert small.why_not(refused)
    again = subbyte.space(SMALL, kind="warpgroup")
    assert again.index_hash == small.index_hash
    assert narrow(again).hash == narrow(small).hash != small.hash
    assert subbyte.space("resnet50.stage5@8", kind="warpgroup").knobs != small.knobs


def test_wrong_requests_are_refused(small):
    with pytest.raises(InvalidInput, match="index"):
        small.config(len(small))
    with pytest.raises(InvalidInput, match="WarpgroupConfig"):
        small.index(ConvConfig())
    with pytest.raises(InvalidInput, match="tile_width=28"):
        small.index(small.config(0).with_values({"tile_width": 28}))
    with pytest.raises(InvalidInput, match="did you mean layout"):
        subbyte.space(SMALL, kind="warpgroup", layuot="nhwc")
    with pytest.raises(InvalidInput, match="'ring' cannot be fixed in a warpgroup space"):
        subbyte.space(SMALL, kind="warpgroup", ring=4)
    with pytest.raises(InvalidInput, match="duplicate_aware='shared'"):
        subbyte.space(SMALL, kind="warpgroup", duplicate_aware="shared")
    with pytest.raises(InvalidInput, match="warpgroup"):
        subbyte.space(SMALL, kind="warpgruop")


def test_a_space_holds_the_switches(small):
    off = subbyte.space(SMALL, kind="warpgroup", duplicate_aware="none", register_packing="off", layout="nhwc")
    assert off.fixed == {"duplicate_aware": "none", "register_packing": False, "layout": "nhwc"}
    assert off.knobs == small.knobs
    assert off.index_hash != small.index_hash
    off, small = narrow(off), narrow(small)
    assert off.hash != small.hash
    assert off.valid
    index = off.valid[0]
    assert off.index(off.config(index)) == index
    assert off.config(index).key == WarpgroupConfig(**off.values_at(index)).key + "-dup.none-rp0-nhwc"
    assert config_at(describe_space(off), index) == off.config(index)
    with pytest.raises(InvalidInput, match="duplicate_aware=none: not in the warpgroup space"):
        small.index(off.config(index))
    lone = subbyte.space(ConvWorkload(8, 4, 4, 64, 64, 1, 1, 0), kind="warpgroup", duplicate_aware="none")
    reasons = [lone.why_not(index) for index in range(0, len(lone), len(lone) // 3000)]
    assert all(reasons)
    assert any("has no duplicates" in str(reason) for reason in reasons)


def test_when_weights_are_read_is_searched_where_it_matters(small):
    """Blocks with bulk weights alone have a choice there; it changes neither what else is valid nor how it is found."""
    names = ("early_start", "early_parameters", "late_parameters", "weights_ahead")
    for stage in (2, 3, 4, 5):
        knobs = subbyte.space(f"resnet50.stage{stage}@8", kind="warpgroup").knobs
        assert [knobs[name] for name in names] == [(0, 1, 2), (0, 1), (0, 1), (0, 3, 6)]
        assert not set(names) & set(subbyte.space(f"resnet50.stage{stage}@8", kind="warpgroup-small").knobs)
    assert not set(names) & set(small.knobs)
    lists = {"tile_width": (8,), "segments": (7,), "split": (1, 2), "ring": (3,), "unroll": (1, 2), "stagger": (0,),
             "load_ahead": (2, 1), "bulk_weights": (0, 1, 3)}  # fmt: skip
    layer, sm_90a = subbyte.workload("resnet50.stage5@8"), subbyte.device.arch("sm_90a")
    plain = WarpgroupSpace(layer, sm_90a, lists)
    added = {"late_parameters": (0, 1), "early_parameters": (0, 1), "early_start": (0, 2)}
    more = WarpgroupSpace(layer, sm_90a, {**added, **lists, "weights_ahead": (0, 3, 6)})
    assert list(more.valid) == [index for index in range(len(more)) if more.why_not(index) is None]
    found = [more.config(index) for index in more.valid]
    without = {config.with_values(dict.fromkeys(names, 0)) for config in found}
    assert without == {plain.config(index) for index in plain.valid}
    read_ahead = {(config.unroll, config.weights_ahead) for config in found}
    assert read_ahead == {(1, 0), (1, 3), (2, 0), (2, 3), (2, 6)}
    assert subbyte.space(layer, kind="warpgroup").listed
    assert not subbyte.space("resnet50.stage2@8", kind="warpgroup").listed


@pytest.mark.parametrize(("kernel", "pad"), [((1, 3), 1), ((1, 1), 1), ((3, 3), 3)])
def test_rows_that_meet_padding_alone_are_refused(kernel, pad):
    """Nobody would tell their consumers that they can go on."""
    assert "an output row meets padding alone" in str(_refusal(ConvWorkload(8, 6, 10, 64, 64, *kernel, pad)))
    assert "padding" not in str(_refusal(ConvWorkload(8, 6, 10, 64, 64, *kernel, 0)))


def _refusal(workload):
    config = WarpgroupConfig(tile_width=6, ring=3, stagger=0)
    return why_not_warpgroup(WarpgroupPlan(workload, config, subbyte.device.arch("sm_90a")))


def test_headers_give_the_configurations_back(small):
    header = describe_space(small)
    for index in small.valid[:: max(1, len(small.valid) // 20)]:
        assert config_at(header, index) == small.config(index)
    assert Features(small, "plan").names == (*Features(small, "knob").names, "estimate")
    estimates = Features(small, "plan")(small.valid[:3])[:, -1]
    assert estimates == pytest.approx([log2(estimated_cycles(small.plan(index))) for index in small.valid[:3]])


@pytest.mark.parametrize("strategy", ["auto", "autotvm", "genetic"])
def test_strategies_search_it(small, strategy):
    study = subbyte.Study(small, strategy, seed=1)
    runner = FakeRunner()
    for trial in study.ask(12):
        study.tell(trial, runner.run(SMALL, [trial.config])[0])
    assert isinstance(study.record.best_config, WarpgroupConfig)


def test_a_bundle_of_the_space_is_built(small, tmp_path):
    made = build_bundle(small, tmp_path, workers=1, indices=small.valid[:2])
    assert made.built == 2

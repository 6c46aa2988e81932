"""The space of the wgmma family: the same interface as the others, so that tuning works with it."""

from collections import Counter
from dataclasses import replace
from math import log2

import pytest

import subbyte
from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.cycles import estimated_cycles
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.space import WgmmaSpace
from subbyte.measure.fake import FakeRunner
from subbyte.records.describe import config_at, describe_space
from subbyte.tune.bundle import build_bundle
from subbyte.tune.search.features import Features
from subbyte.workload import ConvWorkload

SMALL = ConvWorkload(8, 4, 4, 64, 64, 3, 3, 1)


@pytest.fixture(scope="module")
def small():
    return subbyte.space(SMALL, kind="wgmma")


def narrow(space):
    """The space with fewer values: sorting half a million products takes seconds."""
    few = {"consumers_n": (1,), "segments": (2, 4), "cluster_split_k": (1,), "stages": (3, 4), "unroll": (1,)}
    return replace(space, knobs={**space.knobs, **few})


def test_indices_go_both_ways_and_valid_ones_have_no_reason(small):
    assert small.kind == "wgmma"
    assert len(small.valid) + sum(small.refused.values()) == len(small)
    for index in small.valid[:: max(1, len(small.valid) // 50)]:
        config = small.config(index)
        assert isinstance(config, WgmmaConfig)
        assert small.index(config) == index
        assert small.check(index) is None
        assert small.plan(index).config == config
    valid = set(small.valid)
    refused = next(index for index in range(len(small)) if index not in valid)
    assert small.check(refused)
    again = subbyte.space(SMALL, kind="wgmma")
    assert again.index_hash == small.index_hash
    assert narrow(again).hash == narrow(small).hash != small.hash
    assert subbyte.space("resnet50.stage5@8", kind="wgmma").knobs != small.knobs


FEW = {
    "n8h6w14c128k64r3s3p1": {
        "tile_width": (14, 6), "tile_rows": (1,), "consumers_m": (1,), "consumers_n": (1,), "consumers_rows": (1, 2),
        "segments": (1, 6), "cluster_split_k": (1, 2), "stages": (3, 9), "load_ahead": (2,), "unroll": (1, 2),
        "in_flight": (1, 3), "stagger": (0,), "multicast": (0, 2), "dependent_launch": (1, 0), "parameters": (0, 2),
    },
    "n8h6w14c64k64r3s3p1": {
        "tile_width": (14,), "tile_rows": (1,), "consumers_n": (1, 2), "segments": (6,), "stages": (3,),
        "stagger": (0,), "multicast": (0, 2), "weights_ahead": (0, 3, 9), "early_start": (0, 2),
    },
    "n16h7w7c256k128r1s1p0": {
        "tile_width": (14,), "tile_rows": (1,), "segments": (1, 4), "stages": (2, 4), "stagger": (0, 2),
        "unroll": (1, 4), "in_flight": (1, 2), "channel_groups": (1, 4), "row_reuse": (1, 0), "producers": (1, 2),
        "pixels": (0, 2), "start": (0, 1), "load_ahead": (2, 1), "producer_registers": (0, 104),
    },
}  # fmt: skip
"""Values of every step that a rule may be asked at."""


@pytest.mark.parametrize("spec", FEW)
def test_sorting_at_once_is_the_same_as_asking_each(spec):
    space = replace(subbyte.space(spec, kind="wgmma"), knobs=FEW[spec])
    reasons = {index: space.check(index) for index in range(len(space))}
    assert space.valid == tuple(index for index, reason in reasons.items() if reason is None)
    assert 0 < len(space.valid) < len(space)
    assert space.refused == Counter(reason.split(":")[0] for reason in reasons.values() if reason)


def test_wrong_requests_are_refused(small):
    with pytest.raises(InvalidInput, match="index"):
        small.config(len(small))
    with pytest.raises(InvalidInput, match="PipelineConfig or a SingleTileConfig"):
        small.index(MmaConfig())
    with pytest.raises(InvalidInput, match="tile_width=28"):
        small.index(small.config(0).with_values({"tile_width": 28}))
    with pytest.raises(InvalidInput, match="did you mean layout"):
        subbyte.space(SMALL, kind="wgmma", layuot="nhwc")
    with pytest.raises(InvalidInput, match="'stages' cannot be fixed in a wgmma space"):
        subbyte.space(SMALL, kind="wgmma", stages=4)
    with pytest.raises(InvalidInput, match="duplicate_aware='shared'"):
        subbyte.space(SMALL, kind="wgmma", duplicate_aware="shared")
    with pytest.raises(InvalidInput, match="wgmma"):
        subbyte.space(SMALL, kind="wgmna")


def test_a_space_holds_the_switches(small):
    off = subbyte.space(SMALL, kind="wgmma", duplicate_aware="none", register_packing="off", layout="nhwc")
    assert off.fixed == {"duplicate_aware": "none", "register_packing": False, "layout": "nhwc"}
    assert off.knobs == small.knobs
    assert off.index_hash != small.index_hash
    off, small = narrow(off), narrow(small)
    assert off.hash != small.hash
    assert off.valid
    index = off.valid[0]
    assert off.index(off.config(index)) == index
    assert off.config(index).key.endswith("-dup.none-rp0-nhwc")
    assert config_at(describe_space(off), index) == off.config(index)
    with pytest.raises(InvalidInput, match="duplicate_aware=none: not in the wgmma space"):
        small.index(off.config(index))
    lone = subbyte.space(ConvWorkload(8, 4, 4, 64, 64, 1, 1, 0), kind="wgmma", duplicate_aware="none")
    reasons = [lone.check(index) for index in range(0, len(lone), len(lone) // 3000)]
    assert all(reasons)
    assert any("has no duplicates" in str(reason) for reason in reasons)


ORDER = ("weights_ahead", "parameters", "early_start")
"""Knobs of a single tile iteration that say when it reads what."""


def test_when_weights_are_read_is_searched_where_it_matters(small):
    """It changes neither what else is valid nor how it is found."""
    for stage in (2, 3, 4, 5):
        knobs = subbyte.space(f"resnet50.stage{stage}@8", kind="wgmma").knobs
        assert [knobs[name] for name in ORDER] == [(0, 3, 6), (0, 1, 2), (0, 1, 2)]
        assert not set(ORDER) & set(subbyte.space(f"resnet50.stage{stage}@8", kind="wgmma-small").knobs)
    assert not set(ORDER) & set(small.knobs)
    lists = {"tile_width": (8,), "segments": (7,), "cluster_split_k": (1, 2), "stages": (3,), "unroll": (1, 2),
             "stagger": (0,), "load_ahead": (2, 1), "multicast": (0, 1, 3)}  # fmt: skip
    layer, sm_90a = subbyte.workload("resnet50.stage5@8"), subbyte.device.arch("sm_90a")
    plain = WgmmaSpace(layer, sm_90a, lists)
    more = WgmmaSpace(
        layer, sm_90a, {"parameters": (0, 1, 2), "early_start": (0, 2), **lists, "weights_ahead": (0, 3, 6)}
    )
    assert list(more.valid) == [index for index in range(len(more)) if more.check(index) is None]
    found = [more.config(index) for index in more.valid]
    singles = [config for config in found if isinstance(config, SingleTileConfig)]
    without = {config.with_values(dict.fromkeys(ORDER, 0)) for config in singles}
    assert without | set(found) - set(singles) == {plain.config(index) for index in plain.valid}
    read_ahead = {(config.unroll, config.weights_ahead) for config in singles}
    assert read_ahead == {(1, 0), (1, 3), (2, 0), (2, 3), (2, 6)}
    assert subbyte.space(layer, kind="wgmma").listed
    assert not subbyte.space("resnet50.stage5@256", kind="wgmma").listed


def test_a_knob_of_the_other_kernel_is_no_other_program(small):
    """Every kernel has one index: the other kernel's knobs are at the first of their values."""
    configs = [small.config(index) for index in small.valid]
    assert {type(config) for config in configs} == {PipelineConfig, SingleTileConfig}
    assert len(set(configs)) == len(configs)
    single = next(index for index in small.valid if small.values_at(index)["multicast"])
    weight = 1
    for name, values in small.knobs.items():
        if name == "stages":
            assert small.check(single + weight).startswith("same program: stages has no meaning with multicast")
        weight *= len(values)


@pytest.mark.parametrize(("kernel", "pad"), [((1, 3), 1), ((1, 1), 1), ((3, 3), 3)])
def test_rows_that_meet_padding_alone_are_refused(kernel, pad):
    """Nobody would tell their consumers that they can go on."""
    assert "an output row reads only padding" in str(_refusal(ConvWorkload(8, 6, 10, 64, 64, *kernel, pad)))
    assert "padding" not in str(_refusal(ConvWorkload(8, 6, 10, 64, 64, *kernel, 0)))


def _refusal(workload):
    config = PipelineConfig(tile_width=6, stages=3, stagger=0)
    return why_not(WgmmaPlan(workload, config, subbyte.device.arch("sm_90a")))


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
    assert isinstance(study.record.best_config, WgmmaConfig)


@pytest.mark.deep
def test_a_bundle_of_the_space_is_built(small, tmp_path):
    made = build_bundle(small, tmp_path, workers=1, indices=small.valid[:2])
    assert made.built == 2

"""Names, keys, fields and spaces of earlier versions of the wgmma family: read as they were meant, never written."""

import warnings
from dataclasses import replace

import pytest

import subbyte
from subbyte.device.arch import arch
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.registry import config_from_dict, config_from_key, family_named, family_of, kind_named
from subbyte.families.wgmma import translate
from subbyte.families.wgmma.former import RetiredConfig
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.workload import workload

H200, FAMILY = arch("sm_90a"), family_named("warpgroup")
LAYER = workload("n8h7w7c256k64r3s3p1")
KNOBS = {"tile_width": (8,), "groups_m": (1,), "segments": (4, 7), "split": (1, 2), "ring": (3, 4),
         "load_ahead": (2, 1), "at_once": (0, 2), "bulk_weights": (0, 1), "stagger": (0,)}  # fmt: skip
PAIRS = [
    ("wg-tw14-tr2-gm2-sg2-ri6", PipelineConfig(tile_width=14, tile_rows=2, consumers_m=2, segments=2, stages=6)),
    ("wg-tw8-tr1-gm1-gx2-gy2-sg4-fp2-sp2-cg4-ri4-kr0-sta2",
     PipelineConfig(tile_width=8, consumers_n=2, consumers_rows=2, segments=4, m_iterations=2, cluster_split_k=2,
                    channel_groups=4, stages=4, row_reuse=0, stagger=2)),
    ("wg-tw8-tr1-gm1-sg1-ri3-er1-pl1-ls1-nhwc",
     PipelineConfig(tile_width=8, stages=3, row_reuse=2, start=3, layout="nhwc")),
    ("wg-tw8-tr1-gm1-sg1-cg2-ri3-kr0-fl1-jo1-pp1-rp0",
     PipelineConfig(tile_width=8, channel_groups=2, stages=3, row_reuse=3, pixels=2, register_packing=False)),
    ("wg-tw8-tr1-gm1-sg7-sp2-ri3-la1-sta0-bw2-wa3-lp1-es1",
     SingleTileConfig(tile_width=8, segments=7, cluster_split_k=2, multicast=2, weights_ahead=3, parameters=1,
                      early_start=1)),
    ("wg-tw8-tr1-gm1-sg7-ri3-la1-sta0-ov0-bw1",
     SingleTileConfig(tile_width=8, segments=7, multicast=1, dependent_launch=0)),
    ("wg-tw8-tr1-gm1-sg7-ri3-la1-sta0-bw1-ep1", SingleTileConfig(tile_width=8, segments=7, parameters=2)),
]  # fmt: skip


@pytest.mark.parametrize(("key", "meant"), PAIRS)
def test_keys_mean_configurations_of_today_and_back(key, meant):
    found = config_from_key(key)
    assert found == config_from_key(key.upper()) == config_from_key(meant.key) == meant
    assert config_from_dict(RetiredConfig.from_key(key).to_dict()) == config_from_dict(meant.to_dict()) == meant
    before = translate.before(meant, stages=3 if isinstance(meant, SingleTileConfig) else None, strided="fl1" in key)
    assert before.key == key
    assert family_of(found) is FAMILY


@pytest.mark.parametrize(("part", "said"), [
    ("ao2", "at_once=2"), ("wr8", "weight_ring=8"), ("sw1", "swizzle=1"), ("bl2", "blocks=2"), ("ov0", "overlap=0"),
])  # fmt: skip
def test_a_kernel_with_a_knob_that_is_no_more_has_a_name_and_cannot_be_built(part, said):
    key = f"wg-tw8-tr1-gm1-sg7-ri3-{part}"
    config = config_from_key(key)
    assert isinstance(config, RetiredConfig)
    assert config_from_dict(config.to_dict()) == config
    assert (config.key.split("-")[-1], FAMILY.owns(config)) == (part, True)
    assert isinstance(FAMILY.stand_in(config), PipelineConfig)
    with pytest.raises(Unsupported, match=f"retired: {said} is of a knob that is no more; what was measured"):
        subbyte.build(LAYER, config)


@pytest.mark.parametrize(
    "key", ["wg-tw8-tr1-gm1-sg7-ri3-bw1", "wg-tw8-tr1-gm1-sg7-ri3-wa2", "wg-tw8-tr1-gm1-sg7-ri3-pp1"]
)
def test_what_never_was_a_kernel_is_none_today(key):
    """It keeps its name, and the reason that it always had."""
    config = config_from_key(key)
    assert config.key == key
    with pytest.raises(Unsupported, match=r"cannot be built: (stages|same program): "):
        FAMILY.plan(LAYER, config, H200)


def test_records_name_knobs_that_were_removed_first():
    recorded = {**RetiredConfig(tile_width=14, ring=6).to_dict(), "groups_k": 1, "share": 1, "staging": 0}
    assert config_from_dict(recorded) == PipelineConfig(tile_width=14, stages=6)
    for name, value in (("groups_k", 2), ("share", 4), ("staging", 3)):
        with pytest.raises(Unsupported, match=f"{name}={value}: this knob was removed"):
            config_from_dict({**recorded, name: value})
    for wrong in ("wg-tw14-zz9", "wg-tw14-tw8", "wg-tw0", "wg-tw14-st4"):
        with pytest.raises(InvalidInput):
            config_from_key(wrong)
    with pytest.raises(InvalidInput, match="at_once"):
        config_from_dict({"groups_m": 1, "at_once": -1})


def test_values_may_be_given_by_their_names_of_then():
    base = PipelineConfig(tile_width=14, stages=6)
    assert FAMILY.changed(base, {"RING": "3", "groups_m": 2}) == replace(base, stages=3, consumers_m=2)
    assert FAMILY.changed(base, {"keep_rows": 0, "segments": 7}) == replace(base, row_reuse=0, segments=7)
    assert FAMILY.changed(base, {"multicast": 2, "segments": 14}) == SingleTileConfig(
        tile_width=14, segments=14, multicast=2
    )
    assert isinstance(FAMILY.changed(base, {"swizzle": 1}), RetiredConfig)
    with pytest.raises(InvalidInput, match="unknown knob 'rong'"):
        FAMILY.changed(base, {"rong": 1})


def space(kind="warpgroup-small", knobs=None):
    return FAMILY.recorded_space(LAYER, H200, kind, knobs or KNOBS, FAMILY.held({}), "recorded")


def test_an_index_of_a_recorded_space_means_what_it_meant():
    made = space()
    assert len(made) == 64
    assert made.hash == "recorded"
    assert made.index_hash != space("warpgroup").index_hash
    for index in range(len(made)):
        recorded = RetiredConfig(**made.values_at(index), **made.fixed)
        assert made.config(index) == config_from_key(recorded.key)
    valid = {made.config(index) for index in made.valid}
    assert {type(config) for config in valid} == {PipelineConfig, SingleTileConfig}
    assert len(valid) == len(made.valid)
    for index in made.valid:
        config = made.config(index)
        assert made.index(config) == index
        assert made.check(config) is made.check(index) is None
        assert made.plan(index) == WgmmaPlan(LAYER, config, H200)
    assert set(made.refused) >= {"retired", "stages"}
    assert sum(made.refused.values()) + len(made.valid) == len(made)


def test_what_is_retired_in_a_recorded_space_is_said():
    made = space()
    index = next(i for i in range(len(made)) if made.values_at(i)["at_once"])
    assert made.check(index) == "retired: at_once=2 is of a knob that is no more"
    assert made.index(made.config(index)) == index
    with pytest.raises(Unsupported, match="retired"):
        made.plan(index)
    rings = [i for i in range(len(made)) if made.values_at(i)["bulk_weights"] and made.values_at(i)["ring"] == 4]
    assert any("ring must be 3" in str(made.check(i)) for i in rings)
    with pytest.raises(InvalidInput, match="tile_width=14: not in the warpgroup-small space"):
        made.index(PipelineConfig(tile_width=14))


def test_old_kinds_of_spaces_are_those_that_took_their_place():
    assert [kind_named(kind)[0] for kind in ("warpgroup", "warpgroup-small")] == ["wgmma", "wgmma-small"]
    assert subbyte.space(LAYER, kind="warpgroup").index_hash == subbyte.space(LAYER, kind="wgmma").index_hash


def test_public_names_stay_with_a_warning():
    from subbyte import families

    with pytest.warns(DeprecationWarning, match="PipelineConfig or SingleTileConfig"):
        old = subbyte.WarpgroupConfig
    with pytest.warns(DeprecationWarning, match="WgmmaPlan"):
        assert families.WarpgroupPlan is WgmmaPlan
    config = old(tile_width=14, groups_m=2, ring=5)
    assert config == old.from_dict({"tile_width": 14, "groups_m": 2, "ring": 5}) == old.from_key(config.key)
    assert config == PipelineConfig(tile_width=14, consumers_m=2, stages=5)
    assert all(isinstance(one, old) for one in (config, old(at_once=2), old(bulk_weights=1, load_ahead=1, stagger=0)))
    with pytest.warns(DeprecationWarning, match="ring: a field of earlier versions"):
        assert config.ring == 5
    with pytest.raises(AttributeError, match="rong"):
        _ = config.rong
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert config.stages == 5

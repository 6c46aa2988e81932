"""Configurations: what they accept, their names, and what they say when refused."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from subbyte.device.arch import ARCHS
from subbyte.device.atoms import atom
from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput
from subbyte.families.mma.config import KNOBS, SWITCHES, MmaConfig
from subbyte.families.registry import config_from_dict, config_from_key
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.single.config import SingleTileConfig


def test_sizes() -> None:
    config = MmaConfig(2, 4, 7, 2, split_channels=2)
    assert (config.pixels, config.columns, config.threads) == (14, 64, 512)


def test_fields_are_knobs_switches_and_atom() -> None:
    names = [field.name for field in fields(MmaConfig)]
    assert names[:6] == list(KNOBS)
    assert set(SWITCHES) < set(names)
    with pytest.raises(FrozenInstanceError):
        MmaConfig().chunk = 2  # type: ignore[misc]


def test_round_trips() -> None:
    config = MmaConfig(4, 1, 8, 2, 2, 1, 4, 3, 2, 2, 1, "shared", False, "nhwc", "s4.m16n8k64")
    assert MmaConfig.from_dict(config.to_dict()) == config
    assert MmaConfig.from_dict({name.upper(): str(value) for name, value in config.to_dict().items()}) == config


def test_key_names_every_field() -> None:
    base = MmaConfig()
    changes: dict[str, object] = {
        "blk_row_warps": 4, "blk_col_warps": 4, "warp_row_tiles": 8, "warp_col_tiles": 8, "chunk": 8,
        "reorder_inner": 1, "tile_height": 2, "stages": 4, "split_channels": 2, "min_blocks": 2, "unroll": 2,
        "duplicate_aware": "none", "register_packing": False, "layout": "nhwc", "atom": "s4.m8n8k32",
    }  # fmt: skip
    assert set(changes) == {field.name for field in fields(MmaConfig)}
    keys = {base.key, *(base.with_values({name: value}).key for name, value in changes.items())}
    assert len(keys) == 1 + len(changes)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"chunk": 0}, "chunk=0: must be an integer >= 1"),
        ({"chunk": 1.5}, "chunk=1.5"),
        ({"chunk": True}, "chunk=True"),
        ({"chunk": "many"}, "chunk='many': must be an integer"),
        ({"reorder_inner": 2}, "reorder_inner=2: allowed: 0, 1"),
        ({"tile_height": -1}, "tile_height=-1: must be an integer >= 0"),
        ({"duplicate_aware": "ful"}, "did you mean full"),
        ({"layout": "nchw"}, "layout='nchw'"),
        ({"atom": "s4.m16n8k128"}, "did you mean s4.m16n8k"),
        ({"register_packing": "maybe"}, "allowed: true, false"),
        ({"register_packing": 2}, "allowed: true, false"),
        ({"chunck": 1}, "unknown knob 'chunck': did you mean chunk"),
    ],
)
def test_refused_with_the_name_and_what_is_allowed(values: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        MmaConfig().with_values(values)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "config",
    [
        MmaConfig(),
        MmaConfig(4, 1, 8, 2, 2, 1, tile_height=2, stages=3, split_channels=2, min_blocks=1, unroll=2),
        MmaConfig(duplicate_aware="none", register_packing=False, layout="nhwc", atom="s8.m16n8k32"),
    ],
)
def test_a_key_names_its_configuration(config: MmaConfig) -> None:
    assert MmaConfig.from_key(config.key) == config
    assert MmaConfig.from_key(f" {config.key.upper()} ") == config


@pytest.mark.parametrize("key", ["", "brw4-zz3", "brw", "brw4bcw2", "dup.", "brw4-bcwx", "brw0"])
def test_a_key_that_means_nothing_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput):
        MmaConfig.from_key(key)


@pytest.mark.parametrize("family", [MmaConfig, PipelineConfig, SingleTileConfig])
@pytest.mark.parametrize("given", [None, 3, b"brw1", ["brw1"]])
def test_what_is_no_key_and_holds_no_fields_is_refused(family: Any, given: Any) -> None:
    for read in (family.from_key, config_from_key):
        with pytest.raises(InvalidInput, match="expected the text of a key, such as "):
            read(given)
    for read in (family.from_dict, family().with_values, config_from_dict):
        with pytest.raises(InvalidInput, match="expected names with values"):
            read(given)


@pytest.mark.parametrize(
    ("read", "given", "message"),
    [
        (MmaConfig.from_key, "ch2-ch4", "'ch4' gives chunk a second time"),
        (MmaConfig.from_key, "ch2-nhwc-nhwcnc", "'nhwcnc' gives layout a second time"),
        (config_from_key, "wgp-tw8-st4-tw8", "'tw8' gives tile_width a second time"),
        (PipelineConfig.from_key, "rp0-rp0", "'rp0' gives register_packing a second time"),
        (PipelineConfig.from_dict, {"stages": 4, "STAGES": 5}, "knob 'STAGES': stages occurs twice"),
        (MmaConfig.from_dict, {"tile-height": 1, "tile_height": 1}, "tile_height occurs twice"),
        (PipelineConfig.from_dict, {1: 2}, "unknown knob 1"),
        (PipelineConfig.from_dict, {None: 2}, "unknown knob None"),
        (PipelineConfig.from_key, "tw" + "9" * 5000, "must be an integer"),
    ],
)
def test_what_is_given_twice_or_is_no_name_is_refused(read: Any, given: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(given)
    assert message in str(refused.value)
    assert "groups_k" not in str(refused.value)


def test_unknown_atom() -> None:
    with pytest.raises(InvalidInput, match=r"unknown atom 's8.m16n8k64': did you mean"):
        atom("s8.m16n8k64", ARCHS["sm_80"])
    assert atom("auto", ARCHS["sm_75"]).name == "s4.m8n8k32"


def test_launch_is_plain_data() -> None:
    launch = Launch("conv_kernel", (2, 1, 1), (64, 1, 1), 128, (Argument("A", "uint32", (3, 4), "in", "nhwc"),))
    assert launch.arguments[0].nbytes == 48
    assert launch.to_dict()["arguments"][0] == {
        "name": "A", "dtype": "uint32", "shape": (3, 4), "role": "in", "form": "nhwc",
    }  # fmt: skip

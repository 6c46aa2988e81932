"""What is expected of kernels that nobody measured: trees, the search by them, and what a user is told."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import subbyte
from subbyte.device.arch import arch
from subbyte.families.trees import Trees, whole_tree
from subbyte.families.wgmma import batches, features, likely, model
from subbyte.families.wgmma.batches import ALIKE
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.family import WGMMA
from subbyte.families.wgmma.likely import division
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.kernel.choose import TRIES, best_known

TARGET = arch("sm_90a")
RESOURCES = Path(__file__).resolve().parents[3] / "benchmarks/results/resources/wgmma.csv.gz"


def walked(nodes, row):
    """The leaf of a tree that a row ends in."""
    node = nodes[0]
    while not isinstance(node, float):
        place, threshold, left, right = node
        node = nodes[left if np.float32(row[place]) < np.float32(threshold) else right]
    return node


def test_whole_trees_say_what_the_trees_said():
    uneven = {0: (1, 0.5, 1, 2), 1: (0, -1.0, 3, 4), 2: 7.0, 3: 1.0, 4: (2, 0.25, 5, 6), 5: 2.0, 6: 3.0}
    stump = {0: -4.0}
    parts = list(zip(*(whole_tree(nodes, 3) for nodes in (uneven, stump)), strict=True))
    trees = Trees(0.5, *(np.array(part, dtype=kind) for part, kind in zip(parts, ("i4", "f4", "f4"), strict=True)))
    rows = np.random.default_rng(0).normal(size=(200, 3))
    rows[0] = 0.0, 0.5, 0.25  # what equals a threshold goes right
    expected = [0.5 - 4.0 + walked(uneven, row) for row in rows]
    assert set(expected) == {-2.5, -1.5, -0.5, 3.5}
    assert trees.predict(rows).tolist() == expected
    assert Trees.of(json.loads(json.dumps(trees.to_dict()))).predict(rows).tolist() == expected
    assert trees.predict([]).tolist() == []


def test_what_ships_is_small_and_of_this_version():
    assert model.FILE.stat().st_size < 220_000
    data = json.loads(model.FILE.read_text(encoding="utf-8"))
    assert model.read(data).judged == data["judged"]
    with pytest.raises(ValueError, match="train it again"):
        model.read({**data, "features": data["features"][1:]})
    assert all(why_not(WgmmaPlan(one.layer, one.config, TARGET)) is None for one in model.shipped().winners)


@pytest.mark.sample("n41")
@pytest.mark.parametrize("spec", ["n41h90w7c944k24r6s6p0", "n9h42w222c176k624r1s1p0u2"])
def test_candidates_can_be_built_and_the_first_are_of_many_kinds(spec):
    layer = subbyte.workload(spec)
    found = list(WGMMA.candidates(layer, TARGET))
    assert len(found) == len(set(found)) > TRIES
    assert all(WGMMA.check(WGMMA.plan(layer, config, TARGET)) is None for config in found[:20])
    kinds = Counter(map(division, found[:TRIES]))
    assert max(kinds.values()) <= ALIKE
    rows = [features.row(WgmmaPlan(layer, config, TARGET)) for config in found[:TRIES]]
    assert all(len(row) == len(features.NAMES) for row in rows)
    assert sum(odds < batches.SAFE_ODDS for odds in model.shipped().odds(rows)) >= batches.SAFE


def test_what_the_compiler_hardly_refuses_is_tried_before_another_family(monkeypatch):
    layer, odds = subbyte.workload("n8h8w8c64k64r3s3p1"), np.full(9, 0.2)
    configs = batches.searched(layer, TARGET)[:9]
    monkeypatch.setattr(model.Model, "odds", lambda self, rows: odds[: len(rows)])
    assert batches.hedged(configs, layer, TARGET) == list(configs)
    odds[[1, 6, 8]] = 0.01  # one of the leading stays where it is, the third of them too
    assert batches.hedged(configs, layer, TARGET) == [configs[at] for at in (0, 1, 2, 3, 6, 4, 5, 7, 8)]


@pytest.mark.parametrize("spec", ["n8h9w32c600k32r5s5p0", "n8h20w21c592k64r1s1p0"])
def test_a_prime_number_of_channel_blocks_is_divided_whole_or_not_at_all(spec, monkeypatch):
    layer = subbyte.workload(spec)
    assert layer.channel_blocks == 19
    lists = likely.lists_of(layer)
    assert lists["channel_groups"] == (1, 19)
    assert lists["tile_width"][-2:] == (8, 10)  # the widest whose 19 blocks a producer loads at once
    found = likely.likeliest(layer, TARGET, model.shipped().rank, model.shipped().winners, wide=False)
    assert {one.schedule.channel_groups for one in found} == {1, 19}
    assert all(why_not(WgmmaPlan(layer, one, TARGET)) is None for one in list(found)[:20])
    monkeypatch.setattr(likely, "FEW_BLOCKS", 32)  # as it was before
    assert 19 not in likely.lists_of(layer)["channel_groups"]


def test_small_batches_reach_the_kernel_of_a_single_tile():
    config, reason = best_known(subbyte.workload("n16h27w27c128k128r3s3p1"))
    assert isinstance(config, SingleTileConfig)
    assert "not measured yet" in reason
    assert "us expected by a model of" in reason
    assert "of layers left out" in reason


def test_a_padded_batch_takes_what_was_measured_at_the_whole_one():
    for stage in (2, 5):
        config, reason = best_known(subbyte.workload(f"resnet50.stage{stage}@1"), family="wgmma")
        recorded, _ = best_known(subbyte.workload(f"resnet50.stage{stage}@8"))
        assert config == recorded
        assert reason.endswith("measured at batch 8, the same work")


@pytest.fixture
def fresh():
    """Choices that a test changes are not kept."""
    batches.choice.cache_clear()
    yield
    batches.choice.cache_clear()


@pytest.mark.deep
@pytest.mark.usefixtures("fresh")
def test_no_stage_is_expected_to_be_slower_than_measured_at_a_larger_batch(monkeypatch):
    layer = subbyte.workload("n40h56w56c128k128r3s3p1u2")  # measured at batches 8, 64 and 256
    monkeypatch.setattr(batches, "expected", lambda *_: 1e3)  # nothing is expected to be that fast
    held = batches.ranked(layer, TARGET)
    assert held[0] == best_known(replace(layer, n=64))[0]
    assert batches.told(layer, held[0], TARGET).endswith("measured at batch 64, no less work")
    assert len(held) == len(set(held))


def test_what_was_measured_at_a_batch_gives_way_to_what_was_faster_at_a_larger_one():
    """Stage 5 was measured at batches 40 and 48, and took longer at 40."""
    found = {n: batches.choice(subbyte.workload(f"resnet50.stage5@{n}"), TARGET) for n in (40, 48)}
    assert found[40] == found[48]
    assert found[48].measured
    assert found[48].groups == 6


@pytest.mark.usefixtures("fresh")
def test_a_layer_takes_what_is_expected_to_be_faster_at_a_larger_batch(monkeypatch):
    """Made-up expectations: the slowest is in the middle, so that of smaller batches takes its kernel from a larger."""
    layer = subbyte.workload("n8h20w20c64k64r3s3p0")
    times = {1: 9.0, 2: 12.0, 3: 11.0, 4: 10.0, 5: 13.0, 6: 14.0, 7: 15.0, 8: 16.0}
    monkeypatch.setattr(batches, "expected", lambda layer, *_: times[layer.batch_groups])
    found = {g: batches.choice(replace(layer, n=8 * g), TARGET) for g in times}
    assert [found[g].microseconds for g in times] == [9.0, 10.0, 10.0, 10.0, 13.0, 14.0, 15.0, 16.0]
    assert [found[g].groups for g in times] == [1, 4, 4, 4, 5, 6, 7, 8]
    assert found[2].config == found[4].config
    text = batches.told(replace(layer, n=13), found[2].config, TARGET)
    assert text.startswith("not measured yet; 10.00 us expected at batch 32, no less work, by a model of")


LAYERS = ("resnet50.stage2@1", "resnet50.stage5@1", "n1h16w145c64k32r3s3p0", "n1h18w35c56k832r1s1p0u2")
"""A wide and a narrow stage, and two layers that are held out."""


@pytest.mark.deep
@pytest.mark.parametrize("spec", LAYERS)
def test_no_batch_is_expected_to_be_slower_than_a_larger_one(spec):
    layer = subbyte.workload(spec)
    found = [batches.choice(replace(layer, n=8 * groups), TARGET) for groups in range(1, 9)]
    times = [one.microseconds for one in found]
    assert times == sorted(times)
    for groups, one in enumerate(found, 1):
        assert why_not(WgmmaPlan(replace(layer, n=8 * groups), one.config, TARGET)) is None
        assert batches.ranked(replace(layer, n=8 * groups - 3), TARGET)[0] == one.config


def test_a_chain_of_larger_batches_ends():
    assert [batches._next(one) for one in (1, 7, 8, 9, 15, 16, 17, 18, 31, 32, 33)] == [
        2, 8, 8, 10, 16, 16, 18, 20, 32, 32, 36,
    ]  # fmt: skip


def test_registers_are_expected_as_the_compiler_takes_them():
    """Of kernels of the table of resources whose registers nothing bounds; what the estimate counts is further off."""
    lines = gzip.decompress(RESOURCES.read_bytes()).decode().splitlines()[1:]
    free = []
    for one in list(csv.DictReader(lines))[::3]:
        config = WGMMA.stand_in(WGMMA.from_key(one["key"]))
        plan = WgmmaPlan(subbyte.workload(one["workload"]), config, TARGET)
        if int(one["registers"]) and plan.registers == (255, 255) and why_not(plan) is None:
            free.append((plan, int(one["registers"])))
    assert len(free) > 60
    off = [min(255.0, features.expected_registers(plan)) - taken for plan, taken in free]
    counted = [min(255, plan.accumulators + 64) - taken for plan, taken in free]
    assert np.sqrt(np.mean(np.square(off))) < 0.75 * np.sqrt(np.mean(np.square(counted)))

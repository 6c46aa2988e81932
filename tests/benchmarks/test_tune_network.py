"""Tuning of networks, from the list of studies to what the package keeps, with made-up times."""

import argparse
import gzip
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import collect_tuning
import network_tuning
import tune_network

from subbyte.device.arch import arch
from subbyte.errors import BuildFailed
from subbyte.measure.fake import FakeRunner
from subbyte.measure.replay import ReplayRunner
from subbyte.schedule import ConvConfig, WarpgroupConfig
from subbyte.space.warpgroup import warpgroup_space
from subbyte.tune import Landscape, Study
from subbyte.tune.recorded import space_of
from subbyte.workload import ConvWorkload, workloads

SMALL = ConvWorkload(8, 7, 7, 64, 64, 1, 1, name="small@8")


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(2) as threads:
        yield threads


def test_every_layer_is_tuned_once_in_both_families():
    tasks = tune_network.tasks()
    assert len({task.name for task in tasks}) == len(tasks)
    layers = workloads(["resnet50@8", "resnet50@64", "resnet50@256", "resnet18@8", "vgg16@8"])
    searched = {task.workload for task in tasks if task.kind == "warpgroup"}
    assert searched == set(layers)
    other = {task.workload for task in tasks if task.kind in ("paper", "extended")}
    assert other >= {layer for layer in layers if layer.n == 8}
    sampled = [task.workload.label for task in tasks if task.kind == tune_network.SAMPLED]
    assert sampled == [f"resnet50.stage{stage}@{batch}" for batch in (8, 256) for stage in (2, 3, 4, 5)]
    assert max(task.trials for task in tune_network.tasks(most=7)) == 7


def test_a_space_sorted_out_in_parts_is_the_space(pool, monkeypatch, tmp_path):
    monkeypatch.setattr(network_tuning, "PART", 5000)
    found, by_estimate = network_tuning.sorted_space(SMALL, "sm_90a", pool, tmp_path)
    again, _ = network_tuning.sorted_space(SMALL, "sm_90a", None, tmp_path)
    assert again.valid == found.valid
    plain = warpgroup_space(SMALL, arch("sm_90a"))
    assert len(plain) > 3 * network_tuning.PART
    assert found.valid == plain.valid
    assert found.refused == plain.refused
    assert found.hash == plain.hash
    assert sorted(by_estimate) == list(plain.valid)
    likely = network_tuning.likely(SMALL, "sm_90a", 2)
    first = network_tuning.seeds(found, likely, by_estimate, 6)
    assert 0 < len(first) <= 6
    assert found.config(by_estimate[0]) in first
    known = found.config(by_estimate[-1])
    some, listed = network_tuning.sorted_space(SMALL, "sm_90a", pool, None, 3000, [known, WarpgroupConfig(ring=99)])
    assert set(some.valid) < set(found.valid)
    assert some.index(known) in listed
    assert some.listed


def test_local_memory_is_refused(monkeypatch):
    class Kernel:
        class resources:
            local_bytes = 16

    monkeypatch.setattr(network_tuning.subbyte, "build", lambda *_: Kernel)
    with pytest.raises(BuildFailed, match="16 bytes of local memory"):
        network_tuning.build_clean(SMALL, WarpgroupConfig(), "sm_90a")
    assert network_tuning.build_clean(SMALL, ConvConfig(), "sm_90a") is Kernel


def test_what_one_takes_nobody_else_does(tmp_path):
    (tmp_path / "claims").mkdir()
    tasks = [tune_network.Task(SMALL, kind, 4) for kind in ("warpgroup", "paper")]
    mine = tune_network.claimed(tmp_path, tasks, time.time() + 60)
    assert next(mine).kind == "warpgroup"
    assert [task.kind for task in tune_network.claimed(tmp_path, tasks, time.time() + 60)] == ["paper"]
    assert list(mine) == []
    assert list(tune_network.claimed(tmp_path, tasks, time.time() - 1)) == []


@pytest.fixture(scope="module")
def logs(tmp_path_factory, pool):
    """Studies of one layer in three spaces, and its finals."""
    out = tmp_path_factory.mktemp("logs")
    for folder in ("claims", "finals", "spaces"):
        (out / folder).mkdir()
    extra = out / "extra.json"
    extra.write_text(json.dumps({SMALL.spec: [WarpgroupConfig(tile_width=16, ring=9).to_dict()]}))
    args = argparse.Namespace(out=out, part=0, end=time.time() + 600, seconds=600.0, extra=extra)
    for kind, trials in (("warpgroup", 20), (tune_network.SAMPLED, 6), ("paper", 6)):
        tune_network.one_study(args, tune_network.Task(SMALL, kind, trials), FakeRunner(), pool, args.end)
    tune_network.one_final(args, SMALL, FakeRunner())
    return out


def test_the_finals_hold_both_families_and_further_configurations(logs):
    final = json.loads((logs / "finals" / "small@8.json").read_text())
    assert final["trials"] == {"warpgroup": 20, "sampled": 6, "paper": 6}
    times = [entry["microseconds"] for entry in final["entries"]]
    assert times == sorted(times)
    assert {entry["family"] for entry in final["entries"]} == {"warpgroup", "warp"}
    assert "wg-tw16-tr1-gm1-sg1-ri9" in {entry["key"] for entry in final["entries"]}
    assert all(len(entry["samples"]) == tune_network.ROUNDS for entry in final["entries"])


def test_what_is_kept_can_be_read_again(logs, tmp_path, capsys):
    for folder in ("kernel", "landscapes"):
        (tmp_path / folder).mkdir()
    (tmp_path / "kernel" / "warpgroup_best.json").write_text('{"kept": {"microseconds": 1.0}}')
    options = ["--generator", "1a2b3c4", "--date", "2026-11-20", "--package", str(tmp_path), "--results", str(tmp_path)]
    assert collect_tuning.main([str(logs), *options]) == 0
    assert "small@8.warpgroup.sm_90a.json.gz" in capsys.readouterr().out
    best = json.loads((tmp_path / "kernel" / "warpgroup_best.json").read_text())
    assert set(best) == {"kept", SMALL.spec}
    entry = best[SMALL.spec]
    WarpgroupConfig.from_dict(entry["config"])
    ConvConfig.from_dict(entry["warp"]["config"])
    assert (entry["device"], entry["generator"]) == ("fake", "1a2b3c4")
    raw = json.loads(gzip.decompress((tmp_path / "tuning-h200-2026-11-20.json.gz").read_bytes()))
    assert len(raw["searches"]["small@8.warpgroup"]["trials"]) == 20

    landscape = Landscape.load(tmp_path / "landscapes" / "small@8.warpgroup.sm_90a.json.gz")
    assert 20 <= len(landscape) <= 26
    with Study(space_of(landscape), "random", 0) as study:
        assert study.run(ReplayRunner(landscape), 12).best.microseconds >= landscape.best[1].microseconds
        assert study.space.plan(study.trials[0].index).config == study.trials[0].config


def test_of_kernels_alike_the_one_that_overlaps_is_kept():
    def entry(overlap, microseconds):
        return {"family": "warpgroup", "config": {"overlap": overlap}, "microseconds": microseconds}

    def kept(*entries):
        final = {"entries": list(entries), "device": {"name": "D"}}
        return collect_tuning.best_of(final, "source", "generator")["config"]["overlap"]

    assert kept(entry(0, 4.0), entry(1, 4.03)) == 1
    assert kept(entry(0, 4.0), entry(1, 4.1)) == 0
    assert collect_tuning.best_of({"entries": [{"family": "warp"}]}, "", "") is None


def test_a_record_of_the_opponents_adds_what_is_better():
    def cell(spec, family, microseconds):
        return {"spec": spec, "ours": {"family": family, "config": {"of": spec}, "microseconds": microseconds}}

    known = {"a": {"microseconds": 4.0}, "b": {"microseconds": 4.0, "warp": {"microseconds": 5.0}}}
    cells = [cell("a", "warpgroup", 3.99), cell("b", "warpgroup", 3.5), cell("c", "warpgroup", 2.0),
             cell("d", "warp", 1.0), {"spec": "e"}]  # fmt: skip
    record = {"gpu": {"name": "D"}, "cells": cells}
    collect_tuning.merge(known, record, "source", "generator")
    assert known["a"] == {"microseconds": 4.0}
    assert (known["b"]["microseconds"], known["b"]["warp"]) == (3.5, {"microseconds": 5.0})
    assert known["c"]["source"] == "source"
    assert set(known) == {"a", "b", "c"}
    collect_tuning.merge(known, {**record, "cells": [cell("a", "warp", 3.0)]}, "", "")
    assert known["a"]["warp"]["microseconds"] == 3.0


def test_logs_without_finals_are_refused(tmp_path, capsys):
    assert collect_tuning.main([str(tmp_path), "--generator", "x", "--date", "d"]) == 2
    assert "no finals" in capsys.readouterr().err


def test_logs_of_two_spaces_make_no_landscape(logs):
    with pytest.raises(ValueError, match="2 spaces"):
        collect_tuning.landscape_of(logs / "small@8.sampled.jsonl", logs / "small@8.paper.jsonl")

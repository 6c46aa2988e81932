"""Tuning of networks, from the list of studies to what the package keeps, with made-up times."""

import argparse
import gzip
import hashlib
import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
sys.path.append(str(Path(__file__).parent))

import collect_tuning
import kernel_pack
import network_finals
import network_schedule
import network_tuning
import tune_network
from network_runs import arguments, search_of

from subbyte.device.arch import arch
from subbyte.device.launch import Launch
from subbyte.errors import BuildFailed
from subbyte.families import space
from subbyte.families.mma.config import ConvConfig
from subbyte.families.wgmma.config import WarpgroupConfig
from subbyte.families.wgmma.small_space import SMALL as SMALL_SPACE
from subbyte.families.wgmma.space import warpgroup_space
from subbyte.measure.fake import FakeRunner
from subbyte.measure.replay import ReplayRunner
from subbyte.records.describe import config_at
from subbyte.records.recorded_space import space_of
from subbyte.records.result import Failed
from subbyte.tune import Landscape, Study, read_log
from subbyte.workload import ConvWorkload, workloads

SMALL = ConvWorkload(8, 7, 7, 64, 64, 1, 1, name="small@8")
TINY = ConvWorkload(8, 3, 3, 64, 64, 3, 3, 1, name="tiny@8")
ROWS = ConvWorkload(8, 7, 7, 64, 64, 3, 3, 1, name="rows@8")


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(2) as threads:
        yield threads


def test_every_layer_is_tuned_once_those_in_need_first():
    layers = workloads(["resnet50@8", "resnet50@64", "resnet50@256", "resnet18@8", "vgg16@8"])
    tasks = network_schedule.tasks({layers[3].spec: 3.0, layers[0].spec: 0.5})
    assert len({task.name for task in tasks}) == len(tasks)
    searched = [task.workload for task in tasks if task.kind == "warpgroup"]
    assert set(searched) == set(layers)
    assert (searched[0], searched[-1]) == (layers[3], layers[0])
    assert {task.workload for task in tasks if task.kind == "paper"} == {layer for layer in layers if layer.n == 8}
    whole = [task.workload.label for task in tasks if task.kind == SMALL_SPACE]
    assert whole == [f"resnet50.stage{stage}@8" for stage in (2, 3, 4, 5)]
    assert max(task.trials for task in network_schedule.tasks({}, most=7)) == 7


def test_what_is_needed_comes_from_the_record_of_the_opponents(tmp_path):
    def cell(spec, ours, best):
        return {"spec": spec, "ours": {"microseconds": ours}, "opponents": [{"microseconds": best}]}

    cells = [cell("half", 10, 5), cell("good", 10, 15), cell("far ahead", 1, 9), {"spec": "none", "opponents": []}]
    (tmp_path / "record.json").write_text(json.dumps({"cells": cells}))
    assert network_schedule.needs_of(tmp_path / "record.json") == {"half": 3.0, "good": 1.0, "far ahead": 0.5}
    assert network_schedule.needs_of(None) == {}


class Studied:
    """As much of a study as turns look at."""

    def __init__(self, times):
        self.trials = [argparse.Namespace(microseconds=time) for time in times]


def going(times, need=1.0, trials=None):
    return network_schedule.Going(network_schedule.Task(SMALL, "warpgroup", trials), Studied(times), need)


def test_what_improves_goes_on_and_what_does_not_waits():
    improving, slow = going([9.0] * 30 + [8.0]), going([9.0] * 30 + [8.9], need=2.0)
    still, tired, done = going([9.0] * 40), going([9.0] * 80), going([9.0] * 24, trials=24)
    turns = network_schedule.Turns(iter([still, done, slow, tired, improving]).__next__)
    for one in [turns.take() for _ in range(5)]:
        turns.give_back(one)
    turns._begin = lambda: None
    assert [turns.take() for _ in range(5)] == [improving, slow, still, tired, None]
    assert network_schedule.gain([9.0, 9.0], 24) == float("inf")
    assert network_schedule.gain([float("inf")] * 60, 24) == 0.0


def test_earlier_times_choose_and_are_not_taken_over(logs, tmp_path, capsys):
    (tmp_path / "broken.jsonl").write_text("{")
    known = network_schedule.earlier_best([logs, tmp_path])[SMALL.spec]
    assert "broken.jsonl: left out" in capsys.readouterr().err
    assert known == network_schedule.Known.from_dict(json.loads(json.dumps(known.to_dict())))
    assert len(known.configs("warpgroup")) == network_schedule.KEPT_EARLIER
    assert {type(config) for config in known.configs("warp")} == {ConvConfig}
    times = {t.config: t.microseconds for t in read_log(logs / "small@8.warpgroup.jsonl").trials}
    first = [times[config] for config in known.configs("warpgroup")]
    assert first == sorted(first)
    assert first[0] == min(times.values())
    assert network_schedule.Known({"warpgroup": [{"no_such_knob": 1}]}).configs("warpgroup") == []


def test_a_value_nobody_tried_is_tried_on_what_was_good():
    listed = [WarpgroupConfig(), WarpgroupConfig(joined=1, overlap=0, unroll=2), WarpgroupConfig(joined=1, overlap=0)]
    knobs = {"joined": (0, 1), "overlap": (0, 1), "unroll": (1, 2), "ring": (4, 6)}
    space = argparse.Namespace(knobs=knobs, config=listed.__getitem__)
    tried = {"joined": [0], "overlap": [0, 1], "unroll": [1, 2], "ring": [4]}
    assert network_schedule.neighbours(space, [0, 1, 2], [listed[0]], tried) == [listed[2]]
    assert network_schedule.neighbours(space, [0, 1, 2], [listed[0]], {}) == []


def test_a_space_sorted_out_in_parts_is_the_space(pool, monkeypatch, tmp_path):
    monkeypatch.setattr(network_tuning, "PART", 1000)
    whole = warpgroup_space(TINY, arch("sm_90a"))  # sorting all of it takes seconds
    plain = replace(whole, knobs={**whole.knobs, "groups_x": (1,), "split": (1,), "ring": (3, 4), "unroll": (1, 2)})
    found, by_estimate = network_tuning.sorted_space(plain, pool, tmp_path, 1_000_000)
    again, _ = network_tuning.sorted_space(plain, None, tmp_path)
    assert again.valid == found.valid
    assert len(plain) > 3 * network_tuning.PART
    assert found.valid == plain.valid
    assert found.refused == plain.refused
    assert found.hash == plain.hash
    assert sorted(by_estimate) == list(plain.valid)
    assert len(list(tmp_path.iterdir())) == 1
    narrow = replace(plain, knobs={**plain.knobs, "unroll": (1,)})
    assert network_tuning.sorted_space(narrow, pool, tmp_path, 1_000_000)[0].valid == narrow.valid != plain.valid
    likely = network_tuning.likely(TINY, "sm_90a", 2)
    first = network_tuning.seeds(found, likely, by_estimate, 6)
    assert 0 < len(first) <= 6
    assert found.config(by_estimate[0]) in first
    known = found.config(by_estimate[-1])
    some, listed = network_tuning.sorted_space(plain, pool, None, 30, [known, WarpgroupConfig(ring=99)])
    assert set(some.valid) <= set(found.valid)
    assert some.index(known) in listed
    assert some.listed


def test_a_large_space_is_listed_around_what_is_good(pool, monkeypatch):
    monkeypatch.setattr(network_tuning, "BASES", 1)
    layer = workloads("resnet50.stage5@8")[0]
    known = WarpgroupConfig(tile_width=8, segments=7, split=2, ring=3, stagger=0)
    space = warpgroup_space(layer, arch("sm_90a"))
    some, by_estimate = network_tuning.sorted_space(space, pool, None, 3000, [known])
    listed = {some.config(index) for index in some.valid}
    assert known in listed
    assert {known.with_values({"overlap": 0, "unroll": 2}), known.with_values({"load_ahead": 1})} < listed
    assert known.with_values({"overlap": 0, "load_ahead": 1, "unroll": 2}) not in listed
    assert len(by_estimate) == len(set(by_estimate)) == len(listed)
    assert all(some.why_not(config) is None for config in listed)


def test_values_outside_a_space_widen_it():
    named = [WarpgroupConfig(ring=99, swizzle=1), WarpgroupConfig(ring=77, layout="nhwc"), WarpgroupConfig(stagger=0)]
    plain, wide = warpgroup_space(TINY, arch("sm_90a")), network_tuning.widened(TINY, "sm_90a", named)
    assert set(wide.knobs) == {*plain.knobs, "swizzle"}
    assert wide.knobs["ring"] == (*plain.knobs["ring"], 99)
    assert wide.knobs["swizzle"] == (0, 1)
    assert network_tuning.place_of(wide, named[2].with_values({"ring": 99, "swizzle": 1, "tile_width": 6})) is not None
    assert network_tuning.widened(TINY, "sm_90a").knobs == plain.knobs


class Hanging(FakeRunner):
    """Kernels with ``image_groups`` never end, one in four with ``joined`` does not; what is asked for is counted."""

    def __init__(self):
        super().__init__(failures=self.hangs)
        self.asked = []

    def hangs(self, config):
        stops = config.image_groups > 1 or (config.joined and config.ring % 4 == 0)
        return Failed("timeout", "it hangs") if stops else None

    def iterate(self, workload, configs):
        for config in configs:
            self.asked.append(config)
            yield self.run(workload, [config])[0]


def test_what_hangs_again_and_again_is_left_alone():
    runner = network_tuning.Guarded(Hanging())
    wide = [WarpgroupConfig(image_groups=2, ring=ring) for ring in range(1, 9)]
    first = runner.run(SMALL, wide[:3])
    assert [result.reason for result in first] == ["it hangs"] * 3
    rest = runner.run(SMALL, [wide[3], WarpgroupConfig(), wide[4]])
    assert "3 kernels with image_groups=2 did not end" in rest[0].reason
    assert [result.ok for result in rest] == [False, True, False]
    assert runner.asked == [*wide[:3], WarpgroupConfig()]
    joined = [WarpgroupConfig(joined=1, ring=ring) for ring in range(1, 25)]
    assert sum(result.ok for result in runner.run(SMALL, joined)) == 18
    assert runner.left_alone(joined[0]) is None
    assert network_tuning.ways_of(ConvConfig()) == []
    with Study(warpgroup_space(ROWS, arch("sm_90a")), "random", 0) as study:
        assert len(study.run(runner, 5, 2).trials) == 5


def test_local_memory_is_refused(monkeypatch):
    class Kernel:
        class resources:
            local_bytes = 16

    monkeypatch.setattr(network_tuning.subbyte, "build", lambda *_: Kernel)
    with pytest.raises(BuildFailed, match="16 bytes of local memory"):
        network_tuning.build_clean(SMALL, WarpgroupConfig(), "sm_90a")
    assert network_tuning.build_clean(SMALL, ConvConfig(), "sm_90a") is Kernel


@pytest.fixture(scope="module")
def logs(tmp_path_factory, pool):
    """Searches of two small layers, one of them in a space that is measured whole, and the finals."""
    out = tmp_path_factory.mktemp("logs")
    extra = out / "extra.json"
    extra.write_text(json.dumps({SMALL.spec: [WarpgroupConfig(tile_width=16, ring=9).to_dict(), {"unknown": 1}]}))
    args = arguments(out, extra=[extra])
    wanted = [network_schedule.Task(SMALL, "warpgroup", 30), network_schedule.Task(SMALL, "paper", 6),
              network_schedule.Task(ROWS, SMALL_SPACE)]  # fmt: skip
    search = search_of(args, FakeRunner(), pool, wanted)
    turns = network_schedule.Turns(search.begin)
    search.work(turns)
    assert search.begin() is None
    search.report(turns)
    for one in turns.begun:
        one.study.close()
    assert tune_network.may(args, SMALL)
    assert not tune_network.may(args, SMALL)
    for layer in (SMALL, ROWS):
        tune_network.one_final(args, layer, FakeRunner())
    return out


def test_the_finals_hold_both_families_and_further_configurations(logs):
    final = json.loads((logs / "finals" / "small@8.json").read_text())
    assert final["trials"] == {"warpgroup": 30, "paper": 6}
    times = [entry["microseconds"] for entry in final["entries"]]
    assert times == sorted(times)
    assert {entry["family"] for entry in final["entries"]} == {"warpgroup", "warp"}
    assert "wg-tw16-tr1-gm1-sg1-ri9" in {entry["key"] for entry in final["entries"]}
    assert all(len(entry["samples"]) == tune_network.ROUNDS for entry in final["entries"])


class Interrupted(Exception):
    """Stands for a kill."""


def test_a_pack_is_replaced_when_all_its_kernels_are_built(logs, tmp_path, monkeypatch):
    shutil.copytree(logs / "finals", tmp_path / "finals")
    launch, built = Launch("k", (1, 1, 1), (128, 1, 1), 0, ()), []

    def build(layer, config, arch_name, last=99, salt=""):
        if len(built) == last:
            raise Interrupted
        built.append(config)
        return argparse.Namespace(cubin=f"{layer.spec} {config.key}{salt}".encode(), launch=launch)

    monkeypatch.setattr(network_finals, "workload", {layer.label: layer for layer in (SMALL, ROWS)}.__getitem__)
    monkeypatch.setattr(network_finals, "build_clean", build)
    network_finals.pack(tmp_path)
    before = kernel_pack.read(tmp_path / "pack")
    assert {layer.label for layer in before} == {"small@8", "rows@8"}
    assert all(2 <= len(some) <= 4 for some in before.values())
    built.clear()
    monkeypatch.setattr(network_finals, "build_clean", partial(build, last=3))
    with pytest.raises(Interrupted):
        network_finals.pack(tmp_path)
    assert kernel_pack.read(tmp_path / "pack") == before
    monkeypatch.setattr(network_finals, "build_clean", partial(build, salt=" anew"))
    network_finals.pack(tmp_path)
    after = kernel_pack.read(tmp_path / "pack")
    assert [[one.config for one in some] for some in after.values()] == [
        [one.config for one in some] for some in before.values()
    ]
    named = {hashlib.sha256(one.cubin).hexdigest()[:20] for some in after.values() for one in some}
    assert {path.stem for path in (tmp_path / "pack").glob("*.cubin")} == named
    for path in (tmp_path / "finals").iterdir():
        path.unlink()
    network_finals.pack(tmp_path)
    assert not list((tmp_path / "pack").iterdir())


def test_what_is_kept_can_be_read_again(logs, tmp_path, capsys):
    for folder in ("kernel", "landscapes"):
        (tmp_path / folder).mkdir()
    recorded = tmp_path / "kernel" / "best.json"
    recorded.write_text('{"other": {"microseconds": 1.0}}')
    options = ["--generator", "1a2b3c4", "--date", "2026-11-20", "--package", str(tmp_path), "--results", str(tmp_path)]
    assert collect_tuning.main([str(logs), *options, "--keep"]) == 0
    assert set(json.loads(recorded.read_text())) == {"other", SMALL.spec, ROWS.spec}
    assert collect_tuning.main([str(logs), *options]) == 0
    said = capsys.readouterr().out
    assert "rows@8.warpgroup-small.sm_90a.json.gz" in said
    assert "1 recorded layers without finals, left out: other" in said
    best = json.loads(recorded.read_text())
    assert set(best) == {SMALL.spec, ROWS.spec}
    entry = best[SMALL.spec]
    WarpgroupConfig.from_dict(entry["config"])
    ConvConfig.from_dict(entry["warp"]["config"])
    assert (entry["device"], entry["generator"]) == ("fake", "1a2b3c4")
    raw = json.loads(gzip.decompress((tmp_path / "tuning-h200-2026-11-20.json.gz").read_bytes()))
    found = raw["searches"]["small@8.warpgroup"]
    assert len(found["trials"]) == 30
    config = config_at(found["space"], found["trials"][0][0])
    assert read_log(logs / "small@8.warpgroup.jsonl").trials[0].config == config

    landscape = Landscape.load(tmp_path / "landscapes" / "rows@8.warpgroup-small.sm_90a.json.gz")
    assert list(landscape.results) == list(space(ROWS, kind=SMALL_SPACE).valid)
    with Study(space_of(landscape), "random", 0) as study:
        assert study.run(ReplayRunner(landscape), 12).best.microseconds >= landscape.best[1].microseconds


def test_a_space_that_was_not_measured_whole_makes_no_landscape(logs, tmp_path):
    log = tmp_path / "rows@8.warpgroup-small.jsonl"
    lines = (logs / log.name).read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:-3]))
    assert "no landscape, 3 configurations" in collect_tuning.kept_landscape(log, tmp_path)
    assert not list(tmp_path.glob("*.json.gz"))


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

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

sys.path.append(str(Path(__file__).parent))

from network_runs import arguments, search_of

from benchmarks.network import builders, collect, remeasured, schedule, tune
from benchmarks.shared import kernel_pack
from subbyte.device.arch import arch
from subbyte.device.launch import Launch
from subbyte.errors import BuildFailed
from subbyte.families import space
from subbyte.families.mma.config import MmaConfig
from subbyte.families.registry import config_from_dict
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.pipeline.config import FLAT_BATCH, TWO_GROUPS, PipelineConfig
from subbyte.families.wgmma.space import SMALL as SMALL_SPACE
from subbyte.families.wgmma.space import WGMMA, wgmma_space
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
    tasks = schedule.tasks({layers[3].spec: 3.0, layers[0].spec: 0.5})
    assert len({task.name for task in tasks}) == len(tasks)
    searched = [task.workload for task in tasks if task.kind == "wgmma"]
    assert set(searched) == set(layers)
    assert (searched[0], searched[-1]) == (layers[3], layers[0])
    assert {task.workload for task in tasks if task.kind == "paper"} == {layer for layer in layers if layer.n == 8}
    whole = [task.workload.label for task in tasks if task.kind == SMALL_SPACE]
    assert whole == [f"resnet50.stage{stage}@8" for stage in (2, 3, 4, 5)]
    assert max(task.trials for task in schedule.tasks({}, most=7)) == 7


def test_few_layers_are_shared_out_among_all_gpus():
    assert [tune.shared_out(studies, 4) for studies in (1, 4, 12, 23, 126)] == [1, 1, 3, 6, tune.AT_ONCE]


def test_what_is_needed_comes_from_the_record_of_the_baselines(tmp_path):
    def cell(spec, ours, best):
        return {"spec": spec, "ours": {"microseconds": ours}, "opponents": [{"microseconds": best}]}

    cells = [cell("half", 10, 5), cell("good", 10, 15), cell("far ahead", 1, 9), {"spec": "none", "opponents": []}]
    (tmp_path / "record.json").write_text(json.dumps({"cells": cells}))
    assert schedule.needs_of(tmp_path / "record.json") == {"half": 3.0, "good": 1.0, "far ahead": 0.5}
    assert schedule.needs_of(None) == {}


class Studied:
    """As much of a study as turns look at."""

    def __init__(self, times):
        self.trials = [argparse.Namespace(microseconds=time) for time in times]


def going(times, need=1.0, trials=None):
    return schedule.Going(schedule.Task(SMALL, "wgmma", trials), Studied(times), need)


def test_what_improves_goes_on_and_what_does_not_waits():
    improving, slow = going([9.0] * 30 + [8.0]), going([9.0] * 30 + [8.9], need=2.0)
    still, tired, done = going([9.0] * 40), going([9.0] * 80), going([9.0] * 24, trials=24)
    turns = schedule.Turns(iter([still, done, slow, tired, improving]).__next__)
    for one in [turns.take() for _ in range(5)]:
        turns.give_back(one)
    turns._begin = lambda: None
    assert [turns.take() for _ in range(5)] == [improving, slow, still, tired, None]
    assert schedule.gain([9.0, 9.0], 24) == float("inf")
    assert schedule.gain([float("inf")] * 60, 24) == 0.0


@pytest.mark.deep
def test_earlier_times_choose_and_are_not_taken_over(logs, tmp_path, capsys):
    (tmp_path / "broken.jsonl").write_text("{")
    known = schedule.earlier_best([logs, tmp_path])[SMALL.spec]
    assert "broken.jsonl: left out" in capsys.readouterr().err
    assert known == schedule.Known.from_dict(json.loads(json.dumps(known.to_dict())))
    assert len(known.configs("wgmma")) == schedule.KEPT_EARLIER
    assert {type(config) for config in known.configs("mma")} == {MmaConfig}
    times = {t.config: t.microseconds for t in read_log(logs / "small@8.wgmma.jsonl").trials}
    first = [times[config] for config in known.configs("wgmma")]
    assert first == sorted(first)
    assert first[0] == min(times.values())
    assert schedule.Known({"wgmma": [{"no_such_knob": 1}]}).configs("wgmma") == []


def test_a_value_nobody_tried_is_tried_on_what_was_good():
    listed = [
        PipelineConfig(), PipelineConfig(pixels=2, load_ahead=1, unroll=2),
        PipelineConfig(pixels=2, load_ahead=1),
    ]  # fmt: skip
    knobs = {"pixels": (0, 2), "load_ahead": (1, 2), "unroll": (1, 2), "stages": (4, 6)}
    space = argparse.Namespace(knobs=knobs, config=listed.__getitem__)
    tried = {"pixels": [0], "load_ahead": [1, 2], "unroll": [1, 2], "stages": [4]}
    assert schedule.neighbours(space, [0, 1, 2], [listed[0]], tried) == [listed[2]]
    assert schedule.neighbours(space, [0, 1, 2], [listed[0]], {}) == []


def test_a_space_enumerated_in_parts_is_the_space(pool, monkeypatch, tmp_path):
    monkeypatch.setattr(builders, "PART", 1000)
    whole = wgmma_space(TINY, arch("sm_90a"), WGMMA)  # sorting all of it takes seconds
    plain = replace(
        whole, knobs={**whole.knobs, "consumers_n": (1,), "cluster_split_k": (1,), "stages": (3, 4), "unroll": (1, 2)}
    )
    found, by_estimate = builders.sorted_space(plain, pool, tmp_path, 1_000_000)
    again, _ = builders.sorted_space(plain, None, tmp_path)
    assert again.valid == found.valid
    assert len(plain) > 3 * builders.PART
    assert found.valid == plain.valid
    assert found.refused == plain.refused
    assert found.hash == plain.hash
    assert sorted(by_estimate) == list(plain.valid)
    assert len(list(tmp_path.iterdir())) == 1
    narrow = replace(plain, knobs={**plain.knobs, "unroll": (1,)})
    assert builders.sorted_space(narrow, pool, tmp_path, 1_000_000)[0].valid == narrow.valid != plain.valid
    likely = builders.likely(TINY, "sm_90a", 2)
    first = builders.seeds(found, likely, by_estimate, 6)
    assert 0 < len(first) <= 6
    assert found.config(by_estimate[0]) in first
    known = found.config(by_estimate[-1])
    some, listed = builders.sorted_space(plain, pool, None, 30, [known, PipelineConfig(stages=99)])
    assert set(some.valid) <= set(found.valid)
    assert some.index(known) in listed
    assert some.listed


def test_a_large_space_is_listed_around_what_is_good(pool, monkeypatch):
    monkeypatch.setattr(builders, "BASES", 1)
    layer = workloads("resnet50.stage5@8")[0]
    known = PipelineConfig(tile_width=8, segments=7, cluster_split_k=2, stages=3, stagger=0)
    space = wgmma_space(layer, arch("sm_90a"), WGMMA)
    some, by_estimate = builders.sorted_space(space, pool, None, 3000, [known])
    listed = {some.config(index) for index in some.valid}
    assert known in listed
    assert {known.with_values({"in_flight": 2, "unroll": 2}), known.with_values({"load_ahead": 1})} < listed
    assert known.with_values({"in_flight": 2, "load_ahead": 1, "unroll": 2}) not in listed
    assert len(by_estimate) == len(set(by_estimate)) == len(listed)
    assert all(some.check(config) is None for config in listed)


def test_values_outside_a_space_widen_it():
    named = [
        PipelineConfig(stages=99, producers=2), PipelineConfig(stages=77, layout="nhwc"), PipelineConfig(stagger=0),
    ]  # fmt: skip
    plain, wide = wgmma_space(TINY, arch("sm_90a"), WGMMA), builders.widened(TINY, "sm_90a", named)
    assert set(wide.knobs) == {*plain.knobs, "producers"}
    assert wide.knobs["stages"] == (*plain.knobs["stages"], 99)
    assert wide.knobs["producers"] == (1, 2)
    assert builders.place_of(wide, named[2].with_values({"stages": 99, "producers": 2, "tile_width": 6})) is not None
    assert builders.widened(TINY, "sm_90a").knobs == plain.knobs


class Hanging(FakeRunner):
    """Kernels of two groups of images never end, one in four of a flattened batch does not; it counts what is asked."""

    def __init__(self):
        super().__init__(failures=self.hangs)
        self.asked = []

    def hangs(self, config):
        stops = config.pixels == TWO_GROUPS or (config.pixels == FLAT_BATCH and config.stages % 4 == 0)
        return Failed("timeout", "it hangs") if stops else None

    def iterate(self, workload, configs):
        for config in configs:
            self.asked.append(config)
            yield self.run(workload, [config])[0]


def test_what_hangs_again_and_again_is_left_alone():
    runner = builders.Guarded(Hanging())
    wide = [PipelineConfig(pixels=TWO_GROUPS, stages=stages) for stages in range(1, 9)]
    first = runner.run(SMALL, wide[:3])
    assert [result.reason for result in first] == ["it hangs"] * 3
    rest = runner.run(SMALL, [wide[3], PipelineConfig(), wide[4]])
    assert "3 kernels with pixels=4 did not end" in rest[0].reason
    assert [result.ok for result in rest] == [False, True, False]
    assert runner.asked == [*wide[:3], PipelineConfig()]
    joined = [PipelineConfig(pixels=FLAT_BATCH, stages=stages) for stages in range(1, 25)]
    assert sum(result.ok for result in runner.run(SMALL, joined)) == 18
    assert runner.left_alone(joined[0]) is None
    assert builders.ways_of(MmaConfig()) == []
    with Study(space(ROWS, kind=SMALL_SPACE), "random", 0) as study:
        assert len(study.run(runner, 5, 2).trials) == 5


def test_local_memory_is_refused(monkeypatch):
    class Kernel:
        class resources:
            local_bytes = 16

    monkeypatch.setattr(builders.subbyte, "build", lambda *_: Kernel)
    with pytest.raises(BuildFailed, match="16 bytes of local memory"):
        builders.build_clean(SMALL, PipelineConfig(), "sm_90a")
    assert builders.build_clean(SMALL, MmaConfig(), "sm_90a") is Kernel


@pytest.fixture(scope="module")
def logs(tmp_path_factory, pool):
    """Searches of two small layers, one of them in a space that is measured whole; the best are measured again."""
    out = tmp_path_factory.mktemp("logs")
    extra = out / "extra.json"
    extra.write_text(json.dumps({SMALL.spec: [PipelineConfig(tile_width=16, stages=9).to_dict(), {"unknown": 1}]}))
    args = arguments(out, extra=[extra])
    wanted = [schedule.Task(SMALL, "wgmma", 30), schedule.Task(SMALL, "paper", 6),
              schedule.Task(ROWS, SMALL_SPACE)]  # fmt: skip
    search = search_of(args, FakeRunner(), pool, wanted)
    turns = schedule.Turns(search.begin)
    search.work(turns)
    assert search.begin() is None
    search.report(turns)
    for one in turns.begun:
        one.study.close()
    assert tune.may(args, SMALL)
    assert not tune.may(args, SMALL)
    for layer in (SMALL, ROWS):
        tune.remeasure(args, layer, FakeRunner())
    return out


def test_the_remeasurements_hold_both_families_and_further_configurations(logs):
    found = json.loads((logs / "remeasured" / "small@8.json").read_text())
    assert found["trials"] == {"wgmma": 30, "paper": 6}
    times = [entry["microseconds"] for entry in found["entries"]]
    assert times == sorted(times)
    assert {entry["family"] for entry in found["entries"]} == {"wgmma", "mma"}
    assert "wgp-tw16-tr1-cm1-sg1-st9" in {entry["key"] for entry in found["entries"]}
    assert all(len(entry["samples"]) == tune.ROUNDS for entry in found["entries"])


class Interrupted(Exception):
    """Stands for a kill."""


def test_a_pack_is_replaced_when_all_its_kernels_are_built(logs, tmp_path, monkeypatch):
    shutil.copytree(logs / "remeasured", tmp_path / "remeasured")
    launch, built = Launch("k", (1, 1, 1), (128, 1, 1), 0, ()), []

    def build(layer, config, arch_name, last=99, salt=""):
        if len(built) == last:
            raise Interrupted
        built.append(config)
        return argparse.Namespace(cubin=f"{layer.spec} {config.key}{salt}".encode(), launch=launch)

    monkeypatch.setattr(remeasured, "workload", {layer.label: layer for layer in (SMALL, ROWS)}.__getitem__)
    monkeypatch.setattr(remeasured, "build_clean", build)
    remeasured.pack(tmp_path)
    before = kernel_pack.read(tmp_path / "pack")
    assert {layer.label for layer in before} == {"small@8", "rows@8"}
    assert all(2 <= len(some) <= 4 for some in before.values())
    built.clear()
    monkeypatch.setattr(remeasured, "build_clean", partial(build, last=3))
    with pytest.raises(Interrupted):
        remeasured.pack(tmp_path)
    assert kernel_pack.read(tmp_path / "pack") == before
    monkeypatch.setattr(remeasured, "build_clean", partial(build, salt=" anew"))
    remeasured.pack(tmp_path)
    after = kernel_pack.read(tmp_path / "pack")
    assert [[one.config for one in some] for some in after.values()] == [
        [one.config for one in some] for some in before.values()
    ]
    named = {hashlib.sha256(one.cubin).hexdigest()[:20] for some in after.values() for one in some}
    assert {path.stem for path in (tmp_path / "pack").glob("*.cubin")} == named
    for path in (tmp_path / "remeasured").iterdir():
        path.unlink()
    remeasured.pack(tmp_path)
    assert not list((tmp_path / "pack").iterdir())


def test_what_is_kept_can_be_read_again(logs, tmp_path, capsys):
    for folder in ("kernel", "landscapes"):
        (tmp_path / folder).mkdir()
    recorded = tmp_path / "kernel" / "best.json"
    recorded.write_text('{"other": {"microseconds": 1.0}}')
    options = ["--generator", "1a2b3c4", "--date", "2026-11-20", "--package", str(tmp_path), "--results", str(tmp_path)]
    assert collect.main([str(logs), *options, "--keep"]) == 0
    assert set(json.loads(recorded.read_text())) == {"other", SMALL.spec, ROWS.spec}
    assert collect.main([str(logs), *options]) == 0
    said = capsys.readouterr().out
    assert "rows@8.wgmma-small.sm_90a.json.gz" in said
    assert "1 recorded layers that were not measured again, left out: other" in said
    best = json.loads(recorded.read_text())
    assert set(best) == {SMALL.spec, ROWS.spec}
    entry = best[SMALL.spec]
    assert isinstance(config_from_dict(entry["config"]), WgmmaConfig)
    MmaConfig.from_dict(entry["warp"]["config"])
    assert (entry["device"], entry["generator"]) == ("fake", "1a2b3c4")
    raw = json.loads(gzip.decompress((tmp_path / "tuning-h200-2026-11-20.json.gz").read_bytes()))
    found = raw["searches"]["small@8.wgmma"]
    assert len(found["trials"]) == 30
    config = config_at(found["space"], found["trials"][0][0])
    assert read_log(logs / "small@8.wgmma.jsonl").trials[0].config == config

    landscape = Landscape.load(tmp_path / "landscapes" / "rows@8.wgmma-small.sm_90a.json.gz")
    assert list(landscape.results) == list(space(ROWS, kind=SMALL_SPACE).valid)
    with Study(space_of(landscape), "random", 0) as study:
        assert study.run(ReplayRunner(landscape), 12).best.microseconds >= landscape.best[1].microseconds


def test_a_space_that_was_not_measured_whole_makes_no_landscape(logs, tmp_path):
    log = tmp_path / "rows@8.wgmma-small.jsonl"
    lines = (logs / log.name).read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:-3]))
    assert "no landscape, 3 configurations" in collect.kept_landscape(log, tmp_path)
    assert not list(tmp_path.glob("*.json.gz"))


def test_of_kernels_alike_the_one_that_overlaps_is_kept():
    def entry(overlap, microseconds):
        return {"family": "warpgroup", "config": {"overlap": overlap}, "microseconds": microseconds}

    def kept(*entries):
        found = {"entries": list(entries), "device": {"name": "D"}}
        return collect.best_of(found, "source", "generator")["config"]["overlap"]

    assert kept(entry(0, 4.0), entry(1, 4.03)) == 1
    assert kept(entry(0, 4.0), entry(1, 4.1)) == 0
    assert collect.best_of({"entries": [{"family": "warp"}]}, "", "") is None


def test_a_record_of_the_baselines_adds_what_is_better():
    def cell(spec, family, microseconds):
        return {"spec": spec, "ours": {"family": family, "config": {"of": spec}, "microseconds": microseconds}}

    known = {"a": {"microseconds": 4.0}, "b": {"microseconds": 4.0, "warp": {"microseconds": 5.0}}}
    cells = [cell("a", "warpgroup", 3.99), cell("b", "warpgroup", 3.5), cell("c", "warpgroup", 2.0),
             cell("d", "warp", 1.0), {"spec": "e"}]  # fmt: skip
    record = {"gpu": {"name": "D"}, "cells": cells}
    collect.merge(known, record, "source", "generator")
    assert known["a"] == {"microseconds": 4.0}
    assert (known["b"]["microseconds"], known["b"]["warp"]) == (3.5, {"microseconds": 5.0})
    assert known["c"]["source"] == "source"
    assert set(known) == {"a", "b", "c"}
    collect.merge(known, {**record, "cells": [cell("a", "warp", 3.0)]}, "", "")
    assert known["a"]["warp"]["microseconds"] == 3.0


def test_logs_without_remeasurements_are_refused(tmp_path, capsys):
    assert collect.main([str(tmp_path), "--generator", "x", "--date", "d"]) == 2
    assert "remeasured holds nothing" in capsys.readouterr().err

"""A later run of the network's tuner goes on where an earlier one stopped, from its folder or from the repository."""

import argparse
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

import network_runs
from network_runs import SMALL, arguments, known_in, search_of, texts_of

from benchmarks.network import builders, collect, schedule, tune
from benchmarks.network import searches as past
from subbyte.device.arch import arch
from subbyte.families.mma.config import MmaConfig
from subbyte.families.registry import config_from_dict
from subbyte.families.wgmma.former import FormerConfig
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.space import WGMMA, WgmmaSpace, wgmma_space
from subbyte.measure.fake import FakeRunner
from subbyte.records.result import Measured
from subbyte.tune import Study, read_log
from subbyte.workload import workload

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "benchmarks" / "results" / "warpgroup" / "tuning-final-h200-2026-11-20.json.gz"
LAYER = workload("resnet50.stage5@8")
TRIALS = 12


class H200(FakeRunner):
    """Made-up times of a device like that of the record; counts what it is asked for."""

    def __init__(self, **more):
        super().__init__(**more)
        self.device = {"runner": "cuda", "name": "NVIDIA H200", "arch": "sm_90a"}
        self.asked = []

    def run(self, workload, configs):
        self.asked += configs
        return super().run(workload, configs)


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(2) as threads:
        yield threads


@pytest.fixture(scope="module", autouse=True)
def found_once():
    """What takes seconds and is the same for every test: the record read, and parts of a space sorted out."""
    read, likely, parts = cache(lambda path: list(past_of_record(path))), cache(builders.likely), {}
    past_of_record, parts_of = past._of_record, builders._parts

    def sorted_parts(pool, look, space, indices, count):
        key = look, space.workload, space.rules_hash, tuple(indices), count
        if key not in parts:
            parts[key] = parts_of(pool, look, space, indices, count)
        return parts[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(past, "_of_record", read)
        patch.setattr(builders, "_parts", sorted_parts)
        for module in (builders, tune):
            patch.setattr(module, "likely", likely)
        yield


@pytest.fixture(scope="module")
def recorded(found_once):
    """The searches of the committed record."""
    return list(past.searches_in(RECORD))


def known(*specs):
    """Texts of a layer each, as a record keeps them, by a generator named ``today``."""
    config = PipelineConfig()
    return {spec: [{"config": config.to_dict(), "text": f"{config.key} by today"}] for spec in specs}


def near(space):
    """Kernels of a space that differ in a few knobs. Of those drawn at random one in a thousand is valid."""
    knobs = itertools.product(space.knobs["stages"], space.knobs["load_ahead"], space.knobs["stagger"])
    for stages, load_ahead, stagger in knobs:
        config = PipelineConfig(tile_width=16, stages=stages, load_ahead=load_ahead, stagger=stagger)
        index = space.index(config)
        if space.check(index) is None:
            yield index, config


def fill(out, space, runner=FakeRunner):
    """A log of a search of SMALL, and what it tried."""
    measuring = runner()
    with Study(space, "random", 0, out / f"{SMALL.label}.wgmma.jsonl") as study:
        for index, config in itertools.islice(near(space), TRIALS):
            study.tell(index, measuring.run(SMALL, [config])[0])
        assert len(study.trials) == TRIALS
        return [(trial.config, trial.microseconds) for trial in study.trials]


# ---- what the repository holds --------------------------------------------------------------------------------------


@pytest.mark.deep
def test_the_committed_record_is_read_whole(recorded):
    data = past._record(RECORD)
    kept = [len(one["trials"]) for one in data["searches"].values()]
    read = [len(one.trials) for one in recorded]
    assert all(some <= there for some, there in zip(read, kept, strict=True))  # knobs were given up since
    assert sum(read) > 0.9 * sum(kept)
    assert len({one.spec for one in recorded if one.kind == "wgmma"}) == 84
    for final in data["finals"][:8]:
        mine = next(one for one in recorded if (one.spec, one.kind) == (final["spec"], "wgmma"))
        times = {config.key: result.microseconds for config, result in mine.trials if isinstance(result, Measured)}
        first = [e for e in final["entries"] if e["family"] == "warpgroup" and e["first_microseconds"] is not None]
        assert all(
            times[config_from_dict(e["config"]).key] == pytest.approx(e["first_microseconds"], abs=1e-3) for e in first
        )


def test_the_layers_that_still_improved_have_the_first_turns():
    found = schedule.earlier_best([RECORD])
    improving = {spec for spec, one in found.items() if one.improving}
    assert 10 <= len(improving) <= 40  # trials with knobs given up since are gone: more than when the searches ended
    order = [task.workload for task in schedule.tasks({}, known=found) if task.kind == "wgmma"]
    promises = [found[layer.spec].promise(layer) for layer in order]
    assert promises == sorted(promises, reverse=True)
    assert {layer.spec for layer in order[: len(improving)]} == improving


def test_a_knob_that_nobody_tried_makes_a_layer_promising(monkeypatch):
    space = argparse.Namespace(knobs={"stages": (3, 4), "later": (0, 1)})
    monkeypatch.setattr(schedule, "wgmma_space", lambda *_: space)
    usual = builders.usual_values() | {"later": 0}
    monkeypatch.setattr(schedule, "usual_values", lambda: usual)
    one = schedule.Known({}, {"stages": [3, 5], "later": [0]})
    assert one.promise(LAYER) == 1
    assert schedule.Known({}, {"stages": [3, 5], "later": [0, 1]}).promise(LAYER) == 0
    assert schedule.Known({}, {"later": [0, 1]}, improving=True).promise(LAYER) == 2


def test_a_layer_that_nobody_searched_has_the_first_turn():
    found = schedule.earlier_best([RECORD])
    assert schedule.tasks({}, known=found)[0].workload != LAYER
    del found[LAYER.spec]
    needs = dict.fromkeys(found, 3.0) | {LAYER.spec: 0.5}
    assert schedule.tasks(needs, known=found)[0].workload == LAYER
    found[LAYER.spec] = schedule.Known({"mma": [MmaConfig().to_dict()]})  # only the other family was
    assert schedule.tasks(needs, known=found)[0].workload == LAYER


def test_texts_of_the_committed_record_are_known():
    kept = past.texts_in(RECORD)
    layers = {one["spec"]: one["entries"] for one in past._record(RECORD)["finals"]}
    assert set(kept) == set(layers)
    for spec, some in kept.items():
        assert 1 <= len(some) <= past.PROBES
        recorded = [e["config"] for e in layers[spec] if not e["config"].get("staging")]  # a knob of long ago
        assert {config_from_dict(one["config"]).key for one in some} <= {config_from_dict(e).key for e in recorded}
        assert all(len(one["text"]) == 20 for one in some)


@pytest.mark.sample(1)
@pytest.mark.parametrize("spec", ["n8h7w7c512k512r3s3p1", "n256h14w14c256k256r3s3p1", "n8h56w56c64k64r1s1p0"])
def test_todays_texts_are_those_of_the_committed_record(spec, pool):
    kept = past.texts_in(RECORD)
    assert past.unchanged(kept, [spec], pool) == {spec}
    kept[spec][0]["text"] = "another"
    assert past.unchanged(kept, [spec], pool) == set()


def test_kernels_of_a_new_knob_that_hang_are_left_alone():
    assert set(builders.WAYS) == set(builders.usual_values()) - set(builders.ORDINARY)
    assert {*builders.MODE_KNOBS, "cluster_split_k", "pixels", "start", "early_start"} <= set(builders.WAYS)
    assert builders.ways_of(PipelineConfig(pixels=3, stages=99)) == [("pixels", 3)]
    assert builders.ways_of(SingleTileConfig(multicast=2, parameters=1)) == [("multicast", 2), ("parameters", 1)]


# ---- taking over ----------------------------------------------------------------------------------------------------


@pytest.mark.deep
def test_a_search_goes_on_from_the_record(tmp_path, pool, recorded):
    args = arguments(tmp_path, earlier=[RECORD], only="resnet50.stage5@8.wgmma", kinds=["wgmma"])
    kept = past.texts_in(RECORD)[LAYER.spec]
    by_key = {config_from_dict(one["config"]).key: one["text"] for one in kept}
    runner, wanted = H200(), tune.wanted_tasks(args, {})
    assert [task.name for task in wanted] == ["resnet50.stage5@8.wgmma"]
    going = search_of(args, runner, pool, wanted, text=lambda job: by_key.get(job[1].key, "new")).begin()
    assert LAYER.spec in json.loads((tmp_path / "taken.json").read_text())[str(RECORD)]
    mine = next(one for one in recorded if (one.spec, one.kind) == (LAYER.spec, "wgmma"))
    space = going.study.space
    inside = [(c, r) for c, r in mine.trials if builders.place_of(space, c) is not None and space.check(c) is None]
    outside = [config for config, _ in mine.trials if config not in dict(inside)]
    assert all(isinstance(config, FormerConfig) for config in outside)  # they have knobs given up since
    assert len(inside) > 0.5 * len(mine.trials)
    assert [trial.config for trial in going.study.trials] == [config for config, _ in inside]
    assert runner.asked == []
    going.study.run(runner, len(inside) + 6, 2)
    assert len(runner.asked) == 6
    assert not set(runner.asked) & {config for config, _ in inside}
    going.study.close()
    log = tmp_path / "resnet50.stage5@8.wgmma.jsonl"
    assert read_log(log).header["device"]["name"] == "NVIDIA H200"
    kept = collect.one_search(log)
    assert kept["taken_from"] == {RECORD.name: len(inside)}
    assert len(kept["trials"]) == len(inside) + 6


@pytest.mark.deep
def test_what_was_cut_short_is_taken_over_to_the_end(tmp_path, pool, monkeypatch):
    space = wgmma_space(SMALL, arch("sm_90a"), WGMMA)
    earlier, out = tmp_path / "earlier run", tmp_path / "out"
    earlier.mkdir()
    before = [config for config, _ in fill(earlier, space, H200)]
    (earlier / "texts.json").write_text(json.dumps({"texts": known(SMALL.spec)}))
    args, wanted = arguments(out, earlier=[earlier]), [schedule.Task(SMALL, "wgmma")]
    monkeypatch.setattr(tune, "wanted_tasks", lambda *_: wanted)

    def begun():
        return search_of(args, H200(), pool, wanted).begin().study

    begun().close()
    log = out / "small@8.wgmma.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: len(lines) // 2]))
    with begun() as study:
        assert [trial.config for trial in study.trials] == before
        study.run(H200(), TRIALS + 2, 2)
    monkeypatch.setattr(tune, "take_over", lambda *_: pytest.fail("measured here since: all was taken over"))
    with begun() as study:
        assert len(study.trials) == TRIALS + 2


@pytest.mark.deep
def test_what_is_left_out_is_said(tmp_path, pool, monkeypatch, capsys):
    wanted = [schedule.Task(SMALL, "wgmma")]
    monkeypatch.setattr(tune, "wanted_tasks", lambda *_: wanted)
    search = search_of(arguments(tmp_path), FakeRunner(), pool, wanted)
    with Study(wgmma_space(SMALL, arch("sm_90a"), WGMMA), "random", 0, tmp_path / "small@8.wgmma.jsonl") as other:
        other.run(FakeRunner(), 2, 2)
        assert search.begin() is None
    assert "small@8.wgmma: left out: " in capsys.readouterr().out


def test_times_of_other_kernels_or_other_gpus_are_not_taken_over(tmp_path, pool):
    space = wgmma_space(SMALL, arch("sm_90a"), WGMMA)
    fill(tmp_path, space, H200)
    searches = list(past.searches_in(tmp_path))
    with Study(space, "random", 0, tmp_path / "taken.log") as study:
        assert past.take_over(study, H200(), searches) == TRIALS
        assert past.take_over(study, H200(), searches) == 0
    with Study(space, "random", 0, tmp_path / "other.log") as study:
        assert past.take_over(study, FakeRunner(), searches) == 0
    kept = known(SMALL.spec, LAYER.spec)
    text = texts_of("today", changed=[LAYER.spec])
    assert past.unchanged(kept, [SMALL.spec, LAYER.spec, "n1h1w1c1k1r1s1p0"], pool, text) == {SMALL.spec}
    kept[SMALL.spec].append({"config": {"no_such_knob": 1}, "text": ""})
    assert past.unchanged(kept, [SMALL.spec], pool, text) == set()


@pytest.mark.deep
def test_trials_move_into_a_space_with_a_knob_more_and_that_is_tried_first(tmp_path, pool, monkeypatch):
    whole = wgmma_space(SMALL, arch("sm_90a"), WGMMA)
    assert len(whole.knobs["producers"]) > 1
    without = WgmmaSpace(SMALL, whole.arch, {k: v for k, v in whole.knobs.items() if k != "producers"})
    earlier, out = tmp_path / "earlier run", tmp_path / "out"
    earlier.mkdir()
    before = fill(earlier, without, H200)
    (earlier / "texts.json").write_text(json.dumps({"texts": known(SMALL.spec)}))
    args = arguments(out, earlier=[earlier])
    runner, wanted = H200(), [schedule.Task(SMALL, "wgmma")]
    monkeypatch.setattr(tune, "wanted_tasks", lambda *_: wanted)
    going = search_of(args, runner, pool, wanted).begin()
    assert known_in(out)[SMALL.spec].promise(SMALL) >= 1
    assert [(trial.config, trial.microseconds) for trial in going.study.trials] == before
    going.study.run(runner, TRIALS + 8, 8)
    going.study.close()
    assert runner.asked[0].producers == 2


# ---- started again --------------------------------------------------------------------------------------------------


def test_logs_are_continued_while_their_kernels_are_what_they_were(tmp_path, pool, monkeypatch):
    tasks = [schedule.Task(layer, "wgmma") for layer in (SMALL, LAYER)]
    monkeypatch.setattr(tune, "wanted_tasks", lambda *_: tasks)
    args = arguments(tmp_path)
    tune.prepare(args, pool, text=texts_of("today"))
    space = wgmma_space(SMALL, arch("sm_90a"), WGMMA)
    fill(tmp_path, space)
    (tmp_path / "remeasured" / "small@8.json").write_text(json.dumps({"spec": SMALL.spec}))
    (tmp_path / "claims" / "small@8.wgmma").touch()
    (tmp_path / f"{LAYER.label}.wgmma.jsonl").write_text("damaged")
    tune.prepare(args, pool, text=texts_of("today", changed=[LAYER.spec]))
    assert (tmp_path / "small@8.wgmma.jsonl").exists()
    assert (tmp_path / "remeasured" / "small@8.json").exists()
    assert not list((tmp_path / "claims").iterdir())
    assert [path.name for path in (tmp_path / "earlier").iterdir()] == [f"{LAYER.label}.wgmma.0.jsonl"]
    tune.prepare(args, pool, text=texts_of("another generator"))
    assert not list(tmp_path.glob("*.jsonl"))
    assert not list((tmp_path / "remeasured").iterdir())
    assert {path.name for path in (tmp_path / "earlier").iterdir()} == {
        f"{LAYER.label}.wgmma.0.jsonl", "small@8.wgmma.0.jsonl",
    }  # fmt: skip


def test_a_log_of_another_space_is_taken_over_and_one_in_use_is_left_alone(tmp_path):
    space = wgmma_space(SMALL, arch("sm_90a"), WGMMA)
    log, aside = tmp_path / "small@8.wgmma.jsonl", tmp_path / "aside"
    aside.mkdir()
    before = fill(tmp_path, space)
    other = WgmmaSpace(SMALL, space.arch, {**space.knobs, "start": (0, 2)})
    study, searches = tune.opened(other, "random", log, aside)
    assert [config for config, _ in searches[0].trials] == [config for config, _ in before]
    assert past.take_over(study, FakeRunner(), searches) == TRIALS
    with pytest.raises(Exception, match="by another study"):
        tune.opened(other, "random", log, aside)
    study.close()
    again, searches = tune.opened(other, "random", log, aside)
    assert (len(again.trials), searches) == (TRIALS, [])
    again.close()
    log.write_text("damaged")
    study, searches = tune.opened(other, "random", log, aside)
    assert (len(study.trials), searches) == (0, [])
    study.close()
    assert sorted(path.name for path in aside.iterdir()) == [f"small@8.wgmma.{n}.jsonl" for n in (0, 1)]


@pytest.mark.deep
def test_a_killed_run_keeps_its_trials_and_goes_on(tmp_path, monkeypatch):
    log = tmp_path / "small@8.paper.jsonl"
    code = "import sys, pathlib, network_runs; network_runs.forty_trials(pathlib.Path(sys.argv[1]), 0.05)"
    places = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(ROOT)])}
    running = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], env=places)
    deadline = time.monotonic() + 120
    while (not log.exists() or log.read_bytes().count(b"\n") < 12) and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    before = [trial.config for trial in read_log(log).trials]
    assert 10 <= len(before) < 40
    monkeypatch.setattr(tune, "wanted_tasks", None)  # put back behind the test
    network_runs.forty_trials(tmp_path)
    after = read_log(log).trials
    assert [trial.config for trial in after][: len(before)] == before
    assert len(after) == 40
    assert not list((tmp_path / "earlier").iterdir())


def test_without_a_gpu_one_sentence(tmp_path, capsys):
    assert tune.main([str(tmp_path / "out"), "--gpus", "64"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpus", "0"], "--gpus 0: expected 1 or more"),
        (["--most", "0"], "--most 0: expected 1 or more"),
        (["--seconds", "30"], "--seconds 30: measuring again and packing take 45"),
        (["--seconds", "nan"], "--seconds nan: measuring"),
        (["--remeasure-seconds", "-1"], "--remeasure-seconds -1: expected 0 or more"),
        (["--only", "stage9"], "--only stage9: no study's name holds that; a name is"),
        (["--only", "stage2@64", "--kinds", "wgmma-small"], "holds that among wgmma-small"),
        (["--earlier", "none.json.gz"], "--earlier none.json.gz: there is nothing of this name"),
        (["--record", "list.json"], "--record list.json: no record of `baselines compare`"),
        (["--record", "."], "--record .: no record of `baselines compare`"),
        (["--extra", "cut.json"], "--extra cut.json: no configurations by spec"),
        (["--extra", "list.json"], "--extra list.json: no configurations by spec"),
        (["--extra", "other.json"], "--extra other.json: no configurations by spec"),
    ],
)
def test_wrong_arguments_are_told_before_the_missing_gpu(words, said, tmp_path, monkeypatch, capsys):
    for name, text in (("cut", "{"), ("list", "[1]"), ("other", '{"spec": ["tile"]}')):
        (tmp_path / f"{name}.json").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tune, "need_gpus", lambda count: pytest.fail("asked for a GPU first"))
    assert tune.main(["out", *words]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.startswith("error: ")
    assert told.count("\n") == 1
    assert not (tmp_path / "out").exists()
    assert tune.main(["list.json"]) == 2
    assert "list.json is a file: name a folder" in capsys.readouterr().err


def test_what_cannot_be_read_is_named(tmp_path, capsys):
    (tmp_path / "cut.json.gz").write_bytes(RECORD.read_bytes()[:1000])
    assert list(past.searches_in(tmp_path / "cut.json.gz")) == []
    assert "cut.json.gz: left out" in capsys.readouterr().err
    assert past.texts_in(tmp_path / "cut.json.gz") == {}
    assert past.texts_in(tmp_path) == {}
    assert math.isinf(schedule.gain([9.0]))

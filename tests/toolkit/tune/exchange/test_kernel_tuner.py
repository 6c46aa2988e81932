"""Kernel Tuner's cache: read as it comes, written so that Kernel Tuner's own simulation runs on it."""

from __future__ import annotations

import dataclasses
import gzip
import json
import random
import warnings
from pathlib import Path

import pytest

import subbyte
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.records.exchange import (
    export_landscape,
    from_kernel_tuner,
    import_landscape,
    restriction,
    to_kernel_tuner,
    to_t4,
)
from subbyte.records.recorded_space import space_of
from subbyte.records.result import Failed, Measured
from subbyte.tune import Landscape, read_log

PUBLIC = next(Path(__file__).resolve().parents[5].glob("*/data/kernel_tuner/convolution_milo-A100.json.gz"), None)
"""A public landscape of the auto-tuning community's benchmark hub, where a copy lies beside the checkout."""


def same(one: Landscape, other: Landscape) -> None:
    without = {key: value for key, value in other.header.items() if key != "entries"}
    assert one.header == without
    assert dict(one.results) == dict(other.results)


def test_a_foreign_cache_becomes_a_landscape(cache_file):
    found = import_landscape(cache_file)
    info = found.info()
    assert (info.size, info.measured, info.failed) == (24, 16, {"crash": 2, "build": 2})
    assert found.workload.spec == "stencil:4096x4096"
    assert found.device["name"] == "Some GPU"
    assert found.header["space"]["knobs"]["memory"] == ["shared", "texture"]
    best, result = found.best
    assert found.config(best).to_dict() == {"block": 16, "unroll": 0, "memory": "shared", "fast": False}
    assert result.microseconds == pytest.approx(7600.0)
    assert result.samples == pytest.approx((15200.0, 7600.0, 7600.0))
    assert info.best_tops is None


def test_median_leaves_the_first_sample_out(cache):
    for entry in cache["cache"].values():
        if "times" in entry:
            entry["time"] = sum(entry["times"]) / 3
    assert from_kernel_tuner(cache).best[1].microseconds == pytest.approx(7600 * 4 / 3)
    assert from_kernel_tuner(cache, statistic="median").best[1].microseconds == pytest.approx(7600.0)
    with pytest.raises(InvalidInput, match="time, median"):
        from_kernel_tuner(cache, statistic="mode")


def test_a_foreign_landscape_is_kept_and_tuned(cache_file, tmp_path):
    found = import_landscape(cache_file)
    path = found.save(tmp_path / "kept.json.gz")
    same(found, Landscape.load(path))
    space = space_of(found)
    assert (len(space), len(space.valid), space.refused) == (24, 20, {"unrecorded": 4})
    assert space.hash == found.space_hash
    assert all(space.index(space.config(index)) == index for index in range(len(space)))
    assert "unrecorded" in space.check(next(i for i in range(24) if i not in found.results))
    log = tmp_path / "log.jsonl"
    report = subbyte.tune("stencil", trials=None, landscape=path, log=log)
    assert report.rows()[0]["fraction_of_optimum"] == 1.0
    assert report.rows()[0]["failed"] == {"crash": 2, "build": 2}
    again = read_log(log)
    assert again.best_config == found.config(found.best[0])
    assert again.workload == found.workload
    assert len(subbyte.tune("stencil", trials=None, landscape=path, log=log, resume=True).records[0].trials) == 20


def test_another_kernel_is_not_tuned_with_it(cache_file):
    found = import_landscape(cache_file)
    with pytest.raises(InvalidInput, match="landscape"):
        subbyte.tune("resnet50.stage2@8", landscape=found)


@pytest.mark.sample("json.gz")
@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_a_convolution_comes_back_as_it_was(recorded, tmp_path, suffix):
    path = export_landscape(recorded, tmp_path / f"x.{suffix}", "kernel-tuner")
    again = import_landscape(path)
    assert again.header["entries"] == len(recorded)
    same(recorded, again)


def test_a_foreign_cache_survives_another_round(cache_file, tmp_path):
    found = import_landscape(cache_file)
    same(found, import_landscape(export_landscape(found, tmp_path / "again.json", "kernel-tuner")))


def test_missing_brackets_are_tolerated_as_kernel_tuner_does(cache, tmp_path):
    text = json.dumps(cache)
    assert text.endswith("}}}")
    path = tmp_path / "open.json"
    path.write_text(text[:-2] + ",")
    assert len(import_landscape(path)) == 20


def test_times_of_1e20_are_failures(cache):
    entry = next(iter(cache["cache"].values()))
    entry["time"] = 1e20
    assert Failed("crash", "").kind in from_kernel_tuner(cache).info().failed
    assert from_kernel_tuner(cache).info().failed["crash"] == 3


def spoil_entry(**fields):
    def spoil(cache):
        next(iter(cache["cache"].values())).update(fields)

    return spoil


def drop(name):
    return lambda cache: cache.pop(name)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (drop("tune_params"), "tune_params"),
        (drop("device_name"), "device_name"),
        (lambda cache: cache["cache"].clear(), "no configuration"),
        (lambda cache: cache.update(cache=[1]), "not a Kernel Tuner cache"),
        (spoil_entry(block=17), "its knobs are"),
        (spoil_entry(time="MysteriousConfig"), "MysteriousConfig"),
        (spoil_entry(time=None), "not a positive number"),
        (spoil_entry(time=-1.0), "not a positive number"),
        (spoil_entry(time=float("nan")), "not a positive number"),
        (spoil_entry(times=["fast"]), "fast"),
        (lambda cache: cache["tune_params"]["block"].remove(16), "block=16: not in the space; allowed: 48, 80"),
        (lambda cache: next(iter(cache["cache"].values())).pop("memory"), "'memory' is missing"),
    ],
)
def test_a_damaged_cache_is_refused_by_entry(cache, spoil, message):
    spoil(cache)
    with pytest.raises(BrokenRecord, match=message):
        from_kernel_tuner(cache, "file.json")


def test_a_damaged_export_is_refused(recorded):
    for name in ("workload", "space", "device"):
        data = json.loads(json.dumps(to_kernel_tuner(recorded)))
        del data["subbyte"][name]
        with pytest.raises(BrokenRecord, match="damaged"):
            from_kernel_tuner(data)
    data = json.loads(json.dumps(to_kernel_tuner(recorded)))
    data["cache"].popitem()
    with pytest.raises(BrokenRecord, match="the file was cut short"):
        from_kernel_tuner(data)
    data = json.loads(json.dumps(to_kernel_tuner(recorded)))
    next(iter(data["cache"].values()))["subbyte"]["kind"] = "odd"
    with pytest.raises(BrokenRecord, match="failure kind 'odd'"):
        from_kernel_tuner(data)


def simulate(landscape, path, strategy, trials, seed):
    """Rows that a search of Kernel Tuner reports from its simulation mode."""
    kernel_tuner = pytest.importorskip("kernel_tuner")
    data = json.loads(path.read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, environment = kernel_tuner.tune_kernel(
            data["kernel_name"], "nothing", data["problem_size"], [], data["tune_params"],
            restrictions=restriction(landscape), simulation_mode=True, cache=str(path), strategy=strategy,
            strategy_options={"max_fevals": trials}, seed=seed, lang="CUDA", quiet=True,
        )  # fmt: skip
    assert environment["device_name"] == landscape.device["name"]
    return data["tune_params_keys"], rows


@pytest.mark.parametrize(
    ("which", "strategy"),
    [("convolution", "genetic_algorithm"), ("convolution", "random_sample"), ("foreign", "random_sample")],
)
def test_kernel_tuner_simulates_the_export(which, strategy, recorded, cache, tmp_path):
    landscape = recorded if which == "convolution" else from_kernel_tuner(cache)
    path = export_landscape(landscape, tmp_path / "cache.json", "kernel-tuner")
    names, rows = simulate(landscape, path, strategy, 60, 1)
    space = space_of(landscape)
    seen = set()
    for row in rows:
        index = space.index(space.config(0).from_dict({**space.config(0).to_dict(), **{n: row[n] for n in names}}))
        seen.add(index)
        result = landscape.results[index]
        if isinstance(result, Measured):
            assert row["time"] * 1000 == pytest.approx(result.microseconds, rel=1e-12)
        else:
            assert row["time"] in ("InvalidConfig", "CompilationFailedConfig", "RuntimeFailedConfig")
    assert len(seen) >= min(40, len(landscape))


def test_kernel_tuner_finds_the_optimum_by_brute_force(recorded, tmp_path):
    kernel_tuner = pytest.importorskip("kernel_tuner")
    path = export_landscape(recorded, tmp_path / "cache.json", "kernel-tuner")
    data = json.loads(path.read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, _ = kernel_tuner.tune_kernel(
            data["kernel_name"], "nothing", data["problem_size"], [], data["tune_params"],
            restrictions=restriction(recorded), simulation_mode=True, cache=str(path), strategy="brute_force",
            lang="CUDA", quiet=True,
        )  # fmt: skip
    assert len(rows) == len(recorded)
    best = min(row["time"] for row in rows if not isinstance(row["time"], str))
    assert best * 1000 == pytest.approx(recorded.best[1].microseconds, rel=1e-12)


@pytest.mark.skipif(PUBLIC is None, reason="the public landscape is not on this machine")
def test_the_public_landscape_of_a_convolution_on_an_a100():
    assert PUBLIC is not None
    found = import_landscape(PUBLIC)
    info = found.info()
    assert (len(found), info.measured, info.failed) == (4362, 4201, {"crash": 155, "build": 6})
    assert info.best_microseconds == pytest.approx(553.6, abs=0.05)
    assert info.device["name"] == "NVIDIA A100-PCIE-40GB"
    t4 = import_landscape(PUBLIC.with_name("convolution_milo-A100_T4.json.gz"), kernel="convolution_kernel",
                          device=info.device["name"])  # fmt: skip
    knobs = list(found.header["space"]["knobs"])
    times = [
        {tuple(row[knob] for knob in knobs): row["microseconds"] for row in landscape.rows()}
        for landscape in (found, t4)
    ]
    assert times[0] == times[1]


def test_other_files_are_refused_by_name(tmp_path, recorded):
    cases = {
        "picture.png": b"\x89PNG\r\n",
        "cut.json.gz": gzip.compress(b'{"cache": {}}')[:-6],
        "list.json": b"[1, 2]",
        "other.json": b'{"a": 1}',
        "half.json": b'{"cache": {"1": {"time": 1.0',
        "empty.json": b"",
    }
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidInput, match=name):
            import_landscape(tmp_path / name)
    with pytest.raises(InvalidInput, match="No such file"):
        import_landscape(tmp_path / "missing.json")
    with pytest.raises(InvalidInput, match="already"):
        import_landscape(recorded.save(tmp_path / "own.json.gz"))
    with pytest.raises(InvalidInput, match="kernel-tuner"):
        import_landscape(tmp_path / "other.json", "kerneltuner")
    with pytest.raises(InvalidInput, match="csv"):
        export_landscape(recorded, tmp_path / "x", "cvs")
    with pytest.raises(InvalidInput, match="cannot write"):
        export_landscape(recorded, tmp_path / "no" / "x", "csv")


@pytest.mark.deep
def test_kernel_tuner_simulates_a_shipped_landscape(tmp_path):
    """A tenth of the largest, to the last digit and in every format: an export that is read again is the same."""
    whole = Landscape.load("resnet50.stage5@8.extended.sm_90a")
    drawn = sorted(random.Random(1).sample(sorted(whole.results), len(whole) // 10))
    landscape = dataclasses.replace(whole, results={index: whole.results[index] for index in drawn}, same={})
    path = export_landscape(landscape, tmp_path / "cache.json", "kernel-tuner")
    names, rows = simulate(landscape, path, "genetic_algorithm", 80, 1)
    space = space_of(landscape)
    assert len(rows) >= 60
    for row in rows:
        index = space.index(space.config(0).with_values({n: row[n] for n in names}))
        assert row["time"] * 1000 == pytest.approx(landscape.results[index].microseconds, rel=1e-12)
    for file in (path, export_landscape(landscape, tmp_path / "t4.json.gz", "t4")):
        again = import_landscape(file)
        assert again.space_hash == landscape.space_hash
        assert {i: r.microseconds for i, r in again.results.items()} == {
            i: r.microseconds for i, r in landscape.results.items()
        }
        assert again.missing == landscape.missing


@pytest.mark.parametrize("convert", [to_kernel_tuner, to_t4])
def test_a_landscape_recorded_under_former_knob_names_is_exported_under_them(convert):
    recorded = Landscape.load("resnet50.stage3@8.warpgroup-small.sm_90a")
    knobs = recorded.header["space"]["knobs"]
    assert not set(knobs) <= set(recorded.config(recorded.best[0]).to_dict()), "its names are today's: take another"
    found = convert(recorded)
    entries = found["cache"].values() if "cache" in found else [one["configuration"] for one in found["results"]]
    assert len(entries) == len(recorded)
    assert [[one[name] for name in knobs] for one in entries] == [
        [row[name] for name in knobs] for row in recorded.rows()
    ]

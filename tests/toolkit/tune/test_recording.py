"""Recordings: built and measured at the same time, equal programs once, interrupted, gone on with, on other GPUs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import fake_measuring
import pytest

from subbyte.errors import BrokenRecord, InvalidInput, MissingDependency
from subbyte.families import space
from subbyte.measure.arrivals import Share
from subbyte.records.describe import describe_space, describe_workload
from subbyte.records.landscape import make_header
from subbyte.records.measurements import merged, read_results, to_landscape
from subbyte.records.result import Failed
from subbyte.tune import Landscape, read_manifest
from subbyte.tune.recording import assemble, measured, record_landscape, result_files

HELPER = fake_measuring.__file__


def command(folder, out, device, share, known):
    options = ["--device", str(device), "--share", share, "--known", *map(str, known)]
    return [sys.executable, HELPER, str(folder), str(out), *options]


@pytest.fixture(autouse=True)
def _python(monkeypatch):
    monkeypatch.setenv("PYTHON", sys.executable)


def run(toy, folder, **options):
    return record_landscape(toy, folder, build=fake_measuring.build, command=command, **options)


def fails(toy, index):
    return toy.config(index).chunk == 2 and toy.config(index).blk_row_warps == 2


def killer(toy, index):
    return fake_measuring.build(None, toy.config(index), "").cubin == b"kill"


def test_everything_is_built_and_measured_once(toy, tmp_path):
    seen = []
    report = run(toy, tmp_path, devices=(0, 1), progress=lambda *step: seen.append(step))
    found = measured(tmp_path)
    assert sorted(found) == list(toy.valid)
    assert seen[-1] == (len(toy.valid), len(toy.valid))
    failed = {index for index in toy.valid if fails(toy, index)}
    lost = found[min(failed)]
    assert isinstance(lost, Failed)
    assert (lost.kind, lost.reason) == ("build", "RuntimeError: does not lower")  # as it was when it was built
    deadly = {index for index in toy.valid if index not in failed and killer(toy, index)}
    assert {index for index, result in found.items() if not result.ok} == failed | deadly
    assert "status 9" in next(iter(found[index].reason for index in deadly))
    assert (report.valid, report.failed, report.remaining) == (len(toy.valid), len(failed | deadly), 0)
    assert report.measured == len(toy.valid) - report.failed
    made = assemble(None, tmp_path)
    assert made.device["uuids"] == ["GPU-bus 0", "GPU-bus 1"]
    assert made.device["gpus"] == 2
    assert {result.device["uuid"] for result in made.results.values() if result.ok} == {"GPU-bus 0", "GPU-bus 1"}
    entries = read_manifest(tmp_path)[1]
    programs = {entry["program"] for entry in entries.values() if "program" in entry}
    assert report.shared == len(made.same) > 50
    assert made.info().programs == len(programs) - 1  # one of them was deadly, for all who share it
    for index, owner in made.same.items():
        assert made.results[index] == made.results[owner]
        assert entries[index]["program"] == entries[owner]["program"]
    loaded = Landscape.load(made.save(tmp_path / "made.json.gz"))
    assert loaded.same == made.same


@pytest.mark.deep
def test_a_recording_that_ran_out_of_time_goes_on_elsewhere_with_its_results_alone(toy, tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.setenv("SLOW", "0.05")
    part = run(toy, first, devices=(0,), limit_s=2.0)
    while not part.measured:  # a busy machine
        part = run(toy, first, devices=(0,), limit_s=2.0)
    assert part.remaining > 0
    monkeypatch.setenv("SLOW", "0")
    second.mkdir()
    for path in result_files(first):
        (second / path.name).write_bytes(path.read_bytes())
    whole = run(toy, second, devices=(2,))
    assert whole.remaining == 0
    files = {path.name: read_results(path).results for path in result_files(second)}
    (new,) = set(files) - {path.name for path in result_files(first)}
    assert new.endswith(".2.jsonl")
    assert all(files[path.name] == read_results(path).results for path in result_files(first))
    assert not set(files[new]) & set(measured(first))
    built = set(read_manifest(second)[1])
    assert built == set(toy.valid) - set(measured(first))
    made = to_landscape(*result_files(second))
    assert sorted(made.results) == list(toy.valid)
    assert "GPU-bus 2" in made.device["uuids"]
    assert run(toy, second, devices=(0,)).seconds < 1  # nothing left to do


@pytest.mark.deep
def test_a_killed_recording_loses_nothing_and_leaves_no_process(toy, tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import conftest, test_recording\n"
        "test_recording.run(conftest.ToySpace(), sys.argv[2], devices=(0, 1))\n"
    )
    here = str(Path(__file__).parent)
    process = subprocess.Popen([sys.executable, "-c", code, here, str(tmp_path)])
    deadline = time.monotonic() + 60
    while sum(len(path.read_bytes().splitlines()) for path in result_files(tmp_path)) < 12:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while _measuring_in(tmp_path):  # they notice that their input was closed, measure what is there and end
        assert time.monotonic() < deadline
        time.sleep(0.05)
    before = measured(tmp_path)
    report = run(toy, tmp_path, devices=(0, 1))
    after = measured(tmp_path)
    assert report.remaining == 0
    assert len(before) > 8
    assert all(after[index] == result for index, result in before.items())


def _measuring_in(folder):
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(folder).encode() in words and HELPER.encode() in words:
            found.append(process)
    return found


def test_without_any_gpu_the_recording_ends_with_the_reason(toy, tmp_path):
    with pytest.raises(MissingDependency, match=r"no GPU is left to measure on: device 9"):
        run(toy, tmp_path, devices=(9,))
    assert not _measuring_in(tmp_path)


@pytest.mark.deep
def test_the_share_of_a_missing_gpu_is_left_over(toy, tmp_path):
    report = run(toy, tmp_path, devices=(9, 0))
    assert report.measured > 0
    assert 0 < report.remaining < report.valid


@pytest.mark.parametrize("devices", [(), (0, 0), 5, ("a",), "01", (-1,)])
def test_devices_are_checked(toy, tmp_path, devices):
    with pytest.raises(InvalidInput, match="devices="):
        run(toy, tmp_path, devices=devices)


@pytest.mark.deep
def test_another_space_and_an_empty_folder_are_refused(toy, make_space, tmp_path):
    run(toy, tmp_path / "a", limit_s=0.0)
    with pytest.raises(InvalidInput, match="from another space"):
        run(make_space(layout="nhwc"), tmp_path / "a")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InvalidInput, match="holds no measurements"):
        assemble(None, empty)


# ---- results files ------------------------------------------------------------


def _file(path, lines, **device):
    toy = space("n8h6w6c32k32r3s3p1")
    header = {**make_header(describe_workload(toy.workload), describe_space(toy), device, {}), "created": "2026"}
    header |= {"format": "subbyte-measurements", "schema": 1}
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *lines)))
    return path


def test_shared_results_are_found_across_files(tmp_path):
    timed = {"index": 3, "ok": True, "microseconds": 4.0, "verified": True, "program": "p"}
    one = _file(tmp_path / "1", [timed])
    two = _file(tmp_path / "2", [{"index": 5, "same_as": 3}])
    assert read_results(two).results == {}
    both = merged([two, one])
    assert both.results[5] == both.results[3]
    assert both.programs == {"p": 3}


def test_results_of_unlike_gpus_make_no_landscape(tmp_path):
    one, two = (_file(tmp_path / name, [], name=name, uuid=name) for name in ("H200", "H100"))
    with pytest.raises(InvalidInput, match="different GPUs"):
        to_landscape(one, two)
    other = _file(tmp_path / "b", [], name="H200", uuid="b")
    other.write_text(other.read_text().replace('"kind": "paper"', '"kind": "extended"'))
    with pytest.raises(InvalidInput, match="not of the same space"):
        to_landscape(one, other)


# ---- shares ------------------------------------------------------------


def test_shares_hold_each_entry_once_and_equal_programs_together(tmp_path):
    entries = [{"index": i, "program": f"{i // 2:032x}"} for i in range(400)] + [{"index": 400, "failed": {}}]
    (tmp_path / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in ({}, *entries)))
    parts = [[entry["index"] for entry in Share(n, 4).entries(tmp_path)] for n in range(4)]
    assert sorted(index for part in parts for index in part) == list(range(401))
    assert all(part for part in parts)
    assert all(index ^ 1 in part for part in parts for index in part if index < 400)


def test_a_share_waits_for_entries_and_for_the_rest_of_a_line(tmp_path):
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_text('{"format":1}\n{"index":1}\n{"ind')
    more = ['ex":2}\n', '{"index":3}\n{"index":4}\n', ""]

    def growing():
        if more:
            with open(manifest, "a") as file:
                file.write(more.pop(0))
        return bool(more)

    assert [entry["index"] for entry in Share(growing=growing).entries(tmp_path)] == [1, 2, 3, 4]


@pytest.mark.parametrize("text", ["3/3", "1", "a/2", "-1/2", "0/0"])
def test_odd_shares_are_refused(text):
    with pytest.raises(InvalidInput, match="share"):
        Share.parse(text, lambda: False)


def test_a_damaged_manifest_is_refused(tmp_path):
    (tmp_path / "manifest.jsonl").write_text('{}\n{"index":"x"}\n')
    with pytest.raises(BrokenRecord, match="manifest is damaged"):
        list(Share().entries(tmp_path))

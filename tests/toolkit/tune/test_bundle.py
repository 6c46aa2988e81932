"""Bundles: built in processes, failures and deaths become lines, an interrupted build goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from subbyte.device.launch import Argument, Launch
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.tune import build_bundle, read_manifest
from subbyte.tune import bundle as bundle_module


@dataclass
class FakeKernel:
    cubin: bytes
    launch: Launch
    resources: dict


def build(workload, config, arch):
    if config.chunk == 2 and config.reorder_inner == 1:
        raise RuntimeError("does not lower")
    if config.blk_row_warps == 4 and config.chunk == 1:
        os._exit(9)
    launch = Launch(
        "conv", (config.pixels, 1, 1), (config.threads, 1, 1), 1024, (Argument("Out", "int32", (8,), "out"),)
    )
    return FakeKernel(f"{arch}{config.blk_col_warps}".encode(), launch, {"registers": 64})


class SameProcess:
    """Stands for a pool of processes where the processes are not what is tested."""

    def __init__(self, *_):
        pass

    def submit(self, function, *arguments):
        from concurrent.futures import Future

        future = Future()
        future.set_result(function(*arguments))
        return future

    def shutdown(self, **_):
        pass


@pytest.fixture
def in_process(monkeypatch):
    monkeypatch.setattr(bundle_module, "_pool", SameProcess)


def lives(toy):
    return [i for i in toy.valid if not (toy.config(i).blk_row_warps == 4 and toy.config(i).chunk == 1)]


def test_entries_cubins_and_failures(toy, tmp_path, in_process):
    wanted = lives(toy)
    seen = []
    report = build_bundle(toy, tmp_path, indices=wanted, build=build, progress=lambda *done: seen.append(done))
    header, entries = read_manifest(tmp_path)
    failed = [i for i in wanted if toy.config(i).chunk == 2 and toy.config(i).reorder_inner == 1]
    assert (report.built, report.failed, report.kept) == (len(wanted) - len(failed), len(failed), 0)
    assert seen[-1] == (len(wanted), len(wanted))
    assert header["space"]["hash"] == toy.hash
    assert header["workload"]["spec"] == toy.workload.spec
    assert sorted(entries) == wanted
    for index, entry in entries.items():
        assert entry["config"] == toy.config(index).to_dict()
        if index in failed:
            assert entry["failed"] == {"ok": False, "kind": "build", "reason": "RuntimeError: does not lower"}
        else:
            assert (tmp_path / entry["cubin"]).read_bytes() == f"sm_90a{toy.config(index).blk_col_warps}".encode()
            assert entry["launch"]["block"] == [toy.config(index).threads, 1, 1]
            assert entry["resources"] == {"registers": 64}
    assert len(list((tmp_path / "cubins").iterdir())) == len({toy.config(i).blk_col_warps for i in wanted})


def test_an_interrupted_build_goes_on(toy, tmp_path, in_process):
    wanted = lives(toy)

    def interrupt(done, total):
        if done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_bundle(toy, tmp_path, indices=wanted, build=build, progress=interrupt)
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_bytes(manifest.read_bytes()[:-30])
    before = manifest.read_bytes().rpartition(b"\n")[0]
    report = build_bundle(toy, tmp_path, indices=wanted, build=build)
    assert report.kept == 9
    assert manifest.read_bytes().startswith(before)
    assert sorted(read_manifest(tmp_path)[1]) == wanted


def test_a_process_that_dies_is_named_and_the_others_are_built(toy, tmp_path):
    killer = next(i for i in toy.valid if toy.config(i).blk_row_warps == 4 and toy.config(i).chunk == 1)
    wanted = [*lives(toy)[:4], killer]
    report = build_bundle(toy, tmp_path, indices=wanted, build=build, workers=2)
    entries = read_manifest(tmp_path)[1]
    assert report.failed == 1
    assert entries[killer]["failed"]["kind"] == "crash"
    assert all("cubin" in entries[index] for index in wanted[:4])


def test_the_folder_of_another_space_is_refused(toy, make_space, tmp_path, in_process):
    build_bundle(toy, tmp_path, indices=lives(toy)[:1], build=build)
    with pytest.raises(InvalidInput, match="from another space"):
        build_bundle(make_space(layout="nhwc"), tmp_path, indices=lives(toy)[:1], build=build)


def test_damaged_and_missing_manifests_are_refused(toy, tmp_path, in_process):
    with pytest.raises(InvalidInput, match="holds no bundle"):
        read_manifest(tmp_path)
    build_bundle(toy, tmp_path, indices=lives(toy)[:3], build=build)
    manifest = tmp_path / "manifest.jsonl"
    lines = manifest.read_text().splitlines()
    manifest.write_text("\n".join([lines[0], lines[1][:40], *lines[2:]]) + "\n")
    with pytest.raises(BrokenRecord, match="line 2: damaged"):
        read_manifest(tmp_path)
    manifest.write_text('{"format":"odd"}\n')
    with pytest.raises(BrokenRecord, match="line 1"):
        read_manifest(tmp_path)


def test_no_workers_is_refused(toy, tmp_path):
    with pytest.raises(InvalidInput, match="workers=0: must be an integer >= 1"):
        build_bundle(toy, tmp_path, workers=0)


SLOW_BUILD = """
import os, pathlib, time

def build(workload, config, arch):
    with open(pathlib.Path(__file__).with_name("pids"), "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(0.2)
    raise RuntimeError("slow")
"""
SLOW = """
import importlib.util, sys
from slow_build import build
from subbyte.tune import build_bundle

spec = importlib.util.spec_from_file_location("toy", sys.argv[1])
toy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(toy)
space = toy.ToySpace()
build_bundle(space, sys.argv[2], build=build, indices=space.valid[:60])
"""


def gone(pids):
    """True once none of the processes is left; they take a moment."""
    for _ in range(500):
        alive = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
        if not alive:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.deep
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_build_leaves_no_process_behind(toy, tmp_path, sent):
    (tmp_path / "slow_build.py").write_text(SLOW_BUILD)
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    command = [sys.executable, str(script), str(Path(__file__).with_name("conftest.py")), str(tmp_path / "bundle")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    manifest = tmp_path / "bundle" / "manifest.jsonl"
    while not manifest.exists() or manifest.read_bytes().count(b"\n") < 3:
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert err.count(b"Traceback") == (sent == signal.SIGINT)
    assert gone([int(pid) for pid in (tmp_path / "pids").read_text().split()])
    entries = read_manifest(tmp_path / "bundle")[1]
    assert {entry["failed"]["kind"] for entry in entries.values()} == {"build"}

"""Kills at random moments: at most what was in flight is lost, and the end is that of an undisturbed run.

Most are played in this process, at any byte of a write and at any evaluation, with the disk as it is at that moment;
some are real ones (SIGKILL).
"""

from __future__ import annotations

import io
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import subbyte.families as space_module
from subbyte.errors import SubbyteError
from subbyte.measure.fake import FakeRunner
from subbyte.records.log import NotRecorded
from subbyte.tune import Study, read_log, tune_network
from subbyte.workload import ConvWorkload

REAL = 2
PAIRS = [
    (ConvWorkload(8, 14, 14, 64, 64, 3, 3, 1, name="big"), 4),
    (ConvWorkload(8, 7, 7, 64, 64, 3, 3, 1, name="small"), 1),
    (ConvWorkload(8, 14, 14, 64, 64, 1, 1, name="pointwise"), 2),
]
OPTIONS = {"trials": 150, "batch": 8, "seed": 7}
FEWER = {**OPTIONS, "trials": 60}


class Killed(BaseException):
    """The process is dead: whatever happens afterwards never reaches the disk."""


class Fate:
    """Kills after so many bytes were written, or so many configurations evaluated; keeps the disk of that moment."""

    def __init__(self, folder: Path, grave: Path) -> None:
        self.folder, self.grave = folder, grave
        self.bytes = self.evaluations = 1 << 60

    def strike(self) -> None:
        shutil.rmtree(self.grave, ignore_errors=True)
        shutil.copytree(self.folder, self.grave)
        self.bytes = self.evaluations = 1 << 60
        raise Killed

    def resurrect(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.grave, self.folder)


@pytest.fixture
def fate(tmp_path, monkeypatch):
    (tmp_path / "disk").mkdir()
    made = Fate(tmp_path / "disk", tmp_path / "grave")

    class DyingFile(io.FileIO):
        def write(self, data):
            if len(data) > made.bytes:
                super().write(data[: made.bytes])
                made.strike()
            made.bytes -= len(data)
            return super().write(data)

    monkeypatch.setattr("subbyte.records.log.FileIO", DyingFile)
    return made


@pytest.fixture(autouse=True)
def toy_spaces(make_space, monkeypatch):
    monkeypatch.setattr(space_module, "space", lambda workload, *_, **__: make_space(workload), raising=False)


def runner_of(fate=None):
    class Mortal(FakeRunner):
        def run(self, workload, configs):
            if fate is not None:
                if fate.evaluations == 0:
                    fate.strike()
                fate.evaluations -= 1
            return super().run(workload, configs)

    return Mortal(failures={"timeout": 0.1})


def outcome(report):
    return [[(t.number, t.index, t.config, t.result, t.ask) for t in record.trials] for record in report.records]


def whole_lines(folder):
    return {path.name: path.read_bytes().rpartition(b"\n")[0] for path in folder.iterdir()}


@pytest.mark.parametrize(("played", "options"), [(4, FEWER), pytest.param(12, OPTIONS, marks=pytest.mark.deep)])
def test_kills_played_at_random_moments(fate, tmp_path, played, options):
    chance = random.Random(1)
    kept: dict[str, bytes] = {}
    deaths = torn = 0
    report = None
    while report is None:
        if deaths < played:
            setattr(fate, chance.choice(["bytes", "bytes", "evaluations"]), chance.randrange(4))
            fate.bytes *= chance.randrange(1, 900) if fate.bytes < 4 else 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the notice that a line was cut
                log = fate.folder / "net.jsonl"
                report = tune_network(PAIRS, runner_of(fate), log=log, resume=True, **options)
        except Killed:
            deaths += 1
            fate.resurrect()
            now = whole_lines(fate.folder)
            assert all(now[name].startswith(before) for name, before in kept.items())
            kept = now
            torn += any(not path.read_bytes().endswith(b"\n") for path in fate.folder.iterdir() if path.stat().st_size)
    assert deaths == played
    assert torn > played // 6
    assert outcome(report) == outcome(tune_network(PAIRS, runner_of(), **options))


SCRIPT = """
import importlib.util, sys, warnings
import subbyte.families
from subbyte.measure.fake import FakeRunner
from subbyte.tune import tune_network
from subbyte.workload import ConvWorkload
warnings.simplefilter("ignore")
place = importlib.util.spec_from_file_location("toy", sys.argv[1])
toy = importlib.util.module_from_spec(place)
place.loader.exec_module(toy)
subbyte.families.space = lambda workload, *_, **__: toy.ToySpace(workload)
pairs = [(ConvWorkload(8, 14, 14, 64, 64, 3, 3, 1, name="big"), 4),
         (ConvWorkload(8, 7, 7, 64, 64, 3, 3, 1, name="small"), 1),
         (ConvWorkload(8, 14, 14, 64, 64, 1, 1, name="pointwise"), 2)]
print("begun", flush=True)
tune_network(pairs, FakeRunner(failures={"timeout": 0.1}, delay=0.002), trials=150, batch=8, seed=7, log=sys.argv[2],
             resume=True)
"""


@pytest.mark.deep
def test_real_kills(tmp_path):
    log = tmp_path / "disk" / "net.jsonl"
    log.parent.mkdir()
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).with_name("conftest.py")), str(log)]
    chance = random.Random(2)
    kept: dict[str, bytes] = {}
    for _ in range(REAL):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        now = whole_lines(log.parent)
        assert all(now[name].startswith(before) for name, before in kept.items())
        kept = now
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    straight = tune_network(PAIRS, runner_of(), **OPTIONS)
    for record in straight.records:
        found = read_log(log.with_name(f"net.{record.workload.label}.jsonl"))
        same = [[(t.number, t.index, t.config, t.result, t.ask) for t in r.trials] for r in (found, record)]
        assert same[0] == same[1]


def test_a_full_disk_ends_a_study_with_its_log_whole(toy, tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    calls = []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) > 4:
            raise OSError(28, "No space left on device")

    with Study(toy, log=path) as study:
        monkeypatch.setattr("os.fsync", fsync)
        with pytest.raises(NotRecorded, match=r"No space left on device.*--resume") as caught:
            study.run(FakeRunner(), 10)
        assert isinstance(caught.value, SubbyteError)
        assert caught.value.exit_code == 3
    monkeypatch.undo()
    assert len(read_log(path).trials) == 3
    with Study(toy, log=path, resume=True) as study:
        assert len(study.run(FakeRunner(), 10).trials) == 10

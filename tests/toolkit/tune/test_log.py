"""Record logs: nothing lost in a crash, damage named by its line, resumed runs equal to uninterrupted ones."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.measure.fake import FakeRunner
from subbyte.records.result import Measured
from subbyte.tune import Study, read_log
from subbyte.workload import ConvWorkload

WRITER = """
import sys, importlib.util
from subbyte.measure.fake import FakeRunner
from subbyte.tune import Study
spec = importlib.util.spec_from_file_location("toy", sys.argv[1])
toy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(toy)
with Study(toy.ToySpace(), seed=3, log=sys.argv[2], resume=True) as study:
    print("open", flush=True)
    study.run(FakeRunner(failures={"timeout": 0.1}, delay=0.002), trials=120)
"""


def outcome(record):
    return [(trial.number, trial.index, trial.config, trial.result, trial.ask) for trial in record.trials]


def write(toy, path, trials, **options):
    with Study(toy, seed=3, log=path, **options) as study:
        return study.run(FakeRunner(failures={"timeout": 0.1}), trials)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.jsonl"


def test_a_log_reads_back_as_the_study(toy, path):
    record = write(toy, path, 20)
    lines = path.read_text().splitlines()
    header = json.loads(lines[0])
    assert len(lines) == 21
    assert (header["format"], header["schema"], header["seed"]) == ("subbyte-log", 1, 3)
    assert header["space"]["hash"] == toy.hash
    assert header["workload"]["spec"] == toy.workload.spec
    assert header["strategy"] == {"name": "random", "options": {}}
    assert header["device"]["name"] == "fake"
    again = read_log(path)
    assert again.trials == record.trials
    assert again.workload == toy.workload
    assert again.best_config == record.best.config
    assert isinstance(again.best_config, MmaConfig)
    assert list(again.to_frame().microseconds.dropna()) == [t.microseconds for t in record.trials if t.microseconds]


def test_every_trial_is_on_the_disk_before_it_is_told_to_anyone(toy, path):
    counts = []
    with Study(toy, log=path) as study:
        study.run(FakeRunner(), 6, callbacks=[lambda *_: counts.append(path.read_bytes().count(b"\n"))])
    assert counts == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("first", [1, 8, 13])
def test_a_resumed_run_ends_like_an_uninterrupted_one_byte_for_byte_before(toy, path, tmp_path, first):
    write(toy, path, first)
    before = path.read_bytes()
    evaluated = []

    class Counting(FakeRunner):
        def run(self, workload, configs):
            evaluated.extend(configs)
            return super().run(workload, configs)

    with Study(toy, seed=3, log=path, resume=True) as study:
        resumed = study.run(Counting(failures={"timeout": 0.1}), 30)
    assert path.read_bytes().startswith(before)
    assert len(evaluated) == 30 - first
    straight = write(toy, tmp_path / "straight.jsonl", 30)
    assert [(t.number, t.index, t.result) for t in resumed.trials] == [
        (t.number, t.index, t.result) for t in straight.trials
    ]
    assert read_log(path).trials == resumed.trials


@pytest.mark.deep  # test_kills.py plays the same within a process
def test_killed_at_random_points_and_resumed(toy, path, tmp_path):
    command = [sys.executable, "-c", WRITER, str(Path(__file__).with_name("conftest.py")), str(path)]
    chance = random.Random(0)
    kept = b""
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.06))
        process.kill()
        process.wait()
        process.stdout.close()
        now = path.read_bytes()
        whole = kept[: kept.rfind(b"\n") + 1]
        assert now.startswith(whole)
        kept = now
    finished = subprocess.run(command, capture_output=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert outcome(read_log(path)) == outcome(write(toy, tmp_path / "straight.jsonl", 120))


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_a_cut_last_line_is_dropped_with_a_notice(toy, path, tmp_path, cut):
    write(toy, path, 10)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with pytest.warns(UserWarning, match=r"line 11: cut short by a crash .* dropped"):
        assert len(read_log(path).trials) == 9
    with pytest.warns(UserWarning, match="line 11: cut short"):
        resumed = write(toy, path, 10, resume=True)
    assert outcome(resumed) == outcome(write(toy, tmp_path / "straight.jsonl", 10))
    lines = whole.split(b"\n")
    assert path.read_bytes().startswith(b"\n".join(lines[:10]) + b"\n")
    assert len(path.read_bytes().splitlines()) == 11


def test_a_cut_header_starts_afresh(toy, path):
    write(toy, path, 1)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(BrokenRecord, match="line 1: no header"):
        read_log(path)
    with pytest.warns(UserWarning, match="line 1: cut short"):
        record = write(toy, path, 5, resume=True)
    assert read_log(path).trials == record.trials


def change_digit(lines):
    lines[4] = lines[4].replace(b'"index":', b'"index":1', 1)


def remove_line(lines):
    del lines[4]


def repeat_line(lines):
    lines.insert(4, lines[3])


def swap_lines(lines):
    lines[4], lines[5] = lines[5], lines[4]


def garbage(lines):
    lines[4] = b"\x00\xff" + lines[4][:20]


def empty_line(lines):
    lines.insert(4, b"")


def not_an_object(lines):
    lines[4] = b"[1,2]"


def break_in_two(lines):
    lines[4:5] = [lines[4][:50], lines[4][50:]]


@pytest.mark.parametrize(
    "damage", [change_digit, remove_line, repeat_line, swap_lines, garbage, empty_line, not_an_object, break_in_two]
)
def test_any_other_damage_is_refused_by_its_line(toy, path, damage):
    write(toy, path, 10)
    lines = path.read_bytes().split(b"\n")
    damage(lines)
    path.write_bytes(b"\n".join(lines))
    broken = path.read_bytes()
    with pytest.raises(BrokenRecord, match="line 5:"):
        read_log(path)
    with pytest.raises(BrokenRecord, match="line 5:"):
        Study(toy, seed=3, log=path, resume=True)
    assert path.read_bytes() == broken


@pytest.mark.parametrize(
    ("text", "says"),
    [(b"{}\n", "line 1"), (b"hello\n", "line 1"), (b'{"format":"subbyte-log","schema":2}\n', "line 1")],
)
def test_a_file_that_is_no_log_is_refused(toy, path, text, says):
    path.write_bytes(text)
    with pytest.raises(BrokenRecord, match=f"{says}.*choose another file"):
        Study(toy, log=path, resume=True)


def test_a_later_schema_is_refused_by_name(toy, path):
    from subbyte.records.log import seal_line

    write(toy, path, 1)
    header = json.loads(path.read_bytes().split(b"\n")[0])
    del header["crc"]
    path.write_bytes(seal_line({**header, "schema": 2}, 0)[0])
    with pytest.raises(BrokenRecord, match="schema 2; this version of subbyte reads schema 1"):
        read_log(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seed": 4}, "its seed is 3, this study's is 4"),
        ({"strategy": "exhaustive"}, "its strategy is"),
        ({"workload": ConvWorkload(8, 7, 7, 64, 64, 3, 3, 1)}, "its workload is n8h14w14c64k64r3s3p1"),
        ({"layout": "nhwc"}, "its space"),
    ],
)
def test_resuming_another_study_is_refused_by_name(toy, make_space, path, change, says):
    write(toy, path, 3)
    before = path.read_bytes()
    space = make_space(**{key: value for key, value in change.items() if key in ("workload", "layout")})
    options = {"seed": 3, **{key: value for key, value in change.items() if key in ("seed", "strategy")}}
    with pytest.raises(InvalidInput, match=says):
        Study(space, log=path, resume=True, **options)
    assert path.read_bytes() == before
    assert len(write(toy, path, 5, resume=True).trials) == 5


def test_an_existing_log_is_not_overwritten(toy, path):
    write(toy, path, 3)
    with pytest.raises(InvalidInput, match="resume it"):
        Study(toy, seed=3, log=path)


def test_resuming_on_another_device_is_refused(toy, path):
    write(toy, path, 3)
    runner = FakeRunner()
    runner.device = {"runner": "fake", "name": "another"}
    with Study(toy, seed=3, log=path, resume=True) as study, pytest.raises(InvalidInput, match="cannot be compared"):
        study.run(runner, 5)


def test_two_writers_are_kept_apart(toy, path):
    with Study(toy, seed=3, log=path) as study:
        study.run(FakeRunner(), 2)
        with pytest.raises(InvalidInput, match="being written by another study"):
            Study(toy, seed=3, log=path, resume=True)
        study.run(FakeRunner(), 4)
    assert len(read_log(path).trials) == 4
    Study(toy, seed=3, log=path, resume=True).close()


def test_a_log_that_cannot_be_written_or_read_is_refused(toy, tmp_path):
    with pytest.raises(InvalidInput, match="cannot write"):
        Study(toy, log=tmp_path)
    with pytest.raises(InvalidInput, match="No such file"):
        read_log(tmp_path / "none.jsonl")


def test_results_told_by_hand_are_resumed_too(toy, path):
    with Study(toy, log=path) as study:
        first = study.ask(2)
        study.tell(first[1], Measured(2.0))
        other = next(index for index in toy.valid if index not in [trial.index for trial in first])
        study.tell(other, Measured(1.0))
    with Study(toy, log=path, resume=True) as study:
        assert [trial.index for trial in study.trials] == [first[1].index, other]
        assert [trial.ask is None for trial in study.trials] == [False, True]
        open_again = study.ask(5)
        assert [(trial.number, trial.index) for trial in open_again] == [(0, first[0].index)]
        record = study.run(FakeRunner(), 20)
    assert len({trial.index for trial in record.trials}) == 20
    assert len({trial.number for trial in record.trials}) == 20


def test_a_strategy_that_changed_since_is_noticed(toy, path):
    class Reversed:
        name, options = "random", {}

        def ask(self, n):
            return list(toy.valid[-n:])

        def tell(self, index, result):
            pass

    write(toy, path, 4)
    with pytest.warns(UserWarning, match="no longer proposes"):
        Study(toy, Reversed(), seed=3, log=path, resume=True).close()


def test_a_failed_write_leaves_no_half_line(toy, path, monkeypatch):
    with Study(toy, log=path) as study:
        study.run(FakeRunner(), 3)
        before = path.read_bytes()
        monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            study.run(FakeRunner(), 5)
        assert path.read_bytes() == before
        monkeypatch.undo()
        study.run(FakeRunner(), 5)
    assert len(read_log(path).trials) == 5


def test_ctrl_c_after_a_write_does_not_write_the_trial_twice(toy, path, monkeypatch):
    with Study(toy, seed=3, log=path) as study:
        accept = study._accept
        monkeypatch.setattr(study, "_accept", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert study.run(FakeRunner(), 5).ended == "interrupted"
        monkeypatch.setattr(study, "_accept", accept)
        study.run(FakeRunner(), 5)
    indices = [trial.index for trial in read_log(path).trials]
    assert len(indices) == len(set(indices)) == 5


def test_the_interrupt_signal_ends_a_run_cleanly(path):
    script = WRITER.replace(
        "delay=0.002), trials=120)", "delay=0.01), trials=120); print(study.ended, len(study.trials))"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).with_name("conftest.py")), str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    while path.read_bytes().count(b"\n") < 5:  # the last of them may be taken back: it was not yet on the disk
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b"")
    assert out.split()[0] == b"interrupted"
    assert len(read_log(path).trials) == int(out.split()[1]) >= 3

"""Baselines beyond the heuristics' lists, as far as they go without a GPU: knobs, the layout of vectors, what fails."""

import argparse
import itertools
import random
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.baselines import further
from benchmarks.baselines.tried import ENDLESS, FATAL, Log, Tried, watch
from benchmarks.baselines.vectored import Library, to_vectors
from subbyte.errors import MissingDependency, WrongResult


def test_vectors_hold_32_channels_of_a_pixel():
    values = np.arange(2 * 3 * 5 * 40, dtype=np.int32).reshape(2, 3, 5, 40)
    vectors = to_vectors(values)
    assert vectors.shape == (2, 2, 3, 5, 32)
    for n, h, w, c in ((0, 0, 0, 0), (1, 2, 4, 39), (0, 1, 3, 31), (1, 0, 2, 32)):
        assert vectors[n, c // 32, h, w, c % 32] == values[n, h, w, c]
    assert not vectors[:, 1, :, :, 8:].any()


def test_drawn_knobs_differ_and_stay_among_their_values():
    engines = {0: {"TILE": range(0, 9, 4), "SPLIT": range(1, 3)}, 3: {}}
    drawn = list(further.choices(engines, random.Random(0), 50))
    assert len({(engine, *values.items()) for engine, values in drawn}) == len(drawn) == 3 * 2 + 1
    assert all(value in engines[engine][knob] for engine, values in drawn for knob, value in values.items())
    assert not list(further.choices({}, random.Random(0), 5))


def test_kernels_that_do_not_split_k_come_first():
    engines = {2: {"KnobType.SPLIT_K_SLC": range(1, 129), "KnobType.KERNEL_CFG": range(5)}}
    first = [values for _, values in itertools.islice(further.choices(engines, random.Random(0), 40), 5)]
    assert {values["KnobType.KERNEL_CFG"] for values in first} == set(range(5))
    assert {values["KnobType.SPLIT_K_SLC"] for values in first} == {1}
    assert len(list(further.choices(engines, random.Random(0), 40))) == 40


class Device:
    """A device whose context may be gone."""

    gone = False

    def synchronize(self):
        if self.gone:
            raise RuntimeError("an illegal memory access was encountered")


class Opened:
    """A graph with two listed plans, one of them wrong, and an engine whose plans take as long as their knob says."""

    names = ("slow", "wrong")

    def __init__(self):
        self.plans = [("slow", 9.0), ("wrong", 1.0)]

    def build(self, index):
        pass

    def engines(self):
        return {7: {"Knob.TILE": range(2, 5)}}

    def add(self, engine, knobs):
        if knobs["Knob.TILE"] == 4:
            raise RuntimeError("not supported")
        self.plans.append(("drawn", float(knobs["Knob.TILE"])))
        return len(self.plans) - 1

    def launcher(self, index):
        return index

    def checked(self, launch, case):
        if self.plans[launch][0] == "wrong":
            raise WrongResult("elements differ")
        return 0.0


def asked(folder):
    return argparse.Namespace(layer_seconds=60.0, drawn=10, tried=folder / "tried")


CASE = SimpleNamespace(workload=SimpleNamespace(spec="n8h7w7c64k64r3s3p1"))


def test_the_fastest_right_plan_of_each_kind_counts(monkeypatch, tmp_path):
    opened = Opened()
    timed = lambda device, launch, how: SimpleNamespace(microseconds=opened.plans[launch][1])  # noqa: E731
    monkeypatch.setattr(further, "time_launch", timed)
    best, tried = further.search(opened, CASE, Device(), asked(tmp_path))
    assert [(one.name, one.microseconds) for one, _ in best] == [
        ("slow", 9.0),
        ("engine 7, TILE 2", 2.0),
        ("engine 7, TILE 3", 3.0),
    ]
    assert tried["drawn"] == 3
    assert sum(tried["failed"].values()) == 2
    assert tried["engines"] == {"7": {"TILE": [2, 4, 1]}}
    assert min(us for _, _, us in tried["right"]) == 2.0


def test_a_plan_that_ends_the_context_is_named_and_left_out_by_the_next_process(monkeypatch, tmp_path):
    device, opened, begun = Device(), Opened(), []

    def add(engine, knobs):
        begun.append(knobs["Knob.TILE"])
        device.gone = knobs["Knob.TILE"] == 3
        raise RuntimeError("failed")

    monkeypatch.setattr(opened, "add", add)
    monkeypatch.setattr(further, "time_launch", lambda *_: SimpleNamespace(microseconds=1.0))
    with pytest.raises(further.FatalPlan):
        further.search(opened, CASE, device, asked(tmp_path))
    assert Log(tmp_path / "tried", CASE.workload.spec).known["engine 7, TILE 3"].failed == FATAL
    assert not Log(tmp_path / "tried", "n8h7w7c32k32r3s3p1").known
    device.gone = False
    best, tried = further.search(opened, CASE, device, asked(tmp_path))
    assert tried["failed"][f"{further.DRAWN}: {FATAL}"] == 1
    assert tried["drawn"] == 3
    assert len(begun) == 3, "no plan is tried twice"
    assert [one.name for one, _ in best] == ["slow"]


def test_an_engine_whose_plans_end_the_context_is_given_up(monkeypatch, tmp_path):
    opened = Opened()
    monkeypatch.setattr(opened, "engines", lambda: {7: {"Knob.TILE": range(2, 50)}, 8: {"Knob.TILE": range(1)}})
    monkeypatch.setattr(further, "time_launch", lambda *_: SimpleNamespace(microseconds=1.0))
    log = Log(tmp_path / "tried", CASE.workload.spec)
    for value in range(further.FATAL_OF_ENGINE):
        log.write(Tried(further.DRAWN, f"engine 7, TILE {100 + value}", 7))
    _, tried = further.search(opened, CASE, Device(), asked(tmp_path))
    assert tried["given_up"] == ["7"]
    assert {name for kind, name, _ in tried["right"] if kind == further.DRAWN} == {"engine 8, TILE 0"}


@pytest.mark.parametrize("more", [False, True], ids=["begun", "done"])
def test_a_process_is_ended_when_a_plan_does_not_end(more, tmp_path):
    path, spec = tmp_path / "tried", CASE.workload.spec
    Log(path, spec).write(Tried(further.DRAWN, "engine 7, TILE 3", 7, 1.0 if more else None))
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"])
    assert watch(child, path, spec, patience=0.1) == (0 if more else None)
    known = Log(path, spec).known["engine 7, TILE 3"]
    assert known.failed == ("" if more else ENDLESS)


def test_no_cudnn_is_one_sentence(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    with pytest.raises(MissingDependency, match="pip install"):
        Library()

"""Arguments of a wrong Python type: each public function names what it was given; nothing raw reaches the caller."""

from __future__ import annotations

import numpy as np
import pytest

import subbyte
from subbyte import tune
from subbyte.analysis import Race
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.measure.replay import ReplayRunner
from subbyte.records import exchange
from subbyte.records.result import Measured

LAYER = "n8h4w6c32k32r3s3p1"
RECORDED = "resnet50.stage2@8"
X, W = np.zeros((8, 4, 6, 32), np.int8), np.zeros((32, 3, 3, 32), np.int8)
NO_NAME = (None, 5, b"x", [1], {"a": 1}, object(), True)
"""Nothing that names a convolution, a strategy or a file."""
NO_LIST = (None, 5, "x", b"x", object(), [5])

CALLS = {
    "workload": (subbyte.workload, NO_NAME),
    "workloads": (subbyte.workloads, NO_NAME),
    "reference": (lambda bad: subbyte.reference(bad, X, W), NO_NAME),
    "reference x": (lambda bad: subbyte.reference(subbyte.workload(LAYER), bad, W), NO_NAME),
    "duplicates": (subbyte.duplicates, NO_NAME),
    "duplicates tile": (lambda bad: subbyte.duplicates(LAYER, bad), NO_NAME),
    "packing_program": (subbyte.packing_program, NO_NAME),
    "fragments": (subbyte.fragments, NO_NAME),
    "tiling": (lambda bad: subbyte.tiling(LAYER, bad), (5, "x", {"chunk": 2})),
    "accesses": (lambda bad: subbyte.accesses(LAYER, bad), (5, "x", {"chunk": 2})),
    "MmaConfig": (lambda bad: subbyte.MmaConfig(chunk=bad), (None, b"x", [1], {"a": 1}, 1.5)),
    "with_values": (subbyte.MmaConfig().with_values, (None, 5, "x", [1], {5: 1})),
    "from_dict": (subbyte.MmaConfig.from_dict, (None, 5, "x", [1])),
    "space": (subbyte.space, NO_NAME),
    "space arch": (lambda bad: subbyte.space(LAYER, bad), NO_NAME),
    "build": (subbyte.build, NO_NAME),
    "build config": (lambda bad: subbyte.build(LAYER, bad), (5, "x", {"chunk": 2})),
    "compile": (subbyte.compile, NO_NAME),
    "conv2d": (lambda bad: subbyte.conv2d(bad, W), NO_NAME),
    "landscape": (subbyte.landscape, NO_NAME),
    "find_landscape": (tune.find_landscape, NO_NAME),
    "roofline": (subbyte.roofline, NO_NAME),
    "speed_of_light": (subbyte.speed_of_light, NO_NAME),
    "Study": (subbyte.Study, (*NO_NAME, "x")),
    "Study strategy": (lambda bad: subbyte.Study(subbyte.space(LAYER), bad), NO_NAME),
    "Study seed": (lambda bad: subbyte.Study(subbyte.space(LAYER), "random", bad), (None, "1", 1.5, [1], True)),
    "Study log": (lambda bad: subbyte.Study(subbyte.space(LAYER), log=bad), (5, b"x", [1], object())),
    "queue": (lambda bad: subbyte.Study(subbyte.space(LAYER)).queue(bad), (None, 5, "x")),
    "make_strategy": (lambda bad: tune.make_strategy("random", bad, 0), NO_NAME),
    "make_strategy seed": (lambda bad: tune.make_strategy("random", subbyte.space(LAYER), bad), (None, "1", [1])),
    "register": (tune.register, (*NO_NAME, int)),
    "read_log": (tune.read_log, (None, 5, [1])),
    "best_curve": (tune.best_curve, NO_LIST),
    "tune": (lambda bad: subbyte.tune(bad, "replay", "random", 1), NO_NAME),
    "tune strategy": (lambda bad: subbyte.tune(RECORDED, "replay", bad, 1), NO_NAME),
    "tune log": (lambda bad: subbyte.tune(RECORDED, "replay", "random", 1, log=bad), (5, b"x", [1])),
    "tune fixed": (lambda bad: subbyte.tune(RECORDED, "replay", "random", 1, fixed=bad), (5, "x", [1])),
    "tune callbacks": (lambda bad: subbyte.tune(RECORDED, "replay", "random", 1, callbacks=bad), NO_LIST),
    "tune stop": (lambda bad: subbyte.tune(RECORDED, "replay", "random", 1, stop=bad), NO_LIST),
    "tune_network": (tune.tune_network, (None, 5, {"a": 1}, [("resnet50.stage2@8", 1)])),
    "race": (lambda bad: subbyte.race(bad, ["random"], 5, 1, 1), (None, 5, object())),
    "race strategies": (lambda bad: subbyte.race(RECORDED, bad, 5, 1, 1), (None, 5, b"x", [1], object())),
    "race traces": (lambda bad: subbyte.race(RECORDED, ["random"], 5, 1, 1, traces=bad), (None, 5, "x")),
    "race progress": (lambda bad: subbyte.race(RECORDED, ["random"], 5, 1, 1, progress=bad), (5, "x")),
    "Race.load": (Race.load, (None, 5, [1])),
    "Race.join": (Race.join, NO_LIST),
    "Measured": (Measured, (None, "x", [1], True, 0, -1.0, float("nan"))),
    "import": (exchange.import_landscape, (None, 5, [1])),
    "to_csv": (exchange.to_csv, NO_NAME),
    "to_t4": (exchange.to_t4, NO_NAME),
    "to_kernel_tuner": (exchange.to_kernel_tuner, NO_NAME),
    "restriction": (exchange.restriction, NO_NAME),
    "from_frame": (lambda bad: exchange.from_frame(bad, "kernel"), NO_NAME),
    "export": (lambda bad: exchange.export_landscape(bad, "unused", "csv"), NO_NAME),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_type_is_refused_in_words(name):
    call, wrong = CALLS[name]
    for bad in wrong:
        with pytest.raises(InvalidInput) as raised:
            call(bad)
        assert len(str(raised.value)) > 10


def test_questions_to_a_race_are_checked():
    found = subbyte.race(RECORDED, ["random", "genetic"], 8, 2, 1)
    wrong = [
        lambda: found.compare_in("x"), lambda: found.compare_in([1]), lambda: found.save(None),
        lambda: found.duel("random", "genetic", landscapes=5), lambda: found.duel("random", "genetic", at="3"),
    ]  # fmt: skip
    for call in wrong:
        with pytest.raises(InvalidInput):
            call()


def test_running_checks_its_callbacks_before_it_measures():
    runner = ReplayRunner(RECORDED)
    study = subbyte.Study(subbyte.space(RECORDED))
    with pytest.raises(InvalidInput, match=r"callbacks 5"):
        study.run(runner, 3, callbacks=5)
    assert study.trials == ()


def test_what_was_given_need_not_be_text():
    assert did_you_mean(None, ["a", "b"]) == "allowed: a, b"

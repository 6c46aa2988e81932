"""The live curve without a browser: what it sends is the study's own curve, Stop reaches the study."""

from __future__ import annotations

import re
import time

import pytest

from subbyte.errors import InvalidInput
from subbyte.families import space
from subbyte.measure.fake import FakeRunner
from subbyte.tune.study import Study
from subbyte_widgets import LiveCurve
from subbyte_widgets._base import picture_in

LAYER = "n8h14w14c64k64r3s3p1"


@pytest.fixture
def study() -> Study:
    return Study(space(LAYER, "sm_90a"), "random", seed=1)


def test_the_traits_are_the_studys_curve(study: Study) -> None:
    view = LiveCurve.start(study, FakeRunner(failures={"timeout": 0.2}), trials=40)
    record = view.wait()
    assert view.curve == record.curve.to_dict()
    assert view.labels == [trial.config.key for trial in record.trials]
    assert not view.running
    assert view.status.startswith("40 of 40 trials, best ")
    assert view.status.endswith("(finished)")


def test_a_finished_record_is_drawn_too(study: Study) -> None:
    record = study.run(FakeRunner(failures={"wrong": 0.3}), trials=30)
    view = LiveCurve(record)
    svg = view.to_svg()
    dots, crosses, best = re.findall(r'd="([^"]*)" class="\w+" data-of="study"', svg)
    assert dots.count("M") == sum(t is not None for t in record.curve.microseconds)
    assert crosses.count("M") == sum(bool(kind) for kind in record.curve.failures)
    falls = {t for t in record.curve.best_microseconds if t is not None}
    assert best.count("V") == len(falls) - 1
    assert f"{record.best_microseconds:.2f}" in svg


def test_stop_reaches_the_study(study: Study) -> None:
    view = LiveCurve.start(study, FakeRunner(delay=0.01), trials=400, batch=2)
    view.set_state({"stop_requested": True})
    record = view.wait(20)
    assert record.ended == "stopped"
    assert len(record.trials) < 400
    assert "(stopped)" in view.status


def test_updates_are_few_however_many_trials(study: Study) -> None:
    view = LiveCurve()
    seen = []
    view.observe(lambda change: seen.append(len(change.new["numbers"])), "curve")
    started = time.monotonic()
    study.run(FakeRunner(), trials=200, callbacks=[view.on_trial])
    seconds = time.monotonic() - started
    time.sleep(0.3)
    assert seen == sorted(seen)
    assert seen[-1] == 200
    assert len(seen) <= 3 + (seconds + 0.3) / 0.08


def test_an_error_of_the_study_is_said_in_the_view(study: Study) -> None:
    def fail(*_: object) -> None:
        raise ValueError("the callback broke")

    view = LiveCurve.start(study, FakeRunner(), trials=8, callbacks=[fail])
    with pytest.raises(ValueError, match="the callback broke"):
        view.wait()
    deadline = time.monotonic() + 5
    while not view.error and time.monotonic() < deadline:
        time.sleep(0.02)
    assert "the callback broke" in view.error


def test_unknown_options_are_refused() -> None:
    with pytest.raises(InvalidInput, match="title"):
        LiveCurve(titel="x")


def test_an_empty_curve_has_a_picture() -> None:
    data, _ = LiveCurve()._repr_mimebundle_()
    assert picture_in(data).startswith("<svg")

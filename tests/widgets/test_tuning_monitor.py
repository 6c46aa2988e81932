"""The tuning monitor without a browser: what it sends is what the toolkit computed; Pause, Stop and selection work."""

from __future__ import annotations

import json
import re
import time

import pytest
import traitlets

from subbyte.analysis.monitoring import study_state
from subbyte.errors import InvalidInput
from subbyte.families import space
from subbyte.measure.fake import FakeRunner
from subbyte.measure.replay import ReplayRunner
from subbyte.tune.study import Study
from subbyte_widgets import LiveCurve, TuningMonitor
from subbyte_widgets._base import picture_in

LAYER = "n8h14w14c64k64r3s3p1"


@pytest.fixture
def study() -> Study:
    return Study(space(LAYER, "sm_90a"), "genetic", seed=1)


def until(condition: object, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:  # type: ignore[operator]
        time.sleep(0.01)
    assert condition()  # type: ignore[operator]


def test_the_traits_are_the_toolkits_columns(study: Study) -> None:
    view = TuningMonitor.start(study, FakeRunner(failures={"timeout": 0.2}), trials=60)
    (record,) = view.wait()
    state = study_state(study).to_dict()
    sent = json.loads(json.dumps(view.studies[0]))
    assert set(sent) == {*state, "model_words", "selection_words"} - {"indices"}
    assert all(sent[name] == json.loads(json.dumps(value)) for name, value in state.items() if name != "indices")
    assert view.studies[0]["best_microseconds"][-1] == round(record.best_microseconds or 0, 4)
    assert set(view.studies[0]["origins"]) == {"random", "child"}
    assert not view.running
    assert re.match(r"60 of 60 trials, best [\d.]+ us at trial \d+, failed: \d+ timeout \(finished\)", view.status)
    assert "knob values tried" in view.alternative


def test_the_picture_holds_every_trial_and_stands_alone(study: Study) -> None:
    record = study.run(FakeRunner(failures={"wrong": 0.3}), trials=40)
    view = TuningMonitor(study)
    svg = view.to_svg()
    drawn = {of: d for d, of in re.findall(r'd="([^"]*)" class="[\w ]+"[^>]*? data-of="(\w+)"', svg)}
    assert drawn["other"].count("M") + drawn["dots"].count("M") == sum(t is not None for t in record.curve.microseconds)
    assert drawn["failed"].count("M") == sum(bool(kind) for kind in record.curve.failures)
    falls = {t for t in record.curve.best_microseconds if t is not None}
    assert drawn["best0"].count("V") == len(falls) - 1
    assert f"{record.best_microseconds:.2f}" in svg
    assert "without readings" in svg
    assert "var(" not in svg
    data, _ = view._repr_mimebundle_()
    assert picture_in(data).count("<path") == svg.count("<path")
    assert "Tuning" in data["text/html"]


def test_a_record_read_from_a_file_is_drawn_too(study: Study) -> None:
    record = study.run(FakeRunner(), trials=20)
    live, read = TuningMonitor(study), TuningMonitor(record)
    assert read.studies[0]["microseconds"] == live.studies[0]["microseconds"]
    assert set(read.studies[0]["origins"]) == {""}, "a record does not say why"
    assert TuningMonitor().to_svg().startswith("<svg")


def test_predictions_selection_and_readings_are_drawn() -> None:
    runner = ReplayRunner("resnet50.stage2@8")
    study = Study(space("resnet50.stage2@8", "sm_90a"), "diverse", seed=0)
    study.run(runner, 96)
    view = TuningMonitor(study)
    svg = view.to_svg()
    assert "SM clock 1980 MHz" in svg
    assert 'data-of="reading1"' in svg
    assert "rank correlation" in svg
    assert svg.count('class="kept"') == sum(k is not None for knob in view.studies[0]["knobs"] for k in knob["kept"])
    assert "mutants kept" in view.alternative


def test_a_selection_is_followed_by_other_views(study: Study) -> None:
    record = study.run(FakeRunner(), trials=12)
    view, curve = TuningMonitor(study), LiveCurve(record)
    traitlets.link((view, "selected"), (curve, "selected"))
    seen: list[dict[str, object]] = []
    view.observe(lambda change: seen.append(change.new), "config")
    view.set_state({"selected": 5})
    assert curve.selected == 5
    assert view.config == record.trials[5].config.to_dict()
    curve.set_state({"selected": 7})
    assert seen[-1] == record.trials[7].config.to_dict()
    knobs = len(view.studies[0]["knobs"])
    assert view.to_svg().count('class="ring"') == knobs + (record.trials[7].microseconds is not None)
    view.set_state({"selected": 99})
    assert 'class="ring"' not in view.to_svg()
    assert view.config == {}, "a trial that does not exist has no configuration"


def test_several_studies_run_side_by_side_and_the_shown_one_changes() -> None:
    found = space(LAYER, "sm_90a")
    view = TuningMonitor.start([Study(found, name, seed=2) for name in ("random", "genetic")], FakeRunner(), trials=30)
    records = view.wait()
    assert [len(record.trials) for record in records] == [30, 30]
    assert [state["strategy"] for state in view.studies] == ["random", "genetic"]
    assert "random" in view.to_svg()
    view.set_state({"selected": 3, "shown": 1})
    view.set_state({"shown": 9})
    assert (view.shown, view.selected) == (1, -1)
    assert "with genetic" in view.alternative


def test_pause_holds_the_study_and_stop_ends_it(study: Study) -> None:
    view = TuningMonitor.start(study, FakeRunner(delay=0.005), trials=400, batch=2)
    until(lambda: len(study.trials) > 3)
    view.set_state({"paused": True})
    time.sleep(0.1)
    held = len(study.trials)
    time.sleep(0.2)
    assert len(study.trials) == held < 400
    assert "(paused)" in view.status
    view.set_state({"paused": False})
    until(lambda: len(study.trials) > held)
    view.set_state({"paused": True})
    view.set_state({"stop_requested": True})
    (record,) = view.wait(20)
    assert record.ended == "stopped"
    assert "(stopped)" in view.status
    assert not view.running


def test_an_interrupt_ends_all_studies_even_paused_ones(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    view = TuningMonitor.start(study, FakeRunner(delay=0.005), trials=400, batch=2)
    view.paused = True
    wait = view.session._over.wait
    interrupted: list[bool] = []

    def once(timeout: float | None = None) -> bool:
        if not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        return wait(timeout)

    monkeypatch.setattr(view.session._over, "wait", once)
    (record,) = view.wait()
    assert record.ended == "stopped"
    assert len(record.trials) < 400


def test_it_keeps_up_with_a_thousand_trials_per_second(capsys: pytest.CaptureFixture[str]) -> None:
    runner = ReplayRunner("resnet50.stage5@8")
    found = space("resnet50.stage5@8", "sm_90a")
    assert len(found.valid) > 1000
    plain = Study(found, "random", seed=1)
    started = time.monotonic()
    plain.run(runner, 1000)
    without = time.monotonic() - started
    sizes: list[tuple[int, int]] = []
    study = Study(found, "random", seed=1)
    view = TuningMonitor(total=1000)
    view.observe(lambda change: sizes.append((len(change.new[0]["numbers"]), len(json.dumps(change.new)))), "studies")
    started = time.monotonic()
    study.run(runner, 1000, callbacks=[view.on_trial])
    seconds = time.monotonic() - started
    until(lambda: bool(sizes) and sizes[-1][0] == 1000)
    behind = time.monotonic() - started - seconds
    sent = sum(size for _, size in sizes)
    with capsys.disabled():
        print(f"\n  1000 trials in {seconds:.2f} s (unwatched {without:.2f} s), last one shown {1000 * behind:.0f} ms "
              f"later, {len(sizes)} updates, {sent / 1000:.0f} kB")  # fmt: skip
    assert seconds < 1 + 3 * without
    assert behind < 2
    assert sent < 400_000
    assert [count for count, _ in sizes] == sorted(count for count, _ in sizes)


def test_an_error_of_a_study_is_said_in_the_view_and_raised(study: Study) -> None:
    def fail(*_: object) -> None:
        raise ValueError("the callback broke")

    view = TuningMonitor.start(study, FakeRunner(), trials=8, callbacks=[fail])
    with pytest.raises(ValueError, match="the callback broke"):
        view.wait()
    assert "the callback broke" in view.error


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="studies"):
        TuningMonitor(studys=[])
    with pytest.raises(InvalidInput, match="start"):
        TuningMonitor().wait()

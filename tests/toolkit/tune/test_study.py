"""Ask and tell, the loop on top of them, how a run ends, and the background handle."""

from __future__ import annotations

import threading
import time
import warnings

import pytest

from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.measure.fake import FakeRunner
from subbyte.records.result import Failed, Measured
from subbyte.tune import Study


def test_ask_and_tell_by_hand(toy):
    study = Study(toy)
    asked = study.ask(3)
    assert [trial.number for trial in asked] == [0, 1, 2]
    assert all(trial.config == toy.config(trial.index) and trial.result is None for trial in asked)
    study.tell(asked[1], Measured(5.0))
    study.tell(asked[0].index, Measured(3.0))
    study.tell(asked[2], Failed("timeout", "too slow"))
    assert [trial.number for trial in study.trials] == [1, 0, 2]
    assert study.best.index == asked[0].index
    assert study.curve.best_microseconds == (5.0, 3.0, 3.0)
    assert study.curve.microseconds == (5.0, 3.0, None)
    assert study.curve.failures == ("", "", "timeout")


def test_results_told_but_never_asked_count(toy):
    study = Study(toy)
    index = study.ask(1)[0].index
    other = next(i for i in toy.valid if i != index)
    told = study.tell(other, Measured(1.0))
    assert told.ask is None
    assert study.best.index == other
    assert other not in [trial.index for trial in study.run(FakeRunner(), 20).trials[1:]]


@pytest.mark.parametrize("index", [-1, 216, True, "3", 1.0])
def test_an_index_outside_the_space_is_refused(toy, index):
    with pytest.raises(InvalidInput, match="0 to 215"):
        Study(toy).tell(index, Measured(1.0))


@pytest.mark.parametrize("result", [True, None, "fast", {"ok": True}])
def test_what_is_no_result_is_refused(toy, result):
    study = Study(toy)
    with pytest.raises(InvalidInput, match=r"expected Measured\(microseconds\) or Failed"):
        study.tell(study.ask()[0], result)
    assert study.trials == ()


@pytest.mark.parametrize("n", [0, "x", None, 1.5])
def test_asking_for_no_number_is_refused(toy, n):
    with pytest.raises(InvalidInput, match="integer >= 1"):
        Study(toy).ask(n)


def test_a_second_result_of_a_configuration_is_refused(toy):
    study = Study(toy)
    study.tell(7, Measured(1.0))
    with pytest.raises(InvalidInput, match="already has a result"):
        study.tell(7, Measured(2.0))


def test_run_ends_at_the_trials_and_at_the_end_of_the_space(toy):
    study = Study(toy, seed=1)
    assert study.run(FakeRunner(), trials=20, batch=8).ended == "trials"
    assert len(study.trials) == 20
    record = study.run(FakeRunner())
    assert record.ended == "exhausted"
    assert sorted(trial.index for trial in record.trials) == list(toy.valid)
    assert record.best.microseconds == min(trial.microseconds for trial in record.trials)


def test_failed_candidates_are_recorded_with_their_reason(toy):
    record = Study(toy).run(FakeRunner(failures={"build": 0.5}), 60)
    assert 10 < record.failures["build"] < 50
    assert record.best.result.ok
    assert "made up" in record.to_frame().query("failure == 'build'").reason.iloc[0]


def test_a_study_without_a_success_says_so(toy):
    record = Study(toy).run(FakeRunner(failures={"launch": 1.0}), 5)
    assert record.best is None
    assert record.summary()["best_config"] is None
    with pytest.raises(InvalidInput, match="5 launch"):
        _ = record.best_config


@pytest.mark.parametrize("at_once", [1, 3, 8])
def test_a_runner_gets_as_many_at_once_as_it_wants(toy, at_once):
    sizes = []

    class Sized(FakeRunner):
        def run(self, workload, configs):
            sizes.append(len(configs))
            return super().run(workload, configs)

    runner = Sized()
    runner.at_once = at_once
    record = Study(toy, seed=2).run(runner, 16, batch=8)
    assert sizes == {1: [1] * 16, 3: [3, 3, 2] * 2, 8: [8, 8]}[at_once]
    straight = Study(toy, seed=2).run(FakeRunner(), 16, batch=8)
    assert [(trial.number, trial.result) for trial in record.trials] == [
        (trial.number, trial.result) for trial in straight.trials
    ]


def test_trials_asked_by_hand_stay_with_whoever_asked(toy):
    study = Study(toy)
    mine = study.ask(2)
    record = study.run(FakeRunner(), 20)
    assert not {trial.index for trial in mine} & {trial.index for trial in record.trials}
    assert not {trial.index for trial in mine} & {trial.index for trial in study.ask(3)}


def test_callbacks_see_every_trial_after_it_was_recorded(toy):
    seen = []

    def note(study, trial, result):
        assert study.trials[-1] == trial
        seen.append((trial.number, result.microseconds))

    record = Study(toy).run(FakeRunner(), 10, callbacks=[note])
    assert seen == [(trial.number, trial.microseconds) for trial in record.trials]


def test_stop_conditions_end_the_run(toy):
    record = Study(toy).run(FakeRunner(), batch=4, stop=[lambda study: len(study.trials) >= 10])
    assert record.ended == "stopped"
    assert len(record.trials) == 10


class Interrupted(FakeRunner):
    """Presses Ctrl-C in its sixteenth measurement."""

    calls = 0

    def run(self, workload, configs):
        self.calls += 1
        if self.calls == 16:
            raise KeyboardInterrupt
        return super().run(workload, configs)


def test_ctrl_c_keeps_the_best_and_a_later_run_goes_on_as_if_nothing_happened(toy):
    study = Study(toy, seed=5)
    record = study.run(Interrupted(), 40)
    assert record.ended == "interrupted"
    assert len(record.trials) == 15
    assert record.best is not None
    again = study.run(FakeRunner(), 40)
    straight = Study(toy, seed=5).run(FakeRunner(), 40)
    assert [trial.index for trial in again.trials] == [trial.index for trial in straight.trials]
    assert [trial.number for trial in again.trials] == list(range(40))


def test_an_error_in_a_callback_reaches_the_caller_and_loses_nothing(toy):
    study = Study(toy)

    def fail(study, trial, result):
        if trial.number == 2:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        study.run(FakeRunner(), 8, callbacks=[fail])
    assert len(study.trials) == 3
    assert len(study.run(FakeRunner(), 8).trials) == 8


def test_times_of_two_devices_are_not_mixed(toy):
    study = Study(toy)
    study.run(FakeRunner(), 4)
    other = FakeRunner()
    other.device = {"runner": "cuda", "name": "a GPU"}
    with pytest.raises(InvalidInput, match="cannot be compared"):
        study.run(other, 8)


@pytest.mark.parametrize("arguments", [{"trials": 0}, {"batch": 0}, {"trials": "x"}, {"trials": 1.5}, {"batch": None}])
def test_odd_budgets_are_refused(toy, arguments):
    with pytest.raises(InvalidInput, match="integer >= 1"):
        Study(toy).run(FakeRunner(), **arguments)


def test_odd_seeds_and_resume_without_a_log_are_refused(toy):
    with pytest.raises(InvalidInput, match="expected an integer"):
        Study(toy, seed="1")
    with pytest.raises(InvalidInput, match="log=FILE"):
        Study(toy, resume=True)


def test_background_run_reports_stops_and_returns_the_record(toy):
    study = Study(toy)
    handle = study.start(FakeRunner(delay=0.005), batch=2)
    while handle.progress.done < 4:
        time.sleep(0.002)
    assert handle.progress.running
    assert handle.wait(timeout=0.001).ended == ""
    handle.stop()
    record = handle.wait()
    assert record.ended == handle.progress.ended == "stopped"
    assert not handle.progress.running
    assert 4 <= len(record.trials) < len(toy.valid)
    assert handle.progress.best_microseconds == record.best_microseconds


def test_background_run_keeps_its_error_for_wait(toy):
    def fail(study, trial, result):
        raise ZeroDivisionError("in a callback")

    handle = Study(toy).start(FakeRunner(), 8, callbacks=[fail])
    with pytest.raises(ZeroDivisionError):
        handle.wait()
    assert "in a callback" in handle.progress.error


def test_asking_and_telling_from_several_threads(toy):
    study = Study(toy)
    runner = FakeRunner()

    def work():
        while asked := study.ask(1):
            study.tell(asked[0], runner.run(toy.workload, [asked[0].config])[0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(trial.index for trial in study.trials) == list(toy.valid)
    assert sorted(trial.number for trial in study.trials) == list(range(len(toy.valid)))


def test_records_print_in_a_notebook_and_go_to_pandas(toy):
    study = Study(toy)
    record = study.run(FakeRunner(), 10)
    assert "best_microseconds" in record._repr_html_() == study._repr_html_()
    table = record.to_frame()
    assert len(table) == 10
    assert table.best_microseconds.is_monotonic_decreasing
    assert list(record.curve.to_frame().columns) == ["numbers", "microseconds", "best_microseconds", "failures"]


class Streaming(FakeRunner):
    """Hands results over one by one, and notes when it was told to stop."""

    def __init__(self):
        super().__init__()
        self.began, self.closed = 0, 0

    def iterate(self, workload, configs):
        try:
            for config in configs:
                self.began += 1
                yield self.run(workload, [config])[0]
        finally:
            self.closed += 1


def test_a_streaming_runner_is_stopped_after_the_result_in_flight(toy):
    runner, study = Streaming(), Study(toy)
    record = study.run(runner, 30, stop=[lambda study: len(study.trials) >= 11])
    assert (record.ended, len(record.trials)) == ("stopped", 11)
    assert (runner.began, runner.closed) == (11, 2)
    assert [t.index for t in study.run(runner, 30).trials] == [t.index for t in Study(toy).run(FakeRunner(), 30).trials]


def test_ctrl_c_closes_a_streaming_runner(toy):
    def interrupt(study, trial, result):
        if trial.number == 4:
            raise KeyboardInterrupt

    runner, study = Streaming(), Study(toy)
    assert study.run(runner, 30, callbacks=[interrupt]).ended == "interrupted"
    assert (len(study.trials), runner.closed) == (5, 1)


@pytest.mark.parametrize("strategy", ["random", "genetic"])
def test_what_was_queued_and_is_open_is_not_proposed_again(toy, tmp_path, strategy):
    """Several devices: the strategy is asked before the queued trial has its result."""
    every = [toy.config(index) for index in toy.valid]
    log = tmp_path / "queued.jsonl"
    with Study(toy, strategy, seed=4, log=log) as study:
        assert study.queue(every[:5]) == 5
        queued = study.ask(5)
        asked = [trial for _ in range(6) for trial in study.ask(3)]
        assert len({trial.index for trial in (*queued, *asked)}) == 23
        for trial in (*asked[4:], *queued):  # one queued trial and four others are never told
            if trial != queued[2]:
                study.tell(trial, 5.0 + trial.index % 7)
    with warnings.catch_warnings(), Study(toy, strategy, seed=4, log=log, resume=True) as study:
        warnings.simplefilter("error")  # the strategy proposes what it did
        rest = study.ask(10_000)
        while more := study.ask(10_000):
            rest += more
        assert sorted(trial.index for trial in (*study.trials, *rest)) == sorted(toy.valid)
        for trial in rest:
            study.tell(trial, 9.0)


def test_queued_configurations_come_first_once_and_only_if_valid(toy):
    study = Study(toy, seed=1)
    refused = next(index for index in range(len(toy)) if toy.check(index))
    told = toy.valid[0]
    study.tell(told, Measured(1.0))
    wanted = [toy.config(toy.valid[9]), toy.config(toy.valid[9]), toy.config(refused), toy.config(told)]
    assert study.queue([*wanted, MmaConfig(chunk=64)]) == 1
    record = study.run(FakeRunner(), 6)
    assert [(t.index, t.ask is None) for t in record.trials[:2]] == [(told, True), (toy.valid[9], True)]
    assert all(trial.ask is not None for trial in record.trials[2:])
    assert len({trial.number for trial in record.trials}) == 6


def test_a_result_of_another_kind_of_gpu_is_refused(toy):
    study = Study(toy)
    study.run(FakeRunner(), 2)
    index = study.ask(1)[0].index
    with pytest.raises(InvalidInput, match="measured with name 'fake', not 'A100'"):
        study.tell(index, Measured(1.0, device={"name": "A100"}))
    assert study.tell(index, Measured(1.0)).microseconds == 1.0


def test_more_trials_than_the_space_holds_are_refused(toy):
    study = Study(toy)
    most = len(toy.valid)
    assert study.most_trials == most
    said = f"trials={most + 1:,}: this space holds {most:,} configurations; give at most that"
    for begin in (study.run, study.start):
        with pytest.raises(InvalidInput, match=said):
            begin(FakeRunner(), most + 1)
    assert not study.trials
    assert len(study.run(FakeRunner(), most).trials) == most

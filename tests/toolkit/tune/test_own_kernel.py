"""A user's own kernel: parameters, constraints and an objective, asked and told or run, on one device or several."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import subbyte
from subbyte.errors import InvalidInput, MissingDependency
from subbyte.measure.executor import ExecutorRunner
from subbyte.measure.objective import told
from subbyte.measure.worker import WorkerPool
from subbyte.tune import read_log

sys.path.insert(0, str(Path(__file__).parent))
import own_kernels
from own_kernels import KNOBS


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Worker processes find the kernels of this folder."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def space(**options):
    return subbyte.parameter_space("saxpy", KNOBS, lambda p: p["block"] * p["items"] <= 512, **options)


def test_parameters_make_a_space_without_what_a_constraint_refuses():
    found = space()
    assert len(found) == 24
    assert len(found.valid) == 22
    assert found.refused == {"constraint 1": 2}
    assert found.check(found.index({"block": 256, "items": 4, "fast": True})) == "constraint 1"
    assert found.hash == space().hash
    assert found.hash != subbyte.parameter_space("saxpy", KNOBS).hash  # other constraints are another space
    assert "22 valid" in found._repr_html_()


def test_a_large_space_is_not_listed():
    asked = []
    wide = subbyte.parameter_space(
        "wide", {f"p{place}": list(range(10)) for place in range(8)}, lambda p: asked.append(1) or p["p0"] != 3
    )
    with subbyte.Study(wide, "random") as study:
        best = study.run(subbyte.objective(lambda **p: 1.0 + sum(p.values())), trials=10).best_microseconds
    assert best is not None
    assert len(asked) < 100_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("k", {}), "expected a name and a dictionary"),
        (("k", {"a": "12"}), "expected a list of its values"),
        (("k", {"a": [1, 1]}), "must be distinct"),
        (("k", {"a": [float("nan")]}), "finite number"),
        (("k", {"a": [1]}, [3]), "list of functions"),
        (("k", {"a": [1]}, lambda p: False), "reject all 1 configurations"),
        (("k", {"a": [1]}, lambda p: p["b"]), "constraint 1 raised KeyError"),
        (("k", {"a": [1]}, lambda p: sys.exit(1)), "constraint 1 raised SystemExit: 1"),
    ],
)
def test_what_is_no_space_is_one_sentence(words, said):
    with pytest.raises(InvalidInput, match=said) as caught:
        subbyte.parameter_space(*words)
    assert "\n" not in str(caught.value)


def test_a_study_in_ten_lines(tmp_path):
    log = tmp_path / "saxpy.jsonl"
    with subbyte.Study(space(), "auto", seed=1, log=log) as study:
        record = study.run(subbyte.objective(own_kernels.microseconds), trials=15)
    assert record.best_microseconds == 5.0
    assert record.best.config.to_dict() == {"block": 128, "items": 2, "fast": True}
    assert len(read_log(log).trials) == 15
    with subbyte.Study(space(), "auto", seed=1, log=log, resume=True) as again:
        assert again.run(subbyte.objective(own_kernels.microseconds)).ended == "exhausted"
        assert len(again.trials) == 22


class Unsaid(Exception):
    """One that cannot say what happened."""

    def __str__(self):
        raise RuntimeError


def test_ask_and_tell_numbers_samples_and_exceptions():
    with subbyte.Study(space(), "random", seed=0) as study:
        one, two, three, four = study.ask(4)
        assert study.tell(one, 4.0).result.microseconds == 4.0
        assert study.tell(two, [9.0, 1.0, 2.0]).result.microseconds == 2.0
        assert study.tell(three, RuntimeError("no")).result.kind == "launch"
        assert told(Unsaid()).reason == "Unsaid"
        assert study.tell(four, float("nan")).result.kind == "wrong"
        with pytest.raises(InvalidInput, match="or a list of such samples"):
            study.tell(study.ask()[0], "fast")


@pytest.mark.parametrize("value", [0, -1.0, float("inf"), None, [], [1.0, float("nan")], True, "3"])
def test_what_is_no_time_is_a_failure(value):
    result = told(value)
    assert result.kind == "wrong"
    assert "expected microseconds, a positive number" in result.reason


def test_whatever_a_kernel_does_is_one_recorded_failure(tmp_path):
    log = tmp_path / "odd.jsonl"
    knobs = {"block": [32, 64, 128, 256], "items": [1], "fast": [False, True]}
    with (
        subbyte.objective(own_kernels.odd, timeout=3.0) as runner,
        subbyte.Study(subbyte.parameter_space("odd", knobs), "random", log=log) as study,
    ):
        study.run(runner)
    outcomes = {(t.config.to_dict()["block"], t.config.to_dict()["fast"]): t.result for t in read_log(log).trials}
    assert len(outcomes) == 8
    assert outcomes[32, False].kind == "launch"
    assert "ValueError: too few threads" in outcomes[32, False].reason
    assert outcomes[64, True].kind == "wrong"
    assert "nan" in outcomes[64, True].reason
    assert outcomes[128, True].kind == "timeout"
    assert outcomes[256, True].kind == "crash"
    assert outcomes[128, False].microseconds == 2.0  # the process after a death is a new one


def exits(block, items, fast):
    """A kernel whose build script ends the process for some of the configurations."""
    return sys.exit("no compiler") if block == 64 else float(block)


def in_this_process():
    """A runner that calls the kernel where it is."""
    return subbyte.objective(exits)


class Exiting:
    """A runner of somebody else's, which lets it through."""

    def __init__(self):
        self.device = {"runner": "theirs", "name": "a GPU"}

    def run(self, workload, configs):
        """Microseconds of each."""
        return [told(exits(**config.to_dict())) for config in configs]


@pytest.mark.parametrize("make", [None, in_this_process, Exiting])
def test_a_kernel_that_exits_is_one_failure_and_the_study_goes_on(make):
    with ThreadPoolExecutor(1) as pool, subbyte.Study(space(), "random") as study:
        runner = subbyte.objective(exits) if make is None else ExecutorRunner(pool, make, at_once=1)
        record = study.run(runner)
        assert record.ended == "exhausted"
        failed = [trial for trial in record.trials if trial.config.to_dict()["block"] == 64]
        assert len(failed) < len(record.trials)
        assert failed
        for trial in failed:
            assert trial.result.kind == ("crash" if make is Exiting else "launch")
            assert "SystemExit: no compiler" in trial.result.reason
    with subbyte.Study(space(), "random") as study:
        assert study.tell(study.ask()[0], SystemExit(3)).result.reason == "SystemExit: 3"


def test_an_objective_that_cannot_run_is_refused():
    with pytest.raises(InvalidInput, match="function"):
        subbyte.objective(3)
    with pytest.raises(InvalidInput, match="timeout"):
        subbyte.objective(own_kernels.odd, timeout=0)
    lost = type("F", (), {"__call__": lambda self: 1.0, "__module__": "__main__"})()
    with pytest.raises(InvalidInput, match="put the function into a module"):
        subbyte.objective(lost, timeout=1)
    conv = subbyte.space("n8h7w7c64k64r3s3p1", "sm_90a")
    with pytest.raises(InvalidInput, match="a kernel of your own"), subbyte.Study(conv) as study:
        study.run(subbyte.objective(own_kernels.microseconds))


class Counting(ThreadPoolExecutor):
    """How many tasks are in flight."""

    most = now = 0
    lock = threading.Lock()

    def submit(self, *arguments, **options):
        future = super().submit(*arguments, **options)
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        future.add_done_callback(self._less)
        return future

    def _less(self, _):
        with self.lock:
            self.now -= 1


@pytest.mark.deep
def test_a_slow_trial_holds_back_no_other_and_two_for_each_device_are_open():
    open_ones = []
    with WorkerPool(3) as pool, ExecutorRunner(pool, own_kernels.Sleeping, at_once=3) as runner:
        study = subbyte.Study(space(), "random", seed=2)
        record = study.run(runner, callbacks=[lambda study, trial, result: open_ones.append(len(study._open))])
    assert record.ended == "exhausted"
    assert len(record.trials) == 22
    assert max(open_ones) <= 2 * 3
    order = [trial.config.to_dict()["items"] for trial in record.trials]
    asked = [trial.config.to_dict()["items"] for trial in sorted(record.trials, key=lambda trial: trial.number)]
    assert order != asked
    assert sorted(order) == sorted(asked)


def test_as_many_tasks_as_devices_are_in_flight():
    with Counting(16) as pool, ExecutorRunner(pool, own_kernels.Sleeping, at_once=16) as runner:
        subbyte.Study(space(), "random").run(runner)
        assert 8 < pool.most <= 16


@pytest.mark.deep
def test_a_run_on_several_devices_stops_and_goes_on_from_its_log(tmp_path):
    log = tmp_path / "several.jsonl"

    def enough(study):
        return len(study.trials) >= 6

    with WorkerPool(2) as pool, ExecutorRunner(pool, own_kernels.Sleeping, at_once=2) as runner:
        with subbyte.Study(space(), "auto", log=log) as study:
            assert study.run(runner, stop=[enough]).ended == "stopped"
        with subbyte.Study(space(), "auto", log=log, resume=True) as again:
            assert len(again.trials) == 6
            record = again.run(runner, trials=14)
    assert record.ended == "trials"
    assert len(record.trials) == 14
    assert len({trial.index for trial in record.trials}) == 14


def test_each_process_has_a_gpu_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where the locks lie
    with WorkerPool(2) as pool, ExecutorRunner(pool, own_kernels.on_one_of_two_gpus, at_once=2) as runner:
        assert runner.device["name"] == "GPU A"
        trials = subbyte.Study(space(), "random", seed=0).run(runner).trials
        assert {trial.result.device["ordinal"] for trial in trials} == {0, 1}
        with WorkerPool(1) as more, pytest.raises(MissingDependency, match=r"GPU made-up:0 is in use.*GPU made-up:1"):
            ExecutorRunner(more, own_kernels.on_one_of_two_gpus, at_once=1)


HOWTO = (Path(__file__).parents[3] / "docs/howto/own_kernel.md").read_text(encoding="utf-8")
BLOCKS = [part.split("```")[0] for part in HOWTO.split("```python\n")[1:]]


@pytest.mark.parametrize("block", BLOCKS[:2], ids=["run", "ask and tell"])
def test_the_how_to_does_what_it_says(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "own_kernel.md", "exec"), {})
    said = capsys.readouterr().out
    assert ("block=256" in said) if "saxpy" in block else said.strip() == "tile=16,stages=3"


@pytest.mark.deep
def test_a_job_of_the_queue_gets_one_gpu_and_one_task_at_a_time():
    jobqueue = pytest.importorskip("dask_jobqueue", reason="no Dask here: pip install 'subbyte[dask]'")
    made = next(block for block in BLOCKS if "SLURMCluster(" in block).split("cluster = ")[1].split("  # one GPU")[0]
    made = made.replace("SLURMCluster(", "SLURMCluster(scheduler_options=LOCAL, ")
    local = {"dashboard_address": None, "host": "127.0.0.1"}
    with eval(made, {"SLURMCluster": jobqueue.SLURMCluster, "LOCAL": local}) as cluster:
        script = cluster.job_script()
    assert "#SBATCH --gres=gpu:1" in script
    assert "#SBATCH --cpus-per-task=8" in script
    assert "--nthreads 1 " in script


@pytest.mark.parametrize(("name", "count"), [("transpose_cupy", 216), ("product_triton", 768)])
def test_an_example_has_the_space_that_it_says_and_fails_without_its_library(name, count):
    found = {"__name__": name}
    exec((Path(__file__).parents[3] / f"docs/examples/{name}.py").read_text(encoding="utf-8"), found)
    one = subbyte.parameter_space(name, found["PARAMETERS"], found["fits"])
    assert len(one) == count
    assert one.refused == {"constraint fits": count - len(one.valid)}
    failed = subbyte.objective(found["microseconds"]).run(one.workload, [one.config(one.valid[0])])[0]
    assert failed.kind == "launch"
    assert "ModuleNotFoundError" in failed.reason

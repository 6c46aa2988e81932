"""Measuring through executors: processes of the standard library, processes that die, a Dask cluster."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import failing
import faulty
import pytest

from subbyte.errors import InvalidInput, MissingDependency, SubbyteError
from subbyte.families.mma.config import MmaConfig
from subbyte.measure.executor import ExecutorRunner
from subbyte.measure.fake import FakeRunner
from subbyte.measure.runner import Runner, refuse_unlike
from subbyte.measure.worker import WorkerPool
from subbyte.tune import Study, tune
from subbyte.workload import ConvWorkload

WORKLOAD = ConvWorkload(8, 7, 7, 64, 64, 3, 3, 1)
CONFIGS = [MmaConfig(1, 1, rows, 4) for rows in (1, 2, 4, 8, 16)]
MAKE = partial(FakeRunner, seed=3, failures={"timeout": 0.2})


def like(runner):
    """Results as the runner gives them in this process, without seconds and failures' devices."""
    return [(r.ok, getattr(r, "samples", None), getattr(r, "kind", None)) for r in runner.run(WORKLOAD, CONFIGS)]


@pytest.mark.sample("threads", "workers")
@pytest.mark.parametrize(
    "make_executor",
    [lambda: ThreadPoolExecutor(2), lambda: WorkerPool(2),
     lambda: ProcessPoolExecutor(1, mp_context=get_context("spawn"))],
    ids=["threads", "workers", "processes"],
)  # fmt: skip
def test_results_are_those_of_the_runner_itself(make_executor):
    with make_executor() as executor, ExecutorRunner(executor, MAKE, at_once=2) as runner:
        assert isinstance(runner, Runner)
        assert runner.device["name"] == "fake"
        assert like(runner) == like(MAKE())
        results = runner.run(WORKLOAD, CONFIGS)
        assert all(result.device["name"] == "fake" for result in results)
        assert all(result.seconds["turn"] >= 0 for result in results)
        assert runner.rematch(WORKLOAD, CONFIGS, 3) == MAKE().rematch(WORKLOAD, CONFIGS, 3)


@pytest.mark.sample("threads")
@pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
def test_a_dask_cluster_measures_a_study(processes, tmp_path):
    distributed = pytest.importorskip("distributed", reason="no Dask here: pip install 'subbyte[dask]'")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "processes": processes}
    options |= {"host": "127.0.0.1"} if processes else {}
    with (
        distributed.LocalCluster(**options, local_directory=str(tmp_path)) as cluster,
        distributed.Client(cluster) as client,
        ExecutorRunner(client, MAKE, at_once=2) as runner,
    ):
        assert like(runner) == like(MAKE())
        there = tune("n8h7w7c64k64r3s3p1", runner, "random", trials=12, seed=5)
    trials = there.records[0].trials
    assert len(trials) == 12
    for trial in trials:  # which are tried depends on which worker is first; what each is does not
        [here] = MAKE().run(WORKLOAD, [trial.config])
        assert (trial.result.ok, getattr(trial.result, "samples", None)) == (here.ok, getattr(here, "samples", None))


@pytest.mark.deep
def test_a_process_that_dies_costs_one_candidate():
    with WorkerPool(1, timeout=20) as pool:
        runner = ExecutorRunner(pool, faulty.dying_runner, at_once=2)
        results = runner.run(WORKLOAD, [MmaConfig(chunk=chunk) for chunk in (1, 2, 1, 2, 1)])
        assert [r.ok or r.kind for r in results] == [True, "crash", True, "crash", True]
        assert "SIGKILL" in results[1].reason
        with pytest.raises(SubbyteError, match="cannot time configurations side by side"):
            ExecutorRunner(pool, faulty.PlainRunner, at_once=1).rematch(WORKLOAD, CONFIGS, 3)


def test_a_broken_pool_is_named():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        runner = ExecutorRunner(pool, faulty.dying_runner, at_once=1)
        with pytest.raises(MissingDependency, match="WorkerPool replaces processes that die"):
            runner.run(WORKLOAD, [MmaConfig(chunk=2), MmaConfig(chunk=1)])


class Unlike:
    """Answers for two GPUs of different kinds."""

    def __init__(self):
        self.calls = 0

    def submit(self, function, *arguments):
        self.calls += 1
        result = function(*arguments)
        device = {"runner": "cuda", "name": "A100" if self.calls > 2 else "H200"}
        value = device if isinstance(result, dict) else (result[0], device)
        return type("Done", (), {"result": lambda self: value, "cancel": lambda self: True,
                                 "add_done_callback": lambda self, function: function(self)})()  # fmt: skip


def test_unlike_gpus_are_not_ranked_against_each_other(tmp_path):
    runner = ExecutorRunner(Unlike(), FakeRunner, at_once=1)
    with pytest.raises(InvalidInput, match=r"measured with name 'H200', not 'A100'.*cannot be compared"):
        runner.run(WORKLOAD, CONFIGS)
    from subbyte.families import space

    with Study(space(WORKLOAD), log=tmp_path / "a.jsonl") as study:
        with pytest.raises(InvalidInput, match="cannot be compared"):
            study.run(ExecutorRunner(Unlike(), FakeRunner, at_once=1), 5)
        assert len(study.trials) == 1
    refuse_unlike({"name": "H200", "sms": 132}, {"name": "H200", "host": "b"})
    with pytest.raises(InvalidInput, match="sms 132, not 114"):
        refuse_unlike({"name": "H200", "sms": 132}, {"name": "H200", "sms": 114})


def test_odd_executors_are_refused():
    with pytest.raises(InvalidInput, match="must have submit"):
        ExecutorRunner(object(), FakeRunner, 1)
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(InvalidInput, match="at least 1"):
            ExecutorRunner(pool, FakeRunner, 0)
        with pytest.raises(InvalidInput, match="define it in a module"):
            ExecutorRunner(pool, lambda: FakeRunner(), 1)
        with pytest.raises(MissingDependency, match="nothing here"):
            ExecutorRunner(pool, failing.refuse, 1)


def test_a_runner_made_in_this_process_is_closed_with_it():
    with ThreadPoolExecutor(1) as pool, ExecutorRunner(pool, faulty.ClosingRunner, 1) as runner:
        runner.run(WORKLOAD, CONFIGS[:1])
    assert faulty.ClosingRunner.closed == 1
    runner.close()
    assert faulty.ClosingRunner.closed == 1

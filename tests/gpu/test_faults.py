"""Real faulty kernels in the real runner: each costs one candidate with its reason, and the next one is right again."""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import prebuilt
import pytest

from subbyte.device.launch import launch_from_dict
from subbyte.errors import MissingDependency
from subbyte.families.mma.config import MmaConfig
from subbyte.gpu.driver import detect
from subbyte.gpu.timing import TimingProtocol
from subbyte.measure.case import Case, Evaluator
from subbyte.measure.cuda_runner import CudaRunner
from subbyte.measure.executor import ExecutorRunner
from subbyte.measure.worker import WorkerPool
from subbyte.records.result import Failed, Measured
from subbyte.tune import tune_network

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(240)]

SHORT = TimingProtocol(min_total_ms=10, repeats=7, cold_repeats=5)


def candidates(*faults):
    return [MmaConfig(chunk=1 + prebuilt.FAULTS.index(fault)) for fault in faults]


@pytest.fixture
def workload(folder, device):
    return prebuilt.bundle()[1]


@pytest.fixture
def runner(folder, device):
    with CudaRunner(device.info.ordinal, SHORT, build=prebuilt.build, timeout=3, workers=2) as made:
        yield made


def test_each_fault_costs_one_candidate(runner, workload):
    faults = [name for fault in prebuilt.FAULTS for name in (fault, "good")]
    results = runner.run(workload, candidates(*faults))
    kinds = ["ok" if result.ok else result.kind for result in results]
    reasons = [getattr(result, "reason", "") for result in results]
    assert kinds[::2] == list(prebuilt.KINDS), reasons
    assert kinds[1::2] == ["ok"] * len(prebuilt.FAULTS), reasons
    said = {fault: result.reason for fault, result in zip(faults, results, strict=True) if isinstance(result, Failed)}
    for fault, words in {
        "spin": "did not end within 3 s", "stray": "CUDA_ERROR", "silent": "never written",
        "zeros": "differ from the reference", "memory": "OUT_OF_MEMORY", "compiler_dies": "SIGSEGV",
    }.items():  # fmt: skip
        assert words in said[fault]
    times = [result.microseconds for result in results[1::2]]
    assert max(times) < 1.2 * min(times), "a fault disturbed the measurements after it"
    assert {result.device["uuid"] for result in results} == {runner.device["uuid"]}


def test_it_measures_what_is_measured_in_one_process(runner, workload, device):
    folder, _, entries = prebuilt.bundle()
    evaluator = Evaluator(device, Case(workload), SHORT)
    here = evaluator.evaluate(
        (folder / "bundle" / entries[0]["cubin"]).read_bytes(), launch_from_dict(entries[0]["launch"])
    )
    evaluator.close()
    there = runner.run(workload, candidates("good"))[0]
    assert isinstance(there, Measured)
    assert there.verified
    assert there.microseconds == pytest.approx(here.microseconds, rel=0.15)


def test_the_gpu_is_held_exclusively(runner, device):
    with pytest.raises(MissingDependency, match=r"in use by process \d+"):
        CudaRunner(device.info.ordinal, SHORT, build=prebuilt.build, workers=1)
    runner.close()
    CudaRunner(device.info.ordinal, SHORT, build=prebuilt.build, workers=1).close()


def test_a_measuring_process_killed_in_the_middle_is_replaced(runner, workload):
    runner.run(workload, candidates("good"))
    pid = runner._worker.pid
    threading.Timer(0.7, os.kill, (pid, signal.SIGKILL)).start()
    results = runner.run(workload, candidates("spin", "good"))
    assert [result.ok or result.kind for result in results] == ["crash", True]
    assert "SIGKILL" in results[0].reason


def test_one_kernel_against_itself_is_as_fast(runner, workload):
    """Loaded twice, a kernel of 1.6 us may differ from itself by a few tenths of a percent in every round."""
    rounds = runner.rematch(workload, candidates("good", "good", "other"), 9)
    assert [len(times) for times in rounds] == [9, 9, 9]
    once, again, other = map(statistics.median, rounds)
    assert again == pytest.approx(once, rel=0.02)
    assert other != pytest.approx(once, rel=0.02), "another kernel should be told apart by the same rule"


def test_a_good_candidate_takes_less_than_a_second(runner, workload):
    runner.run(workload, candidates("good"))
    started = time.monotonic()
    runner.run(workload, candidates(*["good"] * 10))
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    "make_executor", [lambda: WorkerPool(2), lambda: ThreadPoolExecutor(1)], ids=["pool", "thread"]
)
def test_through_an_executor(folder, device, workload, make_executor):
    make = partial(CudaRunner, "any", SHORT, build=prebuilt.build, timeout=3, workers=1)
    gpus = len(detect())
    with make_executor() as executor:
        at_once = 2 if gpus > 1 and isinstance(executor, WorkerPool) else 1
        if at_once == 1 and isinstance(executor, WorkerPool):
            pytest.skip("needs two GPUs")
        with ExecutorRunner(executor, make, at_once) as runner:
            results = runner.run(workload, candidates(*["good", "stray"] * 4))
    assert [result.ok or result.kind for result in results] == [True, "crash"] * 4
    assert len({result.device["uuid"] for result in results}) == at_once


def test_a_network_of_prebuilt_layers_is_tuned(device, tmp_path):
    """SUBBYTE_GPU_SPACES names a folder of bundles; their kernels are the candidates, so that no compiler is needed."""
    layers = prebuilt.spaces()
    if not layers:
        pytest.skip("SUBBYTE_GPU_SPACES names no folder of bundles (subbyte landscape record --build-only)")
    log = tmp_path / "net.jsonl"
    options = {"trials": 16 * len(layers), "log": log, "seed": 1}
    pairs = [(workload, 3) for workload in layers]
    with CudaRunner(device.info.ordinal, SHORT, build=prebuilt.from_spaces, timeout=5) as runner:
        started = time.monotonic()
        report = tune_network(pairs, runner, **options)
        seconds = time.monotonic() - started
        again = tune_network(pairs, runner, resume=True, **options)
    timed = [t.result for record in report.records for t in record.trials if isinstance(t.result, Measured)]
    assert len(timed) > 0.9 * sum(len(record.trials) for record in report.records)
    assert all(result.verified and result.device["uuid"] for result in timed)
    assert seconds / len(timed) < 1.5
    assert report.microseconds == again.microseconds
    for label, final in report.remeasurements.items():
        assert final.remeasured, label
        assert final.tied, final.notice
        assert final.standings[0].microseconds < 1.1 * final.trials[0].microseconds
    print(report.save(tmp_path / "report.html"), f"{1000 * seconds / len(timed):.0f} ms a trial", report.remeasurements)

"""The GPU runner in real processes on a fake driver: each fault costs one candidate and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import failing
import faulty
import pytest

from subbyte.errors import InvalidInput, MissingDependency, SubbyteError
from subbyte.families.mma.config import MmaConfig
from subbyte.gpu.lock import GpuBusy, GpuLock, claim, refuse_claimed
from subbyte.gpu.timing import TimingProtocol
from subbyte.measure.cuda_runner import CudaRunner
from subbyte.measure.gpu_worker import load_builder
from subbyte.measure.runner import Runner, parse_device
from subbyte.measure.worker import WorkerPool
from subbyte.records.result import Failed, Measured
from subbyte.tune import read_log, tune
from subbyte.workload import ConvWorkload

WORKLOAD = ConvWorkload(3, 4, 3, 40, 20, 3, 3, pad=1)
QUICK = TimingProtocol(launches=2, min_total_ms=0.1, repeats=3, cold_launches=1, cold_repeats=1, spin_up_ms=0)


def candidates(*faults):
    return [MmaConfig(chunk=1 + failing.FAULTS.index(fault)) for fault in faults]


@pytest.fixture(scope="module", autouse=True)
def _short_grace():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("subbyte.measure.cuda_runner._GRACE_S", 0.3)
        yield


def started(folder, **options):
    """A runner of its own processes, whose lock and notes lie in a folder."""
    options = {"timeout": 1.0, "workers": 2, "build": failing.build, "build_timeout": 4.0, **options}
    return CudaRunner(0, QUICK, make_body=partial(faulty.faulty_body, folder=folder), **options)


@pytest.fixture
def make(tmp_path):
    made = []

    def start(**options):
        made.append(started(tmp_path, **options))
        return made[-1]

    yield start
    for runner in made:
        runner.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A runner that several tests measure with, and its folder: processes take longer to start than to measure."""
    folder = tmp_path_factory.mktemp("runner")
    runner = started(folder, timeout=20.0)
    yield runner, folder
    runner.close()


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A runner whose builds take a twentieth of a second, and write down that they were done."""
    folder = tmp_path_factory.mktemp("slow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAULTY_COUNTS", str(folder / "counts"))
        runner = started(folder, build=failing.counted_build, timeout=20.0)
        runner.run(WORKLOAD, candidates("good"))
        yield runner
        runner.close()


def test_each_fault_costs_one_candidate_with_its_reason(make, tmp_path):
    runner = make()
    assert isinstance(runner, Runner)
    assert runner.device["name"] == "Fake GPU"
    assert runner.arch == "sm_90a"
    faults = [name for fault in failing.FAULTS for name in (fault, "good")]
    results = runner.run(WORKLOAD, candidates(*faults))
    kinds = ["ok" if result.ok else result.kind for result in results]
    assert kinds[::2] == list(failing.KINDS)
    assert kinds[1::2] == ["ok"] * len(failing.FAULTS)
    said = {fault: result.reason for fault, result in zip(faults, results, strict=True) if isinstance(result, Failed)}
    for fault, words in {
        "silent": "differ", "stray": "ILLEGAL_ADDRESS", "hang": "did not end within 1 s", "memory": "OUT_OF_MEMORY",
        "segv": "measuring process died (SIGSEGV)", "freeze": "did not end within 1 s", "refused": "no such chunk",
        "uncompilable": "did not compile", "raises": "RuntimeError: compiler in disarray",
        "compiler_dies": "building process died (SIGSEGV)", "compiler_hangs": "did not answer within 4 s",
        "disk_full": "No space left on device", "host_memory": "out of memory",
    }.items():  # fmt: skip
        assert words in said[fault], said[fault]
    assert all(result.device["uuid"] == "GPU-fake" for result in results)
    assert all(result.verified for result in results if isinstance(result, Measured))
    assert {"build", "measure"} <= results[0].seconds.keys()
    begun = (tmp_path / "processes").read_text().split()
    assert len(begun) == 1 + 4  # one more after each of: stray, hang, segv, freeze


def test_the_gpu_belongs_to_one_process(make, shared):
    with pytest.raises(MissingDependency, match=r"in use by process \d+"):
        started(shared[1])


def test_a_measuring_process_killed_from_outside_is_replaced(shared):
    runner, folder = shared
    results = runner.iterate(WORKLOAD, candidates("good", "good", "good"))
    assert next(results).ok
    begun = (folder / "processes").read_text().split()
    os.kill(int(begun[-1]), signal.SIGKILL)
    time.sleep(0.1)
    assert [result.ok for result in results] == [True, True]
    assert len((folder / "processes").read_text().split()) == len(begun) + 1


def test_several_threads_share_a_runner(shared):
    runner, folder = shared
    begun = (folder / "processes").read_text()
    with ThreadPoolExecutor(3) as threads:
        jobs = [threads.submit(runner.run, WORKLOAD, candidates("good", "silent", "good")) for _ in range(3)]
        found = [[result.ok for result in job.result()] for job in jobs]
    assert found == [[True, False, True]] * 3
    assert (folder / "processes").read_text() == begun


SCRIPT = """
import sys
from functools import partial
import failing
import faulty
from subbyte.measure.cuda_runner import CudaRunner
from subbyte.gpu.timing import TimingProtocol
from subbyte.families import MmaConfig
from subbyte.tune import read_log, tune
from subbyte.workload import ConvWorkload
runner = CudaRunner(0, TimingProtocol(), build=failing.build, workers=2, timeout=60,
                    make_body=partial(faulty.faulty_body, folder=sys.argv[1]))
print("open", flush=True)
runner.run(ConvWorkload(3, 4, 3, 40, 20, 3, 3, pad=1), [MmaConfig(chunk=1 + failing.FAULTS.index("freeze"))])
"""


@pytest.mark.sample("9")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_of_a_runner_that_is_killed_in_a_measurement(tmp_path, number):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(faulty.__file__).parent), *sys.path])}
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    assert parent.stdout.readline() == b"open\n"
    time.sleep(0.5)
    parent.send_signal(number)
    parent.wait(10)
    parent.stdout.close()
    lock = GpuLock("GPU-fake", 5, tmp_path)  # free as soon as the measuring process is gone
    lock.release()


def test_a_study_ends_with_finals_and_says_which_gpu(shared, tmp_path):
    report = tune(WORKLOAD, shared[0], trials=12, log=tmp_path / "log.jsonl", seed=2, top_k=3)
    record = read_log(tmp_path / "log.jsonl")
    assert record.header["device"]["uuid"] == "GPU-fake"
    assert [trial.result.device["uuid"] for trial in record.trials] == ["GPU-fake"] * 12
    assert {trial.config.chunk: trial.result.ok for trial in record.trials} == {1: True, 2: False}
    assert record.failures["wrong"] == sum(trial.config.chunk == 2 for trial in record.trials)
    final = report.remeasurements[WORKLOAD.label]
    assert final.remeasured
    assert len(final.tied) == len(final.standings) == 3  # all kernels of the fake take four microseconds
    assert "measured again" in report.to_html()


def test_closing_the_iteration_stops_the_builds_ahead(slow):
    runner = slow
    results = runner.iterate(WORKLOAD, candidates(*["good"] * 20))
    next(results)
    results.close()
    started = time.monotonic()
    assert runner.run(WORKLOAD, candidates("good"))[0].ok
    assert time.monotonic() - started < 1.0


def test_builds_run_ahead_of_the_measurements(slow):
    runner = slow
    results = runner.iterate(WORKLOAD, candidates(*["good"] * 5))
    next(results)
    time.sleep(0.6)
    started = time.monotonic()
    assert len(list(results)) == 4
    assert time.monotonic() - started < 4 * 0.05 + 0.5


def test_what_is_built_ahead_is_not_built_again(slow):
    runner = slow
    before = failing.counted()
    runner.build_ahead(WORKLOAD, candidates("stray", "silent"))
    kinds = [result.kind for result in runner.run(WORKLOAD, candidates("silent", "stray"))]
    assert kinds == ["wrong", "crash"]
    assert failing.counted() - before == 2
    first, *further = [MmaConfig(1, 1, rows, 4) for rows in (1, 2, 4, 8, 16)]
    runner.build_ahead(WORKLOAD, further[:2])
    begun = dict(runner._begun)
    runner.build_ahead(WORKLOAD, [first, *further])
    assert [config for _, config in runner._begun] == [*further[:2], first, further[2]]  # the first four of them
    assert [runner._begun[one] for one in begun] == list(begun.values())
    runner.build_ahead(WORKLOAD, [further[3], first])
    assert {config for _, config in runner._begun} == {further[3], first, further[1], further[2]}


@pytest.mark.deep
def test_finalists_are_timed_side_by_side(shared):
    runner, _ = shared
    times = runner.rematch(WORKLOAD, candidates("good", "good"), 3)
    assert times == [[pytest.approx(4.0)] * 3] * 2
    with pytest.raises(SubbyteError, match="could not be built again"):
        runner.rematch(WORKLOAD, candidates("good", "raises"), 3)
    with pytest.raises(SubbyteError, match=r"ILLEGAL_ADDRESS|died"):
        runner.rematch(WORKLOAD, candidates("good", "stray"), 3)
    assert runner.run(WORKLOAD, candidates("good"))[0].ok


def test_without_a_gpu_it_says_so():
    with pytest.raises(MissingDependency, match="nothing here"):
        CudaRunner(0, make_body=faulty.no_gpu, workers=1)


def test_builders_load_before_the_gpu_is_opened(monkeypatch):
    asked = []
    monkeypatch.setattr(WorkerPool, "submit", lambda self, function: asked.append(function))
    with pytest.raises(MissingDependency, match="nothing here"):
        CudaRunner(0, make_body=faulty.no_gpu, workers=3, warm=True)
    assert asked == [load_builder] * 3


def test_odd_requests_are_refused():
    for device in ("gpu", "", "cuda:x", "0,,1", -1, (), (0, -1)):
        with pytest.raises(InvalidInput, match="must be a GPU number"):
            parse_device(device)
    assert [parse_device(device) for device in ("cuda:1", "0,cuda:2", "any", 3, [1, 2])] == [
        (1,), (0, 2), None, (3,), (1, 2)]  # fmt: skip
    for timeout in (0, -1, float("inf")):
        with pytest.raises(InvalidInput, match="seconds above 0"):
            CudaRunner(0, timeout=timeout)


def test_a_lock_is_free_when_its_holder_is_gone(tmp_path):
    first = GpuLock("GPU-1/x", 0, tmp_path)
    assert first.path.parent == tmp_path
    with pytest.raises(GpuBusy, match=f"process {os.getpid()}"):
        GpuLock("GPU-1/x", 0, tmp_path)
    GpuLock("GPU-2", 0, tmp_path).release()
    first.release()
    first.release()
    GpuLock("GPU-1/x", 0, tmp_path).release()
    with pytest.raises(MissingDependency, match="cannot be opened"):
        GpuLock("x", 0, tmp_path / "none")


def test_a_claimed_gpu_is_not_taken_while_its_measuring_process_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr("subbyte.gpu.lock._CLAIM_PATIENCE_S", 0)
    claimed = claim("GPU-1", tmp_path)
    with pytest.raises(GpuBusy, match=f"process {os.getpid()}"):  # another runner's process looks for a GPU
        refuse_claimed("GPU-1", tmp_path)
    monkeypatch.setattr(os, "getppid", os.getpid)  # the runner's own new process
    refuse_claimed("GPU-1", tmp_path)
    GpuLock("GPU-1", 0, tmp_path).release()
    monkeypatch.undo()
    claimed.release()
    refuse_claimed("GPU-1", tmp_path)

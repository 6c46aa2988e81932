"""Kernels of a user on GPUs: the examples of the how-to, and studies on two GPUs through a pool and a Dask cluster.

Without TVM the texts of our own kernels come from the file that SUBBYTE_GPU_TRIES names (tries_texts.py).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import subbyte
from subbyte.gpu.driver import detect
from subbyte.measure.cuda_runner import CudaRunner
from subbyte.measure.executor import ExecutorRunner
from subbyte.measure.worker import WorkerPool
from subbyte.tune import read_log

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(240)]
EXAMPLES = Path(__file__).parents[2] / "docs/examples"
TEXTS = "SUBBYTE_GPU_TRIES"


@pytest.fixture
def kernels(device):
    """The kernel of these tests; two GPUs are there."""
    if len(detect()) < 2:
        pytest.skip("one GPU is here, and these tests are of two")
    pytest.importorskip("cupy")
    import own_gpu_kernels

    return own_gpu_kernels


def space(kernels):
    return subbyte.parameter_space("transpose", kernels.KNOBS, kernels.transpose_cupy.fits)


def gpus(trials):
    """How many trials each GPU did, by number."""
    numbers = [trial.result.device["ordinal"] for trial in trials if trial.result.ok]
    return {number: numbers.count(number) for number in sorted(set(numbers))}


@pytest.mark.parametrize(("name", "library"), [("transpose_cupy", "cupy"), ("product_triton", "triton")])
def test_the_examples_run(name, library, device, tmp_path):
    pytest.importorskip(library)
    begin = time.monotonic()
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    trials = read_log(next(tmp_path.glob("*.jsonl"))).trials
    failed = [f"{trial.config}: {trial.result.reason}" for trial in trials if not trial.result.ok]
    times = [trial.result.microseconds for trial in trials if trial.result.ok]
    print(f"{name}: {time.monotonic() - begin:.1f} s, {done.stdout}first {times[0]:.1f} us, failed: {failed}")
    assert len(trials) == 40
    assert not [one for one in failed if "out of resource" not in one.lower()]
    assert re.search(r"best: \S+ in [\d.]+ us", done.stdout)


def test_a_pool_has_a_process_for_each_gpu(kernels):
    with WorkerPool(2, timeout=60) as pool, ExecutorRunner(pool, kernels.make, at_once=2) as runner:
        study = subbyte.Study(space(kernels), "auto", seed=1)
        record = study.run(runner, trials=20)
    assert [trial.result.reason for trial in record.trials if not trial.result.ok] == []
    assert sorted(gpus(record.trials)) == [0, 1]
    print(f"pool: {gpus(record.trials)}, best {record.best_microseconds:.1f} us")


def test_a_kernel_that_hangs_costs_one_trial_and_its_gpu_goes_on(kernels):
    with WorkerPool(2, timeout=12) as pool, ExecutorRunner(pool, kernels.endless, at_once=2) as runner:
        study = subbyte.Study(space(kernels), "random", seed=1)
        study.queue([kernels.HANGS])
        study.run(runner, trials=16)  # the other GPU does what is left while one waits
        record = study.run(runner, trials=28)
    failed = [trial for trial in record.trials if not trial.result.ok]
    assert [(trial.config.to_dict(), trial.result.kind) for trial in failed] == [(kernels.HANGS, "timeout")]
    after = gpus(record.trials[16:])
    assert sorted(after) == [0, 1]
    print(f"hang: {gpus(record.trials)}, afterwards {after}")


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A Dask cluster on this machine with a worker for each of two GPUs, and a kernel cache of its own."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("SUBBYTE_CACHE", str(tmp_path / "cache"))  # workers take it over when they are started
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    with (
        distributed.LocalCluster(**options, local_directory=str(tmp_path)) as made,
        distributed.Client(made) as client,
    ):
        yield client


def test_a_dask_worker_has_a_gpu_of_its_own(kernels, cluster):
    with ExecutorRunner(cluster, kernels.make, at_once=2) as runner:
        record = subbyte.Study(space(kernels), "auto", seed=2).run(runner, trials=20)
    assert [trial.result.reason for trial in record.trials if not trial.result.ok] == []
    assert sorted(gpus(record.trials)) == [0, 1]
    print(f"dask, a kernel of the user's: {gpus(record.trials)}, best {record.best_microseconds:.1f} us")


def test_dask_workers_measure_our_kernels(kernels, cluster):
    if TEXTS not in os.environ:
        pytest.skip(f"{TEXTS} names no file of texts")
    from tries_texts import configurations, prime

    layer = prime(Path(os.environ[TEXTS]))[0]
    configs = configurations(Path(os.environ[TEXTS]), layer)
    with ExecutorRunner(cluster, partial(CudaRunner, "any"), at_once=2) as runner:
        results = runner.run(subbyte.workload(layer), configs)
    assert all(result.verified for result in results if result.ok)
    assert not [result.reason for result in results if not result.ok and result.kind != "build"]
    used = [result.device["ordinal"] for result in results]
    assert sorted(set(used)) == [0, 1]
    print(f"dask, {layer}: {used.count(0)} and {used.count(1)}, {sum(result.ok for result in results)} right")

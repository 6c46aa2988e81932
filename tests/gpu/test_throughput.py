"""Two GPUs measure twice as many candidates in the same time, within 15 %."""

from __future__ import annotations

import json
import os
import time
from functools import partial
from pathlib import Path

import prebuilt
import pytest

from subbyte.families.mma.config import MmaConfig
from subbyte.gpu.driver import detect
from subbyte.measure.cuda_runner import CudaRunner
from subbyte.measure.executor import ExecutorRunner
from subbyte.measure.worker import WorkerPool

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(200)]


def _rate(workload, gpus, candidates):
    """Candidates per second through ``gpus`` processes with a GPU each, after one round that starts them."""
    make = partial(CudaRunner, "any", build=prebuilt.build, timeout=20, workers=1)
    with WorkerPool(gpus) as executor, ExecutorRunner(executor, make, gpus) as runner:
        runner.run(workload, [MmaConfig()] * 4 * gpus)
        started = time.monotonic()
        results = runner.run(workload, [MmaConfig()] * candidates)
        seconds = time.monotonic() - started
    assert all(result.ok for result in results)
    assert len({result.device["uuid"] for result in results}) == gpus
    return candidates / seconds


def test_two_gpus_measure_twice_as_fast(folder, device):
    if len(detect()) < 2:
        pytest.skip("needs two GPUs")
    workload = prebuilt.bundle()[1]
    counts = [count for count in (1, 2, 4, 8) if count <= len(detect())]
    rates = {count: _rate(workload, count, 80 * count) for count in counts}
    if out := os.environ.get("SUBBYTE_GPU_RESULTS"):
        record = {"what": "candidates measured per second", "candidates_per_gpu": 80, "gpus": rates}
        (Path(out) / "throughput.json").write_text(json.dumps(record, indent=1) + "\n")
    assert rates[2] > 2 * 0.85 * rates[1], rates

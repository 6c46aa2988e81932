"""Landscapes to exchange: one of a convolution, one of a foreign kernel, both with failures."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import subbyte
from subbyte.measure.fake import FakeRunner
from subbyte.records.result import Failed, Measured
from subbyte.tune import Landscape

KNOBS = {"block": [16, 48, 80], "unroll": [0, 1], "memory": ["shared", "texture"], "fast": [False, True]}


def foreign_cache() -> dict:
    """A Kernel Tuner cache of somebody's kernel: text and odd numbers as values, combinations missing, failures."""
    cache = {}
    for block in KNOBS["block"]:
        for unroll in KNOBS["unroll"]:
            for memory in KNOBS["memory"]:
                for fast in KNOBS["fast"]:
                    values = {"block": block, "unroll": unroll, "memory": memory, "fast": fast}
                    time = block / 10 + 3 * unroll + len(memory) + (0.5 if fast else 0.0)
                    entry = {**values, "time": time, "times": [2 * time, time, time], "compile_time": 500.0,
                             "verification_time": 0, "benchmark_time": 20.0, "strategy_time": 0,
                             "framework_time": 1.0, "timestamp": "2023-12-22 09:54:05.502007+00:00"}  # fmt: skip
                    if block == 80 and unroll:
                        entry["time"] = "RuntimeFailedConfig" if fast else "CompilationFailedConfig"
                        del entry["times"]
                    if not (block == 16 and fast):  # refused before it was tried
                        cache[",".join(map(str, values.values()))] = entry
    return {
        "device_name": "Some GPU", "kernel_name": "stencil", "problem_size": [4096, 4096],
        "tune_params_keys": list(KNOBS), "tune_params": {name: list(KNOBS[name]) for name in KNOBS},
        "objective": "time", "cache": cache,
    }  # fmt: skip


def t4_of(cache: dict) -> dict:
    """The T4 file that Kernel Tuner would write of ``foreign_cache``."""
    results = []
    reasons = {"RuntimeFailedConfig": "runtime", "CompilationFailedConfig": "compile"}
    for entry in cache["cache"].values():
        failed = isinstance(entry["time"], str)
        results.append({
            "timestamp": entry["timestamp"], "configuration": {name: entry[name] for name in KNOBS},
            "times": {"compilation": 500.0, "framework": 1.0, "search_algorithm": 0, "validation": 0,
                      "runtimes": entry.get("times", [])},
            "invalidity": reasons[entry["time"]] if failed else "correct", "correctness": 1,
            "measurements": [{"name": "time", "value": entry["time"], "unit": ""}], "objectives": ["time"],
        })  # fmt: skip
    return {"schema_version": "1.0.0", "metadata": {"timeunit": "miliseconds"}, "results": results}


@pytest.fixture
def cache() -> dict:
    return foreign_cache()


@pytest.fixture
def cache_file(cache, tmp_path) -> Path:
    path = tmp_path / "stencil.json.gz"
    path.write_bytes(gzip.compress(json.dumps(cache).encode()))
    return path


@pytest.fixture
def t4(cache) -> dict:
    return t4_of(cache)


@pytest.fixture(scope="session")
def recorded() -> Landscape:
    """A convolution's landscape as a GPU records it: samples, telemetry, a failure of every kind."""
    space = subbyte.space("n8h7w7c64k64r3s3p1")
    kinds = ("refused", "build", "launch", "timeout", "wrong", "crash", "memory")
    results = {}
    for place, index in enumerate(space.valid):
        result = FakeRunner(noise=0.03).run(space.workload, [space.config(index)])[0]
        assert isinstance(result, Measured)
        if place < len(kinds):
            results[index] = Failed(kinds[place], f"because of {kinds[place]}", {"build": 0.25})
        else:
            samples = tuple(round(sample, 4) for sample in result.samples)
            results[index] = Measured(
                result.microseconds, samples, cold_microseconds=result.cold_microseconds, verified=place % 2 == 0,
                clocks={"before": {"sm_mhz": 1980, "throttle": []}}, seconds={"build": 0.3, "measure": 0.1},
            )  # fmt: skip
    return Landscape.from_results(space, results, {"runner": "cuda", "name": "NVIDIA H200", "sms": 132}, {"repeats": 7})

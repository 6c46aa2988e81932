"""A kernel of a user on several GPUs, as the processes of test_own_kernels.py import it."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import subbyte
from subbyte.gpu.taking import take_gpu, taken
from subbyte.measure.objective import ObjectiveRunner
from subbyte.records.result import Measured

sys.path.append(str(Path(__file__).parents[2] / "docs/examples"))
import transpose_cupy

KNOBS = {"tile": [16, 32], "rows": [2, 4, 8, 16], "pad": [0, 1], "maxreg": [32, 64]}
HANGS = {"tile": 32, "rows": 16, "pad": 1, "maxreg": 64}
"""The configuration whose kernel never ends."""


def make() -> ObjectiveRunner:
    """A runner on a GPU that no other process has."""
    import cupy

    cupy.cuda.Device(take_gpu()).use()
    return subbyte.objective(microseconds)


def endless() -> ObjectiveRunner:
    """The same, and one kernel never ends."""
    make()
    return subbyte.objective(hanging)


def microseconds(**values) -> Measured:
    """Samples of the transposition, and which GPU they are of."""
    samples = tuple(transpose_cupy.microseconds(**values))
    gpu = taken()
    device = {"runner": "objective", "name": gpu.name, "ordinal": gpu.ordinal}
    return Measured(statistics.median(samples), samples, device=device)


def hanging(**values) -> Measured:
    """The same, but one kernel never ends."""
    if values == HANGS:
        import cupy

        source = 'extern "C" __global__ void wait(volatile int* flag) { while (*flag == 0) ; }'
        cupy.RawKernel(source, "wait")((1,), (1,), (cupy.zeros(1, dtype=cupy.int32),))
        cupy.cuda.Device().synchronize()
    return microseconds(**values)

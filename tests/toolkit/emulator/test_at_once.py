"""Blocks of the warpgroup family that load everything at once: clean and exact in any order, and faults in them are
found."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from subbyte.device import ARCHS
from subbyte.emulator import EmulatorRun, require_clean, run_cuda
from subbyte.kernel import Kernel
from subbyte.kernel.execute import expected, random_operands
from subbyte.schedule.warpgroup import WarpgroupConfig
from subbyte.schedule.warpgroup_plan import WarpgroupPlan
from subbyte.workload import ConvWorkload

pytest.importorskip("tvm")

WORKLOAD = ConvWorkload(8, 6, 6, 64, 64, 3, 3, 1)
CONFIGS = {
    overlap: WarpgroupConfig(tile_width=6, segments=6, ring=3, at_once=2, stagger=0, overlap=overlap)
    for overlap in (0, 1)
}
FAULTS = [
    ("fence.proxy.async.shared::cta;", "", "missing_proxy_fence"),
    ("wgmma.fence.sync.aligned;", "", "missing_wgmma_fence"),
    ("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 7;", "register_in_flight"),
    ("mbarrier.arrive.shared.b64 _, [%0];", "", "deadlock"),
    ("__syncthreads();", "", "bad_mbarrier"),
    ("griddepcontrol.wait;", "", "missing_dependency_wait"),
]


@cache
def _kernel(overlap: int) -> tuple[Kernel, Any]:
    kernel = Kernel(WarpgroupPlan(WORKLOAD, CONFIGS[overlap], ARCHS["sm_90a"]))  # type: ignore[arg-type]
    operands = random_operands(kernel, 0)
    return kernel.for_requantization(operands[2]), operands


def _run(overlap: int, text: str, seed: int) -> tuple[EmulatorRun, int]:
    kernel, operands = _kernel(overlap)
    argument = kernel.argument("Out")
    words = np.zeros(argument.shape, argument.dtype)
    run = run_cuda(text, kernel.launch, {**kernel.pack(*operands), "Out": words}, seed=seed, max_steps=200_000)
    return run, int((kernel.unpack(words) != expected(kernel, *operands)).sum())


@pytest.mark.parametrize("overlap", CONFIGS)
def test_generated_kernels_are_clean_and_exact(overlap: int) -> None:
    for seed in range(5):
        run, wrong = _run(overlap, _kernel(overlap)[0].cuda, seed)
        require_clean(run)
        assert wrong == 0


@pytest.mark.parametrize(("old", "new", "found"), FAULTS)
def test_faults_in_generated_kernels_are_found(old: str, new: str, found: str) -> None:
    text = _kernel(1)[0].cuda
    assert old in text
    for seed in range(2):
        run, _ = _run(1, text.replace(old, new), seed)
        assert found in {finding.kind for finding in run.findings}, str(run)

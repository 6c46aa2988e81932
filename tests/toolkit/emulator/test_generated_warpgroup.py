"""Kernels of the warpgroup family as TVM generates them: clean and exact in any order, and faults in them are found."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from subbyte.device import ARCHS
from subbyte.emulator import EmulatorRun, require_clean, run_cuda
from subbyte.kernel import Kernel
from subbyte.kernel.execute import expected, random_operands
from subbyte.schedule.warpgroup import WarpgroupConfig
from subbyte.schedule.warpgroup_plan import WarpgroupPlan
from subbyte.space.warpgroup_constraints import why_not_warpgroup
from subbyte.workload import ConvWorkload

pytest.importorskip("tvm")

CASES = {
    "one block": (ConvWorkload(8, 6, 6, 64, 64, 3, 3, 1), WarpgroupConfig(tile_width=6, ring=6)),
    "cluster": (ConvWorkload(8, 7, 8, 256, 64, 3, 3, 1), WarpgroupConfig(tile_width=8, segments=7, split=2, ring=3)),
    "one fragment": (ConvWorkload(8, 4, 4, 256, 64, 1, 1, 0), WarpgroupConfig(tile_width=16, ring=1, stagger=0)),
}
FAULTS = [
    ("one block", "fence.proxy.async.shared::cta;", "", "missing_proxy_fence"),
    ("one block", "wgmma.fence.sync.aligned;", "", "missing_wgmma_fence"),
    ("one block", "wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 7;", "register_in_flight"),
    ("one block", "mbarrier.arrive.shared.b64 _, [%0];", "", "deadlock"),
    ("one block", "griddepcontrol.wait;", "", "missing_dependency_wait"),
    ("cluster", "fence.mbarrier_init.release.cluster;", "", "race"),
    ("cluster", "barrier.cluster.wait.acquire.aligned;", "", "race"),
    ("cluster", "barrier.cluster.arrive.relaxed.aligned;", "", "bad_cluster"),
    ("cluster", "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;", "mbarrier.arrive.shared.b64 _, [%0];", "race"),
]


@lru_cache(maxsize=4)
def _kernel(name: str) -> tuple[Kernel, Any]:
    workload, config = CASES[name]
    plan = WarpgroupPlan(workload, config, ARCHS["sm_90a"])
    assert why_not_warpgroup(plan) is None
    kernel = Kernel(plan)  # type: ignore[arg-type]
    operands = random_operands(kernel, 0)
    return kernel.for_requantization(operands[2]), operands


def _run(name: str, text: str, seed: int) -> tuple[EmulatorRun, int]:
    kernel, operands = _kernel(name)
    argument = kernel.argument("Out")
    words = np.zeros(argument.shape, argument.dtype)
    run = run_cuda(text, kernel.launch, {**kernel.pack(*operands), "Out": words}, seed=seed, max_steps=200_000)
    return run, int((kernel.unpack(words) != expected(kernel, *operands)).sum())


@pytest.mark.parametrize("name", CASES)
def test_generated_kernels_are_clean_and_exact(name: str) -> None:
    for seed in range(5):
        run, wrong = _run(name, _kernel(name)[0].cuda, seed)
        require_clean(run)
        assert wrong == 0


def test_channels_that_fill_up_a_block_hold_zero() -> None:
    plan = WarpgroupPlan(ConvWorkload(8, 3, 6, 32, 65, 1, 1, 0), WarpgroupConfig(tile_width=6, ring=1), ARCHS["sm_90a"])
    assert why_not_warpgroup(plan) is None
    kernel = Kernel(plan)  # type: ignore[arg-type]
    operands = random_operands(kernel, 0)
    words = np.full(kernel.argument("Out").shape, 0xA5A5A5A5, np.uint32)
    require_clean(run_cuda(kernel.cuda, kernel.launch, {**kernel.pack(*operands), "Out": words}, seed=0))
    last = words.reshape(1, 3, 6, 3, 8, 4)[..., 2, :, :]  # channels 64 to 95, of which the first exists
    assert not (last[..., 0] & 0xFFFFFFF0).any()
    assert not last[..., 1:].any()
    assert np.array_equal(kernel.unpack(words), expected(kernel, *operands))


@pytest.mark.parametrize(("name", "old", "new", "found"), FAULTS)
def test_faults_in_generated_kernels_are_found(name: str, old: str, new: str, found: str | None) -> None:
    text = _kernel(name)[0].cuda
    assert old in text
    for seed in range(2):
        run, wrong = _run(name, text.replace(old, new), seed)
        if found is None:
            assert not run.problems
            assert wrong == 0
        else:
            assert found in {finding.kind for finding in run.findings}, str(run)


def test_operands_written_in_the_next_turn_are_found() -> None:
    """PTX: registers of A may not be written before the wgmma that reads them is done; ptxas does not always warn."""
    text = _kernel("one fragment")[0].cuda
    call = "tvm_builtin_ptx_wgmma_wait_group_wait_group_sync_aligned_0();"
    inside = text.index(call, text.index("tvm_builtin_ptx_wgmma_commit_group_commit_group_sync_aligned();"))
    later = 'asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory");'
    found = str(_run("one fragment", text[:inside] + later + text[inside + len(call) :], 0)[0])
    assert "given its operand in registers that the same wgmma of an earlier turn" in found


def test_a_rank_that_gets_into_a_descriptor_is_found() -> None:
    """Within a cluster a shared address has the block's rank above it."""
    text = _kernel("cluster")[0].cuda
    kept = "(uint)999423)"  # 0x000F3FFF
    assert kept in text
    run, wrong = _run("cluster", text.replace(kept, "(uint)4294918143)"), 0)
    assert wrong or run.problems

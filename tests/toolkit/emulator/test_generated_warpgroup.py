"""Kernels of the warpgroup family as TVM generates them: clean and exact in any order, and faults in them are found."""

from __future__ import annotations

import re

import pytest
from generated import Generated

from subbyte.families.wgmma.pipeline.config import PipelineConfig

KERNELS = {
    "one block": Generated("n8h6w6c64k64r3s3p1", PipelineConfig(tile_width=6, stages=6)),
    "cluster": Generated("n8h7w8c256k64r3s3p1", PipelineConfig(tile_width=8, segments=7, cluster_split_k=2, stages=3)),
    "one fragment": Generated("n8h4w4c256k64r1s1p0", PipelineConfig(tile_width=16, stages=1, stagger=0)),
    "cluster, two rows": Generated(
        "n8h7w4c128k64r1s1p0",
        PipelineConfig(tile_width=10, tile_rows=2, segments=2, cluster_split_k=2, stages=2, load_ahead=1),
    ),
    "parts that pass by": Generated(
        "n8h7w7c128k64r1s1p0",
        PipelineConfig(tile_width=2, consumers_rows=2, stages=5, load_ahead=1, unroll=2, stagger=2),
    ),
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


@pytest.mark.sample("cluster, two")
@pytest.mark.parametrize("name", KERNELS)
def test_generated_kernels_are_clean_and_exact(name: str) -> None:
    KERNELS[name].require_exact(2)


def test_channels_that_fill_up_a_block_hold_zero() -> None:
    run, wrong, words = Generated("n8h3w6c32k65r1s1p0", PipelineConfig(tile_width=6, stages=1)).run(0)
    assert not run.problems
    assert wrong == 0
    last = words.reshape(1, 3, 6, 3, 8, 4)[..., 2, :, :]  # channels 64 to 95, of which the first exists
    assert not (last[..., 0] & 0xFFFFFFF0).any()
    assert not last[..., 1:].any()


@pytest.mark.sample("one block-mbarrier", "expect_tx")
@pytest.mark.parametrize(("name", "old", "new", "found"), FAULTS)
def test_faults_in_generated_kernels_are_found(name: str, old: str, new: str, found: str) -> None:
    KERNELS[name].require_found(old, new, found)


def test_lanes_that_do_not_meet_before_a_part_goes_back_are_found() -> None:
    """A lane that still waits for a part finds its slot filled anew, and waits for ever."""
    kernel = KERNELS["parts that pass by"]
    meeting = re.compile(r"tvm_builtin_cuda_warp_sync\(\);(\s+if \(lane == 0\) {\s+\w+arrive\w+\([^;]*released_slot)")
    text, count = meeting.subn(r"\1", kernel.text)
    assert count
    assert any("deadlock" in {finding.kind for finding in kernel.run(seed, text)[0].findings} for seed in range(5))


def test_operands_written_in_the_next_turn_are_found() -> None:
    """PTX: registers of A may not be written before the wgmma that reads them is done; ptxas does not always warn."""
    text = KERNELS["one fragment"].text
    call = "tvm_builtin_ptx_wgmma_wait_group_wait_group_sync_aligned_0();"
    inside = text.index(call, text.index("tvm_builtin_ptx_wgmma_commit_group_commit_group_sync_aligned();"))
    later = 'asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory");'
    found = str(KERNELS["one fragment"].run(0, text[:inside] + later + text[inside + len(call) :])[0])
    assert "given its operand in registers that the same wgmma of an earlier turn" in found


@pytest.mark.deep
def test_a_rank_that_gets_into_a_descriptor_is_found() -> None:
    """Within a cluster a shared address has the block's rank above it."""
    text = KERNELS["cluster"].text
    kept = "(uint)999423)"  # 0x000F3FFF
    assert kept in text
    run, wrong, _ = KERNELS["cluster"].run(0, text.replace(kept, "(uint)4294918143)"))
    assert wrong or run.problems

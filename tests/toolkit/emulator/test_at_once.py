"""Blocks of the warpgroup family that load everything at once: clean and exact in any order, and faults in them are
found."""

from __future__ import annotations

import pytest
from generated import Generated

from subbyte.families.wgmma.config import WarpgroupConfig

pytest.importorskip("tvm")

KERNELS = {
    overlap: Generated(
        "n8h6w6c64k64r3s3p1", WarpgroupConfig(tile_width=6, segments=6, ring=3, at_once=2, stagger=0, overlap=overlap)
    )
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


@pytest.mark.parametrize("overlap", KERNELS)
def test_generated_kernels_are_clean_and_exact(overlap: int) -> None:
    KERNELS[overlap].require_exact(5)


@pytest.mark.parametrize(("old", "new", "found"), FAULTS)
def test_faults_in_generated_kernels_are_found(old: str, new: str, found: str) -> None:
    KERNELS[1].require_found(old, new, found)

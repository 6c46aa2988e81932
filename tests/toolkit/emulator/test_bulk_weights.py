"""Blocks of the warpgroup family whose weights come by bulk copies, shared by a cluster: clean and exact in any order,
and faults in them are found."""

from __future__ import annotations

from functools import cache

import pytest
from generated import Generated, plan_of

from subbyte.families.wgmma.rules import why_not_warpgroup

pytest.importorskip("tvm")

CASES = {
    "alone": ("n8h6w6c64k64r3s3p1", "wg-tw6-tr1-gm1-sg6-ri3-la1-sta0-ov0-bw1"),
    "pair": ("n8h6w5c64k64r3s3p1", "wg-tw6-tr2-gm1-sg4-ri4-la1-if2-sta0-bw2"),
    "pair and split": ("n8h4w7c128k96r3s3p1", "wg-tw8-tr1-gm1-sg4-sp2-ri3-la1-if2-sta0-ov0-bw2"),
    "four column tiles": ("n9h5w7c64k64r3s3p1", "wg-tw4-tr1-gm1-sg5-ri3-la1-sta0-bw4"),
    "two tiles of channels": ("n8h4w6c128k128r3s3p1", "wg-tw6-tr1-gm2-sg4-ri3-la1-un2-if3-sta0-bw2"),
    "two columns": ("n8h5w7c64k64r3s3p1", "wg-tw4-tr1-gm1-gx2-sg5-ri3-la1-if2-sta0-ov0-bw1"),
    "stride": ("n8h8w8c64k64r3s3p1u2", "wg-tw4-tr1-gm1-sg4-ri3-la1-sta0-bw4"),
    "every channel": ("n8h3w2c512k64r3s3p1", "wg-tw2-tr1-gm1-sg3-ri3-la1-if2-sta0-bw1"),
    "odd rows": ("n8h5w7c64k128r3s3p1", "wg-tw8-tr1-gm1-sg5-ri3-la1-if2-sta0-bw2"),
    "odd rows and split": ("n8h3w7c128k256r3s3p1", "wg-tw8-tr1-gm1-sg3-sp2-ri3-la1-if2-sta0-ov0-bw2"),
    "dilation": ("n8h8w6c64k64r3s3p2d2", "wg-tw6-tr1-gm1-sg8-ri5-la1-sta0-bw2"),
}
FAULTS = [
    ("pair", "wgmma.fence.sync.aligned;", "", {"missing_wgmma_fence"}),
    ("pair", "barrier.cluster.wait.acquire.aligned;", "", {"bad_cluster", "race", "bad_mbarrier"}),
    ("pair", "griddepcontrol.wait;", "", {"missing_dependency_wait"}),
    ("pair and split", "((uint)5 << ((uint)rank))", "((uint)1 << ((uint)rank))", {"deadlock"}),
    ("pair", "bar.sync", "bar.arrive", {"race", "bad_mbarrier"}),
]


@cache
def _kernel(case: str) -> Generated:
    spec, key = CASES[case]
    return Generated(spec, key)


@pytest.mark.parametrize("case", CASES)
def test_generated_kernels_are_clean_and_exact(case: str) -> None:
    _kernel(case).require_exact(3)


@pytest.mark.parametrize(("case", "old", "new", "found"), FAULTS)
def test_faults_in_generated_kernels_are_found(case: str, old: str, new: str, found: set[str]) -> None:
    _kernel(case).require_found(old, new, *found)


REFUSED = [
    ("n8h6w6c64k64r1s1p0", "wg-tw6-tr1-gm1-sg6-ri1-la1-sta0-bw2", "kernels with rows"),
    ("n8h7w7c64k64r3s3p1", "wg-tw8-tr1-gm1-sg7-ri3-la1-sta0-bw2", "do not divide 7"),
    ("n8h7w7c64k128r3s3p1", "wg-tw8-tr1-gm1-sg7-ri3-la1-un1-sta0-bw4", "do not divide 7"),
    ("n8h6w6c64k64r3s3p1", "wg-tw6-tr1-gm1-sg3-ri3-la1-sta0-bw1", "single pass"),
    ("n8h6w6c128k64r3s3p1", "wg-tw6-tr1-gm1-sg6-ri3-la1-sta0-wr4-bw1", "weight_ring"),
]


@pytest.mark.parametrize(("spec", "key", "reason"), REFUSED)
def test_what_cannot_be_built_is_refused_with_a_reason(spec: str, key: str, reason: str) -> None:
    assert reason in (why_not_warpgroup(plan_of(spec, key)) or "")

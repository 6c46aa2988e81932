"""Blocks of a single tile iteration, whose weights come by bulk copies, shared by a cluster: clean and exact in any
order, and faults in them are found."""

from __future__ import annotations

from functools import cache

import pytest
from generated import Generated, plan_of

from subbyte.families.wgmma.check import why_not

CASES = {
    "alone": ("n8h6w6c64k64r3s3p1", "wgs-tw6-tr1-cm1-sg6-mc1-pdl0"),
    "pair": ("n8h6w5c64k64r3s3p1", "wgs-tw6-tr2-cm1-sg4-mc2-if2"),
    "pair and split": ("n8h4w7c128k96r3s3p1", "wgs-tw8-tr1-cm1-sg4-sk2-mc2-if2-pdl0"),
    "two tiles of channels": ("n8h4w6c128k128r3s3p1", "wgs-tw6-tr1-cm2-sg4-mc2-un2-if3"),
    "two columns": ("n8h5w7c64k64r3s3p1", "wgs-tw4-tr1-cm1-cn2-sg5-mc1-if2-pdl0"),
    "every channel": ("n8h3w2c512k64r3s3p1", "wgs-tw2-tr1-cm1-sg3-mc1-if2"),
    "odd rows": ("n8h5w7c64k128r3s3p1", "wgs-tw8-tr1-cm1-sg5-mc2-if2"),
    "dilation": ("n8h8w6c64k64r3s3p2d2", "wgs-tw6-tr1-cm1-sg8-mc2"),
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


@pytest.mark.sample("pair and split")
@pytest.mark.parametrize("case", CASES)
def test_generated_kernels_are_clean_and_exact(case: str) -> None:
    _kernel(case).require_exact(1)


@pytest.mark.deep
@pytest.mark.parametrize(("case", "old", "new", "found"), FAULTS)
def test_faults_in_generated_kernels_are_found(case: str, old: str, new: str, found: set[str]) -> None:
    _kernel(case).require_found(old, new, *found)


REFUSED = [
    ("n8h6w6c64k64r1s1p0", "wgs-tw6-tr1-cm1-sg6-mc2", "a kernel with rows"),
    ("n8h7w7c64k64r3s3p1", "wgs-tw8-tr1-cm1-sg7-mc2", "do not divide 7"),
    ("n8h7w7c64k128r3s3p1", "wgs-tw8-tr1-cm1-sg7-mc4", "do not divide 7"),
    ("n8h6w6c64k64r3s3p1", "wgs-tw6-tr1-cm1-sg3-mc1", "single tile iteration"),
]


@pytest.mark.parametrize(("spec", "key", "reason"), REFUSED)
def test_what_cannot_be_built_is_refused_with_a_reason(spec: str, key: str, reason: str) -> None:
    assert reason in (why_not(plan_of(spec, key)) or "")

"""Stages on their way in shared memory, and halves of fragments unpacked apart: exact and clean, refused where they
mean nothing, and what goes wrong with them is found."""

from __future__ import annotations

import pytest
from generated import Generated, plan_of

from subbyte.families.wgmma.check import why_not

KERNELS = [
    # 192 sums of a thread, one tile iteration: as the narrow layers at batch 64 and 256
    ("n24h3w7c128k256r1s1p0", "wgp-tw24-tr1-cm2-sg3-tm2-cg2-st3-rr0-la1-sta0-px2-oa1-ca4"),
    ("n16h5w9c256k128r1s1p0", "wgp-tw24-tr2-cm2-sg2-cg4-st5-rr0-la1-sta0-px2-oa1-ca3"),
    ("n24h3w7c128k128r1s1p0", "wgp-tw8-tr1-cm2-sg3-cg2-st3-rr0-la1-sta0-px2-ca2"),  # several tile iterations
    ("n8h6w14c64k64r3s3p1", "wgp-tw14-tr1-cm1-cr2-sg2-st4-la1-ls2-ca2"),
    ("n8h9w13c64k128r3s3p1u2", "wgp-tw4-tr1-cm2-sg2-st5-la1-if2-oa1-ca4"),  # columns with a condition
    ("n8h14w14c128k128r3s3p1u2", "wgp-tw8-tr4-cm2-sg1-cg2-st2-rr3-la1-sta0-ca1"),
    ("n8h6w6c128k64r3s3p1", "wgp-tw6-tr1-cm1-sg2-cg2-st6-rr0-la1-sta0-if2-oa1-ca3"),  # rows above the image
    ("n3h6w6c64k64r1s1p0", "wgp-tw6-tr1-cm1-sg2-st3-la1-sta0-oa1-ca8-nhwc"),
]
REFUSED = [
    ("n8h6w6c64k64r3s3p1", "wgp-tw6-tr1-cm1-sg1-st4-sta0-ca2", "copies_ahead goes with one producer"),
    ("n8h6w6c64k64r3s3p1", "wgp-tw6-tr1-cm1-sg1-st4-la1-sta0-pr2-ca2", "copies_ahead goes with one producer"),
    ("n8h6w6c64k64r3s3p1", "wgp-tw6-tr1-cm1-sg1-st4-la1-sta0-dup.none-ca2", "copies_ahead is for dense weights"),
    ("n8h6w6c32k64r3s3p1", "wgp-tw6-tr1-cm1-sg1-st4-la1-sta0-oa1", "same program: a weight fragment of one"),
    ("n256h7w7c2048k512r1s1p0", "wgp-tw24-tr1-cm2-sg66-tm2-cg32-st4-rr0-la1-sta0-px2-ca4", "registers: about 244"),
]


@pytest.mark.sample("sg3-tm2")
@pytest.mark.parametrize(("spec", "key"), KERNELS)
def test_kernels_are_clean_and_exact(spec: str, key: str) -> None:
    Generated(spec, key).require_exact(1)


@pytest.mark.parametrize(("spec", "key", "reason"), REFUSED)
def test_what_has_no_use_is_refused(spec: str, key: str, reason: str) -> None:
    assert reason in (why_not(plan_of(spec, key)) or "")


FAULTY = Generated("n8h4w4c128k64r1s1p0", "wgp-tw8-tr1-cm1-sg1-cg2-st3-rr0-la1-sta0-ca2")
WAIT = "tvm_builtin_ptx_cp_async_wait_group_async_wait_group_1();"
PLACE = "int copy = (turn_2 & 1);"


@pytest.mark.deep
@pytest.mark.parametrize(("right", "wrong"), [(WAIT, ""), (PLACE, "int copy = ((turn_2 + 1) & 1);")])
def test_a_place_that_is_read_too_early_is_found(right: str, wrong: str) -> None:
    assert FAULTY.text.count(right) == 1
    found = FAULTY.run(0, FAULTY.text.replace(right, wrong))
    assert found[0].problems or found[1]


def test_a_lone_tile_iteration_has_no_loop() -> None:
    alone, several = (Generated(*KERNELS[i]).text for i in (0, 2))
    assert "row_pass" not in alone
    assert "for (int row_pass" in several

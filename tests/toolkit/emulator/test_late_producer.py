"""A producer that asks for its own first parts behind those of the consumers: exact, refused where it has no use."""

from __future__ import annotations

import pytest
from generated import Generated, plan_of

import subbyte
from subbyte.families.registry import config_from_key
from subbyte.families.wgmma.check import why_not

KERNELS = [
    ("n8h6w14c64k64r3s3p1", "wgp-tw14-tr1-cm1-cr2-sg2-st4-sta0-ls1"),  # as stages 2 and 3 at batch 64
    ("n3h7w6c64k160r3s3p1", "wgp-tw6-tr1-cm2-sg7-st3-la1-sta2-ls1"),
    ("n3h3w9c64k64r3s3p1", "wgp-tw6-tr1-cm1-cn2-sg2-st3-sta0-ls1-nhwc"),
    ("n8h6w6c64k64r3s3p1", "wgp-tw6-tr1-cm1-sg1-st3-rr2-sta0-ls1"),
]
REFUSED = [
    ("n8h6w6c64k64r3s3p1", "wgp-tw6-tr1-cm1-sg1-st4-sta0-pr2-ls1", "two producers"),
    ("n8h2w6c64k64r1s1p0", "wgp-tw6-tr1-cm1-cr2-sg1-st2-la1-sta0-ls1", "the consumers load every row"),
]
KERNEL = Generated(*KERNELS[0])


@pytest.mark.sample("-nhwc")
@pytest.mark.parametrize(("spec", "key"), KERNELS)
def test_kernels_are_clean_and_exact(spec: str, key: str) -> None:
    Generated(spec, key).require_exact(1)


@pytest.mark.parametrize(("spec", "key", "reason"), REFUSED)
def test_what_has_no_use_is_refused(spec: str, key: str, reason: str) -> None:
    assert reason in (why_not(plan_of(spec, key)) or "")


@pytest.mark.deep
def test_the_producer_asks_behind_its_wait() -> None:
    asked = "v4_b32(next_row_ptr[0]"  # the second of its own parts
    early = Generated(KERNELS[0][0], KERNELS[0][1].removesuffix("-ls1")).text
    for text, before in ((early, 1), (KERNEL.text, 0)):
        assert text.rpartition("tvm_builtin_ptx_setmaxnreg_inc")[0].count(asked) == before
        assert text.count(asked) == 2


@pytest.mark.deep
def test_a_producer_that_waits_for_its_own_part_is_found() -> None:
    own = "((base + (uint)40704) + (uint)16), (uint)0)"
    KERNEL.require_found("((base + (uint)40704) + (uint)8), (uint)0)", own, "deadlock")


@pytest.mark.deep
def test_a_part_that_nobody_asks_for_is_found() -> None:
    assert "if (parts > 3) {" in KERNEL.text
    run, wrong, _ = KERNEL.run(0, KERNEL.text.replace("if (parts > 3) {", "if (parts > 9) {"))
    assert wrong or run.problems


def test_the_large_space_has_both() -> None:
    knobs = subbyte.space("resnet50.stage2@64", kind="wgmma").knobs
    assert {0, 1} < set(knobs["start"])
    assert "start" not in subbyte.space("resnet50.stage2@8", kind="wgmma-small").knobs
    key = "wgp-tw28-tr1-cm1-cr2-sg8-st5-if2-ls1"
    assert config_from_key(key).key == key

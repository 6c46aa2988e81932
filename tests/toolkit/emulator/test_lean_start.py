"""A start at which nobody waits for the whole block: exact, refused where it has no use, and faults in it are found."""

from __future__ import annotations

import pytest
from generated import Generated, plan_of

import subbyte
from subbyte.families.registry import config_from_key
from subbyte.families.wgmma.check import why_not

KERNELS = [
    ("n8h14w28c64k64r3s3p1", "wgp-tw14-tr2-cm1-cr2-sg2-st6-sta0-ls2"),  # as stage 3 at batch 64
    ("n8h6w14c64k64r3s3p1", "wgp-tw14-tr1-cm1-cr2-sg2-st4-ls3"),  # as stage 2
    ("n16h7w7c128k64r3s3p1", "wgp-tw7-tr1-cm1-cr2-sg4-cg2-st3-rr3-la1-sta0-ig2-hr1-ls2"),  # as stage 5
    ("n3h7w6c64k160r3s3p1", "wgp-tw6-tr1-cm2-sg7-st3-la1-sta2-ls2"),
    ("n3h3w9c64k64r3s3p1", "wgp-tw6-tr1-cm1-cn2-sg2-st3-sta0-ls2-nhwc"),
    ("n8h5w6c96k64r3s3p1u2", "wgp-tw4-tr1-cm1-sg1-st5-sta0-ls2"),  # loads at no constant distance
    ("n8h6w6c64k128r3s3p1", "wgp-tw6-tr1-cm1-sg1-mi2-st3-rr2-sta0-ls2"),
]
REFUSED = [
    ("n8h6w6c64k64r3s3p1", "wgp-tw6-tr1-cm1-sg1-st4-sta0-pr2-ls2", "a lean start goes neither"),
    ("n8h3w6c128k64r3s3p1", "wgp-tw6-tr1-cm1-sg3-sk2-st3-la1-sta0-ls2", "a lean start goes neither"),
]
KERNEL = Generated(*KERNELS[0])


@pytest.mark.sample("p1u2")
@pytest.mark.parametrize(("spec", "key"), KERNELS)
def test_kernels_are_clean_and_exact(spec: str, key: str) -> None:
    Generated(spec, key).require_exact(1)


@pytest.mark.deep
@pytest.mark.parametrize("given", [{"output": "int32"}, {"requant": "general", "clip": (0, 7)}])
def test_other_forms_of_output_are_exact(given: dict[str, object]) -> None:
    Generated(*KERNELS[1], **given).require_exact(1)


@pytest.mark.parametrize(("spec", "key", "reason"), REFUSED)
def test_what_has_no_use_is_refused(spec: str, key: str, reason: str) -> None:
    assert reason in (why_not(plan_of(spec, key)) or "")


@pytest.mark.deep
def test_nobody_waits_for_the_whole_block() -> None:
    meet = "tvm_builtin_cuda_cta_sync();\n"
    usual = Generated(KERNELS[0][0], KERNELS[0][1].removesuffix("-ls2")).text
    assert [text.partition("int warp_id_in_cta")[2].count(meet) for text in (usual, KERNEL.text)] == [1, 0]


def test_rows_are_asked_for_before_weights() -> None:
    body = KERNEL.text.partition("int warp_id_in_cta")[2]
    assert body.index("v4_b32(row_words_ptr[0]") < body.index("v4_b32(fetched_ptr[0]")


@pytest.mark.deep
def test_a_barrier_that_may_not_be_set_up_is_found() -> None:
    wait = "tvm_builtin_ptx_bar_sync_count_sync(((uint)(3 + wg)), (uint)256);"
    assert KERNEL.text.count(wait) == 1
    assert any(KERNEL.run(seed, KERNEL.text.replace(wait, ""))[0].problems for seed in range(4))


@pytest.mark.deep
def test_a_producer_that_does_not_wait_for_its_barriers_is_found() -> None:
    wait = "tvm_builtin_ptx_bar_sync_count_sync((uint)5, (uint)128);"
    assert KERNEL.text.count(wait) == 1
    assert any(KERNEL.run(seed, KERNEL.text.replace(wait, ""))[0].problems for seed in range(4))


@pytest.mark.deep
def test_a_wrong_distance_between_loads_is_found() -> None:
    asked = "source_here_ptr[0] + (int64_t)512"
    assert asked in KERNEL.text
    assert KERNEL.run(0, KERNEL.text.replace(asked, "source_here_ptr[0]"))[1]


def test_large_spaces_have_it_and_small_ones_have_not() -> None:
    assert 2 in subbyte.space("resnet50.stage3@64", kind="wgmma").knobs["start"]
    assert "start" not in subbyte.space("resnet50.stage3@8", kind="wgmma-small").knobs
    key = "wgp-tw14-tr2-cm1-cr2-sg4-st6-sta0-ls2"
    assert config_from_key(key).key == key

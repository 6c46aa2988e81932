"""A start at which nobody waits for the whole block: exact, refused where it has no use, and faults in it are found."""

from __future__ import annotations

import pytest
from generated import Generated, plan_of

import subbyte
from subbyte.families.wgmma.config import WarpgroupConfig
from subbyte.families.wgmma.rules import why_not_warpgroup

pytest.importorskip("tvm")

KERNELS = [
    ("n8h14w28c64k64r3s3p1", "tw14-tr2-gm1-gy2-sg2-ri6-sta0-ls1"),  # as stage 3 at batch 64
    ("n8h6w14c64k64r3s3p1", "tw14-tr1-gm1-gy2-sg2-ri4-pl1-ls1"),  # as stage 2
    ("n8h14w14c64k64r3s3p1", "tw14-tr2-gm1-gy2-sg4-ri6-la1-sta0-hr1-ls1"),  # as stage 4
    ("n16h7w7c128k64r3s3p1", "tw7-tr1-gm1-gy2-sg4-cg2-ri3-kr0-la1-sta0-ig2-hr1-pp1-ls1"),  # as stage 5
    ("n16h7w7c128k64r3s3p1", "tw7-tr1-gm1-gy2-sg4-cg2-ri8-kr0-sta0-ig2-hr1-pl1-ls1"),
    ("n3h7w6c64k160r3s3p1", "tw6-tr1-gm2-sg7-ri3-la1-sta2-ls1"),
    ("n3h3w9c64k64r3s3p1", "tw6-tr1-gm1-gx2-sg2-ri3-sta0-ov0-ls1-nhwc"),
    ("n8h5w6c96k64r3s3p1u2", "tw4-tr1-gm1-sg1-ri5-sta0-ls1"),  # loads at no constant distance
    ("n8h6w6c64k128r3s3p1", "tw6-tr1-gm1-sg1-fp2-ri3-er1-sta0-ls1"),
]
REFUSED = [
    ("n8h6w6c64k64r3s3p1", "tw6-tr1-gm1-sg1-ri4-sta0-pr2-ls1", "lean_start goes neither"),
    ("n8h3w6c64k64r3s3p1", "tw6-tr1-gm1-sg3-ri3-la1-sta0-bw1-ls1", "bulk_weights needs lean_start=0"),
    ("n8h3w6c128k64r3s3p1", "tw6-tr1-gm1-sg3-sp2-ri3-la1-sta0-ls1", "lean_start goes neither"),
]
KERNEL = Generated(*KERNELS[0])


@pytest.mark.parametrize(("spec", "key"), KERNELS)
def test_kernels_are_clean_and_exact(spec: str, key: str) -> None:
    Generated(spec, key).require_exact(2)


@pytest.mark.parametrize("given", [{"output": "int32"}, {"requant": "general"}, {"clip": (0, 7)}])
def test_other_forms_of_output_are_exact(given: dict[str, object]) -> None:
    Generated(*KERNELS[0], **given).require_exact(1)


@pytest.mark.parametrize(("spec", "key", "reason"), REFUSED)
def test_what_has_no_use_is_refused(spec: str, key: str, reason: str) -> None:
    assert reason in (why_not_warpgroup(plan_of(spec, key)) or "")


def test_nobody_waits_for_the_whole_block() -> None:
    meet = "tvm_builtin_cuda_cta_sync();\n"
    usual = Generated(KERNELS[0][0], KERNELS[0][1].removesuffix("-ls1")).text
    assert [text.partition("int warp_id_in_cta")[2].count(meet) for text in (usual, KERNEL.text)] == [1, 0]


def test_rows_are_asked_for_before_weights() -> None:
    body = KERNEL.text.partition("int warp_id_in_cta")[2]
    assert body.index("v4_b32(row_words_ptr[0]") < body.index("v4_b32(fetched_ptr[0]")


def test_a_barrier_that_may_not_be_set_up_is_found() -> None:
    wait = "tvm_builtin_ptx_bar_sync_count_sync(((uint)(3 + wg)), (uint)256);"
    assert KERNEL.text.count(wait) == 1
    assert any(KERNEL.run(seed, KERNEL.text.replace(wait, ""))[0].problems for seed in range(4))


def test_a_producer_that_does_not_wait_for_its_barriers_is_found() -> None:
    wait = "tvm_builtin_ptx_bar_sync_count_sync((uint)5, (uint)128);"
    assert KERNEL.text.count(wait) == 1
    assert any(KERNEL.run(seed, KERNEL.text.replace(wait, ""))[0].problems for seed in range(4))


def test_a_wrong_distance_between_loads_is_found() -> None:
    asked = "source_here_ptr[0] + (int64_t)512"
    assert asked in KERNEL.text
    assert KERNEL.run(0, KERNEL.text.replace(asked, "source_here_ptr[0]"))[1]


def test_large_spaces_have_it_and_small_ones_have_not() -> None:
    assert subbyte.space("resnet50.stage3@64", kind="warpgroup").knobs["lean_start"] == (0, 1)
    assert "lean_start" not in subbyte.space("resnet50.stage3@8", kind="warpgroup-small").knobs
    key = "wg-tw14-tr2-gm1-gy2-sg4-ri6-sta0-ls1"
    assert WarpgroupConfig.from_key(key).key == key

"""Two groups of images in one instruction, and passes that load their own rows: clean, exact, refused where wrong."""

from __future__ import annotations

import pytest
from generated import Generated, plan_of

from subbyte.families.registry import config_from_key
from subbyte.families.wgmma.check import why_not

KERNELS = [
    ("n16h7w7c128k64r3s3p1", "wgp-tw7-tr2-cm1-cr2-sg1-cg2-st12-rr0-sta2-ig2"),  # as stage 5 at batch 256
    ("n32h5w7c64k96r3s3p1", "wgp-tw7-tr2-cm2-sg2-st4-sta0-ig2"),
    ("n16h4w7c96k64r3s3p1", "wgp-tw7-tr1-cm1-cr2-sg1-st4-sta0-ig2-rp0-nhwc"),
    ("n16h4w7c128k64r3s3p1", "wgp-tw7-tr1-cm1-sg4-sk2-st3-sta0-ig2"),
    ("n16h4w14c64k64r3s3p1", "wgp-tw7-tr1-cm1-cn2-sg2-st3-sta0-ig2"),
    ("n32h3w6c64k64r3s3p1", "wgp-tw6-tr1-cm1-sg3-st3-sta0-ig4"),
    ("n8h6w28c256k64r3s3p1", "wgp-tw14-tr1-cm1-cr2-sg2-st4-la1-sta0-preg80"),
]
REFUSED = [
    ("n8h7w7c64k64r3s3p1", "wgp-tw7-tr1-cm1-sg7-st3-sta0-ig2", "2 groups of pixels exceed 1 groups"),
    ("n16h7w7c64k64r3s3p1", "wgp-tw7-tr1-cm1-sg7-st3-sta0", "tile_width 7 is none of"),
    ("n16h14w14c64k64r3s3p1", "wgp-tw7-tr1-cm1-sg7-st3-sta0-ig2", "need whole rows"),
    ("n16h14w14c64k64r3s3p1u2", "wgp-tw7-tr1-cm1-sg7-st3-sta0-ig2", "need whole rows"),
    ("n16h5w7c128k64r3s3p1", "wgp-tw7-tr2-cm1-cr2-sg1-cg2-st12-rr0-sta0-ig2", "a tile iteration without rows"),
    ("n16h7w7c128k64r3s3p1", "wgp-tw7-tr2-cm1-cr2-sg1-cg2-st12-rr0-ig2", "take no turns"),
    ("n8h6w28c256k64r3s3p1", "wgp-tw14-tr1-cm1-cr2-sg2-st4-la1-sta0-preg64", "multiples of 8 above 64"),
    ("n8h6w28c64k64r3s3p1", "wgp-tw14-tr1-cm1-sg2-st4-la1-sta0-preg80", "as many"),
]


@pytest.mark.sample("-rp0-nhwc")
@pytest.mark.parametrize(("spec", "key"), KERNELS)
def test_kernels_are_clean_and_exact(spec: str, key: str) -> None:
    Generated(spec, key).require_exact(1)


@pytest.mark.deep
def test_raw_sums_of_two_groups_of_images() -> None:
    Generated("n16h3w7c64k64r3s3p1", "wgp-tw7-tr1-cm1-sg3-st3-sta0-ig2", output="int32").require_exact(1)


@pytest.mark.parametrize(("spec", "key", "reason"), REFUSED)
def test_what_cannot_be_built_is_refused(spec: str, key: str, reason: str) -> None:
    assert reason in (why_not(plan_of(spec, key)) or "")


def test_seven_pixels_of_two_groups_fill_an_instruction() -> None:
    plan = plan_of("resnet50.stage5@256", "wgp-tw7-tr2-cm1-cr2-sg1-cg4-st12-rr0-sta2-ig2")
    assert plan.atom.ptx.endswith("m64n112k32.s32.s8.s8")
    assert plan.grid == (8, 16)  # blocks of 64 filters, 7 rows and 16 images
    assert plan.window == 6  # rows of a pass of both warpgroups
    assert config_from_key(plan.config.key) == plan.config

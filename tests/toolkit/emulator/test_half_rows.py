"""Blocks of whole rows and a half: clean and exact, refused where the rows do not divide so."""

from __future__ import annotations

from typing import Any

import pytest
from generated import Generated, plan_of

from subbyte.space.warpgroup_constraints import why_not_warpgroup

pytest.importorskip("tvm")

KERNELS = [
    ("n8h14w14c64k64r3s3p1", "tw14-tr2-gm1-gy2-sg4-ri6-la1-sta2-hr1", {}),  # as stage 4 at batch 64
    ("n16h6w28c64k96r3s3p1", "tw14-tr1-gm1-gy2-sg4-ri4-sta0-hr1", {}),
    ("n8h6w8c32k64r3s3p1", "tw8-tr1-gm1-gy2-sg4-ri4-sta0-hr1-nhwc", {}),
    ("n8h6w14c64k64r3s3p1", "tw14-tr1-gm1-gy2-sg4-ri4-sta0-hr1-rp0", {}),
    ("n8h6w14c64k64r3s3p1", "tw14-tr1-gm1-gy2-sg4-ri4-sta0-hr1", {"output": "int32"}),
    ("n8h14w14c128k64r3s3p1", "tw14-tr2-gm1-gy2-sg4-cg2-ri12-kr0-sta0-hr1", {}),
]
REFUSED = [
    ("n8h16w14c64k64r3s3p1", "tw14-tr2-gm1-gy2-sg4-ri6-sta0-hr1", "do not end in the middle"),
    ("n8h14w14c64k64r3s3p1", "tw14-tr1-gm1-gy2-sg4-ri6-sta0-hr1", "half of a block's 4 rows"),
    ("n8h14w15c64k64r3s3p1", "tw14-tr2-gm1-gy2-sg4-ri6-sta0-hr1", "divides 15 columns"),
    ("n8h14w14c64k64r3s3p1", "tw14-tr2-gm1-gy2-sg4-ri6-sta0-hr1-er1", "early_release"),
    ("n8h2w14c64k64r3s3p1", "tw14-tr1-gm1-gy2-sg4-ri2-sta0-hr1", "half of a block's 1 rows"),
]


@pytest.mark.parametrize(("spec", "key", "given"), KERNELS)
def test_kernels_are_clean_and_exact(spec: str, key: str, given: dict[str, Any]) -> None:
    Generated(spec, key, **given).require_exact(2)


@pytest.mark.parametrize(("spec", "key", "reason"), REFUSED)
def test_what_cannot_be_built_is_refused(spec: str, key: str, reason: str) -> None:
    assert reason in (why_not_warpgroup(plan_of(spec, key)) or "")


def test_rows_of_a_block() -> None:
    plan = plan_of("resnet50.stage4@64", "tw14-tr2-gm1-gy2-sg4-ri6-la1-sta0-hr1")
    assert [(plan.segment_start(i), plan.segment_end(i)) for i in range(4)] == [(0, 4), (3, 7), (7, 11), (10, 14)]
    assert plan.grid_blocks == 128
    assert plan.narrow_pixels == 8
    assert plan.atom_of(plan.narrow_pixels).ptx.endswith("m64n64k32.s32.s8.s8")

"""Blocks of whole rows and a half: clean and exact, refused where the rows do not divide so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from generated import Generated, plan_of

import subbyte
from subbyte.families.registry import config_from_key
from subbyte.families.wgmma import halves
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.cycles import estimated_cycles

KERNELS = [
    ("n8h14w14c64k64r3s3p1", "wgp-tw14-tr2-cm1-cr2-sg4-st6-la1-sta2-hr1", {}),  # as stage 4 at batch 64
    ("n8h6w8c32k64r3s3p1", "wgp-tw8-tr1-cm1-cr2-sg4-st4-sta0-hr1-nhwc", {}),
]
MIDDLE = [
    ("n16h7w7c128k64r3s3p1", "wgp-tw7-tr1-cm1-cr2-sg4-cg2-st8-rr0-sta0-ig2-hr1", {}),  # as stage 5 at batch 64
    ("n16h7w7c256k64r3s3p1", "wgp-tw7-tr1-cm1-cr2-sg4-cg4-st4-rr3-sta0-ig2-hr1-ls1", {}),
    ("n13h7w7c64k64r3s3p1", "wgp-tw7-tr1-cm1-cr2-sg4-st4-la1-sta2-ig2-hr1", {"output": "int32"}),
    ("n32h11w3c64k96r3s3p1", "wgp-tw3-tr1-cm1-cr2-sg6-st4-sta0-ig4-hr1-rp0", {}),
]
"""The row in the middle of the image is cut, and no other."""
REFUSED = [
    ("n8h16w14c64k64r3s3p1", "wgp-tw14-tr2-cm1-cr2-sg4-st6-sta0-hr1", "do not end in the middle"),
    ("n8h14w14c64k64r3s3p1", "wgp-tw14-tr1-cm1-cr2-sg4-st6-sta0-hr1", "half of a block's 4 rows"),
    ("n8h14w15c64k64r3s3p1", "wgp-tw14-tr2-cm1-cr2-sg4-st6-sta0-hr1", "that divides 15 columns"),
    ("n8h14w14c64k64r3s3p1", "wgp-tw14-tr2-cm1-cr2-sg4-st6-rr2-sta0-hr1", "row_reuse=2"),
    ("n8h2w14c64k64r3s3p1", "wgp-tw14-tr1-cm1-cr2-sg4-st2-sta0-hr1", "half of a block's 1 rows"),
    ("n16h7w7c64k64r3s3p1", "wgp-tw7-tr1-cm1-cr2-sg3-st4-sta0-ig2-hr1", "do not end in the middle"),
    ("n16h9w7c64k64r3s3p1", "wgp-tw7-tr1-cm1-cr2-sg4-st4-sta0-ig2-hr1", "do not end in the middle"),
    ("n16h7w7c64k64r3s3p1", "wgp-tw7-tr2-cm1-cr2-sg4-st4-sta0-ig2-hr1", "half of a block's 2 rows"),
    ("n8h6w3c64k64r3s3p1", "wgp-tw3-tr1-cm1-cr2-sg4-st4-sta0-hr1", "half of it is a width"),
    ("n8h3w12c64k64r5s3p2", "wgp-tw14-tr1-cm1-cr2-sg2-st4-sta0-hr1", "too near to the edge"),
]
FAULTS = [
    ("(uint)1536 : (uint)0", "(uint)1024 : (uint)0"),  # where the right half begins
    (">> 1) < 4)", ">> 1) < 3)"),  # the column in the middle, which the left half stores
    ("? 1 : 0)", "? 2 : 0)"),  # the first one that the right half stores
    ("((segment - 1) + wg) == 1", "(segment + wg) == 1"),  # which segments are cut
]


AS_STAGE_5 = Generated(MIDDLE[0][0], MIDDLE[0][1])


@pytest.mark.sample("-nhwc")
@pytest.mark.parametrize(("spec", "key", "given"), KERNELS + MIDDLE)
def test_kernels_are_clean_and_exact(spec: str, key: str, given: dict[str, Any]) -> None:
    Generated(spec, key, **given).require_exact(1)


@pytest.mark.deep
@pytest.mark.parametrize(("old", "new"), FAULTS)
def test_faults_at_the_cut_are_found(old: str, new: str) -> None:
    kernel = AS_STAGE_5
    assert old in kernel.text
    run, wrong, _ = kernel.run(0, kernel.text.replace(old, new))
    assert wrong or run.problems


@pytest.mark.parametrize(("spec", "key", "reason"), REFUSED)
def test_what_cannot_be_built_is_refused(spec: str, key: str, reason: str) -> None:
    assert reason in (why_not(plan_of(spec, key)) or "")


def test_rows_of_a_block() -> None:
    plan = plan_of("resnet50.stage4@64", "wgp-tw14-tr2-cm1-cr2-sg4-st6-la1-sta0-hr1")
    assert [(plan.segment_start(i), plan.segment_end(i)) for i in range(4)] == [(0, 4), (3, 7), (7, 11), (10, 14)]
    assert plan.grid_blocks == 128
    assert plan.narrow_pixels == 8
    assert plan.atom_of(plan.narrow_pixels).ptx.endswith("m64n64k32.s32.s8.s8")


def test_the_row_in_the_middle_alone_is_cut() -> None:
    plan = plan_of("resnet50.stage5@64", "wgp-tw7-tr1-cm1-cr2-sg4-cg4-st8-rr0-un2-sta0-ig2-hr1")
    assert [(plan.segment_start(i), plan.segment_end(i)) for i in range(4)] == [(0, 2), (2, 4), (3, 5), (5, 7)]
    assert [plan.cut(i) in (0, 1) for i in range(4)] == [False, True, True, False]
    assert plan.grid_blocks == 128
    assert (plan.narrow_columns, plan.narrow_pixels) == (4, 8)
    whole = plan_of("resnet50.stage5@64", "wgp-tw7-tr1-cm2-sg7-cg4-st6-rr0-un2-if2-sta0-ig2")
    assert whole.grid_blocks == 112  # of one row and 128 channels: 6 rows of taps where rows and halves have 5
    assert estimated_cycles(plan) < estimated_cycles(replace(plan, config=whole.config))


def test_the_space_holds_such_a_division() -> None:
    space = subbyte.space("resnet50.stage5@64", kind="wgmma")
    config = config_from_key("wgp-tw7-tr1-cm1-cr2-sg4-cg4-st8-rr0-un2-sta0-ig2-hr1")
    assert space.check(space.index(config)) is None
    assert "half_rows" not in subbyte.space("resnet50.stage5@8", kind="wgmma-small").knobs


@pytest.mark.parametrize(("rows", "segments", "expected"), [
    (14, 4, True), (7, 2, True), (7, 4, True), (15, 8, True), (7, 3, False), (9, 4, False), (16, 4, False),
])  # fmt: skip
def test_segments_cover_every_half_row_once(rows: int, segments: int, expected: bool) -> None:
    assert halves.divided(rows, segments) == expected
    if not expected:
        return
    covered = []
    for segment in range(segments):
        first = halves.start(segment, rows, segments)
        cut = halves.cut(segment, rows, segments)
        mine = range(2 * first, 2 * (first + halves.rows_of(rows, segments)))
        covered += [half for half in mine if not (cut == 1 and half == mine[0]) and not (cut == 0 and half == mine[-1])]
    assert covered == list(range(2 * rows))

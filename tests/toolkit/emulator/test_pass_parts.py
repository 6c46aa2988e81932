"""Stages that hold all rows of a tile iteration: exact and clean in any order, refused where they mean nothing, and
what goes wrong with them is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from generated import Generated, plan_of

from subbyte.emulator import run_cuda
from subbyte.emulator.trace import global_bytes_read, of_kind
from subbyte.families.registry import config_from_key
from subbyte.families.wgmma.check import why_not
from subbyte.kernel import Kernel
from subbyte.kernel.execute import expected

STAGE5 = ("n16h7w7c128k64r3s3p1", "wgp-tw7-tr2-cm1-cr2-sg1-cg2-st2-rr3-sta0-ig2")
KERNELS = [
    ("n16h7w7c256k64r3s3p1", "wgp-tw7-tr2-cm1-cr2-sg1-cg4-st3-rr3-sta0-ig2"),  # as stage 5 at batch 256
    ("n8h14w14c128k128r3s3p1u2", "wgp-tw8-tr4-cm2-sg1-cg2-st2-rr3-la1-sta0"),  # as stage 5's layer with stride 2
    ("n8h9w6c128k96r3s3p2d2", "wgp-tw6-tr2-cm1-sg2-cg2-st2-rr3-sta0"),
    ("n8h9w9c128k64r5s5p2", "wgp-tw10-tr1-cm1-sg3-cg2-st2-rr3-la1-sta0"),  # two iterations with rows above the image
    ("n8h6w12c128k64r3s3p1", "wgp-tw6-tr2-cm1-sg2-cg2-st4-rr3-sta0-pr2"),  # columns divided among blocks
    ("n8h6w14c128k64r3s3p1", "wgp-tw8-tr1-cm1-cn2-sg2-cg2-st3-rr3-sta0-rp0-nhwc"),
    ("n8h5w6c128k128r3s3p1", "wgp-tw6-tr2-cm1-sg1-mi2-cg2-st2-rr3-sta0"),
    ("n8h14w14c128k64r3s3p1", "wgp-tw14-tr2-cm1-cr2-sg4-cg2-st2-rr3-la1-sta0-hr1"),
]
REFUSED = [
    ("n8h6w6c128k64r1s1p0", "wgp-tw6-tr2-cm1-sg1-cg2-st4-rr3-sta0", "stages: row_reuse=3 is for"),
    ("n8h6w6c128k64r3s3p1", "wgp-tw6-tr2-cm1-sg1-cg2-st2-rr3-sta0-dup.none", "stages: row_reuse=3 is for"),
    ("n8h6w6c128k64r3s3p1", "wgp-tw6-tr2-cm1-sg1-cg2-st1-rr3-sta0", "a tile iteration needs 2"),
    ("n8h14w14c512k64r3s3p1", "wgp-tw14-tr3-cm1-sg1-cg4-st2-rr3-sta0", "loads of a producer thread exceed 16"),
]


@pytest.mark.sample("-pr2")
@pytest.mark.parametrize(("spec", "key"), KERNELS)
def test_kernels_are_clean_and_exact(spec: str, key: str) -> None:
    Generated(spec, key).require_exact(1)


@pytest.mark.deep
@pytest.mark.sample(1)
@pytest.mark.parametrize("value", [-8, 7])
def test_padding_beside_extreme_values(value: int) -> None:
    """Anything but zeros beside the image would show."""
    plan = plan_of(*STAGE5, output="int32")
    kernel = Kernel(plan)
    x = np.full((16, 7, 7, 128), value, np.int8)
    w = np.full((64, 3, 3, 128), -8, np.int8)
    buffers = {**kernel.pack(x, w, None), "Out": np.full(kernel.argument("Out").shape, 1 << 30, np.int32)}
    assert not run_cuda(kernel.cuda, kernel.launch, buffers).problems
    assert np.array_equal(kernel.unpack(buffers["Out"]), expected(kernel, x, w, None))


@pytest.mark.parametrize(("spec", "key", "reason"), REFUSED)
def test_what_cannot_be_built_is_refused(spec: str, key: str, reason: str) -> None:
    assert reason in (why_not(plan_of(spec, key)) or "")


def test_rows_of_the_image_alone() -> None:
    plan = plan_of("resnet50.stage5@256", "wgp-tw7-tr2-cm1-cr2-sg1-cg8-st5-rr3-sta0-ig2")
    assert (plan.window, plan.stage_rows, plan.least_stage_rows) == (6, 5, 4)  # rows 0 to 4, then 3 to 6
    assert plan.buffer_bytes == 5 * 2 * 8 * 512 + 512
    assert plan.copies == 5 * plan.row_copies == 10
    assert config_from_key(plan.config.key) == plan.config
    strided = plan_of("resnet50.stage5.down3x3@256", "wgp-tw8-tr4-cm2-sg1-cg8-st3-rr3-la1-sta0")
    assert (strided.window, strided.stage_rows, strided.least_stage_rows) == (9, 8, 7)
    assert why_not(plan) is why_not(strided) is None


@pytest.mark.deep
def test_no_row_of_zeros_is_stored_and_arrivals_are_fewer() -> None:
    rows, joint = (
        _counts(STAGE5[0], key) for key in (STAGE5[1].replace("st2", "st12").replace("rr3", "rr0"), STAGE5[1])
    )
    assert joint["wgmma"] == rows["wgmma"] == 19 * 3 * 4  # of 21 kernel rows over 7 rows, two meet padding alone
    assert rows["bytes"] == 9 * 7 * 16 * 64
    assert joint["bytes"] == 10 * 7 * 16 * 64  # a row twice, for a stage buffer of five
    assert rows["arrivals"] - joint["arrivals"] == (24 - 4) * 4 * 3  # stages, warps; one filled them and two read them
    pieces = 7 * 16 * 4 * 2  # of a row: two stores for each 16 bytes
    assert rows["stores"] - joint["stores"] >= 2 * pieces


def _counts(spec: str, key: str) -> dict[str, int]:
    kernel = Kernel(plan_of(spec, key))
    trace = kernel.trace(blocks=(0,)).trace
    arrivals = of_kind(trace, "mbarrier")
    return {
        "wgmma": len(of_kind(trace, "wgmma")) // 128,
        "bytes": global_bytes_read(trace, 0)[0],
        "arrivals": int(np.count_nonzero(arrivals["mode"] == 1)),
        "stores": len(of_kind(trace, "shared_store")),
    }


@pytest.mark.deep
def test_a_part_given_back_while_it_is_multiplied_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from subbyte.families.wgmma.pipeline.emit import own_rows  # loads TVM: not while tests are collected

    correct = own_rows.OwnRows._release_lane_by_lane

    def early(self: Any, before: bool, where: list[Any]) -> None:
        """Each group's stage behind its own first multiplications, in place of the next one's."""
        if before:
            correct(self, False, where[:1])

    monkeypatch.setattr(own_rows.OwnRows, "_release_lane_by_lane", early)
    run, *_ = Generated("n16h7w7c128k32r3s3p1", STAGE5[1]).run(0)  # built by no other test
    assert "race" in {finding.kind for finding in run.findings}, str(run)


@pytest.mark.deep
def test_rows_above_the_image_left_out_of_the_address_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from subbyte.families.wgmma.pipeline.emit import own_rows

    correct = own_rows.OwnRows._row_address
    monkeypatch.setattr(own_rows.OwnRows, "_row_address", lambda self, row, tap: correct(self, row, tap + 1))
    _, wrong, _ = Generated("n16h7w7c128k40r3s3p1", STAGE5[1]).run(0)
    assert wrong


@pytest.mark.deep
def test_a_row_that_only_some_parts_have_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from subbyte.families.wgmma.pipeline.emit import produce

    correct = produce._rows
    monkeypatch.setattr(produce, "_rows", lambda block, stage: [*correct(block, stage)[:-1], block.plan.stage_rows - 2])
    _, wrong, _ = Generated("n16h7w7c128k48r3s3p1", STAGE5[1]).run(0)
    assert wrong

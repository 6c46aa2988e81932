"""Layers with a stride on wgmma: kept rows given back early, rows that no pass reads, output pixels
taken as one long row; exact and clean in any order, and a part given back too early is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from generated import Generated, plan_of

from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan

CASES = {  # each with the shortest ring there is
    "stride 2": ("n8h9w11c64k96r3s3p1u2", {"tile_width": 6, "consumers_m": 2, "stages": 3, "stagger": 0}),
    "channel groups": ("n8h10w9c128k64r3s3p2u2", {"tile_width": 6, "channel_groups": 2, "stages": 2, "stagger": 0}),
    "two rows": ("n8h12w7c128k128r3s3p1u2", {"tile_width": 4, "tile_rows": 2, "consumers_m": 2, "channel_groups": 2,
                                             "stages": 6, "in_flight": 2, "stagger": 0}),
    "alternating": ("n8h13w8c64k64r3s3p0u2", {"tile_width": 4, "consumers_rows": 2, "stages": 5, "stagger": 0}),
    "stride 1, dilation 2": ("n8h9w6c64k64r3s3p2d2", {"tile_width": 6, "stages": 5, "stagger": 0}),
    "stride 3": ("n8h13w11c64k64r3s2p1u3", {"tile_width": 4, "stages": 3, "stagger": 0}),
    "stride 3, dilation 2": ("n8h13w10c64k64r3s3p2u3d2", {"tile_width": 4, "stages": 5, "stagger": 0}),
    "rows that no pass reads": ("n8h12w14c64k128r2s3p1u3", {"tile_width": 8, "consumers_m": 2, "stages": 3,
                                                            "stagger": 0}),
    "passes over filters": ("n8h8w9c64k128r3s3p1u2", {"tile_width": 6, "m_iterations": 2, "stages": 3, "stagger": 0}),
}  # fmt: skip
FLAT = {
    "one long row": ("n16h9w11c64k96r1s1p0u2", {"tile_width": 8, "stages": 2, "stagger": 0}),
    "stride 3": ("n8h13w5c128k64r1s1p0u3", {"tile_width": 4, "channel_groups": 2, "stages": 3, "row_reuse": 0,
                                            "stagger": 0}),
    "two rows": ("n8h14w14c128k128r1s1p0u2", {"tile_width": 6, "tile_rows": 2, "consumers_m": 2, "stages": 3,
                                              "stagger": 0}),
}  # fmt: skip


def _plan(spec: str, **knobs: Any) -> WgmmaPlan:
    return plan_of(spec, PipelineConfig(**knobs))


def _kernel(spec: str, **knobs: Any) -> Generated:
    return Generated(spec, PipelineConfig(**knobs))


@pytest.mark.sample("two rows")
@pytest.mark.parametrize("name", CASES)
def test_slots_given_back_early_leave_every_sum_exact(name: str) -> None:
    spec, knobs = CASES[name]
    kernel = _kernel(spec, **knobs, row_reuse=2)
    assert kernel.plan.held_stages == knobs["stages"]
    kernel.require_exact(1)


def test_a_shorter_ring_than_that_is_refused() -> None:
    spec, knobs = CASES["two rows"]
    shorter = why_not(_plan(spec, **{**knobs, "stages": 5}, row_reuse=2))
    assert str(shorter).startswith("stages: 5 stages")
    assert str(why_not(_plan(spec, **knobs))).startswith("stages: 6 stages")


def test_a_part_given_back_while_it_is_multiplied_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from subbyte.families.wgmma.pipeline.emit import consume

    correct = consume.Iteration._release_multiplied
    monkeypatch.setattr(
        consume.Iteration, "_release_multiplied", lambda self, tap, group: correct(self, tap + 1, group)
    )
    spec, knobs = CASES["stride 2"]
    run, *_ = _kernel(spec, **knobs, row_reuse=2, load_ahead=1).run(0)  # no other test has built this kernel
    assert "race" in {finding.kind for finding in run.findings}


@pytest.mark.deep
@pytest.mark.parametrize("groups", [1, 2])
def test_rows_that_no_iteration_reads_are_released_when_they_arrive(groups: int) -> None:
    kernel = _kernel("n8h12w14c64k128r2s3p1u3", tile_width=8, consumers_m=groups, stages=3, stagger=0)
    assert kernel.plan.meets_unread_rows
    kernel.require_exact(1)


@pytest.mark.deep
@pytest.mark.parametrize("name", FLAT)
def test_output_pixels_as_one_long_row(name: str) -> None:
    spec, knobs = FLAT[name]
    kernel = _kernel(spec, **knobs, pixels=1)
    assert kernel.plan.flat
    kernel.require_exact(1)


@pytest.mark.parametrize("spec", ["n8h7w7c64k64r3s3p1u2", "n8h7w7c64k64r1s1p0"])
def test_only_1x1_kernels_with_a_stride_are_flattened(spec: str) -> None:
    assert str(why_not(_plan(spec, tile_width=4, stages=3, pixels=1))).startswith("same program: pixels=flat")


@pytest.mark.parametrize("width", [1, 7, 13, 28, 56, 113])
def test_a_pixels_row_is_found_without_a_division(width: int) -> None:
    size = 2 * width - 1
    plan = _plan(f"n8h{size}w{size}c64k64r1s1p0u2", tile_width=28, pixels=1)
    assert plan.workload.q == width
    factor, shift = plan.row_division
    pixels = np.arange(plan.input_size[0] * plan.input_size[1], dtype=np.uint64)
    assert factor
    assert int(pixels[-1]) * factor < 1 << 32
    assert np.array_equal(pixels * factor >> shift, pixels // width)


def test_every_kernel_row_in_padding_somewhere_leaves_no_late_start() -> None:
    plan = _plan("n8h13w11c64k64r3s1p2u2", tile_width=4, consumers_n=2, stages=4, stagger=2)
    assert str(why_not(plan)).startswith("padding: every kernel row")

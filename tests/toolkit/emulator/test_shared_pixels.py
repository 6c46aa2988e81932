"""Kernels whose tiles join groups of images, with two producers or two tiles of output channels, or whose warpgroups
divide the rows of a pass: clean and exact in any order, and faults in them are found."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from generated import Generated, plan_of

from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.pipeline.config import PipelineConfig

ROUND = {"channel_groups": 2, "row_reuse": 0}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "joined": ("n24h5w5c64k64r1s1p0", {"tile_width": 10, "segments": 3, "stages": 3, "stagger": 0, "pixels": 2}),
    "joined, strided": (
        "n16h6w6c128k64r1s1p0u2",
        {"tile_width": 8, "segments": 2, "stages": 3, "stagger": 0, "pixels": 2, **ROUND},
    ),
    "two producers": (
        "n24h5w5c128k128r1s1p0",
        {"tile_width": 8, "tile_rows": 2, "segments": 3, "stages": 6, "consumers_m": 2, "stagger": 2,
         "producers": 2, "pixels": 2, **ROUND},
    ),
    "two producers, padding": ("n8h6w6c64k64r3s3p1", {"tile_width": 6, "stages": 5, "producers": 2}),
    "two tiles": (
        "n8h6w6c64k256r3s3p1",
        {"tile_width": 6, "tile_rows": 2, "stages": 6, "consumers_m": 2, "tiles_m": 2, "in_flight": 2},
    ),
    "two tiles, joined": (
        "n24h5w5c128k320r1s1p0",
        {"tile_width": 8, "segments": 3, "stages": 4, "m_iterations": 2, "tiles_m": 2, "stagger": 0, "pixels": 2,
         "unroll": 2},
    ),
    "two groups, of three": (
        "n24h5w5c64k64r3s3p1", {"tile_width": 5, "tile_rows": 1, "segments": 2, "stages": 4, "stagger": 0, "pixels": 4},
    ),
    "rows of a pass divided": (
        "n8h4w9c256k64r1s1p0",
        {"tile_width": 6, "consumers_rows": 2, "stages": 8, "stagger": 0, **ROUND},
    ),
}  # fmt: skip
FIRST_GROUP = "((((int)blockIdx.y) >> 1) * 2)"
"""Of a place, where the last one may reach beyond the batch."""
FAULTS = [
    ("joined", "fence.proxy.async.shared::cta;", "", "missing_proxy_fence"),
    ("two producers", "mbarrier.arrive.shared.b64 _, [%0];", "", "deadlock"),
    ("two tiles, joined", "griddepcontrol.wait;", "", "missing_dependency_wait"),
    ("two groups, of three", f"min({FIRST_GROUP}, 1)", FIRST_GROUP, "out_of_bounds"),
]
REFUSED = [
    ("joined", {"layout": "nhwc"}, "nhwcnc"),
    ("two producers", {"producers": 3, "consumers_m": 1, "stagger": 0}, "allowed: 1, 2"),
    ("two tiles", {"tiles_m": 3, "consumers_m": 1}, "allowed: 1, 2"),
    ("two producers, padding", {"pixels": 2}, "pixels=flat_batch"),
    ("two groups, of three", {"pixels": 6}, "4 groups of pixels exceed 3"),
]


@cache
def _kernel(name: str) -> Generated:
    spec, values = CASES[name]
    return Generated(spec, PipelineConfig(**values))


@pytest.mark.sample("two producers, padding")
@pytest.mark.parametrize("name", CASES)
def test_generated_kernels_are_clean_and_exact(name: str) -> None:
    _kernel(name).require_exact(1)


@pytest.mark.deep
@pytest.mark.parametrize(("name", "old", "new", "found"), FAULTS)
def test_faults_in_generated_kernels_are_found(name: str, old: str, new: str, found: str) -> None:
    _kernel(name).require_found(old, new, found)


@pytest.mark.deep
def test_a_pass_gives_back_no_more_rows_than_a_warp_has_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(dilation: int) -> tuple[str, PipelineConfig]:
        window = 2 * dilation + 1
        values = {"tile_width": 2, "stages": 2 * window, "stagger": 0, **ROUND}
        return f"n8h{window + 1}w2c128k64r3s1p0d{dilation}", PipelineConfig(**values)

    Generated(*rows(15)).require_exact(1)
    assert "a tile iteration of 33 rows" in str(why_not(plan_of(*rows(16))))
    monkeypatch.setattr("generated.why_not", lambda _: None)
    Generated(*rows(16)).require_found("", "", "deadlock")  # what the rule is for


@pytest.mark.parametrize(("name", "changes", "reason"), REFUSED)
def test_combinations_without_meaning_are_refused(name: str, changes: dict[str, Any], reason: str) -> None:
    spec, values = CASES[name]
    assert reason in str(why_not(plan_of(spec, PipelineConfig(**{**values, **changes}))))

"""Kernels whose tiles join groups of images, with two producers or two tiles of output channels, or whose warpgroups
divide the rows of a pass: clean and exact in any order, and faults in them are found."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from generated import Generated, plan_of

from subbyte.families.wgmma.config import WarpgroupConfig
from subbyte.families.wgmma.rules import why_not_warpgroup

pytest.importorskip("tvm")

ROUND = {"channel_groups": 2, "keep_rows": 0}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "joined": ("n24h5w5c64k64r1s1p0", {"tile_width": 10, "segments": 3, "ring": 3, "stagger": 0, "joined": 1}),
    "joined, strided": (
        "n16h6w6c128k64r1s1p0u2",
        {"tile_width": 8, "segments": 2, "ring": 3, "stagger": 0, "flatten": 1, "joined": 1, **ROUND},
    ),
    "two producers": (
        "n24h5w5c128k128r1s1p0",
        {"tile_width": 8, "tile_rows": 2, "segments": 3, "ring": 6, "groups_m": 2, "stagger": 2, "producers": 2,
         "joined": 1, **ROUND},
    ),
    "two producers, padding": ("n8h6w6c64k64r3s3p1", {"tile_width": 6, "ring": 5, "producers": 2}),
    "two tiles": (
        "n8h6w6c64k256r3s3p1",
        {"tile_width": 6, "tile_rows": 2, "ring": 6, "groups_m": 2, "tiles_m": 2, "in_flight": 2},
    ),
    "two tiles, joined": (
        "n24h5w5c128k320r1s1p0",
        {"tile_width": 8, "segments": 3, "ring": 4, "filter_passes": 2, "tiles_m": 2, "stagger": 0, "joined": 1,
         "unroll": 2},
    ),
    "rows of a pass divided": (
        "n8h4w9c256k64r1s1p0",
        {"tile_width": 6, "groups_y": 2, "ring": 8, "stagger": 0, **ROUND},
    ),
    "two producers, strided": (
        "n16h6w6c128k64r1s1p0u2",
        {"tile_width": 8, "segments": 2, "ring": 4, "stagger": 0, "producers": 2, "flatten": 1, "joined": 1, **ROUND},
    ),
}  # fmt: skip
FAULTS = [
    ("joined", "fence.proxy.async.shared::cta;", "", "missing_proxy_fence"),
    ("two producers", "mbarrier.arrive.shared.b64 _, [%0];", "", "deadlock"),
    ("two tiles, joined", "griddepcontrol.wait;", "", "missing_dependency_wait"),
]
REFUSED = [
    ("joined", {"layout": "nhwc"}, "nhwcnc"),
    ("two producers", {"producers": 3, "groups_m": 1, "stagger": 0}, "allowed: 1, 2"),
    ("two tiles", {"tiles_m": 3, "groups_m": 1}, "allowed: 1, 2"),
    ("two tiles", {"weight_ring": 4}, "weight_ring=0"),
    ("two producers, padding", {"joined": 1}, "joined"),
]


@cache
def _kernel(name: str) -> Generated:
    spec, values = CASES[name]
    return Generated(spec, WarpgroupConfig(**values))


@pytest.mark.parametrize("name", CASES)
def test_generated_kernels_are_clean_and_exact(name: str) -> None:
    _kernel(name).require_exact(2)


@pytest.mark.parametrize(("name", "old", "new", "found"), FAULTS)
def test_faults_in_generated_kernels_are_found(name: str, old: str, new: str, found: str) -> None:
    _kernel(name).require_found(old, new, found)


def test_a_pass_gives_back_no_more_rows_than_a_warp_has_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(dilation: int) -> tuple[str, WarpgroupConfig]:
        window = 2 * dilation + 1
        values = {"tile_width": 2, "ring": 2 * window, "stagger": 0, **ROUND}
        return f"n8h{window + 1}w2c128k64r3s1p0d{dilation}", WarpgroupConfig(**values)

    Generated(*rows(15)).require_exact(1)
    assert "a pass of 33 rows" in str(why_not_warpgroup(plan_of(*rows(16))))
    monkeypatch.setattr("generated.why_not_warpgroup", lambda _: None)
    Generated(*rows(16)).require_found("", "", "deadlock")  # what the rule is for


@pytest.mark.parametrize(("name", "changes", "reason"), REFUSED)
def test_combinations_without_meaning_are_refused(name: str, changes: dict[str, Any], reason: str) -> None:
    spec, values = CASES[name]
    assert reason in str(why_not_warpgroup(plan_of(spec, WarpgroupConfig(**{**values, **changes}))))

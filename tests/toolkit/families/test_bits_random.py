"""Random layers and chains on bit planes: kept cases of each family, and all of a run of 330 (`make test-deep`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from subbyte.families import config_from_key
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.workload import workload

sys.path.append(str(Path(__file__).parent))
from random_bits import Case, checked, drawn

KEPT = {
    "a chain that adds sums": (
        ("n4h9w2c130k96r2s1p1u2d3:w4a1:offset.bipolar:minus", "bits-tr4-oc32-co1", "bipolar1+keep", "sm_90a"),
        ("n4h4w2c96k96r3s3p1:w2a1:signed.bipolar", "bits-tr2-oc64-co1-tu2", "bipolar1+add96", "sm_90a"),
    ),
    "pooled": (("n2h10w12c40k63r1s1p0d2:w1a1", "bits-tr4-oc32-co4-tu2", "bipolar1+pool2", "sm_90a"),),
    "products of warps": (
        ("n1h10w5c127k63r3s1p2u4:w2a1:unsigned.unsigned", "bmma-brw2-bcw2-wrt4-wct4-ch1-ri1-cmb.shared", "uint1",
         "sm_90a"),
    ),
    "a matrix product of words": (
        ("gemm28x63x33:w2a1:signed.unsigned", "popc-brw2-bcw1-wrt2-wct8-ch1-ri0-direct", "uint1", "sm_75"),
    ),
}  # fmt: skip
"""Drawn before, and kept: layer, configuration, output and architecture of each kernel."""
ALL, TOGETHER = 330, 10


def case_of(name: str) -> Case:
    """A kept case as it was drawn."""
    plans = [make_plan(workload(spec), config_from_key(key), target, output, None, "fixed")
             for spec, key, output, target in KEPT[name]]  # fmt: skip
    return Case(155, tuple(plans), (None, 0)[: len(plans)])


@pytest.mark.parametrize("name", KEPT)
def test_a_random_case_is_exact(name: str) -> None:
    assert checked(case_of(name)) > 0


@pytest.mark.deep
@pytest.mark.parametrize("first", range(0, ALL, TOGETHER))
def test_random_cases_are_exact(first: int) -> None:
    cases = [drawn(seed) for seed in range(first, first + TOGETHER)]
    assert sum(checked(case) for case in cases if case is not None) > 0


def test_other_weights_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = Kernel.pack

    def wrong(self: Kernel, *given: Any) -> Any:
        words = dict(pack(self, *given))
        words["Wt"] = ~words["Wt"]
        return words

    monkeypatch.setattr(Kernel, "pack", wrong)
    with pytest.raises(AssertionError, match="values are wrong: seed 155: gemm28x63x33"):
        checked(case_of("a matrix product of words"))

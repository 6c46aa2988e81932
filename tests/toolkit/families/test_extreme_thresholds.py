"""Thresholds at and beyond the ends of what sums can reach, in every family on bit planes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from generated_bits import GeneratedBits
from generated_planes import GeneratedPlanes

from subbyte.kernel import Kernel
from subbyte.kernel.execute import random_operands
from subbyte.numerics import Thresholds
from subbyte.numerics.reference import accumulator_bound
from subbyte.numerics.thresholds import ALWAYS, NEVER

_WIDE = "n8h1w8c100k96r1s1p0:w2a3o2:bipolar.bipolar.bipolar"
_ONE = "n8h3w4c64k64r3s3p1:w1a1"
KERNELS = {
    "a sum for each register": (GeneratedBits, (_WIDE,), {"channels": 32, "consumers": 1}),
    "two sums a register": (GeneratedBits, (_ONE,), {"consumers": 1}),
    "warps": (GeneratedPlanes, ("bmma", "sm_80", _WIDE), {"blk_col_warps": 1, "reorder_inner": 0}),
    "popcounts": (GeneratedPlanes, ("popc", "sm_80", _WIDE), {"blk_col_warps": 1, "reorder_inner": 0}),
}


def extreme_operands(kernel: Kernel) -> tuple[Any, Any, Thresholds]:
    """Values that reach the largest and the least sum there is, and thresholds on both sides of either."""
    wl = kernel.workload
    x, w, _ = random_operands(kernel, 0)
    sides = [sorted(one.values) for one in (wl.precision.activations, wl.precision.weights)]
    for values, ends in zip((x, w), sides, strict=True):
        values[0], values[1] = ends[-1], ends[0]
    bound = accumulator_bound(wl)
    ends = [ALWAYS, ALWAYS + 1, -bound - 1, -bound, 1 - bound, 0, bound, bound + 1, NEVER - 1, NEVER]
    steps = (1 << wl.precision.output.bits) - 1
    rising = list(itertools.combinations_with_replacement(ends, steps))
    drawn = np.random.default_rng(3).permutation(len(rising))
    columns = [rising[drawn[index % len(drawn)]] for index in range(wl.k)]
    flip = np.arange(wl.k) % 3 == 2
    levels = [column[::-1] if turned else column for column, turned in zip(columns, flip, strict=True)]
    return x, w, Thresholds(np.array(levels, np.int32).T.copy(), flip, wl.precision.output)


@pytest.mark.sample("two sums")
@pytest.mark.parametrize("name", KERNELS)
def test_thresholds_beyond_all_sums_are_passed_always_or_never(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, arguments, knobs = KERNELS[name]
    made = kind(*arguments, **knobs)
    monkeypatch.setattr(kind, "operands", lambda self, kernel: extreme_operands(kernel))
    made.require_exact(1)


@pytest.mark.parametrize(("beta", "level"), [(1e300, ALWAYS), (-1e300, NEVER), (2.0**63, ALWAYS), (-(2.0**63), NEVER)])
def test_a_normalization_beyond_64_bits_is_passed_always_or_never(beta: float, level: int) -> None:
    made = Thresholds.from_batch_norm([1.0, -1.0, 0.0], beta, 0.0, 1.0)
    assert made.flip.tolist() == [False, True, False]
    turned = NEVER if level == ALWAYS else ALWAYS
    assert made.levels.tolist() == [[level, turned, level]]
    sums = np.array([[-(1 << 31)] * 3, [NEVER - 1] * 3], np.int32)
    assert set(made.apply(sums).reshape(-1).tolist()) == {1 if beta > 0 else -1}

"""Kernels drawn at random from random spaces equal the reference; the seed of a failure is in the test's name."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from subbyte.device.arch import ARCHS
from subbyte.errors import InvalidInput
from subbyte.families import Space, space
from subbyte.families.mma.plan import plan
from subbyte.kernel import Kernel
from subbyte.workload import ConvWorkload
from subbyte.workload.coverage import warp_limit

SEEDS = (0, 1, 2, 3, 4, 6, 7, 8, 11, 13, 14, 15)
"""Chosen so that every switch and architecture is met, as the last test asks."""


def _workload(rng: random.Random) -> ConvWorkload:
    """A small convolution of any covered kind."""
    while True:
        r, s = (rng.choice((1, 1, 2, 3, 3, 3, 4, 5, 6, 7)) for _ in range(2))
        sizes = rng.randint(1, 10), rng.randint(1, 13), rng.randint(1, 13)
        channels = rng.choice((3, 32, 40, 64, 128, 256)), rng.choice((1, 32, 64, 72, 128))
        try:
            workload = ConvWorkload(*sizes, *channels, r, s, rng.randint(0, 3), rng.choice((1, 2)), rng.choice((1, 2)))
        except InvalidInput:
            continue  # the kernel does not fit the input
        if workload.macs < 3_000_000:
            return workload


def _drawn(rng: random.Random) -> tuple[Space, int]:
    """A space with random switches, and one of its valid indices."""
    workload = _workload(rng)
    assert warp_limit(workload) is None
    fixed = {
        "duplicate_aware": rng.choice(("none", "shared", "full", "full")),
        "register_packing": rng.choice((True, False)),
        "layout": rng.choice(("nhwc", "nhwcnc")),
    }
    candidates = space(workload, rng.choice(list(ARCHS)), rng.choice(("paper", "extended")), **fixed)
    while True:
        index = rng.randrange(len(candidates))
        if candidates.check(index) is None:
            return candidates, index


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_kernel(exact: Callable[..., Any], seed: int) -> None:
    rng = random.Random(seed)
    candidates, index = _drawn(rng)
    output = rng.choice(("int4", "int4", "int32"))
    planned = plan(candidates.workload, candidates.config(index), candidates.arch, output=output)
    exact(Kernel(planned), seed=seed)


def test_sweep_meets_every_switch_architecture_and_most_knob_values() -> None:
    drawn = [_drawn(random.Random(seed)) for seed in SEEDS]
    configs = [candidates.config(index) for candidates, index in drawn]
    assert {candidates.arch.name for candidates, _ in drawn} == set(ARCHS)
    assert {candidates.kind for candidates, _ in drawn} == {"paper", "extended"}
    assert len({(c.duplicate_aware, c.register_packing, c.layout) for c in configs}) >= 10
    assert {c.stages for c in configs} >= {2, 3}
    assert any(c.split_channels > 1 for c in configs)
    assert {c.reorder_inner for c in configs} == {0, 1}
    assert any(c.warp_row_tiles in (7, 14) for c in configs)

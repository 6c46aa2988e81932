"""Faults put into real kernels, one at a time: each is caught, and by the check that should catch it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sampling import one_of_each

from subbyte.emulator import require_clean
from subbyte.errors import WrongResult
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import plan
from subbyte.kernel import Kernel
from subbyte.kernel.execute import expected, random_operands
from subbyte.numerics import Requantization
from subbyte.workload import ConvWorkload

Emulate = Callable[..., tuple[Any, Any]]
Operands = tuple[Any, Any, Requantization | None]
MUTATIONS = tomllib.loads((Path(__file__).parents[2] / "wrong" / "kernel_mutations.toml").read_text())["mutation"]
WORKLOAD = ConvWorkload(3, 7, 7, 96, 40, 3, 3, 1)
"""Three chunks of channels, and edges in both directions: no part of a tile's work is superfluous."""
KERNELS: dict[str, tuple[MmaConfig, str, str]] = {
    "base": (MmaConfig(2, 1, 2, 4), "sm_80", "int4"),
    "relu": (MmaConfig(2, 1, 2, 4), "sm_80", "int4"),
    "lowered": (MmaConfig(2, 1, 2, 4, duplicate_aware="none"), "sm_80", "int4"),
    "unpacked": (MmaConfig(2, 1, 2, 4), "sm_90a", "int4"),
    "unpacked sums": (MmaConfig(2, 1, 2, 4), "sm_90a", "int32"),
    "three stages": (MmaConfig(2, 1, 2, 4, stages=3), "sm_80", "int4"),
    "split": (MmaConfig(1, 1, 2, 4, chunk=3, split_channels=3), "sm_80", "int4"),
    "through shared memory": (MmaConfig(2, 1, 2, 4, register_packing=False), "sm_80", "int4"),
}


@lru_cache(maxsize=16)
def _kernel(name: str) -> tuple[Kernel, Operands]:
    config, arch, output = KERNELS[name]
    kernel = Kernel(plan(WORKLOAD, config, arch, output=output))
    x, w, requant = random_operands(kernel, 0)
    if requant is not None:
        # Twice the usual scale, so that sums beyond the int4 range and its clip are common.
        loud = requant.multiplier * 2
        requant = Requantization(requant.bias, loud, requant.shift, (0, 7) if name == "relu" else (-8, 7))
    return kernel.for_requantization(requant), (x, w, requant)


def mutate(text: str, mutation: dict[str, Any]) -> str:
    """``text`` with the chosen match of the mutation's pattern replaced; fails when nothing changed."""
    matches = list(re.finditer(mutation["old"], text))
    assert matches, f"{mutation['name']}: {mutation['old']} is not in the kernel any more"
    match = matches[mutation.get("which", 0)]
    changed = text[: match.start()] + match.expand(mutation["new"]) + text[match.end() :]
    assert changed != text
    return changed


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_without_fault_is_clean_and_right(emulate: Emulate, name: str) -> None:
    kernel, operands = _kernel(name)
    run, words = emulate(kernel, operands)
    require_clean(run)
    np.testing.assert_array_equal(kernel.unpack(words), expected(kernel, *operands))


@pytest.mark.sample(*one_of_each(MUTATIONS, "caught", "kernel"))
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation["name"])
def test_fault_is_caught(emulate: Emulate, mutation: dict[str, Any]) -> None:
    kernel, operands = _kernel(mutation["kernel"])
    text, caught = mutate(kernel.cuda, mutation), mutation["caught"]
    run, words = emulate(kernel, operands, text, max_steps=100_000)
    wrong = int((kernel.unpack(words) != expected(kernel, *operands)).sum())
    if caught == "values":
        assert run.problems == ()
        assert wrong > 0
        return
    if caught in ("unwritten", "rewritten"):
        assert getattr(run, caught)["Out"] > 0
    else:
        assert caught in {finding.kind for finding in run.findings}, str(run)
    with pytest.raises(WrongResult, match="is not clean"):
        require_clean(run)


def test_faults_cover_every_part_of_the_kernel() -> None:
    kinds = {mutation["caught"] for mutation in MUTATIONS}
    assert {"values", "race", "pending_copy", "out_of_bounds", "unwritten", "rewritten", "divergent_barrier"} <= kinds
    assert {mutation["kernel"] for mutation in MUTATIONS} == set(KERNELS)
    assert len({mutation["name"] for mutation in MUTATIONS}) == len(MUTATIONS)

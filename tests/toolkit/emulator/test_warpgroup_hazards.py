"""A kernel of two clustered blocks with everything Hopper has: clean in any order, and refused with any fault in it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sampling import one_of_each

from subbyte.device.launch import Argument, Launch
from subbyte.emulator import EmulatorRun, require_clean, run_cuda
from subbyte.errors import WrongResult

CLEAN = (Path(__file__).parent / "warpgroup.cu").read_text()
WRONG = Path(__file__).parents[2] / "wrong" / "warpgroup_mutations.toml"
MUTATIONS = tomllib.loads(WRONG.read_text())["mutation"]
FAULTS = [m for m in MUTATIONS if m["expect"] != "clean"]
STEPS = 6
LAUNCH = Launch(
    "warpgroup_kernel",
    (4, 1, 1),
    (256, 1, 1),
    13344,
    (
        Argument("A", "uint32", (2, STEPS, 128, 4), "in"),
        Argument("B", "uint32", (16, 2 * STEPS * 8), "in"),
        Argument("Out", "uint32", (2, 128, 8), "out"),
    ),
)


def _expected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Both clusters compute the same product: registers of the accumulator, uint32 [2, 128, 8]."""
    thread, register = np.arange(128)[:, None], np.arange(4)[None]
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (register % 2)
    first = 16 * (register // 2) + 4 * (thread % 4)
    left = np.zeros((64, 2 * STEPS, 32), np.int64)
    for byte in range(4):
        left[row, :, first + byte] = a.view(np.int8).reshape(2 * STEPS, 128, 4, 4)[..., byte].transpose(1, 2, 0)
    product = np.einsum("msk,nsk->mn", left, b.view(np.int8).reshape(16, 2 * STEPS, 32).astype(np.int64))
    i = np.arange(8)[None]
    sums = product[thread // 32 * 16 + thread % 32 // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (thread % 4) + i % 2]
    return np.broadcast_to(sums.astype(np.uint32), (2, 128, 8))


def _run(text: str, **options: object) -> tuple[EmulatorRun, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 2**32, argument.shape, np.uint32) for argument in LAUNCH.arguments[:2])
    out = np.full((2, 128, 8), 0xDEADBEEF, np.uint32)
    run = run_cuda(text, LAUNCH, {"A": a, "B": b, "Out": out}, max_steps=20_000, **options)  # type: ignore[arg-type]
    return run, out, _expected(a, b)


@pytest.mark.parametrize("seed", range(12))
def test_clean_kernel_is_clean_in_any_order(seed: int) -> None:
    run, out, expected = _run(CLEAN, seed=seed)
    require_clean(run)
    np.testing.assert_array_equal(out, expected)
    assert (run.unwritten, run.rewritten) == ({"Out": 0}, {"Out": 0})


def test_unchecked_run_gives_the_same_output() -> None:
    _, out, expected = _run(CLEAN, check=False)
    np.testing.assert_array_equal(out, expected)


def mutate(text: str, mutation: dict[str, Any]) -> str:
    """``text`` with the one match of the mutation's pattern replaced."""
    changed, count = re.subn(mutation["old"], mutation["new"], text)
    assert count == int(mutation.get("count", 1)), f"{mutation['name']}: {count} matches"
    return changed


@pytest.mark.sample(3)
@pytest.mark.parametrize("mutation", [m for m in MUTATIONS if m["expect"] == "clean"], ids=lambda m: m["name"])
def test_correct_variant_is_accepted(mutation: dict[str, Any]) -> None:
    for seed in range(3):
        run, out, expected = _run(mutate(CLEAN, mutation), seed=seed)
        require_clean(run)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.sample(*one_of_each(FAULTS, "expect"))
@pytest.mark.parametrize("mutation", FAULTS, ids=lambda m: m["name"])
def test_fault_is_found_in_any_order(mutation: dict[str, Any]) -> None:
    text, expect = mutate(CLEAN, mutation), mutation["expect"]
    kinds = (expect,) if isinstance(expect, str) else expect  # which one comes first depends on the order of events
    for seed in range(4):
        run, _, _ = _run(text, seed=seed)
        found = [finding for finding in run.findings if finding.kind in kinds]
        assert found, f"seed {seed}: {run}"
        assert any(mutation["says"] in finding.message for finding in found), str(run)
        assert found[0].source in text
        with pytest.raises(WrongResult, match="warpgroup_kernel is not clean"):
            require_clean(run)


@pytest.mark.parametrize("name", ["missing arrival of the producer", "one warp misses a multiplication"])
def test_unchecked_run_that_cannot_end_is_stopped(name: str) -> None:
    mutation = next(m for m in MUTATIONS if m["name"] == name)
    with pytest.raises(WrongResult, match="did not end"):
        _run(mutate(CLEAN, mutation), check=False)


def test_multiplication_may_happen_late() -> None:
    """Without the wait the sums are stored before the last multiplications in some order of events."""
    text = CLEAN.replace('asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");', "")
    assert any((out != expected).any() for _, out, expected in (_run(text, seed=seed) for seed in range(8)))

"""The emulator accepts a clean kernel and refuses every fault put into it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from sampling import one_of_each

from subbyte.device.launch import Argument, Launch
from subbyte.emulator import EmulatorRun, require_clean, run_cuda
from subbyte.errors import InvalidInput, WrongResult

CLEAN = (Path(__file__).parent / "pipeline.cu").read_text()
MUTATIONS = tomllib.loads((Path(__file__).parents[2] / "wrong" / "emulator_mutations.toml").read_text())["mutation"]
FAULTS = [m for m in MUTATIONS if m["expect"] != "clean"]
LAUNCH = Launch(
    "pipeline_kernel",
    (2, 1, 1),
    (64, 1, 1),
    2048,
    (Argument("A", "uint32", (2, 4, 64, 4), "in"), Argument("Out", "uint32", (2, 64), "out")),
)


def _input() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2**32, (2, 4, 64, 4), np.uint32)


def _expected(a: np.ndarray) -> np.ndarray:
    out = np.empty((2, 64), np.uint32)
    sums = [[sum(int(a[b, k, (t + 37) % 64, k]) for k in range(4)) for t in range(64)] for b in range(2)]
    for b in range(2):
        fours = [sum(sums[b][t // 4 * 4 : t // 4 * 4 + 4]) for t in range(64)]
        for t in range(64):
            out[b, t] = (fours[t] + 3 * fours[t ^ 4]) % 2**32
    return out


def _run(text: str, **options: object) -> tuple[EmulatorRun, np.ndarray, np.ndarray]:
    a, out = _input(), np.full((2, 64), 0xDEADBEEF, np.uint32)
    return run_cuda(text, LAUNCH, {"A": a, "Out": out}, **options), a, out  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(4))
def test_clean_kernel_is_clean_in_any_order(seed: int) -> None:
    run, a, out = _run(CLEAN, seed=seed)
    require_clean(run)
    np.testing.assert_array_equal(out, _expected(a))
    assert (run.unwritten, run.rewritten) == ({"Out": 0}, {"Out": 0})
    assert "no findings" in str(run)
    assert "no findings" in run._repr_html_()


def test_unchecked_run_gives_the_same_output() -> None:
    run, a, out = _run(CLEAN, check=False)
    np.testing.assert_array_equal(out, _expected(a))
    with pytest.raises(InvalidInput, match="check=True"):
        require_clean(run)


@pytest.mark.parametrize("mutation", [m for m in MUTATIONS if m["expect"] == "clean"], ids=lambda m: m["name"])
def test_correct_variant_is_accepted(mutation: dict[str, str]) -> None:
    assert CLEAN.count(mutation["old"]) == 1
    run, _, _ = _run(CLEAN.replace(mutation["old"], mutation["new"]), seed=1)
    require_clean(run)


@pytest.mark.sample(*one_of_each(FAULTS, "expect"))
@pytest.mark.parametrize("mutation", FAULTS, ids=lambda m: m["name"])
def test_fault_is_found(mutation: dict[str, str]) -> None:
    assert CLEAN.count(mutation["old"]) == 1
    text = CLEAN.replace(mutation["old"], mutation["new"])
    run, _, _ = _run(text, max_steps=2_000)
    expect = mutation["expect"]
    if expect in ("unwritten", "rewritten"):
        assert getattr(run, expect)["Out"] > 0
        assert not run.findings
    else:
        found = next((f for f in run.findings if f.kind == expect), None)
        assert found is not None, str(run)
        assert found.source in text
        assert found.line == 0 or found.source == text.split("\n")[found.line - 1].strip()
    with pytest.raises(WrongResult, match="pipeline_kernel is not clean"):
        require_clean(run)


@pytest.mark.parametrize("kind", ["deadlock", "step_limit"])
def test_unchecked_run_that_cannot_end_is_stopped(kind: str) -> None:
    mutation = next(m for m in MUTATIONS if m["expect"] == kind)
    with pytest.raises(WrongResult, match="did not end"):
        _run(CLEAN.replace(mutation["old"], mutation["new"]), check=False, max_steps=2_000)


def test_missing_wait_reads_old_data() -> None:
    mutation = next(m for m in MUTATIONS if m["name"].startswith("missing wait"))
    _, a, out = _run(CLEAN.replace(mutation["old"], mutation["new"]))
    assert (out != _expected(a)).any()

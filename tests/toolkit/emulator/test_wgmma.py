"""wgmma against numpy: both kinds, widths of every kind, A in registers and in shared memory, every layout
of a descriptor."""

from __future__ import annotations

import numpy as np
import pytest
from wgmma_cases import CASES, COLUMNS, Wgmma

from subbyte.emulator import require_clean, run_cuda
from subbyte.emulator.ptx import wgmma
from subbyte.errors import Unsupported


def _run(case: Wgmma, text: str, seed: int = 0, check: bool = True) -> tuple[np.ndarray, np.ndarray]:
    inputs, expected = case.operands(seed)
    out = np.zeros_like(expected)
    run = run_cuda(text, case.launch(), {**inputs, "Out": out}, check=check, max_steps=10_000)
    if check:
        require_clean(run)
    return out, expected


WIDE = (48, 80, 96, 112, 144, 160, 176, 192, 208, 240)
"""Widths that differ from the others in their number alone; the GPU multiplies with all of them."""


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", [case for case in CASES if case.n not in WIDE], ids=str)
def test_one_multiplication(case: Wgmma) -> None:
    np.testing.assert_array_equal(*_run(case, case.text(), seed=case.n))


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", CASES[-5:], ids=str)
def test_unchecked_runs_give_the_same(case: Wgmma) -> None:
    np.testing.assert_array_equal(*_run(case, case.text(), check=False))


@pytest.mark.parametrize(
    ("opcode", "message"),
    [
        ("m64n40k32.s32.s8.s8", "does not exist"),
        ("m64n16k64.s32.s8.s8", "does not exist"),
        ("m64n16k256.s32.b1.b1", "does not exist"),
        ("m64n16k256.s32.b1.b1.xor.popc", r"xor\.popc"),
        ("m64n16k16.f32.f16.f16", r"f32\.f16\.f16"),
        ("m64n32k32.s32.s8.s8", "takes 16 accumulators and 4 registers of A; got 8 and 4"),
    ],
)
def test_other_instructions_are_refused_by_name(opcode: str, message: str) -> None:
    case = Wgmma("s8.s8", 16)
    with pytest.raises(Unsupported, match=message):
        _run(case, case.text(f"wgmma.mma_async.sync.aligned.{opcode}"))


def test_widths_are_those_of_the_isa() -> None:
    assert wgmma.COLUMNS == COLUMNS

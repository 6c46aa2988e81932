"""Running a kernel on the CPU emulator with every check, for the tests of this folder."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from subbyte.emulator import EmulatorRun, require_clean, run_cuda
from subbyte.kernel import Kernel
from subbyte.kernel.execute import expected, random_operands
from subbyte.numerics import Requantization

sys.path.append(str(Path(__file__).parent))  # exported.py

POISON = 0x5A5A5A5A
"""What output memory holds before a run: a kernel that leaves a word alone is found out."""
Operands = tuple[NDArray[np.int8], NDArray[np.int8], Requantization | None]
Emulate = Callable[..., tuple[EmulatorRun, NDArray[Any]]]
Exact = Callable[..., NDArray[Any]]


@pytest.fixture(scope="session", autouse=True)
def _compiler() -> None:
    if not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("the emulator needs g++ or clang++")


def _emulate(
    kernel: Kernel, operands: Operands, text: str | None = None, **options: Any
) -> tuple[EmulatorRun, NDArray[Any]]:
    argument = kernel.argument("Out")
    words = np.full(argument.shape, POISON, argument.dtype)
    buffers = {**kernel.pack(*operands), "Out": words}
    return run_cuda(kernel.cuda if text is None else text, kernel.launch, buffers, **options), words


def _exact(kernel: Kernel, operands: Operands | None = None, seed: int = 0) -> NDArray[Any]:
    x, w, requant = random_operands(kernel, seed) if operands is None else operands
    kernel = kernel.for_requantization(requant)
    run, words = _emulate(kernel, (x, w, requant), seed=seed)
    require_clean(run)
    np.testing.assert_array_equal(kernel.unpack(words), expected(kernel, x, w, requant), err_msg=repr(kernel))
    return words


@pytest.fixture(scope="session")
def emulate() -> Emulate:
    """``emulate(kernel, (x, w, requant), text=None, **run_cuda options)``: the run and the output words."""
    return _emulate


@pytest.fixture(scope="session")
def exact() -> Exact:
    """``exact(kernel, operands=None, seed=0)``: output words of a run without findings that equals the reference.

    Random full-range operands unless given; the kernel takes the clip and form that the requantization needs.
    """
    return _exact

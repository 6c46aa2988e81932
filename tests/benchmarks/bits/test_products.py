"""Deep matrix products: which kernels are tried, and what they are compared with."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.bits import products
from subbyte.families import RingConfig
from subbyte.kernel.execute import run_outputs

KEY = "bitring-oc64-co1-dp4-sg2"


@pytest.fixture(autouse=True)
def _numpy_in_place_of_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = SimpleNamespace(free_all_blocks=lambda: None)
    names: dict[str, Any] = {**vars(np), "get_default_memory_pool": lambda: pool}
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(**names))


@pytest.mark.parametrize("name", ["gemm72x100x600:w1a1", "gemm72x100x600:w1a2 int32"])
def test_the_answer_of_a_cell_is_what_a_kernel_writes(name: str) -> None:
    cell = products.Cell(name)
    kernel = cell.kernel(KEY)
    cell.prepare(kernel)
    words = run_outputs(kernel, cell.words(kernel), "emulator")["Out"]
    assert cell.wrong(kernel, words) == 0
    words.reshape(-1)[0] ^= 1
    assert cell.wrong(kernel, words) == 1


@pytest.mark.deep
def test_kernels_with_a_ring_stand_beside_those_without() -> None:
    found = products.configurations("gemm4096:w1a1", 1)
    assert not isinstance(found[0], RingConfig)
    assert {one.share_weights for one in found if isinstance(one, RingConfig)} == {1, 2}

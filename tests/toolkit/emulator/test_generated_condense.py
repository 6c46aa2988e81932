"""Kernels that find zeros as TVM generates them: clean and exact at every density, and faults in them are found."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import subbyte
from subbyte.emulator import EmulatorRun, require_clean, run_cuda
from subbyte.emulator.trace import of_kind
from subbyte.families import config_from_key, family_of
from subbyte.families.condense.explain.tiling import condense_tiling
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.measure.densities import operands_of
from subbyte.numerics.reference import reference

POISON = 0xA5A5A5A5
KERNELS = {
    "two chunks, sums": ("gemm72x70x200", "cd-rw2-cw1-pn2-ch4-ct1-fa1", "int32"),
    "one buffer, no lanes share": ("n2h3w5c96k40r1s1", "cd-rw1-cw1-pn1-ch2-ct4-ah0-sh1", "int4"),
    "panels of two warps": ("gemm40x100x64", "cd-rw1-cw2-pn1-ch2-ct2-ah0", "int32"),
}  # fmt: skip
"""Rows, columns and K that fill no tile, no panel and no chunk."""


@cache
def kernel_of(name: str) -> Kernel:
    spec, key, output = KERNELS[name]
    plan = make_plan(subbyte.workload(spec), config_from_key(key), "sm_90a", output, None, "fixed")
    assert family_of(plan.config).check(plan) is None
    return Kernel(plan)


def run(kernel: Kernel, density: float, text: str | None = None, dead: bool = True) -> tuple[EmulatorRun, int]:
    """A run, and how many elements are wrong. Of dead operands every third position of K is 0 on one side."""
    workload = kernel.workload

    def sums(x: Any, w: Any) -> Any:
        if dead:
            x[..., ::3], w[..., 1::3], x[:, :, 1:3] = 0, 0, 0
        return reference(workload, x, w)

    found = operands_of(workload, density, 1, sums)
    requant = found.requant if kernel.output == "int4" else None
    kernel = kernel.for_requantization(requant)
    words = np.full(kernel.argument("Out").shape, POISON, np.uint32).view(kernel.argument("Out").dtype)
    buffers = {**kernel.pack(found.x, found.w, requant), "Out": words}
    done = run_cuda(text or kernel.cuda, kernel.launch, buffers, seed=0, max_steps=10**6)
    return done, int((kernel.unpack(words) != found.answer(kernel.output)).sum())


@pytest.mark.sample("two chunks, sums")
@pytest.mark.parametrize("name", KERNELS)
def test_generated_kernels_are_clean_and_exact_at_every_density(name: str) -> None:
    for density in (0.0, 0.02, 0.1, 0.4, 1.0):
        for dead in (False, True):
            found, wrong = run(kernel_of(name), density, dead=dead)
            require_clean(found)
            assert wrong == 0, (density, dead)


def test_a_block_issues_what_its_tiling_says() -> None:
    kernel = kernel_of("panels of two warps")
    record = condense_tiling(kernel.plan)  # type: ignore[arg-type]
    rows = kernel.trace().trace  # of random operands, whose tiles keep all of K
    first = rows[rows["block"] == 0]
    assert len(of_kind(first, "mma")) // 32 == record.instructions
    assert record.levels[1].count == np.prod(kernel.launch.grid)
    assert (record.threads, record.shared_bytes) == (kernel.launch.block[0], kernel.launch.shared_bytes)
    assert f"{record.instructions:,} instructions in a block" in record.text()


FAULTS = {
    "the mask of other rows": ("shared_ptr[(((int)threadIdx.x) & 31) + MASKS", ""),
    "a position off by one": ("? ((uint)1 << ((uint)(2 * b_1)))", "? ((uint)1 << ((uint)(2 * (b_1 ^ 1))))"),
    "both lanes take the same positions": (": (~odd_4))", ": odd_4)"),
    "a stale fragment for lanes without positions": (
        "(uint)0, (uint)0, (uint)0, (uint)0);",
        "(uint)273, (uint)273, (uint)273, (uint)273);",
    ),
    "a step too few": ("int turns = ((int)steps_ptr[0]);", "int turns = max(((int)steps_ptr[0]) - 1, 0);"),
    "positions transposed the other way": ("(uint)25152", "(uint)29521"),
    "the columns of the other tile": ("(uint)15) != ", "(uint)240) != "),
}
"""In the first kernel: what is replaced, and by what."""


@pytest.mark.sample("a position off by one", "a stale fragment for lanes without positions")
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    kernel = kernel_of("two chunks, sums")
    old, new = FAULTS[name]
    if not new:  # the lanes' words of the panel of rows, read by the other warp
        line = next(line for line in kernel.cuda.splitlines() if line.strip().startswith("uint rows = "))
        old, new = line, line.replace("threadIdx.x)", "threadIdx.x) ^ 32")
    text = kernel.cuda.replace(old, new)
    assert text != kernel.cuda
    done, wrong = run(kernel, 0.1, text)
    assert wrong > 100 or done.findings, wrong


@pytest.mark.deep
def test_machine_code_gathers_by_ldmatrix_and_spills_nothing() -> None:
    kernel = kernel_of("two chunks, sums")
    counts = kernel.instructions
    assert any(opcode.startswith("LDSM.16.MT88.4") for opcode in counts)
    assert any(opcode.startswith("IMMA.16832.S8.S8") for opcode in counts)
    assert not any(opcode.startswith(("LDL", "STL")) for opcode in counts)
    assert kernel.resources.local_bytes == 0

"""TVM's HWNC schedule: every knob gives the exact sums, on the CPU; what means nothing is refused."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.paper.hwnc import kernel as hwnc
from benchmarks.paper.hwnc.case import HwncCase
from benchmarks.paper.hwnc.space import KNOBS, OPERANDS, HwncSpace
from subbyte.workload import ConvWorkload

HERE = Path(__file__).parent

COMPILER = shutil.which("g++") or shutil.which("clang++")
WORKLOAD = ConvWorkload(8, 3, 4, 64, 64, 3, 3, 1)
FEWER = ConvWorkload(8, 2, 3, 64, 64, 3, 3, 1)
"""Where four warps are 128 threads of the CPU."""
BATCH = ConvWorkload(32, 1, 2, 64, 64, 3, 3, 1)
"""Four groups of 8 images, so that the knobs along the batch have work."""


def run_on_cpu(text, launch, buffers, folder):
    """Compile the kernel's text for the CPU and run it on the arrays of its arguments."""
    body = text.partition("extern")
    body = "".join(body[1:]).replace("__shared__ alignas(64)", "alignas(64) static")
    signature = body[body.index(f"{launch.entry}(") :].partition(")")[0].partition("(")[2]
    types = [part.partition("*")[0].strip() + "*" for part in signature.split(",")]
    parameters = ", ".join(f"{kind} p{i}" for i, kind in enumerate(types))
    call = f"{launch.entry}({', '.join(f'p{i}' for i in range(len(types)))})"
    grid, block = (", ".join(map(str, size)) for size in (launch.grid, launch.block))
    start = f'extern "C" void run({parameters}) {{ run_blocks({{{grid}}}, {{{block}}}, [=] {{ {call}; }}); }}'
    source, library = folder / "kernel.cpp", folder / "kernel.so"
    source.write_text(f'#include "{HERE / "wmma_on_cpu.h"}"\n{body}\n{start}\n')
    command = [COMPILER, "-std=c++20", "-O0", "-w", "-fPIC", "-shared", "-pthread", str(source), "-o", str(library)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    pointers = (buffers[argument.name].ctypes.data_as(ctypes.c_void_p) for argument in launch.arguments)
    ctypes.CDLL(str(library)).run(*pointers)


def check(workload, operand, folder, break_it=None, **knobs):
    space = HwncSpace(workload, operand)
    values = {name: choices[0] for name, choices in KNOBS.items()} | knobs
    config = space.config(space.index(type(space.config(0)).from_dict(values)))
    assert space.check(config) is None
    text = hwnc.source(workload, config, "sm_90a", OPERANDS[operand])
    launch = hwnc.launch_of(workload, values, OPERANDS[operand])
    case = HwncCase(workload, seed=1)
    out = next(argument for argument in launch.arguments if argument.name == "Out")
    buffers = {a.name: case.operand(a) for a in launch.arguments if a.role == "in"}
    buffers["Out"] = np.full(out.shape, 0x5A5A5A5A, np.int32)
    run_on_cpu(break_it(text) if break_it else text, launch, buffers, folder)
    return case.check(buffers["Out"], out)


CHANGES = [
    {"block_col_warps": 2, "warp_col_tiles": 1, "chunk": 2, "reorder_inner": 1, "vector_as": 8, "vector_ws": 8},
    {"vector_as": 16, "vector_ws": 8, "split_block_k_nums": 4, "auto_unroll_max_step": 512, "warp_col_tiles": 2},
]


@pytest.mark.sample("s8")
@pytest.mark.skipif(COMPILER is None, reason="needs g++ or clang++")
@pytest.mark.parametrize(
    ("layer", "knobs", "operand"), list(zip((FEWER, WORKLOAD), CHANGES, OPERANDS, strict=True)), ids=OPERANDS
)
def test_sums_are_exact(layer, operand, knobs, tmp_path):
    report = check(layer, operand, tmp_path, **knobs)
    assert report.ok, str(report)


@pytest.mark.deep
@pytest.mark.skipif(COMPILER is None, reason="needs g++ or clang++")
def test_warps_along_the_batch(tmp_path):
    report = check(BATCH, "s4", tmp_path, block_row_warps=2, warp_row_tiles=2, chunk=2)
    assert report.ok, str(report)


@pytest.mark.skipif(COMPILER is None, reason="needs g++ or clang++")
def test_a_wrong_kernel_is_found_out(tmp_path):
    def broken(text):
        return text.replace("ax8 < 3", "ax8 < 2")

    report = check(FEWER, "s8", tmp_path, broken, warp_col_tiles=2)
    assert not report.ok
    assert report.wrong > 0


def test_refused_and_valid_are_the_product():
    space = HwncSpace(ConvWorkload(8, 7, 7, 512, 512, 3, 3, 1), "s4")
    assert len(space) == 194_400
    assert len(space.valid) + sum(space.refused.values()) == len(space)
    assert "leave further warps" in space.check(space.valid[0] + 1)
    config = space.config(space.valid[-1])
    assert space.index(config) == space.valid[-1]

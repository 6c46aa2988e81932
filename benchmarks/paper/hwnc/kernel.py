"""From a configuration to machine code and the way to launch it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cuda.bindings import nvrtc

from benchmarks.paper.hwnc.space import OPERANDS, Operand
from subbyte.device.launch import Argument, Launch
from subbyte.errors import BuildFailed, MissingDependency
from subbyte.records.foreign import ForeignConfig
from subbyte.workload import ConvWorkload

ENTRY = "main_kernel"
_BOILERPLATE_END = "#define ushort unsigned short"
_PRELUDE = """\
#include <mma.h>
typedef unsigned int uint;
typedef unsigned char uchar;
"""


@dataclass(frozen=True)
class HwncKernel:
    """Machine code and launch."""

    cubin: bytes
    launch: Launch
    cuda: str


def build_s4(workload: ConvWorkload, config: ForeignConfig, arch: str) -> HwncKernel:
    """Build with int4 values. Raises BuildFailed."""
    return build(workload, config, arch, OPERANDS["s4"])


def build_s8(workload: ConvWorkload, config: ForeignConfig, arch: str) -> HwncKernel:
    """Build with bytes. Raises BuildFailed."""
    return build(workload, config, arch, OPERANDS["s8"])


def build(workload: ConvWorkload, config: ForeignConfig, arch: str, operand: Operand) -> HwncKernel:
    """Build a configuration. Raises BuildFailed."""
    text = source(workload, config, arch, operand)
    return HwncKernel(_compile(text, arch), launch_of(workload, dict(config.to_dict()), operand), text)


def source(workload: ConvWorkload, config: ForeignConfig, arch: str, operand: Operand) -> str:
    """The CUDA text without TVM's include block, so that the compiler on the machine finds all it needs."""
    from benchmarks.paper.hwnc.schedule import cuda_text, hwnc_module

    text = cuda_text(hwnc_module(workload, operand, dict(config.to_dict())), arch)
    start = text.index("#endif", text.index(_BOILERPLATE_END)) + len("#endif")
    return _PRELUDE + text[start:].strip() + "\n"


def launch_of(w: ConvWorkload, knobs: dict[str, Any], o: Operand) -> Launch:
    """Grid, block and arguments. Elements are counted in 32-bit words."""
    rows = knobs["block_row_warps"] * knobs["warp_row_tiles"]
    cols = knobs["block_col_warps"] * knobs["warp_col_tiles"]
    grid = (w.n // o.m // rows, w.k // o.n // cols, w.p * w.q // knobs["split_block_k_nums"])
    inputs = (w.h + 2 * w.pad) * (w.w + 2 * w.pad) * w.n * w.c * o.bits // 32
    arguments = (
        Argument("Out", "int32", (w.p * w.q * w.n * w.k,), "out", "hwnc"),
        Argument("Wt", "uint32", (w.r * w.s * w.k * w.c * o.bits // 32,), "in", f"hwoi.{o.name}"),
        Argument("A", "uint32", (inputs,), "in", f"hwnc.{o.name}"),
    )
    return Launch(ENTRY, grid, (32, knobs["block_row_warps"], knobs["block_col_warps"]), 0, arguments)


def _compile(text: str, arch: str) -> bytes:
    options = [f"--gpu-architecture={arch}", "--std=c++17", "--disable-warnings", "-default-device"]
    options += [f"-I{folder}" for folder in headers()]
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), b"hwnc.cu", 0, None, None)
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            _, size = nvrtc.nvrtcGetProgramLogSize(program)
            log = bytearray(size)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise BuildFailed(log.decode(errors="replace")[:2000])
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        cubin = bytearray(size)
        nvrtc.nvrtcGetCUBIN(program, cubin)
        return bytes(cubin)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


@cache
def headers() -> tuple[Path, ...]:
    """Folders of ``mma.h`` and what it includes. Raises MissingDependency."""
    roots = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    for root in (*roots, Path("/usr/local/cuda")):
        if (root / "include" / "mma.h").is_file():
            return (root / "include", root / "include" / "cccl")
    raise MissingDependency("mma.h of the CUDA toolkit was not found; set CUDA_HOME to the toolkit's folder")

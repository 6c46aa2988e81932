"""What one-bit products of warpgroups leave for other instructions: warpgroups that multiply beside warpgroups that
issue one kind of instruction, each alone and both together. Needs NVRTC and a GPU, no TVM.

Both sides get as many rounds as take equally long alone. ``together`` is how much longer both take: 1 where they do not
disturb each other, 2 where one waits for the other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared.command import answering, parser_of
from subbyte.files import prove_writable, write_file
from subbyte.gpu.device import CudaDevice, open_device
from subbyte.gpu.timing import command_line
from subbyte.kernel import nvrtc

BLOCKS, SHARED, REGISTERS, UNROLLED = 132, 65536, 8, 64
CYCLES = 20000
"""Of the Tensor Cores in a measurement."""
INSTRUCTIONS = {
    "add": "{{.reg .u32 t; add.u32 t, %0, %1; add.u32 %0, t, %2;}}",
    "logic": "lop3.b32 %0, %0, %1, %2, 0xe8;",
    "permute": "prmt.b32 %0, %0, %1, 0x5410;",
    "multiply-add": "mad.lo.u32 %0, %0, %1, %2;",
    "binary32": "fma.rn.f32 %0, %0, %1, %2;",
}
"""One instruction of a thread each; the addition has three terms."""
MIXED = ("permute", "multiply-add", "logic", "multiply-add")
"""Two pipes in turn: an instruction in each cycle."""
CASES = [(n, 2, 2, kind) for n in (80, 144) for kind in (*INSTRUCTIONS, "mixed")] + [
    (64, 2, 2, "mixed"), (256, 1, 2, "mixed"), (80, 1, 1, "mixed"), (80, 3, 3, "mixed"),
]  # fmt: skip
"""Columns of an instruction, warpgroups that multiply and that do not, and what these issue."""


def text(n: int, multiplying: int, issuing: int, kind: str) -> str:
    """The CUDA text."""
    sums = n // 2
    names = ", ".join(f"%{i}" for i in range(sums))
    outputs = ", ".join(f'"+r"(d[{i}])' for i in range(sums))
    product = (
        'asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; '
        f"wgmma.mma_async.sync.aligned.m64n{n}k256.s32.b1.b1.and.popc "
        f'{{{names}}}, %{sums}, %{sums + 1}, p;}}" : {outputs} : "l"(a), "l"(b));'
    )
    kinds = [MIXED[i % len(MIXED)] if kind == "mixed" else kind for i in range(UNROLLED)]
    form = "f" if kind == "binary32" else "r"
    body = "\n".join(
        f'asm volatile("{INSTRUCTIONS[one].format()}" : "+{form}"(v[{i % REGISTERS}]) : "{form}"(x), "{form}"(y));'
        for i, one in enumerate(kinds)
    )
    value = "float" if form == "f" else "unsigned"
    return f"""
extern "C" __global__ void __launch_bounds__({128 * (multiplying + issuing)}, 1)
conv_kernel(const unsigned* given, unsigned long long* clocks, unsigned* sink) {{
  extern __shared__ __align__(1024) unsigned words[];
  for (unsigned i = threadIdx.x; i < {SHARED // 4}; i += blockDim.x) words[i] = i * 2654435761u;
  unsigned base, warp;
  asm("{{.reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t;}}" : "=r"(base) : "l"(words));
  asm("shfl.sync.idx.b32 %0, %1, 0, 31, -1;" : "=r"(warp) : "r"(threadIdx.x / 32));
  __syncthreads();
  unsigned long long begin, end;
  unsigned total = 0;
  if (warp < {4 * multiplying}) {{
    unsigned d[{sums}];
    for (int i = 0; i < {sums}; ++i) d[i] = 0;
    const unsigned long long a = (base + warp / 4 * 4096) >> 4 | 64ull << 16 | 8ull << 32;
    const unsigned long long b = (base + 16384) >> 4 | {n}ull << 16 | 8ull << 32;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(begin) :: "memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    #pragma unroll 1
    for (unsigned round = 0; round < given[0]; ++round) {{
      {product * 4}
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }}
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(end) :: "memory");
    for (int i = 0; i < {sums}; ++i) total += d[i];
  }} else {{
    {value} v[{REGISTERS}], x = given[2], y = given[3];
    for (int i = 0; i < {REGISTERS}; ++i) v[i] = threadIdx.x + i;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(begin) :: "memory");
    #pragma unroll 1
    for (unsigned round = 0; round < given[1]; ++round) {{
      {body}
    }}
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(end) :: "memory");
    for (int i = 0; i < {REGISTERS}; ++i) total += v[i];
  }}
  sink[blockIdx.x * blockDim.x + threadIdx.x] = total;
  if (blockIdx.x == 0 && threadIdx.x % 32 == 0) {{
    clocks[threadIdx.x / 16] = begin;
    clocks[threadIdx.x / 16 + 1] = end;
  }}
}}
"""


def measured(device: CudaDevice, n: int, multiplying: int, issuing: int, kind: str) -> dict[str, Any]:
    """Cycles of either side alone, and of both."""
    cubin, _ = nvrtc.compile_cubin(text(n, multiplying, issuing, kind), "sm_90a")
    function, warps = device.load(cubin, "conv_kernel"), 4 * (multiplying + issuing)
    function.allow_shared(SHARED)
    clocks, sink = device.alloc(16 * warps), device.alloc(4 * 32 * warps * BLOCKS)

    def cycles(rounds: int, others: int) -> tuple[int, int, int]:
        given = device.upload(np.array([rounds, others, 3, 5], np.uint32))
        for _ in range(2):
            function.launch((BLOCKS, 1, 1), (32 * warps, 1, 1), SHARED, [given.pointer, clocks.pointer, sink.pointer])
            device.synchronize()
        given.free()
        times = clocks.download((warps, 2), np.uint64).astype(np.int64)
        first = times[:, 0].min()
        sides = [times[: 4 * multiplying], times[4 * multiplying :]]
        return (*(int(side[:, 1].max() - side[:, 0].min()) for side in sides), int(times[:, 1].max() - first))

    rounds = CYCLES // (4 * multiplying * max(n // 2, 16 + n // 4))
    alone, others = cycles(rounds, 0)[0], cycles(0, 1000)[1]
    both = cycles(rounds, max(1, round(1000 * alone / others)))
    for buffer in (clocks, sink):
        buffer.free()
    function.unload()
    return {
        "n": n, "multiplying": multiplying, "issuing": issuing, "kind": kind,
        "cycles_of_a_product": alone / (4 * rounds * multiplying),
        "cycles_of_an_instruction": others / (1000 * UNROLLED * issuing), "together": both[2] / alone,
        "products_together": both[0] / alone, "instructions_together": both[1] / alone,
    }  # fmt: skip


@answering
def main(arguments: Sequence[str]) -> int:
    """Measure them."""
    parser = parser_of("bits issue", __doc__)
    parser.add_argument("out", type=Path)
    asked = parser.parse_args(arguments)
    prove_writable(asked.out)
    device = open_device()
    found = []
    for case in CASES:
        found.append(measured(device, *case))
        print({name: value if isinstance(value, str) else round(value, 2) for name, value in found[-1].items()})
    record = {"command": command_line(), "date": datetime.now(UTC).date().isoformat(), "found": found}
    write_file(asked.out, (json.dumps(record, indent=1) + "\n").encode())
    return 0

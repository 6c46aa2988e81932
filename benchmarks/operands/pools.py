"""Check and time pooling and fully connected layers, and the layer before them (needs a GPU, NVRTC).

    python benchmarks/operands pools --build FILE.jsonl        the texts (where TVM is)
    python benchmarks/operands pools FILE.jsonl RECORD.json    compares and times them

ResNet-50 at batch 8 and 256: max-pooling behind the first layer, the mean of the last map, each of int4 and of uint8
values, the last layer; beside each the convolution before it, as ``subbyte.compile`` takes it for int4. Sides of a case
are timed in turns, in two runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import subbyte
from benchmarks.operands.measure import measured, right_kernel
from benchmarks.shared.command import answering, parser_of
from benchmarks.shared.texts import all_compiled, lines_of
from subbyte.errors import InvalidInput, WrongResult
from subbyte.files import prove_writable, write_file
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import command_line
from subbyte.kernel import Pooling, PoolKernel
from subbyte.kernel.operands import activation_words
from subbyte.kernel.pool.text import pool_kernel_of, pool_kernel_text
from subbyte.numerics import random_values
from subbyte.numerics.pooling import pooling_reference
from subbyte.records.describe import now, to_line
from subbyte.workload import linear

BATCHES = (8, 256)
POOLS = {
    "max 3x3/2": (Pooling("max", 3, 2, 1), (112, 112, 64), "resnet50.conv1"),
    "mean of the map": (Pooling.over(7, 7), (7, 7, 2048), "resnet50.stage5.expand1x1"),
}
SIDES = {"pool": "int4", "pool uint8": "uint8"}
"""Types of the values that are pooled, by the name of the side."""
LINEAR = (2048, 1000)


@answering
def main(arguments: Sequence[str]) -> int:
    """Build, or measure."""
    parser = parser_of("operands pools", __doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--build", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.build:
        prove_writable(asked.file)
        write_file(asked.file, "".join(f"{to_line(line)}\n" for line in texts()).encode())
        return 0
    if asked.out is None:
        raise InvalidInput("name the record to write, behind the file of texts")
    prove_writable(asked.out)
    lines = lines_of(asked.file)
    made = list(zip(map(json.loads, lines), all_compiled(lines), strict=True))
    device = CudaDevice(0)
    cases = []
    for case in dict.fromkeys(line["label"] for line, _ in made):
        of_case = [(line, cubin) for line, cubin in made if line["label"] == case]
        cases.append({"case": case, **measured(of_case, device, load)})
        print(case, {one["side"]: one["runs_us"] for one in cases[-1]["sides"]}, flush=True)
    record = {"schema": 1, "date": now(), "command": command_line(), "device": device.info.to_dict(), "cases": cases}
    write_file(asked.out, (json.dumps(record, indent=1) + "\n").encode())
    return int(any(one["wrong"] != 0 for case in cases for one in case["sides"]))


def texts(batches: Sequence[int] = BATCHES) -> list[dict[str, Any]]:
    """The kernels as lines, those of a case one after the other."""
    lines = []
    for batch in batches:
        for name, (pooling, sizes, before) in POOLS.items():
            case = f"{name} @{batch}"
            for side, operand in SIDES.items():
                pool = pooling.kernel((batch, *sizes), operand=operand)
                lines.append({"side": side, "label": case, "family": "", "pool": pool_kernel_text(pool),
                              "cuda": pool.cuda})  # fmt: skip
            lines.append(_line("layer before", case, subbyte.compile(f"{before}@{batch}")))
        last = subbyte.compile(linear(batch, *LINEAR), output="int32")
        lines.append(_line("fully connected", f"last layer @{batch}", last))
    return lines


def _line(side: str, case: str, kernel: subbyte.Kernel) -> dict[str, Any]:
    return {
        "side": side, "label": case, "family": "", "layer": kernel.workload.spec, "config": kernel.config.key,
        "output": kernel.output, "requant": kernel.plan.requant, "cuda": kernel.cuda,
    }  # fmt: skip


def load(line: dict[str, Any], cubin: bytes, device: CudaDevice, stack: ExitStack) -> GpuKernel:
    """A side's kernel, loaded, with every element compared. Raises WrongResult."""
    return (right_pool if "pool" in line else right_kernel)(line, cubin, device, stack)


def right_pool(line: dict[str, Any], cubin: bytes, device: CudaDevice, stack: ExitStack) -> GpuKernel:
    """The pooling kernel, loaded, with every element compared. Raises WrongResult."""
    kernel = pool_kernel_of(line["pool"])
    x, right = expected(kernel)
    gpu = stack.enter_context(GpuKernel(cubin, kernel.launch, device))
    found = kernel.unpack(dict(gpu.run({"A": activation_words(kernel.argument("A"), kernel.workload, x)}))["Out"])
    wrong = int((found != right).sum())
    if wrong:
        raise WrongResult(f"{line['pool']}: {wrong} of {right.size} elements differ")
    return gpu


def expected(kernel: PoolKernel) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Random values over the whole range of the type, and what pooling makes of them."""
    wl, one = kernel.workload, kernel.pooling
    x = random_values(wl.precision.activations, (wl.n, wl.h, wl.w, wl.c), np.random.default_rng(1))
    assert one.stride is not None
    return x, pooling_reference(x, one.kind, one.size, one.stride, one.padding, one.count_padding, one.ceil_mode)

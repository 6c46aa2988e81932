"""Check kernels on bit planes of every kind and switch on this GPU: every element of every output.

    python benchmarks/bits exact --build FILE.jsonl                       # where TVM is
    python benchmarks/bits exact --measure FILE.jsonl --out RECORD.json   # where the GPU is; needs NVRTC

A kernel runs twice on differently poisoned outputs, with random operands over the whole range of their types, and is
compared with the reference, which decodes values and multiplies them; sums that it keeps too. Nothing is timed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import subbyte
from benchmarks.shared.command import answering, parser_of
from benchmarks.shared.texts import compiled
from subbyte.errors import InvalidInput, SubbyteError
from subbyte.families import RingConfig, config_from_key, family_named
from subbyte.files import prove_writable, write_file
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import command_line
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.execute import expected_layer, random_operands, random_residual
from subbyte.kernel.operands import kept_sums
from subbyte.numerics import Thresholds
from subbyte.records.describe import now, to_line
from subbyte.workload import gemm, workload
from subbyte.workload.precision import SUMS

ROWS = "n9h9w9c64k64r3s3p1"
CASES: list[tuple[str, Any, dict[str, Any], str | None]] = [
    # family, layer, knobs, output
    ("bits", f"{ROWS}:w1a1", {"tile_rows": 4, "turn_rows": 2}, None),
    ("bits", f"{ROWS}:w1a1", {"tile_rows": 4, "turn_rows": 2, "paired_rows": 1, "consumers": 3}, None),
    ("bits", f"{ROWS}:w1a1", {"tile_rows": 9, "consumers": 4, "stagger": 2}, None),
    ("bits", f"{ROWS}:w1a2", {"tile_rows": 9, "consumers": 3, "stagger": 1, "doubled": 1}, None),
    ("bits", "n9h9w9c200k70r3s3p1:w2a2", {"tile_rows": 3, "channels": 32}, None),
    ("bits", "n9h9w9c200k70r3s3p1:w1a1:minus", {"tile_rows": 4}, None),
    ("bits", "n3h12w11c70k96r5s5p2u2:w1a1:plus", {"tile_rows": 4, "channels": 32}, None),
    ("bits", "n8h31w31c3k64r11s11p2u4:w1a2", {"channels": 32, "consumers": 1}, None),
    ("bits", "n16h14w14c256k256r3s3p1:w1a2", {"tile_rows": 7, "run_on": 1}, None),
    ("bits", "n8h7w7c512k512r3s3p1:w1a1", {"tile_rows": 7, "consumers": 3}, None),
    ("bits", f"{ROWS}:w1a4", {"tile_rows": 4, "doubled": 1, "turn_rows": 2}, None),
    ("bits", "n9h9w9c200k70r3s3p1:w1a4", {"tile_rows": 4, "doubled": 1}, "general"),
    ("bits", "n9h7w6c200k70r3s3p1u2:w2a3", {"tile_rows": 4, "channels": 32}, None),
    ("bits", f"{ROWS}:w1a1", {"tile_rows": 4, "turn_rows": 2}, "bipolar1+add64+keep"),
    ("bits", f"{ROWS}:w1a2", {"tile_rows": 3, "doubled": 1}, "uint2+add32"),
    ("bits", "n9h14w14c64k128r3s3p1u2:w1a1", {"tile_rows": 3, "channels": 128}, "bipolar1+addpool2x64+keep"),
    ("bits", f"{ROWS}:w1a1", {"tile_rows": 4, "turn_rows": 2}, "bipolar1+add64+keeppool2"),
    ("bits", "n9h31w31c3k64r7s7p3u4:w1a8o1:bipolar.signed", {"tile_rows": 4, "whole_values": 1}, "bipolar1+keep"),
    ("bits", f"{ROWS}:w1a1", {"tile_rows": 4, "turn_rows": 2}, "bipolar1+pool2"),
    ("bits", f"{ROWS}:w1a2", {"tile_rows": 4, "turn_rows": 2, "doubled": 1}, "uint2+pool2after"),
    ("bits", f"{ROWS}:w1a1", {"tile_rows": 4, "turn_rows": 2, "paired_rows": 1}, "bipolar1+pool2after"),
    ("bits", "n9h9w9c200k70r3s3p1:w1a1", {"tile_rows": 4}, SUMS),
    ("bits", gemm(200, 256, 512, "w1a2"), {"consumers": 3}, None),
    ("bits", gemm(200, 256, 1500, "w1a1"), {"depth": 4, "stages": 3, "channels": 64, "share_weights": 2}, None),
    ("bits", gemm(900, 512, 1500, "w1a1"), {"depth": 4, "stages": 2, "share_weights": 2, "share_pixels": 2}, None),
    ("bits", gemm(72, 100, 1100, "w2a2"), {"depth": 4, "stages": 3, "channels": 64, "consumers": 1}, SUMS),
    ("bits", "n9h9w9c600k70r1s1p0:w1a4", {"depth": 2, "stages": 3, "channels": 64, "lead": 1}, None),
    ("bmma", f"{ROWS}:w1a1", {"blk_col_warps": 1}, None),
    ("bmma", "n9h9w9c200k70r3s3p1:w1a1:minus", {"blk_col_warps": 1}, None),
    ("bmma", "n9h9w9c200k70r3s3p1u2:w2a2", {"blk_col_warps": 1}, None),
    ("bmma", "n8h15w12c3k40r11s11p2u4:w1a2", {"blk_col_warps": 1}, None),
    ("bmma", "n8h7w7c512k70r3s3p1:w1a1", {"blk_col_warps": 1, "correction": "popcount"}, SUMS),
    ("bmma", gemm(72, 96, 1024, "w1a2"), {"reorder_inner": 0}, None),
    ("popc", "n9h9w9c200k70r3s3p1:w1a1", {"blk_col_warps": 1}, None),
    ("popc", "n9h7w6c200k70r3s3p1u2:w3a2", {"blk_col_warps": 1}, None),
    ("popc", gemm(72, 96, 1024, "w1a1"), {"reorder_inner": 0}, SUMS),
]  # fmt: skip


@answering
def main(arguments: Sequence[str]) -> int:
    """Build or measure."""
    parser = parser_of("bits exact", __doc__)
    step = parser.add_mutually_exclusive_group(required=True)
    step.add_argument("--build", type=Path, metavar="FILE")
    step.add_argument("--measure", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(arguments)
    if asked.build:
        prove_writable(asked.build)
        write_file(asked.build, "".join(f"{line}\n" for line in built()).encode())
        return 0
    if asked.out is None:
        raise InvalidInput("--measure needs --out RECORD.json")
    prove_writable(asked.out)
    lines = asked.measure.read_text(encoding="utf-8").splitlines()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        cubins = list(pool.map(compiled, lines))
    device = CudaDevice(0)
    kernels = [checked(json.loads(line), cubin, device) for line, cubin in zip(lines, cubins, strict=True)]
    record = {"schema": 1, "date": now(), "command": command_line(), "device": device.info.to_dict(),
              "kernels": kernels}  # fmt: skip
    write_file(asked.out, (json.dumps(record, indent=1) + "\n").encode())
    wrong = [one for one in kernels if one["wrong"] != 0]
    print(f"{len(kernels) - len(wrong)} of {len(kernels)} kernels exact")
    return int(bool(wrong))


def built() -> list[str]:
    """The texts."""
    lines = []
    for family, layer, knobs, output in CASES:
        requant = "general" if output == "general" else "fixed"
        wanted = None if output == "general" else output
        plain = RingConfig() if "depth" in knobs else family_named(family).plain
        config = plain.with_values(knobs)
        plan = make_plan(workload(layer), config, "sm_90a", wanted, None, requant)
        lines.append(to_line({"family": family, "layer": plan.workload.spec, "config": config.key,
                              "output": plan.output, "requant": requant, "cuda": Kernel(plan).cuda}))  # fmt: skip
        print(f"{family} {plan.workload} {config.key} {plan.output}", flush=True)
    return lines


def checked(line: dict[str, Any], cubin: tuple[bytes, str] | str, device: CudaDevice) -> dict[str, Any]:
    """How many elements of a kernel's outputs are wrong, or why it did not run."""
    about = {name: line[name] for name in ("family", "layer", "config", "output", "requant")}
    if isinstance(cubin, str):
        return {**about, "wrong": None, "reason": cubin}
    layer = subbyte.workload(line["layer"])
    kernel = Kernel(make_plan(layer, config_from_key(line["config"]), "sm_90a", line["output"], None, line["requant"]))
    x, w, requant = random_operands(kernel, 1)
    if requant is not None and kernel.plan.parameter_form == "thresholds":
        requant = Thresholds.random(layer, np.random.default_rng(2))
    residual = random_residual(kernel, 3)
    wanted = expected_layer(kernel, x, w, requant, residual)
    try:
        with GpuKernel(cubin[0], kernel.launch, device) as gpu:
            outputs = gpu.run(kernel.pack(x, w, requant, residual))
    except SubbyteError as error:
        return {**about, "wrong": None, "reason": str(error)}
    wrong = int(np.count_nonzero(kernel.unpack(outputs["Out"]) != wanted.values))
    elements = wanted.values.size
    if "Sum" in outputs and wanted.sums is not None:
        wrong += int(np.count_nonzero(kept_sums(outputs["Sum"], layer, kernel.fusion) != wanted.sums))
        elements += wanted.sums.size
    return {**about, "elements": elements, "wrong": wrong}

"""Time dense kernels of layers without their dead channels, in turns with the kernel of the whole layer.

    python benchmarks/sparse compact --build --pack FOLDER      # where TVM is, no GPU
    python benchmarks/sparse compact --pack FOLDER --out RECORD # where the GPU is

Of a 3x3 stage of ResNet-50 a share of the input channels and as large a share of the filters is kept, as in a network
in which a share of all channels is dead. What :func:`subbyte.sparse.compact` leaves is such a layer; its kernel is what
``compile`` takes. Every element is compared; two runs in processes of their own.
"""

from __future__ import annotations

import random
import subprocess
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import subbyte
from benchmarks.baselines.rounds_record import write_record
from benchmarks.network.chains import packed
from benchmarks.shared import kernel_pack
from benchmarks.shared.command import again, answering
from benchmarks.shared.gpu_case import GpuCase
from benchmarks.shared.kernel_pack import Packed
from benchmarks.sparse.opponents import HOW, RUNS, begun, our_sides
from benchmarks.sparse.packs import add_run, pack_parser, require_pack
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.telemetry import Telemetry
from subbyte.measure.rounds import Entry, Replays, interleave
from subbyte.workload import ConvWorkload

CELLS = [f"resnet50.stage{stage}@256" for stage in (2, 3, 4, 5)]
KEPT = (1.0, 0.75, 0.5, 0.25)
"""Shares of the input channels and of the filters."""


def smaller(cell: str, kept: float) -> ConvWorkload:
    """A layer of which a share of the channels is left."""
    whole = subbyte.workload(cell)
    if kept == 1.0:
        return whole
    return subbyte.workload(replace(whole, c=round(whole.c * kept), k=round(whole.k * kept)).spec)


@answering
def main(arguments: Sequence[str]) -> int:
    """Build the kernels, or measure."""
    asked = pack_parser("sparse compact", __doc__, CELLS).parse_args(arguments)
    if asked.build:
        found = [packed(smaller(cell, kept)) for cell in asked.cells for kept in KEPT]
        print(f"{kernel_pack.replace(asked.pack, found)} kernels in {asked.pack}")
        return 0
    require_pack(asked)
    if asked.run:
        return one_run(asked)
    for number in range(1, RUNS + 1):
        subprocess.run(again("sparse compact", arguments, "--run", str(number)), check=False)
    return 0 if asked.out.exists() else 1


def one_run(asked: Namespace) -> int:
    """One run of every layer."""
    device, there = CudaDevice(0), kernel_pack.read(asked.pack)
    record = {**begun(asked.out, device), "format": "subbyte-compact"}
    for cell in asked.cells:
        run = measured(cell, asked.run, there, device)
        add_run(record, cell, run)
        write_record(asked.out, record)
        print(f"run {asked.run} {cell}:", *(f"{one['kept']} {min(one['samples']):.2f}" for one in run["sides"]),
              *(f"!{one['reason'][:80]}" for one in run["absent"]), flush=True)  # fmt: skip
    return 0


def measured(
    cell: str, number: int, there: dict[ConvWorkload, list[Packed]], device: CudaDevice
) -> dict[str, Any]:  # fmt: skip
    """All shares of one layer, in turns."""
    with ExitStack() as stack:
        replays, entries, about, absent = Replays(stack, HOW), list[Entry](), [], []
        for kept in KEPT:
            workload = smaller(cell, kept)
            kernels = [replace(one, reason="dense") for one in there[workload]]
            sides, missing = our_sides(stack, kernels, GpuCase(workload), device)
            absent += [{**one, "kept": kept} for one in missing if "2:4" not in one["side"]]
            for side in sides:
                entries.append(Entry(str(kept), "hot", replays.hot(device, side.launch)))
                about.append({"kept": kept, "spec": workload.spec, "plan": side.about["plan"], "error": 0.0})
        rng = random.Random(f"{cell} {number}")
        rounds = interleave(entries, HOW.rounds, rng, Telemetry(device.info.bus_id).snapshot)
    sides_of = [{**one, "samples": list(samples)} for one, samples in zip(about, rounds.samples, strict=True)]
    return {"run": number, "sides": sides_of, "absent": absent}

"""Time chains of layers under one CUDA graph, with and without programmatic dependent launch, and each layer alone.

    python benchmarks/network chains --build FOLDER [--batch 8 64 256]     # where TVM is
    python benchmarks/network chains --measure FOLDER --out RECORD.json    # where the GPU is; needs CuPy

Two kinds: four equal 3x3 layers, and the main path of ResNet-50 from its first 1x1 to its last, 48 convolutions with
strides 1 and 2 (pooling, shortcuts and additions left out). The packed words that a layer writes are what the next one
reads: no kernel stands between. Every element of every layer's output is compared with the exact reference, which goes
through the layers one by one; then the chain runs twenty times more, with dependent launch, to the same last output.
The record is written after every chain; started again, it goes on with the chains that the record lacks, or has with
other kernels.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import subbyte
from benchmarks.shared.command import answering, parser_of
from benchmarks.shared.gpu_case import GpuCase
from benchmarks.shared.kernel_pack import Packed, add, family_of, read
from benchmarks.shared.written import begun, digest_of, write_at_once
from subbyte.errors import InvalidInput
from subbyte.gpu.chain import GpuChain
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.lock import hold
from subbyte.gpu.timing import Timing, TimingProtocol, command_line
from subbyte.kernel.operands import output_values
from subbyte.measure.case import Case
from subbyte.records.checked import new_folder
from subbyte.records.describe import now
from subbyte.workload import ConvWorkload, workload

STAGES = ("stage2", "stage3", "stage4", "stage5")
BOTTLENECKS = (3, 4, 6, 3)
AGAIN = 20
"""Runs with overlap after the first, each compared."""


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("network chains", __doc__)
    step = parser.add_mutually_exclusive_group(required=True)
    step.add_argument("--build", type=Path, metavar="FOLDER")
    step.add_argument("--measure", type=Path, metavar="FOLDER")
    parser.add_argument("--batch", type=int, nargs="+", default=[8, 64, 256])
    parser.add_argument("--workers", type=int, default=2, help="processes that build (default 2)")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--device", type=int, default=0)
    args = parser.parse_args(arguments)
    if args.build:
        build(args.build, args.batch, args.workers)
        return 0
    device = CudaDevice(args.device)
    with hold(device.info):
        record = measure(args.measure, device, args.out)
    return 0 if all(chain["wrong"] == 0 for chain in record["chains"]) else 1


def chains(batch: int) -> dict[str, list[ConvWorkload]]:
    """Layers by the chain's name."""
    path = []
    for stage, count in zip(STAGES, BOTTLENECKS, strict=True):
        for number in range(count):
            name = f"resnet50.{stage}"
            opens = number == 0 and stage != "stage2"
            first = f"{name}.enter1x1" if number == 0 else f"{name}.reduce1x1"
            path += [first, f"{name}.down3x3" if opens else name, f"{name}.expand1x1"]
    named = {f"four {stage}": [f"resnet50.{stage}"] * 4 for stage in STAGES} | {"resnet50 main path": path}
    return {name: [workload(f"{layer}@{batch}") for layer in layers] for name, layers in named.items()}


def build(folder: Path, batches: list[int], workers: int) -> None:
    """Pack what compile takes for each distinct layer, and the list of chains."""
    new_folder(folder, "--build")
    listed = {f"{name}, batch {batch}": layers for batch in batches for name, layers in chains(batch).items()}
    (folder / "kernels.jsonl").unlink(missing_ok=True)
    distinct = list(dict.fromkeys(layer for layers in listed.values() for layer in layers))
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        kernels = list(pool.map(packed, distinct))
    add(folder, kernels)
    names = {name: [layer.label for layer in layers] for name, layers in listed.items()}
    (folder / "chains.json").write_text(json.dumps(names, indent=1) + "\n", encoding="utf-8")


def packed(layer: ConvWorkload) -> Packed:
    """What compile takes for a layer."""
    kernel = subbyte.compile(layer)
    return Packed(layer, family_of(kernel.config), kernel.config, kernel.reason, kernel.cubin, kernel.launch)


def measure(folder: Path, device: CudaDevice, out: Path | None = None) -> dict[str, Any]:
    """Every chain of a folder: exact or not, and the times. What ``out`` holds of the same kernels is kept."""
    if not (folder / "chains.json").exists():
        raise InvalidInput(
            f"{folder} holds no chains: run `python benchmarks/network chains --build {folder}` where TVM is"
        )
    kernels = {layer.label: packed[0] for layer, packed in read(folder).items()}
    listed = json.loads((folder / "chains.json").read_text(encoding="utf-8"))
    before = begun(out, device.info.name, "chains")
    protocol = TimingProtocol(launches=20, min_total_ms=15, repeats=9, cold=False)
    alone = {one["layer"]: one for one in before.get("layers", [])
             if one["layer"] in kernels and one.get("kernel") == digest_of([kernels[one["layer"]]])}  # fmt: skip
    there = {(one["name"], one.get("kernels")): one for one in before.get("chains", []) if one["name"] in listed}
    record: dict[str, Any] = {
        "schema": 1, "command": command_line(), "date": now(), "device": device.info.to_dict(),
        "protocol": protocol.to_dict(), "layers": [], "chains": [],
        "runs": [*before.get("runs", []), {"date": now(), "command": command_line(), "device": device.info.to_dict()}],
    }  # fmt: skip
    for name, labels in listed.items():
        chain = [kernels[label] for label in labels]
        found = there.get((name, digest_of(chain)))
        if found is None:
            for packed in chain:
                if packed.workload.label not in alone:
                    alone[packed.workload.label] = describe(packed, time_alone(packed, device, protocol))
            found = {"name": name, "kernels": digest_of(chain), **one(chain, device, protocol, alone)}
            print(f"{name}: {found['summary']}", flush=True)
        record["chains"].append(found)
        record["layers"] = list(alone.values())
        if out is not None:
            write_at_once(out, {**record, "chains": [*record["chains"], *still(there, record["chains"])]})
    return record


def still(there: dict[tuple[str, Any], dict[str, Any]], done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Chains of an earlier start whose turn has not come yet: whoever is killed now keeps them."""
    names = {one["name"] for one in done}
    return [one for (name, _), one in there.items() if name not in names]


def describe(packed: Packed, timing: Timing) -> dict[str, Any]:
    """A layer of the record: how it is computed, and its time alone."""
    return {
        "layer": packed.workload.label, "workload": packed.workload.spec, "family": packed.family,
        "kernel": digest_of([packed]), "config": packed.config.to_dict(), "reason": packed.reason,
        "microseconds": timing.microseconds,
        "samples": list(timing.samples), "clocks": timing.clocks(),
    }  # fmt: skip


def time_alone(packed: Packed, device: CudaDevice, protocol: TimingProtocol) -> Timing:
    """A layer by itself, launches one after the other, without overlap."""
    case = Case(packed.workload)
    with GpuKernel(packed.cubin, packed.launch, device) as gpu:
        gpu.run({argument.name: case.operand(argument) for argument in gpu.inputs}, 5.0)
        return gpu.time(protocol)


def one(
    chain: list[Packed], device: CudaDevice, protocol: TimingProtocol, alone: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Compare one chain layer by layer, run it again, and time it."""
    inputs, expected = operands(chain)
    with GpuChain([(packed.cubin, packed.launch) for packed in chain], inputs, device) as running:
        running.run(overlap=False, timeout_s=10.0)
        wrong = sum(differing(packed, running.output(i), expected[i]) for i, packed in enumerate(chain))
        running.run(overlap=True, timeout_s=10.0)
        wrong += sum(differing(packed, running.output(i), expected[i]) for i, packed in enumerate(chain))
        last = running.output(len(chain) - 1)
        wrong += sum(int((running.run(overlap=True, timeout_s=10.0) != last).any()) for _ in range(AGAIN))
        how = TimingProtocol(**{**protocol.to_dict(), "launches": max(1, 80 // len(chain))})
        plain, overlapping = running.time(how, overlap=False), running.time(how, overlap=True)
    together = sum(alone[packed.workload.label]["microseconds"] for packed in chain)
    count = len(chain)
    return {
        "layers": [packed.workload.label for packed in chain], "wrong": wrong,
        "compared": int(2 * sum(array.size for array in expected)), "runs_with_overlap": 1 + AGAIN,
        "distinct_values_of_last": len(np.unique(expected[-1])),
        "layers_alone_microseconds": together, "microseconds": plain.microseconds, "samples": list(plain.samples),
        "overlapping_microseconds": overlapping.microseconds, "overlapping_samples": list(overlapping.samples),
        "clocks": overlapping.clocks(),
        "summary": f"{wrong} wrong; per layer {together / count:.2f} us alone, {plain.microseconds / count:.2f} in the "
        f"chain, {overlapping.microseconds / count:.2f} with launch overlap",
    }  # fmt: skip


def operands(
    chain: list[Packed], arrays: Any = None, first: Case | None = None
) -> tuple[list[dict[str, Any]], list[np.ndarray]]:
    """The words that each layer reads besides its input (and the first one's input), and each layer's exact output.

    ``arrays`` as for GpuCase; ``first``: the case of the first layer, where there is one already.
    """
    inputs, expected = [], []
    for number, packed in enumerate(chain):
        case = first if first and not number else GpuCase(packed.workload, seed=number, arrays=arrays)
        if number:
            case.x = expected[-1]
        wanted = [a for a in packed.launch.arguments if a.role == "in" and not (number and a.name == "A")]
        inputs.append({argument.name: case.operand(argument) for argument in wanted})
        expected.append(case.expected)
    return inputs, expected


def differing(packed: Packed, words: np.ndarray, expected: np.ndarray) -> int:
    """How many of a layer's outputs are not the reference's."""
    (out,) = (argument for argument in packed.launch.arguments if argument.name == "Out")
    return int(np.count_nonzero(output_values(out, packed.workload, words) != expected))

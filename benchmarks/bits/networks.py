"""Time whole binary networks in one CUDA graph, after comparing every layer, with and without launch overlap.

    python benchmarks/bits networks --build FILE.json tcbnn.resnet18@8 ...   # where TVM is
    python benchmarks/bits networks --measure FILE.json --out RECORD.json    # where the GPU is; needs CuPy

The pixels lie in the GPU's memory as bytes when the graph begins, each once; the logits are int32 sums when it
ends. Every element of every layer (bits, kept sums, logits) of a run on poisoned buffers is compared with a direct
convolution of values by CuPy, which knows nothing of bits: float32 products whose sums stay below 2^24. Parameters are
random, with biases, negative and zero gammas: for speed only. Where the CPU does a part, the reason is in the record.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bits.direct import compared, convolved, host, pooled
from benchmarks.shared.command import answering, parser_of
from subbyte.errors import InvalidInput, SubbyteError, Unsupported
from subbyte.families import config_from_key
from subbyte.files import prove_writable, write_file
from subbyte.gpu.chain import GpuChain
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.lock import hold
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.operands import kept_sums
from subbyte.kernel.resources import Resources
from subbyte.networks import Network, Parameters, network
from subbyte.networks.compiled import CompiledNetwork
from subbyte.networks.kernels import LayerKernel
from subbyte.networks.layer import pixel_values
from subbyte.networks.steps import waiting_pool
from subbyte.numerics.bit_layer import BEFORE
from subbyte.records.describe import now
from subbyte.workload import workload
from subbyte.workload.precision import SUMS

NAMES = [f"{name}@{batch}" for name in ("tcbnn.resnet18", "tcbnn.alexnet", "tcbnn.vgg16", "tcbnn.cifar_vgg",
         "tcbnn.cifar_resnet", "tcbnn.mlp", "apnn.alexnet", "apnn.vgg") for batch in (8, 64, 512)]  # fmt: skip


@answering
def main(arguments: Sequence[str]) -> int:
    """Build or measure."""
    parser = parser_of("bits networks", __doc__)
    step = parser.add_mutually_exclusive_group(required=True)
    step.add_argument("--build", type=Path, metavar="FILE")
    step.add_argument("--measure", type=Path, metavar="FILE")
    parser.add_argument("names", nargs="*", help=f"networks (default {len(NAMES)}: {NAMES[0]} ...)")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(arguments)
    if asked.build:
        prove_writable(asked.build)
        built = [packed(network(name)) for name in asked.names or NAMES]
        write_file(asked.build, (json.dumps(built) + "\n").encode())
        return 0
    if asked.out is None:
        raise InvalidInput("--measure needs --out RECORD.json")
    prove_writable(asked.out)
    import cupy  # type: ignore[import-not-found,unused-ignore]

    device = CudaDevice(0)
    record: dict[str, Any] = {"schema": 1, "date": now(), "command": command_line(), "device": device.info.to_dict(),
                              "networks": []}  # fmt: skip
    with hold(device.info):
        for one in json.loads(asked.measure.read_text(encoding="utf-8")):
            found = attempted(one, device, cupy)
            record["networks"].append(found)
            print(
                {key: found[key] for key in ("name", "wrong", "microseconds", "reason", "failed") if key in found},
                flush=True,
            )
            write_file(asked.out, (json.dumps(record, indent=1) + "\n").encode())
    return 1 if any(one.get("wrong") or one.get("failed") for one in record["networks"]) else 0


def packed(found: Network) -> dict[str, Any]:
    """The kernels of a network as plain data; of one that is no chain the reason."""
    compiled = found.compile()
    if compiled.apart:
        return {"name": found.name, "reason": "; ".join(f"{name}: {why}" for name, why in compiled.apart.items())}
    kernels = [one.kernel for one in compiled.kernels]
    compiled.chain()
    layers = [{"workload": one.workload.spec, "config": one.config.key, "output": one.output,
               "resources": one.resources.to_dict(), "cubin": base64.b64encode(one.cubin).decode()}
              for one in kernels]  # fmt: skip
    print(found.name, len(layers), "kernels", flush=True)
    return {"name": found.name, "layers": layers}


def unpacked(given: dict[str, Any]) -> CompiledNetwork:
    """A compiled network from its plain data, without TVM and compiler."""
    found = network(given["name"])
    kernels = []
    for layer, one in zip(found.layers, given["layers"], strict=True):
        plan = make_plan(
            workload(one["workload"]), config_from_key(one["config"]), "sm_90a", one["output"], None, "fixed"
        )
        kernel = Kernel(plan)
        kernel.__dict__["_machine_code"] = base64.b64decode(one["cubin"]), Resources(**one["resources"])
        kernels.append(LayerKernel(layer, kernel, ""))
    return CompiledNetwork(found, found.parameters, "sm_90a", tuple(kernels))


def attempted(given: dict[str, Any], device: CudaDevice, xp: Any) -> dict[str, Any]:
    """What :func:`measured` finds; why it did not, so that the networks behind it are measured all the same."""
    try:
        return measured(given, device, xp)
    except SubbyteError as error:
        return {"name": given["name"], "failed": str(error)}


def measured(given: dict[str, Any], device: CudaDevice, xp: Any) -> dict[str, Any]:
    """A network's comparison and times; of one that is no chain the reason."""
    if "layers" not in given:
        return given
    compiled = unpacked(given)
    found = compiled.network
    images = found.random_images(1)
    with compiled.chain().on_gpu(pixel_values(images), device) as running:
        wrong: dict[str, int] = {}
        for overlap in (False, True):
            running.run(overlap=overlap, timeout_s=30.0)
            for name, count in differing(compiled, running, images, xp):
                wrong[name] = wrong.get(name, 0) + count
        how = TimingProtocol(cold=False, launches=max(1, 200 // len(compiled.kernels)))
        plain, overlapping = running.time(how, overlap=False), running.time(how, overlap=True)
    alone = [_alone(one.kernel, device) for one in compiled.kernels]
    return {
        "name": found.name, "label": found.label, "wrong": sum(wrong.values()),
        "wrong_by_layer": {name: count for name, count in wrong.items() if count},
        "microseconds": overlapping.microseconds, "images_per_second": found.batch / overlapping.microseconds * 1e6,
        "without_overlap": plain.microseconds, "samples": list(overlapping.samples), "clocks": overlapping.clocks(),
        "layers": [
            {"name": one.layer.name, "workload": one.kernel.workload.spec, "config": one.kernel.config.key,
             "output": one.kernel.output, "alone": microseconds}
            for one, microseconds in zip(compiled.kernels, alone, strict=True)
        ],
    }  # fmt: skip


def _alone(kernel: Kernel, device: CudaDevice) -> float:
    """Microseconds of a layer by itself, on whatever its buffers hold."""
    with GpuKernel(kernel.cubin, kernel.launch, device) as gpu:
        words = {one.name: np.zeros(one.shape, one.dtype) for one in kernel.launch.arguments if one.role == "in"}
        gpu.run(words)
        return gpu.time(TimingProtocol(cold=False, launches=50)).microseconds


def differing(compiled: CompiledNetwork, running: GpuChain, images: Any, xp: Any) -> Iterator[tuple[str, int]]:
    """Elements of each layer of the last run that are not those of the direct convolution."""
    for place, (one, (values, sums)) in enumerate(
        zip(compiled.kernels, direct(compiled.network, compiled.parameters, images, xp), strict=True)
    ):
        kernel, layer = one.kernel, one.layer
        ours = kernel.unpack(running.output(place)).reshape(len(images), *layer.output)
        count = int(np.count_nonzero(ours != host(values)))
        if kernel.output != SUMS and kernel.fusion.keep:
            kept = kept_sums(running.output(place, "Sum"), kernel.workload, kernel.fusion)
            count += int(np.count_nonzero(kept.reshape(sums.shape) != host(sums)))
        yield layer.name, count


def direct(found: Network, parameters: Parameters, images: Any, xp: Any) -> Iterator[tuple[Any, Any]]:
    """Each layer's values and sums as arrays of ``xp`` (CuPy, or numpy in tests), of the last one its sums twice."""
    x, waiting = xp.asarray(pixel_values(images)), {}
    rules: list[Any] = [*parameters.thresholds, None]
    for layer, w, rule in zip(found.layers, parameters.weights, rules, strict=True):
        if layer.largest_sum >= 1 << 24:
            raise Unsupported(f"{layer.name}: sums of up to {layer.largest_sum} are not exact in float32")
        sums = convolved(layer.workload, x, w, xp)
        if layer.residual:
            added = pooled(waiting[layer.residual], waiting_pool(found, layer))
            sums[..., : added.shape[3]] += added
        kept = pooled(sums, found.kept_pool(layer.name))
        if layer.name in found.residuals:
            waiting[layer.name] = kept
        if rule is None:
            yield sums, sums
            return
        x = compared(pooled(sums, layer.pool) if layer.pool_order == BEFORE else sums, rule, xp)
        if layer.pool_order != BEFORE:
            x = pooled(x, layer.pool)
        yield x, kept

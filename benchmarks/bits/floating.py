"""Time the same networks in floating point (A4, T5): PyTorch with cuDNN and ours, in turns, in one process.

    python benchmarks/bits networks --build FILE.json apnn.resnet18@8 ...   # where TVM is
    python benchmarks/bits floating FILE.json RECORD.json                   # where the GPU is; needs PyTorch

Every layer has the same sizes: convolution with bias (cuDNN's own search for the fastest), residual, ReLU, pooling.
Channels lie last, the whole forward pass is one CUDA graph, and pixels are floating point already when it begins, which
favours the other side. ``fp32`` takes TF32 in convolutions and products, as PyTorch's users do for speed. Parameters
are random: for speed only; outputs in fp16 are compared with those in fp32.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.bits.networks import unpacked
from benchmarks.shared.command import answering, parser_of
from subbyte.errors import SubbyteError
from subbyte.files import prove_writable, write_file
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.lock import hold
from subbyte.gpu.telemetry import Telemetry
from subbyte.gpu.timing import command_line, spin_up, times
from subbyte.networks import Network
from subbyte.networks.layer import pixel_values
from subbyte.numerics.bit_layer import BEFORE
from subbyte.records.describe import now

OURS, SINGLE, HALF = "ours", "fp32", "fp16"
ROUNDS = 9
SAMPLE_US = 4000.0
"""Of device work in a sample."""
TOLERANCE = 0.05
"""Of the largest output: what fp16 may lie beside fp32."""


@answering
def main(arguments: Sequence[str]) -> int:
    """Measure."""
    parser = parser_of("bits floating", __doc__)
    parser.add_argument("networks", type=Path)
    parser.add_argument("out", type=Path)
    asked = parser.parse_args(arguments)
    prove_writable(asked.out)
    import torch  # type: ignore[import-not-found,unused-ignore]

    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = CudaDevice(0)
    record: dict[str, Any] = {"schema": 1, "kind": "floating", "date": now(), "command": command_line(),
                              "device": device.info.to_dict(), "torch": torch.__version__,
                              "cudnn": torch.backends.cudnn.version(), "rounds": ROUNDS, "networks": []}  # fmt: skip
    with hold(device.info):
        for given in json.loads(asked.networks.read_text(encoding="utf-8")):
            try:
                found = measured(given, device, torch)
            except (SubbyteError, RuntimeError) as error:
                found = {"name": given["name"], "failed": str(error)[:300]}
            record["networks"].append(found)
            print({key: value for key, value in found.items() if key != "samples"}, flush=True)
            write_file(asked.out, (json.dumps(record, indent=1) + "\n").encode())
    return 1 if any("failed" in one for one in record["networks"]) else 0


class Floating:
    """A network's layers in floating point of one width, on the device ``where``."""

    def __init__(self, network: Network, torch: Any, dtype: Any, where: str) -> None:
        self.network, self.torch = network, torch
        draw = torch.Generator().manual_seed(1)
        self.weights, self.biases = [], []
        for layer in network.layers:
            w = layer.workload
            values = torch.randn((w.k, w.c, w.r, w.s), generator=draw) * (2.0 / (w.c * w.r * w.s)) ** 0.5
            self.weights.append(values.to(where, dtype).contiguous(memory_format=torch.channels_last))
            self.biases.append((torch.randn(w.k, generator=draw) / 10).to(where, dtype))

    def __call__(self, x: Any) -> Any:
        """Logits [N,classes] of pixels [N,C,H,W]."""
        torch, waiting = self.torch, {}
        for layer, weight, bias in zip(self.network.layers, self.weights, self.biases, strict=True):
            w = layer.workload
            y = torch.nn.functional.conv2d(x, weight, bias, w.stride, w.pad)
            if layer.residual:
                added = waiting[layer.residual]
                pool = self.network.shortcut_pool(layer)
                added = torch.nn.functional.max_pool2d(added, pool) if pool > 1 else added
                y[:, : added.shape[1]] += added
            if layer.name in self.network.residuals:
                waiting[layer.name] = y
            if layer is self.network.layers[-1]:
                return y.flatten(1)
            if layer.pool > 1 and layer.pool_order == BEFORE:
                y = torch.nn.functional.max_pool2d(y, layer.pool)
            x = torch.relu(y)
            if layer.pool > 1 and layer.pool_order != BEFORE:
                x = torch.nn.functional.max_pool2d(x, layer.pool)
        raise AssertionError("a network has a last layer")


def measured(given: dict[str, Any], device: CudaDevice, torch: Any) -> dict[str, Any]:
    """Microseconds of a network on each side, by turns."""
    compiled = unpacked(given)
    network = compiled.network
    images = network.random_images(1)
    stream = torch.cuda.ExternalStream(int(device.stream))
    sides: dict[str, Callable[[], None]] = {}
    with ExitStack() as open_things:
        running = open_things.enter_context(compiled.chain().on_gpu(pixel_values(images), device))
        running.run(overlap=True, timeout_s=30.0)
        sides[OURS] = open_things.enter_context(device.graph(running.launcher(overlap=True)))
        pixels = torch.from_numpy(pixel_values(images)).permute(0, 3, 1, 2).float().cuda() / 128
        logits = {}
        for name, dtype in ((SINGLE, torch.float32), (HALF, torch.float16)):
            sides[name], logits[name] = _graph(Floating(network, torch, dtype, "cuda"), pixels.to(dtype), torch, stream)
        device.synchronize(30.0)
        apart = float((logits[HALF].float() - logits[SINGLE]).abs().max() / logits[SINGLE].abs().max())
        if not apart < TOLERANCE:
            raise RuntimeError(f"fp16 differs from fp32 by {apart:.3f} of the largest logit")
        telemetry = Telemetry(device.info.bus_id)
        spin_up(device, 300.0, 30.0)
        before, samples = telemetry.snapshot(), _in_turns(sides, device)
        after = telemetry.snapshot()
    middle = {name: statistics.median(values) for name, values in samples.items()}
    ratios = {
        name: statistics.median(a / b for a, b in zip(samples[name], samples[OURS], strict=True))
        for name in (SINGLE, HALF)
    }
    return {"name": network.name, "label": network.label, "microseconds": middle, "times_ours": ratios, "apart": apart,
            "samples": samples, "clocks": {"before": before.to_dict(), "after": after.to_dict()}}  # fmt: skip


def _graph(forward: Floating, x: Any, torch: Any, stream: Any) -> tuple[Callable[[], None], Any]:
    """A function that enqueues a forward pass on ``stream``, and where its logits come to stand. It holds the arrays
    that the graph reads: PyTorch gives free ones back when it captures the next."""
    x = x.contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        for _ in range(3):  # cuDNN searches in the first
            forward(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = forward(x)

    def replay(_held: tuple[Any, Any] = (forward, x)) -> None:
        with torch.cuda.stream(stream):
            graph.replay()

    replay()
    return replay, y


def _in_turns(sides: dict[str, Callable[[], None]], device: CudaDevice) -> dict[str, list[float]]:
    """Microseconds of a run of each side, round by round."""
    counts = {}
    for name, run in sides.items():
        once = max(device.elapsed_us(times(run, 3), 30.0) / 3, 1.0)
        counts[name] = max(1, round(SAMPLE_US / once))
    samples: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(ROUNDS):
        for name in sides if turn % 2 == 0 else reversed(sides):
            work = times(sides[name], counts[name])
            samples[name].append(device.elapsed_us(work, 30.0) / counts[name])
    return samples

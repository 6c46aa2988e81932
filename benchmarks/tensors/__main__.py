"""Time work on PyTorch tensors: packing, unpacking and quantizing on the GPU, a call on the host, whole convolutions.

    SUBBYTE_CACHE=FOLDER/cache PYTHONPATH=toolkit:. python benchmarks/tensors FOLDER OUT.json

FOLDER is what ``tests/gpu/tensor_cases.py FOLDER`` built, so TVM need not be here. The record is written after each
part, and a part that is there already is left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "tests/gpu"))
import tensor_cases as cases

import subbyte
from subbyte.errors import MissingDependency
from subbyte.files import replace_file
from subbyte.kernel.convert import packing, quantizing, unpacking
from subbyte.kernel.convert.build import thresholds
from subbyte.kernel.operands import activation_words
from subbyte.kernel.place import place_at
from subbyte.records.describe import now

LAYERS = ("wide", "stage4", "large")
CALLS, LAUNCHES, REPEATS = 2000, 50, 15
SCALE = 0.37


def main() -> int:
    """All parts, in order."""
    parser = argparse.ArgumentParser(prog="python benchmarks/tensors", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="what `python tests/gpu/tensor_cases.py FOLDER` built")
    parser.add_argument("out", type=Path, help="record to write or continue")
    given = parser.parse_args()
    try:
        import_module("subbyte.torch")
    except MissingDependency as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    import torch

    record = json.loads(given.out.read_text()) if given.out.is_file() else {"device": _device(torch)}
    parts = {"conversions": conversions, "host": host, "conv2d": whole, "module": module,
             "chain": lambda torch: chain(torch, given.folder), "types": types, "pools": pools}  # fmt: skip
    for name, part in parts.items():
        if name not in record:
            record[name] = part(torch)
            replace_file(given.out, (json.dumps(record, indent=1) + "\n").encode())
            print(name, json.dumps(record[name]), flush=True)
    return 0


def _device(torch: Any) -> dict[str, Any]:
    info = place_at(0).device.info
    return {"gpu": info.name, "driver": info.driver_version, "date": now(), "torch": torch.__version__,
            "subbyte": subbyte.__version__, "command": " ".join(sys.argv)}  # fmt: skip


def device_us(torch: Any, work: Callable[[], object]) -> dict[str, float]:
    """Microseconds of one ``work`` in a CUDA graph of many: median and extremes of its replays. Memory is hot in the
    L2 where it fits."""
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            work()
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(5):
        graph.replay()
    samples = []
    for _ in range(REPEATS):
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        samples.append(1000 * start.elapsed_time(stop) / LAUNCHES)
    return {"median_us": statistics.median(samples), "least_us": min(samples), "most_us": max(samples)}


def host_us(torch: Any, work: Callable[[], object]) -> dict[str, float]:
    """Microseconds of the caller's thread for a call that nobody waits for: median and extremes of groups of calls few
    enough that the GPU's queue never is full."""
    for _ in range(200):
        work()
    torch.cuda.synchronize()
    samples = []
    for _ in range(CALLS // 100):
        start = time.perf_counter()
        for _ in range(100):
            work()
        samples.append(1e6 * (time.perf_counter() - start) / 100)
        torch.cuda.synchronize()
    return {"median_us": statistics.median(samples), "least_us": min(samples), "most_us": max(samples)}


def waited_us(torch: Any, work: Callable[[], object], count: int = 50) -> dict[str, float]:
    """Microseconds from a call to its result's being there, each call for itself."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    samples = []
    for _ in range(count):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        samples.append(1e6 * (time.perf_counter() - start))
    return {"median_us": statistics.median(samples), "least_us": min(samples), "most_us": max(samples)}


def conversions(torch: Any) -> list[dict[str, Any]]:
    """Packing, unpacking and quantizing, beside a copy of as many bytes."""
    found = []
    for name in LAYERS:
        wl = cases.drawn(name)[0]
        kernel = cases.kernels(name)[0]
        into, out = kernel.argument("A"), kernel.argument("Out")
        shape, returns = (wl.n, wl.h, wl.w, wl.c), (wl.n, wl.p, wl.q, wl.k)
        made = {"pack int8": packing(into.form, shape, cases.ARCH),
                "pack int8 nchw": packing(into.form, shape, cases.ARCH, "int8", "nchw"),
                "unpack int8": unpacking(out.form, returns, cases.ARCH)}  # fmt: skip
        made |= {f"quantize {one}": quantizing(into.form, shape, cases.ARCH, one) for one in cases.REALS}
        for what, conversion in made.items():
            tensors = [torch.zeros(one.nbytes, dtype=torch.uint8, device="cuda") for one in conversion.launch.arguments]
            if len(tensors) == 3:
                tensors[0] = torch.randn(tensors[0].numel() // 2, device="cuda", dtype=torch.float16)
                tensors[2] = torch.from_numpy(thresholds(SCALE)).cuda()
            addresses = [one.data_ptr() for one in tensors]
            run = place_at(0).load(conversion)
            moved = sum(one.nbytes for one in conversion.launch.arguments[:2])
            timed = device_us(torch, lambda run=run, addresses=addresses: run(
                addresses, torch.cuda.current_stream().cuda_stream, False))  # fmt: skip
            half = torch.zeros(moved // 2, dtype=torch.uint8, device="cuda")
            target = torch.empty_like(half)
            copied = device_us(torch, lambda half=half, target=target: target.copy_(half))
            found.append({"layer": wl.spec, "what": what, "bytes": moved, **timed, "copy": copied})
    return found


def _tensors(torch: Any, name: str) -> Any:
    return torch.from_numpy(cases.drawn(name)[1]).cuda()


def host(torch: Any) -> dict[str, Any]:
    """What a call costs its caller."""
    from subbyte.torch import Conv2d

    wl, _, w, requant = cases.drawn("stage4")
    x = _tensors(torch, "stage4")
    layer = cases.kernels("stage4")[0].on_device(w, requant)
    given = torch.from_numpy(np.ascontiguousarray(w.transpose(0, 3, 1, 2)))
    made = Conv2d(given, requant, (wl.n, wl.h, wl.w), padding=wl.pad, arch=cases.ARCH, input_scale=SCALE,
                  gives="packed").cuda()  # fmt: skip
    words = torch.ops.subbyte.pack(x, None, made.reads, made.arch)
    operator, arguments = torch.ops.subbyte.conv2d.default, (words, made.weight, made.requantization, made.kernel)
    run = place_at(0).load(cases.kernels("stage4")[0])
    out, parameters = torch.empty_like(words), made.requantization
    addresses = (words.data_ptr(), out.data_ptr(), parameters.data_ptr(), made.weight.data_ptr())
    stream = torch.cuda.current_stream().cuda_stream
    nchw = x.permute(0, 3, 1, 2)
    with torch.no_grad():
        return {
            "launch alone": host_us(torch, lambda: run(addresses, stream, False)),
            "operator, words": host_us(torch, lambda: operator(*arguments)),
            "module, words": host_us(torch, lambda: made(words)),
            "module, int8 to words": host_us(torch, lambda: made(nchw)),
            "on_device, words": host_us(torch, lambda: layer(words)),
            "on_device, int8 to int8": host_us(torch, lambda: layer(x)),
            "conv2d, int8 to int8": host_us(torch, lambda: subbyte.conv2d(x, w, requant, pad=wl.pad)),
            "torch conv2d fp16, for comparison": host_us(torch, _half(torch, wl)),
        }


def _half(torch: Any, wl: Any) -> Callable[[], object]:
    """A convolution of torch with the same sizes."""
    x = torch.randn(wl.n, wl.c, wl.h, wl.w, device="cuda", dtype=torch.float16).to(memory_format=torch.channels_last)
    w = torch.randn(wl.k, wl.c, wl.r, wl.s, device="cuda", dtype=torch.float16).to(memory_format=torch.channels_last)
    return lambda: torch.nn.functional.conv2d(x, w, padding=wl.pad, stride=wl.stride)


def whole(torch: Any) -> list[dict[str, Any]]:
    """A convolution of torch tensors, int8 to int8, from the call to the result: through the host as before (the
    checking path), and on the device; and what the device alone needs."""
    return [_whole(torch, name) for name in LAYERS]


def _whole(torch: Any, name: str) -> dict[str, Any]:
    wl, _, w, requant = cases.drawn(name)
    x, kernel = _tensors(torch, name), cases.kernels(name)[0]
    layer = kernel.on_device(w, requant)
    packed = layer(x, packed=True)
    assert np.array_equal(layer(x).cpu().numpy(), cases.right(name))
    words = torch.ops.subbyte.pack(x, None, kernel.argument("A").form, cases.ARCH)
    assert torch.equal(layer(words), packed)
    return {
        "layer": wl.spec, "kernel": kernel.config.key, "chosen": kernel.reason,
        "Kernel.run": waited_us(torch, lambda: kernel.run(x, w, requant), 5),
        "conv2d": waited_us(torch, lambda: subbyte.conv2d(x, w, requant, pad=wl.pad)),
        "on_device": waited_us(torch, lambda: layer(x)),
        "device, int8 to int8": device_us(torch, lambda: layer(x)),
        "device, words to words": device_us(torch, lambda: layer(words)),
        "device, torch fp16": device_us(torch, _half(torch, wl)),
    }  # fmt: skip


def types(torch: Any) -> list[dict[str, Any]]:
    """Layers of other types than int4, each as ``subbyte.compile`` takes it, every element compared: words in and out,
    and values in and out, whose conversions add and subtract a zero point where there is one; int4 first."""
    found = [
        {"name": "int4", **{key: one for key, one in _whole(torch, "stage4").items() if key.startswith("device,")}}
    ]
    for name in cases.TYPED:
        (kernel, _), x, w, requant, right = cases.typed(name)
        layer, given = kernel.on_device(w, requant), torch.from_numpy(x).cuda()
        assert np.array_equal(layer(given).cpu().numpy(), right)
        words = torch.from_numpy(kernel.pack(x, w, requant)["A"].view(np.int32)).cuda()
        assert torch.equal(layer(words), layer(given, packed=True))
        found.append({
            "name": name, "layer": kernel.workload.spec, "kernel": kernel.config.key, "chosen": kernel.reason,
            "device, words to words": device_us(torch, lambda layer=layer, words=words: layer(words)),
            "device, values to values": device_us(torch, lambda layer=layer, given=given: layer(given)),
        })  # fmt: skip
    return found


def pools(torch: Any) -> list[dict[str, Any]]:
    """Pooling of words of each type, every element compared."""
    found = []
    for name in cases.POOLS:
        kernel, x, right = cases.pooled(name)
        layer, given = kernel.on_device(), torch.from_numpy(x).cuda()
        assert np.array_equal(layer(given).cpu().numpy(), right)
        words = torch.from_numpy(activation_words(kernel.argument("A"), kernel.workload, x).view(np.int32)).cuda()
        timed = device_us(torch, lambda layer=layer, words=words: layer(words))
        found.append({"name": name, "pool": kernel.key, "layer": kernel.workload.spec, **timed})
    return found


def module(torch: Any) -> dict[str, Any]:
    """Two modules, float in and out, words between: called, compiled, in a CUDA graph."""
    from subbyte.torch import Conv2d

    wl, _, w, requant = cases.drawn("stage4")
    given = torch.from_numpy(np.ascontiguousarray(w.transpose(0, 3, 1, 2)))

    def layer(gives: str, **more: Any) -> Any:
        return Conv2d(given, requant, (wl.n, wl.h, wl.w), padding=wl.pad, arch=cases.ARCH, gives=gives, **more)

    network = torch.nn.Sequential(layer("packed", input_scale=SCALE), layer("float", output_scale=0.5)).cuda()
    x = torch.randn(wl.n, wl.c, wl.h, wl.w, device="cuda", dtype=torch.float16)
    x = x.to(memory_format=torch.channels_last)
    compiled = torch.compile(network, fullgraph=True)
    with torch.no_grad():
        right = network(x)
        begun = time.perf_counter()
        assert torch.equal(compiled(x), right)
        seconds = time.perf_counter() - begun
        return {
            "called, host": host_us(torch, lambda: network(x)),
            "compiled, host": host_us(torch, lambda: compiled(x)),
            "compile seconds": seconds,
            "device": device_us(torch, lambda: network(x)),
            "compiled, device": device_us(torch, lambda: compiled(x)),
        }


def chain(torch: Any, folder: Path) -> dict[str, Any]:
    """A saved chain of four layers."""
    layers = subbyte.load_chain(folder / "chain.safetensors").on_device()
    x, right = _tensors(torch, "stage4"), cases.chain_right()
    assert np.array_equal(layers(x).cpu().numpy(), right)
    words = torch.ops.subbyte.pack(x, None, cases.PACKED, cases.ARCH)
    return {
        "layers": cases.CHAIN,
        "host, words": host_us(torch, lambda: layers(words)),
        "host, int8": host_us(torch, lambda: layers(x)),
        "device, words": device_us(torch, lambda: layers(words)),
        "device, int8": device_us(torch, lambda: layers(x)),
    }


if __name__ == "__main__":
    sys.exit(main())

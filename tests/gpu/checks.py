"""What the GPU tests do with one prebuilt kernel, in a process of its own: a kernel that never ends costs one test."""

from __future__ import annotations

import os
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from compile_kernels import planned

from subbyte.device.launch import Launch
from subbyte.errors import InvalidInput
from subbyte.families import config_from_key
from subbyte.gpu.chain import GpuChain
from subbyte.gpu.device import CudaDevice, DeviceBuffer, open_device
from subbyte.gpu.launched import GpuKernel
from subbyte.kernel import Kernel
from subbyte.kernel.execute import compared, expected_layer, random_operands, random_residual
from subbyte.kernel.operands import activation_words, output_values, parameter_words, weight_words
from subbyte.numerics import Requantization, Thresholds, random_output, random_values, reference, to_nhwc_words
from subbyte.sparse.patterns import prune
from subbyte.workload import ConvWorkload
from subbyte.workload.operand import BLOCKS, Operand

TIMEOUT_S = 5.0
POISON = 0xA5


# ---- every element, on operands meant to break it --------------------------------------------------------------------


def fills(wl: ConvWorkload, rng: np.random.Generator):
    """Named operands: random over the full range, extreme sums, alternating signs, borders, single channels. Weights
    have the zeros of their type."""
    for name, x, w in _fills(wl, rng):
        yield name, x, with_zeros(wl.precision.weights, w)


def with_zeros(operand: Operand, w: np.ndarray) -> np.ndarray:
    """``w`` [K,R,S,C] with the zeros that a sparse type must have: of N:M from filter to filter at other places."""
    if operand.live_percent is not None:
        return prune(w, f"{BLOCKS}:{operand.share}")
    if operand.group is None:
        return w
    kept, among = operand.group
    filters, channels = np.ogrid[: w.shape[0], : w.shape[-1]]
    return np.where(((filters + channels) % among < kept)[:, None, None], w, 0).astype(w.dtype)


def _fills(wl: ConvWorkload, rng: np.random.Generator):
    types = wl.precision
    shapes = (wl.n, wl.h, wl.w, wl.c), (wl.k, wl.r, wl.s, wl.c)
    (of_x, of_w), (shape_x, shape_w) = (types.activations, types.weights), shapes
    ends = [(operand.least, operand.largest) for operand in (of_x, of_w)]
    yield "random", random_values(of_x, shape_x, rng), random_values(of_w, shape_w, rng)
    for x in ends[0]:
        for w in ends[1]:
            yield f"all {x} and {w}", np.full(shape_x, x, of_x.dtype), np.full(shape_w, w, of_w.dtype)
    if 1 in of_x.values and 1 in of_w.values:
        yield "ones", np.full(shape_x, 1, of_x.dtype), np.full(shape_w, 1, of_w.dtype)
    signs = [
        np.array(pair, operand.dtype)[np.indices(shape).sum(0) % 2]
        for pair, operand, shape in zip(ends, (of_x, of_w), shapes, strict=True)
    ]
    yield "alternating", signs[0], signs[1]
    # One value in each corner of the input: a wrong tap, image or border shows as a wrong place.
    still = 0 if 0 in of_x.values else of_x.least
    x = np.full(shape_x, still, of_x.dtype)
    for n in {0, wl.n - 1}:
        for h, w in {(0, 0), (0, wl.w - 1), (wl.h - 1, 0), (wl.h - 1, wl.w - 1)}:
            x[n, h, w, (h + w) % wl.c] = of_x.largest
            x[n, h, w, wl.c - 1] = of_x.least if still == 0 and of_x.least else of_x.largest
    yield "corners", x, random_values(of_w, shape_w, rng)
    # Only the outermost rows and columns: what is taken for padding must not be the image, and the other way round.
    x = random_values(of_x, shape_x, rng)
    x[:, 1:-1, 1:-1] = still
    yield "borders", x, random_values(of_w, shape_w, rng)
    # Distinct weights for every tap, one channel at a time.
    values = np.array(sorted(of_w.values), of_w.dtype)
    w = np.full(shape_w, 0 if 0 in of_w.values else of_w.least, of_w.dtype)
    w[..., -1] = values[np.arange(w[..., -1].size, dtype=np.int64).reshape(shape_w[:-1]) % len(values)]
    yield "last channel", random_values(of_x, shape_x, rng), w


def output_rules(wl: ConvWorkload, form: str, clip: tuple[int, int], rng: np.random.Generator):
    """What may stand behind the sums: requantizations where the kernel rounds, else thresholds with flips and what
    random sums need."""
    if form.startswith(("fixed", "general", "float", "begun")):
        yield from requantizations(wl, form == "general", clip, rng)
        return
    yield random_output(wl, rng)
    yield Thresholds.random(wl, rng)


def requantizations(wl: ConvWorkload, general: bool, clip: tuple[int, int], rng: np.random.Generator):
    """One that uses the whole range, one of ties; for the general form also the largest multiplier and shift."""
    drawn = Requantization.random(wl, rng, wide=general)
    output = wl.precision.output
    yield Requantization(drawn.bias, drawn.multiplier, drawn.shift, clip, output=output)
    half = np.full(wl.k, 1, np.int32)  # (acc * 1 + 1) >> 1: a tie for every odd sum
    yield Requantization(np.arange(wl.k, dtype=np.int32) - wl.k // 2, half, half, clip, output=output)
    if general:
        wide = np.full(wl.k, 2**31 - 1, np.int32)
        yield Requantization(drawn.bias, wide, np.full(wl.k, 62, np.int32), clip, output=output)
        yield Requantization(drawn.bias, wide, half, clip, output=output)


def every_element(wl: ConvWorkload, cubin: bytes, launch: Launch, clip: tuple[int, int]) -> tuple[int, list[str]]:
    """How many outputs were compared, and what was wrong, where ([n, p, q, k]).

    Every output is poisoned, and computed twice.
    """
    rng = np.random.default_rng(7)
    by_name = {argument.name: argument for argument in launch.arguments}
    compared, problems = 0, []
    with GpuKernel(cubin, launch, open_device(0)) as gpu:
        for name, x, w in fills(wl, rng):
            sums = reference(wl, x, w)
            buffers = {"A": activation_words(by_name["A"], wl, x), "Wt": weight_words(by_name["Wt"], wl, w)}
            scalings: list[Any] = [None]
            if "Prm" in by_name:
                scalings = list(output_rules(wl, by_name["Prm"].form, clip, rng))
            for number, requant in enumerate(scalings):
                if requant is not None:
                    try:
                        buffers["Prm"] = parameter_words(by_name["Prm"], wl, requant, w)
                    except InvalidInput as error:  # a form that cannot express it says so
                        if not any(reason in str(error) for reason in ("not exact", "lie on no line")):
                            raise
                        continue
                words = gpu.run(buffers, TIMEOUT_S)["Out"]
                expected = sums if requant is None else requant.apply(sums)
                found = output_values(by_name["Out"], wl, words)
                wrong = int(np.count_nonzero(found != expected))
                compared += 1
                if wrong:
                    where = np.argwhere(found != expected)
                    problems.append(
                        f"{name}, {number}: {wrong} of {found.size}, {where[0]} to {where[-1]} [n, p, q, k]"
                    )
    return compared, problems


def whole_layer(wl: ConvWorkload, key: str, options: dict[str, Any], cubin: bytes) -> tuple[int, str]:
    """How many elements of a kernel's output were compared with the reference, of sums that it keeps too, and what was
    wrong: random operands over the whole range of their types."""
    kernel = Kernel(planned(wl, config_from_key(key), "sm_90a", **options))
    x, w, requant = random_operands(kernel, 1)
    residual = random_residual(kernel, 3)
    with GpuKernel(cubin, kernel.launch, open_device(0)) as gpu:
        outputs = gpu.run(kernel.pack(x, w, requant, residual), TIMEOUT_S)
    report = compared(kernel, outputs, expected_layer(kernel, x, w, requant, residual))
    return report.elements, "" if report.ok else str(report)


# ---- the same bits in every run --------------------------------------------------------------------------------------


class Direct:
    """The plain reference kernel and the counter of differing words, on the device."""

    def __init__(self, device: CudaDevice) -> None:
        self.device = device
        cubin = (Path(os.environ["SUBBYTE_GPU_BUNDLE"]) / "direct.cubin").read_bytes()
        self.direct, self.differing = (device.load(cubin, entry) for entry in ("direct", "differing"))

    def convolve(
        self, wl: ConvWorkload, x: DeviceBuffer, w: np.ndarray, requant: Requantization, out: DeviceBuffer
    ) -> None:
        """Packed words of the whole output for packed words ``x``; ``w`` int8 [K,R,S,C]."""
        filters = wl.filter_blocks * 32
        padded = np.zeros((filters, *w.shape[1:]), np.int8)
        padded[: wl.k] = w
        scaling = np.zeros((3, filters), np.int32)
        scaling[2] = 1
        scaling[:, : wl.k] = requant.bias, requant.multiplier, requant.shift
        sizes = np.array(
            [wl.batch_groups * 8, wl.h, wl.w, wl.channel_blocks * 4, wl.p, wl.q, filters // 8, wl.r, wl.s, wl.pad,
             wl.stride, wl.dilation, *requant.clip], np.int32,
        )  # fmt: skip
        held = [self.device.upload(array) for array in (to_nhwc_words(padded), scaling, sizes)]
        pointers = [x.pointer, *(buffer.pointer for buffer in held), out.pointer]
        self.direct.launch((-(-out.nbytes // 4 // 256), 1, 1), (256, 1, 1), 0, pointers)
        self.device.synchronize(TIMEOUT_S)
        for buffer in held:
            buffer.free()

    def count(self, a: DeviceBuffer, b: DeviceBuffer, length: DeviceBuffer, count: DeviceBuffer) -> None:
        """Enqueue adding to ``count`` how many words of ``a`` and ``b`` differ."""
        self.differing.launch((264, 1, 1), (256, 1, 1), 0, [a.pointer, b.pointer, length.pointer, count.pointer])


@cache
def direct_on(ordinal: int = 0) -> Direct:
    """The reference kernel, loaded once for each process."""
    return Direct(open_device(ordinal))


def random_words(wl: ConvWorkload, rng: np.random.Generator) -> np.ndarray:
    """Random packed activations over the whole range; zeros where there is neither image nor channel."""
    words = rng.integers(0, 1 << 32, (wl.batch_groups, wl.h, wl.w, wl.channel_blocks, 8, 4), np.uint32)
    if wl.n % 8:
        words[-1, ..., wl.n % 8 :, :] = 0
    if wl.c % 32:
        last = np.zeros(32, np.uint64)
        last[: wl.c % 32] = 15
        keep = (last.reshape(4, 8) << (4 * np.arange(8, dtype=np.uint64))).sum(1).astype(np.uint32)
        words[..., -1, :, :] &= keep
    return words


def repeated(wl: ConvWorkload, cubin: bytes, launch: Launch, clip: tuple[int, int], runs: int) -> dict[str, int]:
    """Words that differed from the plain reference kernel's in ``runs`` launches, one by one and overlapping.

    Only for int4 outputs in the packed layout. Overlapping launches go ten at a time to outputs of their own.
    """
    device, rng = open_device(0), np.random.default_rng(5)
    by_name = {argument.name: argument for argument in launch.arguments}
    drawn = Requantization.random(wl, rng, wide=by_name["Prm"].form == "general")
    requant = Requantization(drawn.bias, drawn.multiplier, drawn.shift, clip)
    w = random_values(wl.precision.weights, (wl.k, wl.r, wl.s, wl.c), rng)
    x = device.upload(random_words(wl, rng))
    size = by_name["Out"].nbytes
    together = 10 if size < 1 << 28 else 2
    expected, *outs = (device.alloc(size) for _ in range(1 + together))
    placed = {"A": x, "Wt": device.upload(weight_words(by_name["Wt"], wl, w)),
              "Prm": device.upload(parameter_words(by_name["Prm"], wl, requant, w))}  # fmt: skip
    length, count = device.upload(np.array([size // 4], np.uint32)), device.alloc(4)
    function, direct = device.load(cubin, launch.entry), direct_on()
    function.allow_shared(launch.shared_bytes)
    direct.convolve(wl, x, w, requant, expected)
    different = {}
    for name, at_once in (("alone", 1), ("overlapping", together)):
        count.fill(0)
        for _ in range(runs // at_once):
            for out in outs[:at_once]:
                out.fill(POISON)
            for place, out in enumerate(outs[:at_once]):
                pointers = [(placed.get(argument.name) or out).pointer for argument in launch.arguments]
                overlap = launch.dependent_launch and place > 0
                function.launch(launch.grid, launch.block, launch.shared_bytes, pointers, overlap)
            for out in outs[:at_once]:
                direct.count(out, expected, length, count)
        device.synchronize(20.0)
        different[name] = int(count.download((1,), np.uint32)[0])
    function.unload()
    for buffer in (*placed.values(), expected, *outs, length, count):
        buffer.free()
    return different


def chained(layers: list[tuple[ConvWorkload, bytes, Launch]], runs: int) -> dict[str, int]:
    """Words that differed from the plain reference kernel's in every layer's output of a chain, without and with launch
    overlap, ``runs`` times each."""
    device, rng = open_device(0), np.random.default_rng(11)
    inputs, expected = [], []
    for number, (wl, _, launch) in enumerate(layers):
        by_name = {argument.name: argument for argument in launch.arguments}
        requant, w = Requantization.random(wl, rng), rng.integers(-8, 8, (wl.k, wl.r, wl.s, wl.c), np.int8)
        first = random_words(wl, rng) if number == 0 else expected[-1]
        held, out = device.upload(first), device.alloc(by_name["Out"].nbytes)
        direct_on().convolve(wl, held, w, requant, out)
        expected.append(out.download(by_name["Out"].shape, np.uint32))
        words = {"Wt": weight_words(by_name["Wt"], wl, w), "Prm": parameter_words(by_name["Prm"], wl, requant, w)}
        inputs.append(words | ({"A": first.reshape(by_name["A"].shape)} if number == 0 else {}))
        held.free()
        out.free()
    different = {"in turn": 0, "overlapping": 0}
    with GpuChain([(cubin, launch) for _, cubin, launch in layers], inputs, device) as chain:
        for name in different:
            for _ in range(runs):
                chain.run(name == "overlapping", TIMEOUT_S)
                different[name] += sum(int((chain.output(i) != words).sum()) for i, words in enumerate(expected))
    return different


def against_the_cpu(wl: ConvWorkload, seed: int) -> int:
    """Words in which the plain reference kernel differs from the CPU's reference."""
    device, rng = open_device(0), np.random.default_rng(seed)
    x = rng.integers(-8, 8, (wl.n, wl.h, wl.w, wl.c), np.int8)
    w = rng.integers(-8, 8, (wl.k, wl.r, wl.s, wl.c), np.int8)
    requant = Requantization.random(wl, rng, wide=bool(seed % 2), relu=seed % 3 == 1)
    from subbyte.numerics import from_nhwcnc, to_nhwcnc

    words, shape = device.upload(to_nhwcnc(x)), (wl.batch_groups, wl.p, wl.q, wl.filter_blocks, 8, 4)
    out = device.alloc(4 * prod(shape))
    direct_on().convolve(wl, words, w, requant, out)
    found = from_nhwcnc(out.download(shape, np.uint32), wl.n, wl.k)
    words.free()
    out.free()
    return int(np.count_nonzero(found != requant.apply(reference(wl, x, w))))

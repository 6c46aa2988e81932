"""Every prebuilt kernel against the exact reference, on random operands and on ones meant to break it."""

import numpy as np
import pytest

from subbyte.data import Requantization
from subbyte.measure.case import Case
from subbyte.measure.gpu import GpuKernel

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]


def _fills(wl, rng):
    shape_x, shape_w = (wl.n, wl.h, wl.w, wl.c), (wl.k, wl.r, wl.s, wl.c)
    yield "random", rng.integers(-8, 8, shape_x, np.int8), rng.integers(-8, 8, shape_w, np.int8)
    for name, x, w in (("largest sum", -8, -8), ("smallest sum", -8, 7), ("ones", 1, 1)):
        yield name, np.full(shape_x, x, np.int8), np.full(shape_w, w, np.int8)
    # One value in each corner of the input: a wrong tap, image or border shows as a wrong place.
    x = np.zeros(shape_x, np.int8)
    for n in {0, wl.n - 1}:
        for h, w in {(0, 0), (0, wl.w - 1), (wl.h - 1, 0), (wl.h - 1, wl.w - 1)}:
            x[n, h, w, (h + w) % wl.c] = 7
            x[n, h, w, wl.c - 1] = -8
    yield "corners", x, rng.integers(-8, 8, shape_w, np.int8)
    # Distinct weights for every tap, one channel at a time.
    w = np.zeros(shape_w, np.int8)
    w[..., -1] = np.arange(w[..., -1].size, dtype=np.int64).reshape(shape_w[:-1]) % 16 - 8
    yield "last channel", rng.integers(-8, 8, shape_x, np.int8), w


def _requantizations(kernel, rng):
    wl, clip = kernel.workload, kernel.clip
    drawn = Requantization.random(wl, rng)
    yield Requantization(drawn.bias, drawn.multiplier, drawn.shift, clip)
    half = np.full(wl.k, 1, np.int32)  # (acc * 1 + 1) >> 1: a tie for every odd sum
    yield Requantization(np.arange(wl.k, dtype=np.int32) - wl.k // 2, half, half, clip)
    if any(argument.form == "general" for argument in kernel.launch.arguments):
        wide = np.full(wl.k, 2**31 - 1, np.int32)
        yield Requantization(drawn.bias, wide, np.full(wl.k, 62, np.int32), clip)
        yield Requantization(drawn.bias, wide, half, clip)


def test_every_element_equals_the_reference(kernel, device):
    rng = np.random.default_rng(7)
    checked = 0
    with GpuKernel(kernel.cubin, kernel.launch, device) as gpu:
        for name, x, w in _fills(kernel.workload, rng):
            for number, requant in enumerate(_requantizations(kernel, rng)):
                case = Case(kernel.workload, x=x, w=w, requant=requant)
                try:
                    buffers = {argument.name: case.operand(argument) for argument in gpu.inputs}
                except ValueError as error:
                    if "not exact in the kernel's fixed form" in str(error):
                        continue
                    raise
                out = gpu.run(buffers)["Out"]
                report = case.check(out, gpu.outputs[0])
                assert report.ok, f"{name}, requantization {number}: {report}"
                checked += 1
    assert checked >= 6


def test_a_wrong_expectation_is_noticed(first, device):
    case = Case(first.workload, requant=None)
    case.requant = Requantization(case.requant.bias, case.requant.multiplier, case.requant.shift, first.clip)
    with GpuKernel(first.cubin, first.launch, device) as gpu:
        out = gpu.run({argument.name: case.operand(argument) for argument in gpu.inputs})["Out"]
        assert case.check(out, gpu.outputs[0]).ok
        word = out.reshape(-1)
        word[0] ^= np.uint32(1)
        assert case.check(out, gpu.outputs[0]).wrong == 1

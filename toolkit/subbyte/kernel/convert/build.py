"""Conversions by what they do, with their texts and machine code, which are cached like those of every kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.device.launch import Launch
from subbyte.kernel.build import compiled
from subbyte.kernel.cached_text import cached_text
from subbyte.kernel.convert.forms import Shape
from subbyte.kernel.convert.plan import NHWC, PACK, STEPS, UNPACK, ConversionPlan
from subbyte.numerics.quantize import quantize
from subbyte.workload.operand import Operand
from subbyte.workload.precision import INT4


@dataclass(frozen=True)
class Conversion:
    """A conversion kernel: its plan, and texts and code that are made when first asked for."""

    plan: ConversionPlan

    @property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        return self.plan.launch

    @cached_property
    def cuda(self) -> str:
        """The generated CUDA C++ text. Raises MissingDependency where it is not cached and TVM is not there."""

        def emitted() -> Any:
            from subbyte.kernel.convert.emit import conversion_kernel

            return conversion_kernel(self.plan)

        plan = self.plan
        fields = plan.kind, plan.form, plan.shape, plan.element, plan.axes, plan.signed, plan.bits
        return cached_text(f"a conversion of {plan.form}", "convert", fields, plan.arch, self.launch, emitted)

    @cached_property
    def cubin(self) -> bytes:
        """Machine code for the architecture."""
        return compiled(self.cuda, self.plan.arch)[0]


@lru_cache(maxsize=512)
def packing(
    form: str, shape: tuple[int, int, int, int], arch: str, element: str = "int8", axes: str = NHWC,
    signed: bool = True, bits: int = 4,
) -> Conversion:  # fmt: skip
    """Values [N,H,W,C] to int4 words of a form, or to words of 8-bit values, from int8 or uint8 ones. Those
    beyond int4 become its nearest; of real ones ``Prm`` holds :func:`thresholds`. Raises InvalidInput, Unsupported."""
    return Conversion(ConversionPlan(PACK, form, Shape(*shape), element, axes, arch, signed, bits))


def quantizing(form: str, shape: tuple[int, int, int, int], arch: str, element: str, axes: str = NHWC) -> Conversion:
    """Real values [N,H,W,C], float16, bfloat16 or float32, to int4 words. Raises InvalidInput, Unsupported."""
    return packing(form, shape, arch, element, axes)


@lru_cache(maxsize=512)
def unpacking(
    form: str, shape: tuple[int, int, int, int], arch: str, element: str = "int8", signed: bool = True, bits: int = 4
) -> Conversion:
    """Words of a form to values [N,H,W,C], cropped: int4 words to int8, those of 8 bits to int8 or uint8, words of sums
    to int32; ``bits`` are those of the output's type, sums too. Raises InvalidInput,
    Unsupported."""
    return Conversion(ConversionPlan(UNPACK, form, Shape(*shape), element, NHWC, arch, signed, bits))


def thresholds(scale: float, operand: Operand = INT4.activations) -> NDArray[np.float32]:
    """The least binary32 number that :func:`subbyte.numerics.quantize` takes to each value of a type of 16 but the
    least: float32 [16], the last one filling up. So a kernel that counts how many a number reaches rounds and clips
    exactly as that does, whatever the scale. Raises InvalidInput for a scale that is not positive and finite."""
    quantize(np.zeros(1), scale, operand)
    found = np.full(STEPS + 1, np.inf, np.float32)
    for place in range(STEPS):
        value = operand.least + place + 1
        with np.errstate(over="ignore"):
            near = np.float32((value - 0.5) * scale)
        tried = _around(near)
        real = tried[np.isfinite(tried)]
        reached = real[quantize(real, scale, operand) >= value]
        found[place] = reached.min() if reached.size else np.inf
    return found


def _around(near: np.float32) -> NDArray[np.float32]:
    """Neighbouring binary32 numbers, with some on either side."""
    largest = np.finfo(np.float32).max
    down = [np.float32(np.clip(near, -largest, largest))]
    up = [down[0]]
    with np.errstate(over="ignore", under="ignore"):
        for _ in range(4):
            down.append(np.nextafter(down[-1], np.float32(-np.inf)))
            up.append(np.nextafter(up[-1], np.float32(np.inf)))
    return np.array([*reversed(down), *up[1:]], np.float32)

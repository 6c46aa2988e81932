"""Conversion kernels by purpose; their texts and machine code are cached like those of every kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.device.launch import Launch
from subbyte.errors import Unsupported
from subbyte.kernel.build import compiled
from subbyte.kernel.cached_text import cached_text
from subbyte.kernel.convert.forms import Shape
from subbyte.kernel.convert.plan import NHWC, PACK, STEPS, UNPACK, ConversionPlan
from subbyte.numerics.quantize import quantize
from subbyte.workload.coverage import WHOLE
from subbyte.workload.operand import SIGNED, Operand
from subbyte.workload.precision import INT4, SUMS


@dataclass(frozen=True)
class Conversion:
    """A conversion kernel: its plan, and its text and machine code, generated on first access."""

    plan: ConversionPlan

    @property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        return self.plan.launch

    @cached_property
    def cuda(self) -> str:
        """The generated CUDA C++ text. Raises MissingDependency if it is not cached and TVM is not installed."""

        def emitted() -> Any:
            from subbyte.kernel.convert.emit import conversion_kernel

            return conversion_kernel(self.plan)

        plan = self.plan
        fields: list[object] = [plan.kind, plan.form, plan.shape, plan.element, plan.axes, plan.signed, plan.bits]
        if plan.zero:
            fields.append(plan.zero)
        return cached_text(f"a conversion of {plan.form}", "convert", fields, plan.arch, self.launch, emitted)

    @cached_property
    def cubin(self) -> bytes:
        """Machine code for the architecture."""
        return compiled(self.cuda, self.plan.arch)[0]


@lru_cache(maxsize=512)
def packing(
    form: str, shape: tuple[int, int, int, int], arch: str, element: str = "int8", axes: str = NHWC,
    operand: Operand = INT4.activations,
) -> Conversion:  # fmt: skip
    """Values [N,H,W,C], integers of the type's dtype or real numbers, to words that hold a type of 4 or 8 bits.
    Integers out of range are clipped; for real numbers ``Prm`` holds the type's :func:`thresholds`. Raises
    InvalidInput, Unsupported."""
    return Conversion(ConversionPlan(PACK, form, Shape(*shape), element, axes, arch, *_code_of(operand)))


def quantizing(
    form: str, shape: tuple[int, int, int, int], arch: str, element: str, axes: str = NHWC,
    operand: Operand = INT4.activations,
) -> Conversion:  # fmt: skip
    """Real numbers [N,H,W,C] (float16, bfloat16 or float32) to words of a type of 4 or 8 bits. Raises InvalidInput,
    Unsupported."""
    return packing(form, shape, arch, element, axes, operand)


@lru_cache(maxsize=512)
def unpacking(
    form: str, shape: tuple[int, int, int, int], arch: str, element: str = "int8",
    operand: Operand = INT4.activations,
) -> Conversion:  # fmt: skip
    """Words to values [N,H,W,C] without padding: words of a 4- or 8-bit type to its dtype, words of sums to
    int32 (the words are laid out as for the output type). Raises InvalidInput, Unsupported."""
    how = (True, operand.bits, 0) if element == SUMS and operand.bits in (4, 8) else _code_of(operand)
    return Conversion(ConversionPlan(UNPACK, form, Shape(*shape), element, NHWC, arch, *how))


def convertible(operand: Operand) -> bool:
    """Whether words of a type can be packed and unpacked on a device: 4 or 8 bits, signed or unsigned, with or without
    a zero point."""
    return operand.bits in (4, 8) and operand.encoding in WHOLE


def _code_of(operand: Operand) -> tuple[bool, int, int]:
    """How a type's words are coded: whether codes are signed, their bits, and the zero point. Raises Unsupported."""
    if not convertible(operand):
        raise Unsupported(
            f"values of type {operand}: conversions on the device are of 4 or 8 bits, signed or unsigned, with or "
            "without a zero point; Kernel.run takes others"
        )
    return operand.encoding == SIGNED, operand.bits, operand.zero_point or 0


def thresholds(scale: float, operand: Operand = INT4.activations) -> NDArray[np.float32]:
    """The smallest float32 number that :func:`subbyte.numerics.quantize` maps to each value of a type except the
    smallest. A kernel that counts how many thresholds a number reaches rounds and clips exactly like that function, for
    any scale.

    float32 [16] for 16 values, the last element unused; float32 [257] for 256, where the product of the last two is
    about ``1 / scale``. Raises InvalidInput for a scale that is not positive and finite.
    """
    quantize(np.zeros(1), scale, operand)
    steps = len(operand.values) - 1
    found = np.full(steps, np.inf, np.float32)
    for place in range(steps):
        value = operand.least + place + 1
        with np.errstate(over="ignore"):
            near = np.float32((value - 0.5) * scale)
        tried = _around(near)
        real = tried[np.isfinite(tried)]
        reached = real[quantize(real, scale, operand) >= value]
        found[place] = reached.min() if reached.size else np.inf
    return np.append(found, _reciprocal(scale) if steps > STEPS else np.float32(np.inf))


def _reciprocal(scale: float) -> NDArray[np.float32]:
    """Two float32 numbers whose product is about ``1 / scale``, so that a number times both is about its quotient:
    neither overflows nor underflows, which a single factor may. Scales beyond the range of all float32 numbers are
    treated like the outermost one, for which every number is clipped or becomes 0 as well."""
    share, exponent = math.frexp(scale)
    power = min(250, max(-250, -exponent))
    return np.array([2.0 ** (power // 2), 2.0 ** (power - power // 2) / share], np.float32)


def _around(near: np.float32) -> NDArray[np.float32]:
    """Neighbouring float32 numbers on either side of ``near``."""
    largest = np.finfo(np.float32).max
    down = [np.float32(np.clip(near, -largest, largest))]
    up = [down[0]]
    with np.errstate(over="ignore", under="ignore"):
        for _ in range(4):
            down.append(np.nextafter(down[-1], np.float32(-np.inf)))
            up.append(np.nextafter(up[-1], np.float32(np.inf)))
    return np.array([*reversed(down), *up[1:]], np.float32)

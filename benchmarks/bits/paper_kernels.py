"""A side of the papers' experiments as kernels, the words that they read, and what they must give. Needs no TVM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bits import composed, direct
from benchmarks.bits.launches import Launches, Step
from benchmarks.bits.paper_sides import PACKED, POOLED, QUANTIZED, SEPARATE, TARGET, plane_of
from subbyte.device.launch import Argument, Launch
from subbyte.families import config_from_key
from subbyte.gpu.device import CudaDevice
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.operands import output_values
from subbyte.numerics import Requantization, Thresholds, random_output, random_values
from subbyte.numerics.bit_layer import AFTER
from subbyte.workload import ConvWorkload, workload
from subbyte.workload.operand import SIGNED
from subbyte.workload.precision import INT4, SUMS

FUSED_POOL = "+pool2" + AFTER
SEED = 1
ACTIVATIONS = "A"
"""The kernels' name of what they read of the layer before."""
Operands = tuple[NDArray[np.int8], NDArray[np.int8]]


@dataclass(frozen=True)
class Built:
    """A side as it is written for a machine without TVM."""

    experiment: str
    point: str
    name: str
    layer_spec: str
    key: str
    output: str
    ends: str

    @cached_property
    def layer(self) -> ConvWorkload:
        """The whole layer."""
        return workload(self.layer_spec)

    @cached_property
    def kernel(self) -> Kernel:
        """What is launched first: of a composition the kernel of a pair of planes, of sums, or of pixels."""
        layer = plane_of(self.layer) if self.ends == SEPARATE else self.layer
        output = SUMS if self.ends in (SEPARATE, QUANTIZED) else self.output
        return Kernel(make_plan(layer, config_from_key(self.key), TARGET, output, None, "fixed"))

    @property
    def written(self) -> Argument:
        """What the last launch writes."""
        out = self.kernel.argument("Out")
        if self.ends in ("", SEPARATE, PACKED):
            return out
        words = int(np.prod(out.shape)) // 4 if self.ends == POOLED else self._compared * self._bits // 32
        return Argument("Out", "uint32", (words,), "out", out.form)

    @property
    def _bits(self) -> int:
        return self.layer.precision.output.bits

    @property
    def _compared(self) -> int:
        """Elements of the output, with all that only fill up blocks of images and channels."""
        w = self.layer
        return w.batch_groups * 8 * w.p * w.q * -(-w.k // composed.BLOCK) * composed.BLOCK

    def values(self, words: NDArray[Any]) -> NDArray[Any]:
        """The words of :attr:`written` as values of the output type, or sums, [N,P,Q,K]."""
        pool = 2 if self.ends == POOLED else self.kernel.fusion.pool
        return output_values(self.written, self.kernel.workload, words, pool)

    def operands(self) -> Operands:
        """The values of activations and weights, the same for all sides of a layer."""
        w, rng = self.layer, np.random.default_rng(SEED)
        x = random_values(w.precision.activations, (w.n, w.h, w.w, w.c), rng)
        return x, random_values(w.precision.weights, (w.k, w.r, w.s, w.c), rng)

    @cached_property
    def rule(self) -> Requantization | Thresholds | None:
        """How sums become codes; None where they stay sums."""
        if self.output == SUMS:
            return None
        if self.layer.precision == INT4 or (self.kernel.plan.parameter_form != "thresholds" and not self.ends):
            return random_output(self.layer, np.random.default_rng(SEED + 1))
        return Thresholds.random(self.layer, np.random.default_rng(SEED + 1))

    def words(self, operands: Operands | None = None) -> list[dict[str, NDArray[Any]]]:
        """What each launch of :attr:`kernel` reads."""
        x, w = operands or self.operands()
        if self.ends == PACKED:
            rows = x.transpose(1, 2, 0, 3).reshape(-1, self.layer.c)
            packed = dict(self.kernel.pack(x, w, self.rule))
            return [{**packed, ACTIVATIONS: np.ascontiguousarray(rows).view(np.uint32).reshape(-1)}]
        if self.ends != SEPARATE:
            return [dict(self.kernel.pack(x, w, None if self.ends == QUANTIZED else self.rule))]
        return [dict(self.kernel.pack(_plane(x, t), _plane(w, s), None)) for s, t, _ in self.pairs]

    @property
    def pairs(self) -> list[tuple[int, int, int]]:
        """Planes of weights and of activations, and what a count of theirs is multiplied by."""
        weights, activations = self.layer.precision.weights, self.layer.precision.activations
        top = weights.bits - 1 if weights.encoding == SIGNED else None
        return [(s, t, (-1 if s == top else 1) << s + t) for s in range(weights.bits) for t in range(activations.bits)]

    def expected(self, sums: Any, xp: Any) -> NDArray[Any]:
        """What all launches give, from the sums of an independent convolution."""
        found = sums if self.rule is None else direct.compared(sums, self.rule, xp)
        if self.ends == POOLED or self.output.endswith(FUSED_POOL):
            found = direct.pooled(found, 2)
        return direct.host(found)

    @property
    def second_text(self) -> str:
        """The CUDA text of the launch behind the kernel's, or in front of it; empty where there is none."""
        if self.ends == PACKED:
            return composed.packed_text(self.layer.c, int(np.prod(self.kernel.argument(ACTIVATIONS).shape)))
        out = self.kernel.argument("Out")
        elements = int(np.prod(out.shape))
        if self.ends == SEPARATE:
            return composed.added_text([factor for _, _, factor in self.pairs], elements)
        if self.ends == QUANTIZED:
            padded, block = self.layer.padded_filters, self.layer.precision.output.block
            return composed.compared_text(self._bits, padded, block, self._compared)
        if self.ends == POOLED:
            words = self.layer.filter_blocks * 32
            rows = self.layer.batch_groups * self.layer.p
            return composed.pooled_text(rows, self.layer.q, words, elements // 4)
        return ""

    def on_gpu(
        self, cubin: bytes, second: bytes | None, words: list[dict[str, NDArray[Any]]], device: CudaDevice
    ) -> Launches:
        """Loaded, with all words in place. Raises CudaError."""
        return Launches(*self.steps(cubin, second, words), device)

    def steps(
        self, cubin: bytes, second: bytes | None, words: list[dict[str, NDArray[Any]]]
    ) -> tuple[list[Step], dict[str, NDArray[Any]], dict[str, int]]:
        """Launches in order, inputs by name, and outputs by name with their bytes."""
        launch = self.kernel.launch
        steps: list[Step] = []
        given: dict[str, NDArray[Any]] = {}
        outputs: dict[str, int] = {}
        for part, inputs in enumerate(words):
            given |= {f"{name}{part}": array for name, array in inputs.items()}
            outputs[f"Out{part}"] = self.kernel.argument("Out").nbytes
            steps.append((cubin, launch, [f"{one.name}{part}" for one in launch.arguments]))
        if second is not None and self.ends == PACKED:
            return self._packed_first(steps, second, given, outputs)
        if second is not None:
            last, names = self._second(len(words))
            outputs["Out"] = last.arguments[0].nbytes
            if self.ends == QUANTIZED:
                assert isinstance(self.rule, Thresholds)
                padded = self.layer.padded_filters
                flip = np.zeros(padded, np.uint32)
                flip[: self.layer.k] = self.rule.flip
                given |= {"Level": self.rule.words(padded).view(np.uint32), "Flip": flip}
            steps.append((second, last, names))
        return steps, given, outputs

    def _packed_first(
        self, steps: list[Step], first: bytes, given: dict[str, NDArray[Any]], outputs: dict[str, int]
    ) -> tuple[list[Step], dict[str, NDArray[Any]], dict[str, int]]:
        """The same with a launch ahead that writes the words which the kernel reads."""
        packed, name = self.kernel.argument(ACTIVATIONS), f"{ACTIVATIONS}0"
        values = given.pop(name)
        inputs = Argument("In0", "uint32", values.shape, "in")
        written = Argument("Out", "uint32", packed.shape, "out")
        blocks = composed.blocks(int(np.prod(packed.shape)))
        launch = Launch(composed.ENTRY, (blocks, 1, 1), (composed.THREADS, 1, 1), 0, (written, inputs))
        steps.insert(0, (first, launch, [name, "Values"]))
        return steps, {**given, "Values": values}, {name: packed.nbytes, **outputs}

    def _second(self, parts: int) -> tuple[Launch, list[str]]:
        """The launch behind the kernel's, and its buffers."""
        elements, written = (int(np.prod(one.shape)) for one in (self.kernel.argument("Out"), self.written))
        threads = {SEPARATE: elements, QUANTIZED: self._compared, POOLED: written}[self.ends]
        padded = self.layer.padded_filters
        levels = (1 << self._bits) - 1
        shapes = {f"In{part}": elements for part in range(parts)}
        if self.ends == QUANTIZED:
            shapes |= {"Level": levels * padded, "Flip": padded}
        arguments = [Argument("Out", "uint32", (written,), "out")]
        arguments += [Argument(name, "uint32", (size,), "in") for name, size in shapes.items()]
        names = ["Out", *(name.replace("In", "Out") for name in shapes)]
        grid = (composed.blocks(threads), 1, 1)
        return Launch(composed.ENTRY, grid, (composed.THREADS, 1, 1), 0, tuple(arguments)), names


def _plane(values: NDArray[np.int8], plane: int) -> NDArray[np.int8]:
    """A bit of the codes of signed or unsigned values: of two's complement both."""
    return values >> plane & 1

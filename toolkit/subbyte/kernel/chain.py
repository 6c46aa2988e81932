"""Layers back to back: each reads the output of the one before it, with no layout conversion between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.kernel import operands
from subbyte.kernel.execute import EMULATOR, resolve_device, run_outputs
from subbyte.kernel.kernel import Kernel
from subbyte.kernel.operands import check_channels
from subbyte.kernel.pool import Pooling, PoolKernel
from subbyte.numerics import Requantization, Thresholds, check_values
from subbyte.numerics.residual import source_of
from subbyte.workload.precision import SUMS

if TYPE_CHECKING:
    from subbyte.gpu.chain import GpuChain
    from subbyte.gpu.device import CudaDevice, DeviceBuffer
    from subbyte.kernel.device_layer import DeviceLayer


INPUT = -1
"""Stands for the chain's input where a layer number is expected."""
Step = Kernel | PoolKernel
"""A layer of a chain."""


class Chain:
    """Kernels whose requantized output words are exactly the next kernel's input words.

    Between or after them, ``kernels`` may contain a :class:`~subbyte.Pooling`, which becomes a pooling kernel for the
    output of the preceding layer, or such a pooling kernel; its weights and requantization are None. ``weights`` and
    ``requants`` hold, for every other layer, values of its type (int4: int8) [K,R,S,C] and a
    :class:`~subbyte.numerics.Requantization` or :class:`~subbyte.numerics.Thresholds`; the last layer may return int32
    sums and then takes None. ``residuals`` names, for each layer that adds a residual, the earlier layer whose kept
    sums or output values it adds (0 is the first; -1 is the chain's input); None for the others.

    Raises InvalidInput when neighbours differ in sizes, type, word layout or architecture, when a layer before the last
    returns int32 sums, when a residual's source does not keep it, and when weights or requantizations do not fit their
    layer.
    """

    @checked
    def __init__(
        self,
        kernels: Sequence[Kernel | PoolKernel | Pooling],
        weights: Sequence[NDArray[np.int8] | None],
        requants: Sequence[Requantization | Thresholds | None],
        residuals: Sequence[int | None] = (),
    ) -> None:
        from subbyte.gpu.chain import check_chain

        if not len(kernels) == len(weights) == len(requants):
            raise InvalidInput(
                f"{len(kernels)} kernels, {len(weights)} weights, {len(requants)} requants: expected the same "
                "number of each"
            )
        steps = _with_pooling(kernels)
        check_layers(steps)
        self._residuals = list(residuals) or [None] * len(steps)
        check_residuals(steps, self._residuals)
        self.kernels: list[Step] = []
        for number, (kernel, w, r) in enumerate(zip(steps, weights, requants, strict=True)):
            self.kernels.append(_checked_step(number, kernel, w, r))
        check_chain([kernel.launch for kernel in self.kernels])
        self._weights, self._requants = list(weights), list(requants)

    def run(self, x: NDArray[np.int8], device: str = "auto") -> NDArray[np.integer]:
        """Run all layers on ``x`` int8 [N,H,W,C]; returns the last layer's int8 or int32 [N,P,Q,K]. ``device`` as for
        :meth:`Kernel.run`."""
        last = self.kernels[-1]
        place = resolve_device(device, last.arch)
        if place != EMULATOR:
            from subbyte.gpu.device import open_device

            gpu = open_device(int(place.partition(":")[2]))
            with gpu.unmoved(), self.on_gpu(x, gpu) as chain:
                return last.unpack(chain.run())
        return last.unpack(self.outputs(x)[-1]["Out"])

    def outputs(self, x: NDArray[np.int8]) -> list[dict[str, NDArray[Any]]]:
        """The output words of every layer by argument name, from running the kernels on the CPU."""
        found: list[dict[str, NDArray[Any]]] = []
        inputs = self._inputs(x)
        for kernel, buffers, source in zip(self.kernels, inputs, self._residuals, strict=True):
            given = {"A": found[-1]["Out"]} if found else {}
            if source is not None:
                name = source_of(kernel.argument("Res").form)
                given["Res"] = inputs[0]["A"] if source == INPUT else found[source][name]
            found.append(run_outputs(kernel, {**buffers, **given}, EMULATOR))
        return found

    def on_gpu(self, x: NDArray[np.int8], ordinal: int | CudaDevice = 0, out: DeviceBuffer | None = None) -> GpuChain:
        """The chain on a GPU, to run and time with or without programmatic dependent launch; close it afterwards. The
        last output is written to ``out`` if given."""
        from subbyte.gpu.chain import GpuChain

        kernels = [(kernel.cubin, kernel.launch) for kernel in self.kernels]
        return GpuChain(kernels, self._inputs(x), ordinal, self._residuals, out)

    def on_device(self, device: str = "cuda:0") -> DeviceLayer:
        """The chain on a device, with weights and parameters placed there once, to be called with arrays on that
        device, as :meth:`Kernel.on_device`; layers overlap if their kernels support it."""
        from subbyte.kernel.placed import chain_links, placed

        return placed(self.kernels, chain_links(self), device)

    @checked
    def save(self, path: str | Path, texts: bool = True) -> Path:
        """Write the chain to one file, atomically: machine code, launches, word layouts, weights, parameters and hashes
        of all; with ``texts`` also the CUDA texts, for the emulator. :func:`subbyte.load_chain` reads it, even without
        TVM. Raises InvalidInput for a path that cannot be written, NotWritten for a full disk."""
        from subbyte.kernel.saved import save_chain

        return save_chain(self, path, texts)

    @property
    def operands(self) -> list[tuple[NDArray[np.int8] | None, Requantization | Thresholds | None, int | None]]:
        """For each layer: weights, requantization, and the layer whose sums it adds. All None for a pooling layer."""
        return list(zip(self._weights, self._requants, self._residuals, strict=True))

    def _inputs(self, x: NDArray[np.int8]) -> list[dict[str, NDArray[Any]]]:
        from subbyte.kernel.placed import held

        inputs = []
        for number, (kernel, w, requant) in enumerate(zip(self.kernels, self._weights, self._requants, strict=True)):
            buffers = held(kernel, w, requant)
            if number == 0:
                buffers["A"] = operands.activation_words(kernel.argument("A"), kernel.workload, x)
            inputs.append(buffers)
        return inputs


def _with_pooling(kernels: Sequence[Kernel | PoolKernel | Pooling]) -> list[Step]:
    """The layers of a chain, with each pooling turned into a kernel for the preceding layer's output. Raises
    InvalidInput."""
    steps: list[Step] = []
    for number, one in enumerate(kernels):
        if not isinstance(one, Pooling):
            steps.append(one)
            continue
        if not steps:
            raise InvalidInput(
                f"layer 0 is {one}: no layer before it says what it pools; give Pooling.kernel(shape), or begin "
                "with a convolution"
            )
        before = steps[-1]
        if before.output == SUMS:
            raise InvalidInput(f"layer {number} pools, but layer {number - 1} gives int32 sums: requantize them first")
        of, pool = before.workload, before.fusion.pool
        shape = of.n, of.p // pool, of.q // pool, of.k
        steps.append(one.kernel(shape, before.arch, of.precision.output, before.argument("Out").form))
    return steps


def _checked_step(number: int, kernel: Step, w: Any, requant: Requantization | Thresholds | None) -> Step:
    """A layer as its operands require it. Raises InvalidInput for operands that do not fit."""
    wl = kernel.workload
    if isinstance(kernel, PoolKernel):
        if w is not None or requant is not None:
            raise InvalidInput(f"layer {number} pools: it has no weights and no requantization, give None for both")
        return kernel
    check_values(w, f"weights[{number}]", wl.precision.weights, (wl.k, wl.r, wl.s, wl.c))
    if kernel.output != SUMS:
        check_channels(requant, wl)
    return kernel.for_requantization(requant)


def check_residuals(kernels: Sequence[Step], residuals: Sequence[int | None]) -> None:
    """Raise InvalidInput unless every layer that adds a residual names an earlier layer that keeps its sums."""
    if len(residuals) != len(kernels):
        raise InvalidInput(f"{len(kernels)} kernels, {len(residuals)} residuals: expected one for each kernel, or None")
    for number, (kernel, source) in enumerate(zip(kernels, residuals, strict=True)):
        adds = kernel.fusion.residual > 0 or kernel.fusion.added is not None
        if adds != (source is not None):
            said = "adds a residual: name the layer that has it" if adds else f"adds none, but layer {source} is named"
            raise InvalidInput(f"layer {number} ({kernel.output}) {said}")
        if source is None:
            continue
        if kernel.fusion.added is not None:
            _check_values_added(kernels, number, source)
            continue
        if not 0 <= source < number or not kernels[source].fusion.keep:
            raise InvalidInput(f"layer {number} adds sums of layer {source}: name an earlier layer that keeps them")
        kept, added, by = kernels[source].workload, kernel.workload, kernel.fusion.residual_pool
        windows = kernels[source].fusion.keep_pool
        gives = kept.n, kept.p // windows, kept.q // windows, kept.k
        takes = (added.n, added.p * by, added.q * by, kernel.fusion.residual)
        if gives != takes:
            raise InvalidInput(f"layer {source} keeps sums {list(gives)}, layer {number} adds {list(takes)}")
        have, wanted = kernels[source].fusion.keep_bits, kernel.fusion.residual_bits
        if have != wanted:
            raise InvalidInput(f"layer {source} keeps sums of {have} bits, layer {number} adds sums of {wanted}")


def _check_values_added(kernels: Sequence[Step], number: int, source: int) -> None:
    """Raise InvalidInput unless the values a layer adds come from an earlier layer or the chain's input, and fit."""
    if type(source) is not int or not INPUT <= source < number:
        said = "name an earlier one, or -1, the chain's input"
        raise InvalidInput(f"layer {number} adds values of layer {source!r}: {said}")
    kernel, of = kernels[number], kernels[max(source, 0)]
    wl, given, pool = kernel.workload, of.workload, of.fusion.pool
    if source == INPUT:
        who, has = "the chain's input", (given.n, given.h, given.w, given.c)
        operand, form = given.precision.activations.dense, of.argument("A").form
    else:
        who, has = f"layer {source}", (given.n, given.p // pool, given.q // pool, given.k)
        operand, form = given.precision.output, of.argument("Out").form
    wanted = kernel.fusion.added, (wl.n, wl.p, wl.q, wl.k), kernel.argument("Res").form
    if (operand, has, form) != wanted:
        raise InvalidInput(
            f"{who} has {operand} {list(has)} in {form}, layer {number} adds {wanted[0]} {list(wanted[1])} in "
            f"{wanted[2]}: type, sizes and layout must be the same"
        )


def check_layers(kernels: Sequence[Step]) -> None:
    """Raise InvalidInput unless each kernel's output, in actual sizes, is the next one's input on the same
    architecture."""
    if not kernels:
        raise InvalidInput("a chain needs at least one layer")
    for number, kernel in enumerate(kernels[:-1]):
        if kernel.output == SUMS:
            wanted = kernel.workload.precision.output
            raise InvalidInput(
                f"layer {number} ({kernel.workload.label}) gives {kernel.output} sums: each layer of a chain but "
                f"the last gives {wanted} values; build it with output='{wanted}'"
            )
    for number, (before, after) in enumerate(pairwise(kernels)):
        gives, takes = before.workload, after.workload
        pool = before.fusion.pool
        out, into = (gives.n, gives.p // pool, gives.q // pool, gives.k), (takes.n, takes.h, takes.w, takes.c)
        layouts = before.argument("Out").form, after.argument("A").form
        types = gives.precision.output, takes.precision.activations
        if out != into or types[0] != types[1] or layouts[0] != layouts[1] or before.arch != after.arch:
            raise InvalidInput(
                f"layer {number} gives {types[0]} {list(out)} in {layouts[0]} on {before.arch}, layer {number + 1} "
                f"takes {types[1]} {list(into)} in {layouts[1]} on {after.arch}: batch, height, width, channels, type, "
                "layout and architecture must be the same"
            )

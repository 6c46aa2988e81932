"""One workload to verify and time kernels on: random operands over the whole int4 range and the exact answer.

Everything is computed once and kept: the operands in each layout a kernel asks for, on the host and on the device,
and the expected output, also packed, so that a right answer is recognised by comparing words.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.data import (
    Requantization,
    from_nhwc_words,
    from_nhwcnc,
    prepare_weights,
    reference,
    to_nhwc_words,
    to_nhwcnc,
)
from subbyte.errors import InvalidInput, SubbyteError, WrongResult
from subbyte.schedule.launch import Argument, Launch
from subbyte.measure.check import CheckReport, compare
from subbyte.measure.driver import CudaDevice, CudaError, DeviceBuffer
from subbyte.measure.gpu import GpuKernel
from subbyte.measure.result import Failed, Measured, Result
from subbyte.measure.telemetry import Telemetry
from subbyte.measure.timing import TimingProtocol
from subbyte.schedule import ConvConfig
from subbyte.workload import BATCH_GROUP, CHANNEL_BLOCK, ConvWorkload


class Case:
    """Operands int8 ``x`` [N,H,W,C] and ``w`` [K,R,S,C], ``requant`` and the expected int8 output [N,P,Q,K].

    Drawn from ``seed`` unless given. Raises InvalidInput for operands that do not fit the workload.
    """

    def __init__(
        self,
        workload: ConvWorkload,
        seed: int = 0,
        x: NDArray[np.int8] | None = None,
        w: NDArray[np.int8] | None = None,
        requant: Requantization | None = None,
    ) -> None:
        rng = np.random.default_rng(seed)
        wl = workload
        drawn = [rng.integers(-8, 8, s, np.int8) for s in ((wl.n, wl.h, wl.w, wl.c), (wl.k, wl.r, wl.s, wl.c))]
        self.workload, self.seed = workload, seed
        self.x = drawn[0] if x is None else x
        self.w = drawn[1] if w is None else w
        self.requant = Requantization.random(workload, rng) if requant is None else requant
        self._operands: dict[tuple[str, Any], NDArray[Any]] = {}

    @cached_property
    def accumulators(self) -> NDArray[np.int32]:
        """The exact convolution, int32 [N,P,Q,K]."""
        return reference(self.workload, self.x, self.w)

    @cached_property
    def expected(self) -> NDArray[np.int8]:
        """The requantized output, int4 values int8 [N,P,Q,K]."""
        return self.requant.apply(self.accumulators)

    def key(self, argument: Argument, config: ConvConfig) -> tuple[str, Any]:
        """What identifies the contents of an input: its name and the part of the configuration it depends on."""
        forms: dict[str, Any] = {"A": config.layout, "Wt": min(config.warp_col_tiles, 4), "Prm": None}
        if argument.name not in forms:
            raise InvalidInput(f"kernel input {argument.name!r}: a convolution takes {', '.join(forms)}")
        return argument.name, forms[argument.name]

    def operand(self, argument: Argument, config: ConvConfig) -> NDArray[Any]:
        """The words of a kernel's input. Raises InvalidInput when the kernel expects another number of them."""
        key = self.key(argument, config)
        if key not in self._operands:
            name, form = key
            if name == "A":
                words: NDArray[Any] = (to_nhwcnc if form == "nhwcnc" else to_nhwc_words)(self.x)
            elif name == "Wt":
                words = prepare_weights(self.w, form)
            else:
                words = self.requant.words(self.workload.filter_blocks * CHANNEL_BLOCK)
            self._operands[key] = np.ascontiguousarray(words)
        words = self._operands[key]
        if words.size != prod(argument.shape):
            raise InvalidInput(
                f"the kernel expects {prod(argument.shape)} words for {argument.name}, {self.workload} has {words.size}"
            )
        return words

    def check(self, output: NDArray[Any], config: ConvConfig) -> CheckReport:
        """Every true element of a kernel's output (as it came, flat) against the reference. Raises InvalidInput."""
        wl = self.workload
        images, channels = wl.batch_groups * BATCH_GROUP, wl.filter_blocks * CHANNEL_BLOCK
        if output.dtype == np.int32:
            values = output.reshape(images, wl.p, wl.q, channels)[: wl.n, ..., : wl.k]
            return compare(np.ascontiguousarray(values), self.accumulators)
        packed = self._packed_expectation(config.layout)
        if output.size == packed.size and np.array_equal(output.ravel(), packed):
            return CheckReport(self.expected.size, 0)
        if config.layout == "nhwcnc":
            shape: tuple[int, ...] = (wl.batch_groups, wl.p, wl.q, wl.filter_blocks, BATCH_GROUP, 4)
            return compare(from_nhwcnc(output.reshape(shape), wl.n, wl.k), self.expected)
        shape = (images, wl.p, wl.q, wl.filter_blocks * 4)
        return compare(from_nhwc_words(output.reshape(shape), wl.n, wl.k), self.expected)

    def _packed_expectation(self, layout: str) -> NDArray[np.uint32]:
        key = ("expected", layout)
        if key not in self._operands:
            self._operands[key] = (to_nhwcnc if layout == "nhwcnc" else to_nhwc_words)(self.expected).ravel()
        return self._operands[key]


class Evaluator:
    """Verifies and times kernels of one case on one device; every failure becomes a value."""

    def __init__(self, device: CudaDevice, case: Case, protocol: TimingProtocol | None = None) -> None:
        self.device, self.case = device, case
        self.protocol = protocol or TimingProtocol()
        self.telemetry = Telemetry(device.info.bus_id)
        self._held: dict[tuple[str, Any], DeviceBuffer] = {}
        self._generation = device.generation

    def evaluate(self, cubin: bytes, launch: Launch, config: ConvConfig) -> Result:
        """Load, run twice on poisoned outputs, compare every element, time. Never raises for a candidate.

        After a crash the device's context is made anew; when that fails, or after a hang, ``device.lost`` is set and
        every later candidate fails too.
        """
        started = time.monotonic()
        result: Result
        try:
            result = self._measure(cubin, launch, config)
        except CudaError as error:
            result = Failed(error.kind, self._after(error))
        except WrongResult as error:
            result = Failed("wrong", str(error))
        except SubbyteError as error:
            result = Failed("launch", str(error))
        return replace(result, seconds={"measure": round(time.monotonic() - started, 4)})

    def close(self) -> None:
        """Free the operands on the device. May be called twice."""
        for buffer in self._held.values():
            buffer.free()
        self._held = {}

    def _measure(self, cubin: bytes, launch: Launch, config: ConvConfig) -> Measured:
        with GpuKernel(cubin, launch, self.device) as kernel:
            outputs = kernel.run(self._inputs(kernel, config), self.protocol.timeout_s)
            for output in outputs.values():
                report = self.case.check(output, config)
                if not report.ok:
                    raise WrongResult(str(report))
            timing = kernel.time(self.protocol, telemetry=self.telemetry)
        cold = timing.cold_microseconds
        return Measured(
            microseconds=timing.microseconds,
            samples=timing.samples,
            cold_microseconds=cold if cold is not None and cold > 0 else None,
            verified=True,
            device=timing.device,
            clocks=timing.clocks(),
        )

    def _inputs(self, kernel: GpuKernel, config: ConvConfig) -> Mapping[str, DeviceBuffer]:
        if self._generation != self.device.generation:
            self._held, self._generation = {}, self.device.generation
        buffers = {}
        for argument in kernel.inputs:
            key = self.case.key(argument, config)
            words = self.case.operand(argument, config)
            if key not in self._held:
                self._held[key] = self.device.upload(words)
                self._held[key].shared = True
            buffers[argument.name] = self._held[key]
        return buffers

    def _after(self, error: CudaError) -> str:
        if error.kind == "crash" and not self.device.lost:
            try:
                self.device.reset()
            except CudaError as lost:
                return f"{error}; {lost}"
        return str(error)


def launch_from_dict(data: Mapping[str, Any]) -> Launch:
    """The launch whose ``to_dict()`` gave ``data``. Raises InvalidInput when fields are missing or odd."""
    try:
        arguments = tuple(
            Argument(str(a["name"]), str(a["dtype"]), tuple(int(i) for i in a["shape"]), str(a["role"]))
            for a in data["arguments"]
        )
        grid, block = (tuple(int(i) for i in data[name]) for name in ("grid", "block"))
        if len(grid) != 3 or len(block) != 3:
            raise ValueError("grid and block must have three sizes")
        return Launch(
            str(data["entry"]), (grid[0], grid[1], grid[2]), (block[0], block[1], block[2]),
            int(data["shared_bytes"]), arguments,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"not the record of a launch: {error}") from None

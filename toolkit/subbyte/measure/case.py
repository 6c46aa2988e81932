"""One workload to verify and time kernels on: random operands over the range of their types, and the exact result.

Everything is computed once and kept: the operands in each layout that a kernel needs, on the host and on the device,
and the expected output, also packed, so that a correct output is recognised by comparing words.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput, SubbyteError, WrongResult
from subbyte.gpu.check import CheckReport, compare
from subbyte.gpu.device import CudaDevice, DeviceBuffer
from subbyte.gpu.driver import CudaError
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.telemetry import Telemetry
from subbyte.gpu.timing import TimingProtocol
from subbyte.kernel import operands
from subbyte.measure.noise import Watch
from subbyte.numerics import Requantization, Thresholds, random_output, random_values, reference
from subbyte.records.result import Failed, Measured, Result
from subbyte.workload import ConvWorkload


class Case:
    """Operands ``x`` [N,H,W,C] and ``w`` [K,R,S,C], ``requant`` and the expected output [N,P,Q,K], values of the
    workload's types (int4: int8).

    Drawn from ``seed`` unless given. Raises InvalidInput for operands that do not fit the workload.
    """

    def __init__(
        self,
        workload: ConvWorkload,
        seed: int = 0,
        x: NDArray[np.int8] | None = None,
        w: NDArray[np.int8] | None = None,
        requant: Requantization | Thresholds | None = None,
    ) -> None:
        rng = np.random.default_rng(seed)
        wl, types = workload, workload.precision
        drawn = [
            random_values(types.activations, (wl.n, wl.h, wl.w, wl.c), rng),
            random_values(types.weights, (wl.k, wl.r, wl.s, wl.c), rng),
        ]
        self.workload, self.seed = workload, seed
        self.x = drawn[0] if x is None else x
        self.w = drawn[1] if w is None else w
        self.requant = random_output(workload, rng) if requant is None else requant
        self._operands: dict[tuple[str, Any], NDArray[Any]] = {}

    @cached_property
    def accumulators(self) -> NDArray[np.int32]:
        """The exact convolution, int32 [N,P,Q,K]."""
        return reference(self.workload, self.x, self.w)

    @cached_property
    def expected(self) -> NDArray[np.int8]:
        """The requantized output, values of the output type (int4: int8) [N,P,Q,K]."""
        return self.requant.apply(self.accumulators)

    def operand(self, argument: Argument) -> NDArray[Any]:
        """The words of a kernel's input, in the layout that the argument names. Raises InvalidInput when they do not
        fit."""
        key = (argument.name, argument.form)
        if key not in self._operands:
            if argument.name == "A":
                self._operands[key] = operands.activation_words(argument, self.workload, self.x)
            elif argument.name == "Wt":
                self._operands[key] = operands.weight_words(argument, self.workload, self.w)
            elif argument.name == "Prm":
                self._operands[key] = operands.parameter_words(argument, self.workload, self.requant, self.w)
            else:
                raise InvalidInput(f"kernel input {argument.name!r}: a convolution takes A, Wt and Prm")
        words = self._operands[key]
        if words.size != prod(argument.shape):
            raise InvalidInput(
                f"the kernel expects {prod(argument.shape)} words for {argument.name}, {self.workload} has {words.size}"
            )
        return words

    def check(self, output: NDArray[Any], argument: Argument) -> CheckReport:
        """Compare every element of a kernel's output (raw, flat; padding excluded) with the reference. Raises
        InvalidInput."""
        if output.dtype == np.int32:
            return compare(operands.output_values(argument, self.workload, output), self.accumulators)
        key = ("expected", argument.form)
        if key not in self._operands:
            packed = operands.layout_words(argument.form, self.expected, self.workload.precision.output)
            self._operands[key] = packed.ravel()
        packed = self._operands[key]
        if output.size == packed.size and np.array_equal(output.ravel(), packed):
            return CheckReport(self.expected.size, 0)
        return compare(operands.output_values(argument, self.workload, output), self.expected)


class Evaluator:
    """Verifies and times kernels of one case on one device; every failure becomes a value.

    ``watch`` is shared by evaluators of one device, so that a clock drop between two workloads is noticed too.
    """

    def __init__(
        self, device: CudaDevice, case: Case, protocol: TimingProtocol | None = None, watch: Watch | None = None
    ) -> None:
        self.device, self.case = device, case
        self.protocol = protocol or TimingProtocol()
        self.telemetry = Telemetry(device.info.bus_id)
        self.watch = watch or Watch()
        self._held: dict[tuple[str, Any], DeviceBuffer] = {}
        self._generation = device.generation

    def evaluate(self, cubin: bytes, launch: Launch) -> Result:
        """Load, run twice on poisoned outputs, compare every element, time. Never raises for a candidate.

        After a crash the device's context is recreated; if that fails, or after a hang, ``device.lost`` is set and
        every later candidate fails too.
        """
        started = time.monotonic()
        result: Result
        try:
            result = self._measure(cubin, launch)
        except CudaError as error:
            result = Failed(error.kind, self._after(error))
        except WrongResult as error:
            result = Failed("wrong", str(error))
        except (SubbyteError, ValueError) as error:  # ValueError: a launch record with layouts unknown here
            result = Failed("launch", str(error))
        return replace(result, seconds={"measure": round(time.monotonic() - started, 4)})

    def interleave(self, kernels: Sequence[tuple[bytes, Launch]], rounds: int, seed: int = 0) -> list[list[float]]:
        """Time kernels against each other, in ``rounds`` of a random order: microseconds by kernel and round, L2 hot.

        The outputs are not compared again. Raises CudaError, DeviceHang, WrongResult.
        """
        brief = replace(self.protocol, cold=False, repeats=3, min_total_ms=min(self.protocol.min_total_ms, 6.0))
        times: list[list[float]] = [[] for _ in kernels]
        order, rng = list(range(len(kernels))), random.Random(seed)
        with ExitStack() as stack:
            loaded = [stack.enter_context(GpuKernel(cubin, launch, self.device)) for cubin, launch in kernels]
            for kernel in loaded:
                kernel.run(self._inputs(kernel), self.protocol.timeout_s)
            for _ in range(rounds):
                rng.shuffle(order)
                for place in order:
                    times[place].append(loaded[place].time(brief, telemetry=self.telemetry).microseconds)
        return times

    def close(self) -> None:
        """Free the operands on the device. May be called twice."""
        for buffer in self._held.values():
            buffer.free()
        self._held = {}

    def _measure(self, cubin: bytes, launch: Launch) -> Measured:
        with GpuKernel(cubin, launch, self.device) as kernel:
            outputs = kernel.run(self._inputs(kernel), self.protocol.timeout_s)
            for argument in kernel.outputs:
                report = self.case.check(outputs[argument.name], argument)
                if not report.ok:
                    raise WrongResult(str(report))
            timing, notes = self.watch.steady(lambda: kernel.time(self.protocol, telemetry=self.telemetry))
        cold = timing.cold_microseconds
        return Measured(
            microseconds=timing.microseconds,
            samples=timing.samples,
            cold_microseconds=cold if cold is not None and cold > 0 else None,
            verified=True,
            device=timing.device,
            clocks=timing.clocks(),
            notes=notes,
        )

    def _inputs(self, kernel: GpuKernel) -> Mapping[str, DeviceBuffer]:
        if self._generation != self.device.generation:
            self._held, self._generation = {}, self.device.generation
        buffers = {}
        for argument in kernel.inputs:
            key = (argument.name, argument.form)
            words = self.case.operand(argument)
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

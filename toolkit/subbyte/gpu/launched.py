"""A compiled kernel on a GPU: run it on host or device arrays, and time it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput, WrongResult, did_you_mean
from subbyte.gpu.arrays import device_pointer
from subbyte.gpu.device import CudaDevice, DeviceBuffer, FunctionAttributes, open_device
from subbyte.gpu.driver import CudaError
from subbyte.gpu.loaded import LoadedLaunch
from subbyte.gpu.telemetry import Telemetry
from subbyte.gpu.timing import Timing, TimingProtocol, time_launch

POISON = (0xCD, 0x32)
"""Bytes with which an output is filled before the first and the second run: any difference between the two runs was not
written (the patterns are each other's complement), or not written the same way twice."""


class GpuKernel:
    """A cubin's kernel, loaded on a device and ready to launch.

    ``device`` is an ordinal or an open :class:`CudaDevice`. Raises MissingDependency without a GPU; CudaError of kind
    ``launch`` when the kernel does not fit the device.
    """

    def __init__(self, cubin: bytes, launch: Launch, device: int | CudaDevice = 0) -> None:
        self.launch = launch
        self.device = device if isinstance(device, CudaDevice) else open_device(device)
        self._buffers: dict[str, DeviceBuffer] = {}
        self._loaded = LoadedLaunch(self.device, cubin, launch)
        try:
            for step, function in zip(launch.steps, self._loaded.functions, strict=True):
                _check_threads(int(np.prod(step.launch.block)), function.attributes.max_threads)
        except CudaError:
            self.close()
            raise

    @property
    def attributes(self) -> FunctionAttributes:
        """Resources that the compiler assigned to the kernel; with several launches, to the first."""
        return self._loaded.functions[0].attributes

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The arguments that the caller provides."""
        return tuple(argument for argument in self.launch.arguments if argument.role == "in")

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The arguments that the kernel writes."""
        return tuple(argument for argument in self.launch.arguments if argument.role == "out")

    def run(self, buffers: Mapping[str, Any], timeout_s: float = 20.0) -> dict[str, NDArray[Any]]:
        """Run on host arrays (or open device buffers), twice, with differently poisoned outputs.

        ``buffers`` maps every input's name to a numpy array of the argument's dtype and number of elements, or to a
        :class:`DeviceBuffer` marked ``shared``, which the caller keeps. Returns the outputs by name. Raises
        InvalidInput for a missing, unknown or wrongly sized buffer, WrongResult when the two runs differ (words
        never written, or a race), CudaError for a fault, DeviceHang past the limit.
        """
        self._place(buffers)
        first, second = (self._run_once(poison, timeout_s) for poison in POISON)
        for name, array in first.items():
            differing = int(np.count_nonzero(array != second[name]))
            if differing:
                raise WrongResult(
                    f"kernel {self.launch.entry}: {differing} of {array.size} words of {name} differ between two runs "
                    "on the same input: they are never written, or two threads race"
                )
        return second

    def run_device(self, arrays: Mapping[str, Any]) -> None:
        """Launch once on arrays that are already on the device, without a copy, and wait.

        Every argument, outputs too, is a C-contiguous CuPy or PyTorch array (or any with ``__cuda_array_interface__``)
        of 4-byte elements on this device, with as many elements as the argument. Waits for work that other libraries
        enqueued before. Raises InvalidInput for anything else.
        """
        self._check_names(arrays, self.launch.arguments)
        self.device.activate()
        pointers = [
            device_pointer(arrays[a.name], a.name, a.shape, self.device.info.ordinal) for a in self.launch.arguments
        ]
        self.device.wait_for_others()
        self._enqueue(pointers)
        self.device.synchronize()

    def time(
        self,
        protocol: TimingProtocol | None = None,
        buffers: Mapping[str, Any] | None = None,
        telemetry: Telemetry | None = None,
    ) -> Timing:
        """Time the kernel on ``buffers`` (as for :meth:`run`) or on those of the last run.

        Raises InvalidInput without either, CudaError for a fault, DeviceHang past the protocol's limit.
        """
        if buffers is not None:
            self._place(buffers)
        return time_launch(self.device, self.launcher(), protocol, telemetry)

    def launcher(self) -> Callable[[], None]:
        """A function that enqueues one launch on the buffers of the last run. Raises InvalidInput before any run."""
        missing = [argument.name for argument in self.launch.arguments if argument.name not in self._buffers]
        if missing:
            raise InvalidInput(f"nothing to time on: no buffer for {', '.join(missing)}; pass buffers= or run first")
        pointers = self._pointers()
        return lambda: self._enqueue(pointers)

    def close(self) -> None:
        """Free the kernel and its buffers. May be called twice."""
        for buffer in self._owned():
            buffer.free()
        self._buffers = {}
        self._loaded.unload()

    def __enter__(self) -> GpuKernel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _owned(self) -> list[DeviceBuffer]:
        return [buffer for buffer in self._buffers.values() if not buffer.shared]

    def _pointers(self) -> list[int]:
        return [self._buffers[argument.name].pointer for argument in self.launch.arguments]

    def _enqueue(self, pointers: list[int]) -> None:
        self._loaded.enqueue(pointers)

    def _place(self, buffers: Mapping[str, Any]) -> None:
        """Put every argument on the device: inputs from ``buffers``, outputs as new memory."""
        self._check_names(buffers, self.inputs)
        self.device.activate()
        placed: dict[str, DeviceBuffer] = {}
        for argument in self.inputs:
            value = buffers[argument.name]
            placed[argument.name] = value if isinstance(value, DeviceBuffer) else self._upload(argument, value)
            held = placed[argument.name].nbytes
            if held != argument.nbytes:
                raise InvalidInput(f"buffer {argument.name} has {held} bytes: must have {argument.nbytes}")
        for argument in self.outputs:
            placed[argument.name] = self._buffers.get(argument.name) or self.device.alloc(argument.nbytes)
        for name, buffer in self._buffers.items():
            if not buffer.shared and placed.get(name) is not buffer:
                buffer.free()
        self._buffers = placed

    def _upload(self, argument: Argument, value: Any) -> DeviceBuffer:
        array = np.asarray(value)
        if array.dtype != np.dtype(argument.dtype) or array.size * array.itemsize != argument.nbytes:
            raise InvalidInput(
                f"buffer {argument.name} is {array.dtype}{list(array.shape)}: must be "
                f"{argument.dtype}{list(argument.shape)}"
            )
        return self.device.upload(array)

    def _run_once(self, poison: int, timeout_s: float) -> dict[str, NDArray[Any]]:
        for argument in self.outputs:
            self._buffers[argument.name].fill(poison)
        self._enqueue(self._pointers())
        self.device.synchronize(timeout_s)
        return {a.name: self._buffers[a.name].download(a.shape, a.dtype) for a in self.outputs}

    @staticmethod
    def _check_names(given: Mapping[str, Any], wanted: tuple[Argument, ...]) -> None:
        names = [argument.name for argument in wanted]
        for name in given:
            if name not in names:
                raise InvalidInput(f"unknown buffer {name!r}: {did_you_mean(name, names)}")
        missing = [name for name in names if name not in given]
        if missing:
            raise InvalidInput(f"missing buffer(s) {', '.join(missing)}: the kernel takes {', '.join(names)}")


def _check_threads(threads: int, most: int) -> None:
    if threads > most:
        raise CudaError(
            f"the block has {threads} threads; this kernel can run with at most {most}",
            "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        )

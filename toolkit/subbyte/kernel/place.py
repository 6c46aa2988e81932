"""Where launches go: a GPU, or the emulator on host arrays. Both take addresses, so the same code runs on either."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from subbyte.device.launch import Launch
from subbyte.gpu.seen import HOST
from subbyte.kernel.execute import EMULATOR, resolve_device

Run = Callable[[Sequence[int], int, bool], None]
"""Enqueues one launch: the addresses of its arguments, the handle of a stream, and whether it may begin before the
preceding launch has ended."""


class Program(Protocol):
    """Anything that can be launched: a kernel, a conversion, or either loaded from a file."""

    @property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        ...

    @property
    def cuda(self) -> str:
        """The CUDA text, which the emulator runs."""
        ...

    @property
    def cubin(self) -> bytes:
        """The machine code."""
        ...


class Place(Protocol):
    """A device onto which programs are loaded."""

    ordinal: int
    """The GPU's number, or :data:`subbyte.gpu.seen.HOST` for the emulator."""

    def load(self, program: Program) -> Run:
        """Make a program ready to run. Raises CudaError if it does not fit the device."""
        ...

    def keep(self, words: NDArray[Any]) -> tuple[int, object]:
        """Copy words to the device to stay there: returns the address, and the object that owns the memory."""
        ...


class EmulatorPlace:
    """The CPU: kernels run in the emulator on host memory; there are no streams."""

    ordinal = HOST

    def load(self, program: Program) -> Run:
        """Calls run the program's text and return when it has ended."""
        from subbyte.emulator import run_cuda

        launch = program.launch

        def run(addresses: Sequence[int], stream: int, overlap: bool) -> None:
            buffers = {one.name: _memory(address, one.dtype, one.nbytes)
                       for one, address in zip(launch.arguments, addresses, strict=True)}  # fmt: skip
            run_cuda(program.cuda, launch, buffers, check=False)

        return run

    def keep(self, words: NDArray[Any]) -> tuple[int, object]:
        """A copy in host memory."""
        kept = np.array(words, order="C")
        return kept.ctypes.data, kept


class GpuPlace:
    """A GPU of this machine."""

    def __init__(self, ordinal: int) -> None:
        from subbyte.gpu.device import open_device

        self.ordinal = ordinal
        self.device = open_device(ordinal)

    def load(self, program: Program) -> Run:
        """Load the machine code now; it stays loaded."""
        from subbyte.gpu.loaded import LoadedLaunch

        cubin = program.cubin
        with self.device.unmoved():
            return LoadedLaunch(self.device, cubin, program.launch).quick()

    def keep(self, words: NDArray[Any]) -> tuple[int, object]:
        """A copy in GPU memory, complete on return."""
        with self.device.unmoved():
            buffer = _Owned(self.device.upload(np.ascontiguousarray(words)))
        return buffer.held.pointer, buffer


class _Owned:
    """Device memory that is freed with its last reference."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __del__(self) -> None:
        with suppress(Exception), self.held.device.unmoved():  # the driver may have been shut down before this object
            self.held.device.activate()  # dropped by a thread that may have no current context
            self.held.free()


_places: dict[int, Place] = {HOST: EmulatorPlace()}


def place_at(ordinal: int) -> Place:
    """The place of a GPU by its number, opened once."""
    found = _places.get(ordinal)
    if found is None:
        found = _places[ordinal] = GpuPlace(ordinal)
    return found


def place_for(device: str, arch: str) -> Place:
    """The place for a device name and programs of an architecture. Raises InvalidInput, MissingDependency."""
    name = resolve_device(device, arch)
    return place_at(HOST if name == EMULATOR else int(name.partition(":")[2]))


def _memory(address: int, dtype: str, count: int) -> NDArray[Any]:
    """A view of ``count`` bytes of host memory at an address."""
    held = (ctypes.c_uint8 * count).from_address(address)
    return np.frombuffer(memoryview(held), np.uint8).view(np.dtype(dtype))

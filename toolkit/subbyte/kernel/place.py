"""Where launches go: a GPU, or the emulator on arrays of the host. Both take addresses, so one code runs on either."""

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
launch ahead of it has ended."""


class Program(Protocol):
    """What can be launched: a kernel, a conversion, or either read from a file."""

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
    """A device that programs are loaded on."""

    ordinal: int
    """The GPU's number, :data:`subbyte.gpu.seen.HOST` for the emulator."""

    def load(self, program: Program) -> Run:
        """Make a program ready to run. Raises CudaError for one that does not fit the device."""
        ...

    def keep(self, words: NDArray[Any]) -> tuple[int, object]:
        """A copy of words that stays on the device: its address, and what owns it."""
        ...


class EmulatorPlace:
    """The CPU: kernels run in the emulator, on memory of the host; there are no streams."""

    ordinal = HOST

    def load(self, program: Program) -> Run:
        """Its text runs when called, and has ended when that returns."""
        from subbyte.emulator import run_cuda

        launch = program.launch

        def run(addresses: Sequence[int], stream: int, overlap: bool) -> None:
            buffers = {one.name: _memory(address, one.dtype, one.nbytes)
                       for one, address in zip(launch.arguments, addresses, strict=True)}  # fmt: skip
            run_cuda(program.cuda, launch, buffers, check=False)

        return run

    def keep(self, words: NDArray[Any]) -> tuple[int, object]:
        """A copy in memory of the host."""
        kept = np.array(words, order="C")
        return kept.ctypes.data, kept


class GpuPlace:
    """A GPU of this machine."""

    def __init__(self, ordinal: int) -> None:
        from subbyte.gpu.device import open_device

        self.ordinal = ordinal
        self.device = open_device(ordinal)

    def load(self, program: Program) -> Run:
        """Its machine code is loaded now, and stays."""
        from subbyte.gpu.loaded import LoadedLaunch

        cubin = program.cubin
        with self.device.unmoved():
            return LoadedLaunch(self.device, cubin, program.launch).quick()

    def keep(self, words: NDArray[Any]) -> tuple[int, object]:
        """A copy in memory of the GPU, complete when this returns."""
        with self.device.unmoved():
            buffer = _Owned(self.device.upload(np.ascontiguousarray(words)))
        return buffer.held.pointer, buffer


class _Owned:
    """Device memory that is freed with its last user."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __del__(self) -> None:
        with suppress(Exception), self.held.device.unmoved():  # of a driver that has ended before us, too
            self.held.device.activate()  # the thread that drops it may have no context, and the driver needs one
            self.held.free()


_places: dict[int, Place] = {HOST: EmulatorPlace()}


def place_at(ordinal: int) -> Place:
    """The place of a GPU's number, opened once."""
    found = _places.get(ordinal)
    if found is None:
        found = _places[ordinal] = GpuPlace(ordinal)
    return found


def place_for(device: str, arch: str) -> Place:
    """The place that a device's name means, for programs of an architecture. Raises InvalidInput, MissingDependency."""
    name = resolve_device(device, arch)
    return place_at(HOST if name == EMULATOR else int(name.partition(":")[2]))


def _memory(address: int, dtype: str, count: int) -> NDArray[Any]:
    """``count`` bytes of the host at an address, as they are."""
    held = (ctypes.c_uint8 * count).from_address(address)
    return np.frombuffer(memoryview(held), np.uint8).view(np.dtype(dtype))

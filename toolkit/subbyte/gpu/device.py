"""One open GPU: memory, modules, launches, graphs.

Launches go through cuda-core, everything else through the CUDA driver API: cuda-core destroys the objects it owns
whenever Python drops them, which after a reset may hit memory that belongs to others by then, waits forever on a GPU
that hangs, and prints warnings after a crash; and its graphs lose the status of a failed capture.

Everything runs in the device's *primary* context, the one used by PyTorch and CuPy, so that their pointers can be
passed to a kernel directly. Work goes to one stream of our own; :meth:`CudaDevice.synchronize` waits with a time
limit, because a kernel that never ends would otherwise hang its caller.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from subbyte.errors import InvalidInput
from subbyte.gpu.driver import CudaError, DeviceHang, call, describe, load_api, refused, status_name

if TYPE_CHECKING:
    from cuda.core import LaunchConfig

    from subbyte.device.launch import Launch
    from subbyte.gpu.quick import QuickLaunch


@dataclass(frozen=True)
class FunctionAttributes:
    """Resources of a loaded kernel: registers per thread, local and static shared bytes, maximum threads per block."""

    registers: int
    local_bytes: int
    static_shared_bytes: int
    max_threads: int


class CudaDevice:
    """One GPU: its primary context, one stream, an L2 flush buffer.

    ``api`` is the driver module; None loads the real one. Raises MissingDependency (no GPU) or InvalidInput
    (no such device).
    """

    def __init__(self, ordinal: int = 0, api: Any = None) -> None:
        self.api = api or load_api()
        self.info = describe(ordinal, self.api)
        self.generation = 0
        self.lost = False
        self._device = self.call("cuDeviceGet", ordinal)
        self._open()

    def call(self, function: str, *arguments: Any) -> Any:
        """Call a driver function by name; returns its values without the status. Raises CudaError."""
        return call(self.api, function, *arguments)

    def _open(self) -> None:
        self._context = self.call("cuDevicePrimaryCtxRetain", self._device)
        self.activate()
        self.stream = self.call("cuStreamCreate", self.api.CUstream_flags.CU_STREAM_NON_BLOCKING.value)
        self.queue = self.api.core.Stream.from_handle(int(self.stream))
        """The same stream as cuda-core expects it; it owns nothing."""
        self._done = self.call("cuEventCreate", self.api.CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
        self._flush: DeviceBuffer | None = None
        self.spun_up = False
        """Whether this context has done enough work for the clocks to have left idle."""

    def activate(self) -> None:
        """Make the primary context current in this thread. Raises CudaError once the device was lost."""
        if self.lost:
            raise CudaError(
                "the GPU context was lost by an earlier failure; start a new process to use the GPU again",
                "CUDA_ERROR_CONTEXT_IS_DESTROYED",
            )
        self.call("cuCtxSetCurrent", self._context)

    def unmoved(self) -> AbstractContextManager[None]:
        """For a block of work that must leave the thread on its current GPU, whatever the block activates: PyTorch
        and CuPy put new arrays there. A thread without a context counts as being on GPU 0, as in the CUDA runtime, and
        may keep GPU 0's context."""
        return _unmoved(self.api, self.info.ordinal)

    @property
    def context(self) -> Any:
        """The primary context, shared with other libraries."""
        return self._context

    def reset(self) -> None:
        """Discard the primary context after a crash and open a new one; earlier buffers and kernels are gone.

        Tensors that other libraries hold on this device in this process are gone too. Raises CudaError when the driver
        does not recover; then only a new process can use the device.
        """
        self.generation += 1
        for function in ("cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset"):
            getattr(self.api, function)(self._device)  # both return the crash's error again; the reset still happens
        try:
            self._open()
            probe = self.alloc(4096)
            probe.fill(0)
            self.synchronize()
            probe.free()
        except CudaError as error:
            self.lost = True
            message = f"the GPU did not recover from a crash ({error}); start a new process"
            raise CudaError(message, error.code) from None

    def synchronize(self, timeout_s: float = 30.0) -> None:
        """Wait until our stream is idle. Raises CudaError for a fault of a launch, DeviceHang after the time limit."""
        self.call("cuEventRecord", self._done, self.stream)
        deadline = time.monotonic() + timeout_s
        spins = 0
        while True:
            status = self.api.cuEventQuery(self._done)[0]
            if not int(status):
                return
            code = status_name(status)
            if code != "CUDA_ERROR_NOT_READY":
                raise CudaError(f"the kernel failed while running: {code}", code)
            if time.monotonic() > deadline:
                self.lost = True
                raise DeviceHang(f"a kernel did not end within {timeout_s:g} s", "CUDA_ERROR_TIMEOUT")
            spins += 1
            time.sleep(0 if spins < 200 else 5e-5)

    def wait_for_others(self) -> None:
        """Wait for everything other libraries have enqueued on this device."""
        self.call("cuCtxSynchronize")

    def alloc(self, nbytes: int) -> DeviceBuffer:
        """A buffer of uninitialised device memory. Raises CudaError of kind ``memory`` when it does not fit."""
        self.activate()
        return DeviceBuffer(self, int(self.call("cuMemAlloc", max(int(nbytes), 4))), int(nbytes), self.generation)

    def upload(self, array: NDArray[Any]) -> DeviceBuffer:
        """A new buffer with a copy of ``array``."""
        buffer = self.alloc(array.nbytes)
        buffer.upload(array)
        return buffer

    def load(self, cubin: bytes, entry: str) -> CudaFunction:
        """The kernel ``entry`` of a cubin. Raises CudaError of kind ``launch`` when it does not fit this GPU."""
        self.activate()
        try:
            module = self.call("cuModuleLoadData", cubin)
        except CudaError as error:
            hint = f"; was it built for {self.info.arch}?" if "BINARY" in error.code or "IMAGE" in error.code else ""
            raise CudaError(f"the cubin cannot be loaded on {self.info.name}: {error.code}{hint}", error.code) from None
        try:
            return CudaFunction(self, module, self.call("cuModuleGetFunction", module, entry.encode()), entry)
        except CudaError as error:
            self.call("cuModuleUnload", module)
            raise CudaError(f"the cubin has no kernel called {entry!r}: {error.code}", error.code) from None

    def flush_l2(self) -> None:
        """Enqueue overwriting a buffer of more than twice the size of the L2, which evicts everything else."""
        buffer = self.flush_buffer()
        self.call("cuMemsetD32Async", buffer.pointer, 0x5B5B5B5B, buffer.nbytes // 4, self.stream)

    def flush_buffer(self) -> DeviceBuffer:
        """The buffer that :meth:`flush_l2` overwrites; made on first use (call this before a capture)."""
        if self._flush is None:
            size = max(2 * self.info.l2_bytes + (8 << 20), 32 << 20)
            self._flush = self.alloc(size // 4 * 4)
        return self._flush

    @contextmanager
    def graph(self, record: Callable[[], None]) -> Iterator[Callable[[], None]]:
        """Capture what ``record`` enqueues; yields a function that replays it once on our stream."""
        self.activate()
        self.call("cuStreamBeginCapture", self.stream, self.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        try:
            record()
        except BaseException:
            self.api.cuStreamEndCapture(self.stream)  # leaves the stream usable; the first error is the one to report
            raise
        graph = self.call("cuStreamEndCapture", self.stream)
        try:
            executable = self.call("cuGraphInstantiate", graph, 0)
        finally:
            self.call("cuGraphDestroy", graph)
        try:
            yield lambda: self.call("cuGraphLaunch", executable, self.stream)
        finally:
            self.api.cuGraphExecDestroy(executable)  # after a crash this returns the crash's error again

    def elapsed_us(self, work: Callable[[], None], timeout_s: float = 30.0) -> float:
        """Time in microseconds that the device needs for what ``work`` enqueues, between two events on our stream."""
        start, stop = self.call("cuEventCreate", 0), self.call("cuEventCreate", 0)
        try:
            self.call("cuEventRecord", start, self.stream)
            work()
            self.call("cuEventRecord", stop, self.stream)
            self.synchronize(timeout_s)
            return 1000.0 * float(self.call("cuEventElapsedTime", start, stop))
        finally:
            for event in (start, stop):
                self.api.cuEventDestroy(event)


def open_device(ordinal: int = 0) -> CudaDevice:
    """The device with this number, opened once per thread: its stream and its raised clocks are shared by all callers.
    The thread stays on its current GPU.

    Raises MissingDependency (no GPU) or InvalidInput (no such device).
    """
    devices: dict[int, CudaDevice] = _opened.__dict__.setdefault("devices", {})
    if ordinal not in devices:
        api = load_api()
        with _unmoved(api, ordinal):
            devices[ordinal] = CudaDevice(ordinal, api)
    return devices[ordinal]


_opened = threading.local()


@contextmanager
def _unmoved(api: Any, ordinal: int) -> Iterator[None]:
    before = call(api, "cuCtxGetCurrent")
    try:
        yield
    finally:
        if int(before) or ordinal:
            api.cuCtxSetCurrent(before)  # after a crash this returns the crash's error again


class DeviceBuffer:
    """Device memory owned by us. ``pointer`` is its address; freed explicitly, or with the device's context.

    ``shared`` marks a buffer that several kernels read and none of them frees.
    """

    def __init__(self, device: CudaDevice, pointer: int, nbytes: int, generation: int) -> None:
        self.device, self.pointer, self.nbytes = device, pointer, nbytes
        self.shared = False
        self._generation = generation

    def upload(self, array: NDArray[Any]) -> None:
        """Copy ``array`` (C-contiguous, exactly as many bytes) into the buffer. Raises InvalidInput when the size
        differs."""
        host = np.ascontiguousarray(array)
        if host.nbytes != self.nbytes:
            raise InvalidInput(f"upload of {host.nbytes} bytes into a device buffer of {self.nbytes} bytes")
        self.device.call("cuMemcpyHtoDAsync", self.pointer, host.ctypes.data, host.nbytes, self.device.stream)
        self.device.synchronize()  # the host array may be freed as soon as this returns

    def download(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """The contents as an array of this shape and dtype."""
        host = np.empty(shape, dtype)
        if host.nbytes != self.nbytes:
            raise InvalidInput(f"download of {host.nbytes} bytes from a device buffer of {self.nbytes} bytes")
        self.device.synchronize()  # with a time limit, which the copy itself does not have
        self.device.call("cuMemcpyDtoHAsync", host.ctypes.data, self.pointer, host.nbytes, self.device.stream)
        self.device.synchronize()
        return host

    def fill(self, byte: int) -> None:
        """Enqueue setting every byte."""
        self.device.call("cuMemsetD8Async", self.pointer, byte, self.nbytes, self.device.stream)

    def part(self, offset: int, nbytes: int) -> DeviceBuffer:
        """A view of ``nbytes`` starting at byte ``offset``. It shares this buffer's lifetime and is not freed by
        itself."""
        if not 0 <= offset <= offset + nbytes <= self.nbytes:
            raise InvalidInput(f"bytes {offset} to {offset + nbytes} of a device buffer of {self.nbytes} bytes")
        found = DeviceBuffer(self.device, self.pointer + offset, nbytes, self._generation)
        found.shared = True
        return found

    def free(self) -> None:
        """Free the memory; does nothing when its context is gone."""
        if self.pointer and self._generation == self.device.generation and not self.device.lost:
            self.device.api.cuMemFree(self.pointer)  # after a crash this returns the crash's error again
        self.pointer = 0


class CudaFunction:
    """A loaded kernel."""

    def __init__(self, device: CudaDevice, module: Any, handle: Any, entry: str) -> None:
        self.device, self.entry = device, entry
        self._module, self._handle, self._generation = module, handle, device.generation
        # A module's function, which lives as long as its context: cuda-core passes the handle on and owns nothing.
        self._kernel = device.api.core.Kernel.from_handle(int(handle))
        self._configs: dict[tuple[Any, ...], LaunchConfig] = {}

    def quick(self, launch: Launch) -> QuickLaunch:
        """A way to launch it repeatedly on other libraries' streams."""
        from subbyte.gpu.quick import QuickLaunch

        return QuickLaunch(self.device, int(self._handle), launch)

    @property
    def attributes(self) -> FunctionAttributes:
        """Resources that the compiler assigned to the kernel."""
        names = ("NUM_REGS", "LOCAL_SIZE_BYTES", "SHARED_SIZE_BYTES", "MAX_THREADS_PER_BLOCK")
        enum = self.device.api.CUfunction_attribute
        read = [
            int(self.device.call("cuFuncGetAttribute", getattr(enum, "CU_FUNC_ATTRIBUTE_" + name), self._handle))
            for name in names
        ]
        return FunctionAttributes(*read)

    def allow_shared(self, nbytes: int) -> None:
        """Raise the kernel's limit of dynamic shared memory. Raises CudaError of kind ``launch`` when the device cannot
        provide it."""
        attribute = self.device.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        try:
            self.device.call("cuFuncSetAttribute", self._handle, attribute, nbytes)
        except CudaError as error:
            raise CudaError(
                f"{nbytes} bytes of dynamic shared memory are refused ({error.code}); this GPU gives a block at most "
                f"{self.device.info.shared_per_block}",
                error.code,
            ) from None

    def launch(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        pointers: list[int],
        overlap: bool = False,
    ) -> None:
        """Enqueue one launch with these pointer arguments on our stream.

        ``overlap``: it may begin before the preceding launch has ended; only for kernels that wait for that launch
        themselves (``Launch.dependent_launch``).
        """
        asked = (grid, block, shared_bytes, overlap)
        config = self._configs.get(asked) or self._config(*asked)
        try:
            self.device.api.core.launch(self.device.queue, config, self._kernel, *pointers)
        except Exception as error:
            raise refused(f"the launch of {self.entry}", error) from None

    def _config(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], shared_bytes: int, overlap: bool
    ) -> LaunchConfig:
        """Made once for each way in which the kernel is launched."""
        config = self.device.api.core.LaunchConfig(
            grid=grid, block=block, shmem_size=shared_bytes, programmatic_stream_serialization=overlap
        )
        self._configs[grid, block, shared_bytes, overlap] = config
        return config

    def unload(self) -> None:
        """Unload the module; does nothing when its context is gone."""
        if self._generation == self.device.generation and not self.device.lost:
            self.device.api.cuModuleUnload(self._module)  # after a crash this returns the crash's error again
            self._generation = -1

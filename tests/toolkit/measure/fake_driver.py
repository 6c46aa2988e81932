"""A driver in Python with the calling conventions of ``cuda.bindings.driver``: memory, streams, graphs, a clock.

Of cuda-core, what needs no driver is real; a launch runs here.

Device memory is host memory, so copies are real. A "cubin" is a key of ``kernels``; its function gets one uint32 array
per pointer argument. Time is simulated: work on the stream advances a clock that events read.
"""

import ctypes
import enum
from types import SimpleNamespace

import cuda.core
import numpy as np

CODES = [
    "CUDA_SUCCESS", "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_NO_DEVICE",
    "CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_ERROR_NOT_FOUND", "CUDA_ERROR_NOT_READY",
    "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
]  # fmt: skip
CORE = ("Kernel", "LaunchConfig", "Stream")
CUresult = enum.IntEnum(
    "CUresult", {name: number for number, name in enumerate(CODES)} | {"CUDA_ERROR_INVALID_HANDLE": 400}
)
OK = CUresult.CUDA_SUCCESS
ATTRIBUTES = {
    "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0, "MULTIPROCESSOR_COUNT": 132,
    "L2_CACHE_SIZE": 1 << 16, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
}  # fmt: skip


class Fault(Exception):
    """Raised by a fake kernel: the driver answers with this code from then on."""


class Hang(Exception):
    """Raised by a fake kernel: it never ends."""


class FakeDriver:
    CUresult = CUresult
    CUdevice_attribute = enum.IntEnum(
        "CUdevice_attribute", {f"CU_DEVICE_ATTRIBUTE_{name}": i for i, name in enumerate(ATTRIBUTES)}
    )
    CUfunction_attribute = enum.IntEnum(
        "CUfunction_attribute",
        {
            f"CU_FUNC_ATTRIBUTE_{name}": i
            for i, name in enumerate(
                ["NUM_REGS", "LOCAL_SIZE_BYTES", "SHARED_SIZE_BYTES", "MAX_THREADS_PER_BLOCK",
                 "MAX_DYNAMIC_SHARED_SIZE_BYTES"]
            )
        },
    )  # fmt: skip
    CUstream_flags = enum.IntEnum("CUstream_flags", {"CU_STREAM_NON_BLOCKING": 1})
    CUevent_flags = enum.IntEnum("CUevent_flags", {"CU_EVENT_DISABLE_TIMING": 2})
    CUstreamCaptureMode = enum.IntEnum("CUstreamCaptureMode", {"CU_STREAM_CAPTURE_MODE_THREAD_LOCAL": 1})

    def __init__(self, kernels=None, devices=1, recovers=True):
        self.kernels = dict(kernels or {})  # cubin bytes -> function(arrays)
        self.devices, self.recovers = devices, recovers
        self.clock = 0.0
        self.kernel_us, self.cold_us, self.flush_us = 4.0, 6.5, 50.0
        self.sticky = None
        self.hung = False
        self.flushed = False
        self.capturing = None
        self.memory = {}
        self.pinned = {}
        self.events = {}
        self.graphs = {}
        self.loaded = {}
        self.calls = []
        self.launched = []
        self.overlapping = []
        self.core = SimpleNamespace(**{name: getattr(cuda.core, name) for name in CORE}, launch=self._launch)
        self.next = 1
        self.current = 0
        """The context of the one thread that there is."""
        self.free_bytes = 1 << 33

    def __getattribute__(self, name):
        value = object.__getattribute__(self, name)
        if name.startswith("cu") and callable(value):

            def call(*arguments):
                self.calls.append(name)
                recovering = name.startswith(("cuDevicePrimaryCtx", "cuDeviceGet", "cuDriver"))
                if self.sticky is not None and not recovering:
                    return (self.sticky,)
                return value(*arguments)

            return call
        return value

    def _new(self):
        self.next += 1
        return self.next

    def _enqueue(self, work):
        if self.capturing is not None:
            self.capturing.append(work)
        else:
            work()
        return (OK,)

    def _at(self, pointer):
        """Device memory from an address on, which may lie within what was allocated."""
        if pointer in self.memory:
            return self.memory[pointer]
        inside = [(pointer - base, one) for base, one in self.memory.items() if 0 < pointer - base < len(one)]
        assert inside, f"{pointer:#x} is no device memory"
        return inside[0][1][inside[0][0] :]

    # devices and context
    def cuDeviceGetCount(self):
        return OK, self.devices

    def cuDeviceGet(self, ordinal):
        return OK, ordinal

    def cuDeviceGetName(self, length, device):
        return OK, b"Fake GPU\0\0"

    def cuDeviceGetPCIBusId(self, length, device):
        return OK, b"0000:01:00.0\0"

    def cuDeviceGetAttribute(self, attribute, device):
        return OK, ATTRIBUTES[attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    def cuDeviceTotalMem(self, device):
        return OK, 1 << 37

    def cuDriverGetVersion(self):
        return OK, 13000

    def cuDevicePrimaryCtxRetain(self, device):
        return OK, 77 + device

    def cuDevicePrimaryCtxRelease(self, device):
        return (OK,)

    def cuDevicePrimaryCtxReset(self, device):
        if self.recovers:
            self.sticky = None
            self.memory.clear()
        return (OK,)

    def cuCtxGetCurrent(self):
        return OK, self.current

    def cuCtxSetCurrent(self, context):
        self.current = context
        return (OK,)

    def cuCtxSynchronize(self):
        return (OK,)

    # memory
    def cuMemAlloc(self, size):
        if size > self.free_bytes:
            return CUresult.CUDA_ERROR_OUT_OF_MEMORY, 0
        array = np.zeros(size, np.uint8)
        self.memory[array.ctypes.data] = array
        return OK, array.ctypes.data

    def cuMemFree(self, pointer):
        del self.memory[pointer]
        return (OK,)

    def cuMemcpyHtoDAsync(self, target, source, count, stream):
        self._at(target)
        ctypes.memmove(target, source, count)
        return (OK,)

    def cuMemcpyDtoHAsync(self, target, source, count, stream):
        self._at(source)
        return self._enqueue(lambda: ctypes.memmove(target, source, count))

    def cuMemHostAlloc(self, size, flags):
        assert flags == 1, "portable: for all devices"
        array = np.zeros(size, np.uint8)
        self.pinned[array.ctypes.data] = array
        return OK, array.ctypes.data

    def cuMemFreeHost(self, pointer):
        del self.pinned[pointer]
        return (OK,)

    def cuMemsetD8Async(self, pointer, value, count, stream):
        return self._enqueue(lambda: self._at(pointer)[:count].fill(value))

    def cuMemsetD32Async(self, pointer, value, count, stream):
        def flush():
            self.clock += self.flush_us
            self.flushed = True

        return self._enqueue(flush)

    # modules and launches
    def cuModuleLoadData(self, image):
        if image not in self.kernels:
            return CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU, None
        handle = self._new()
        self.loaded[handle] = self.kernels[image]
        return OK, handle

    def cuModuleUnload(self, module):
        del self.loaded[module]
        return (OK,)

    def cuModuleGetFunction(self, module, name):
        assert isinstance(name, bytes)
        return (OK, module) if name == b"conv_kernel" else (CUresult.CUDA_ERROR_NOT_FOUND, None)

    def cuFuncGetAttribute(self, attribute, function):
        values = {"NUM_REGS": 96, "LOCAL_SIZE_BYTES": 0, "SHARED_SIZE_BYTES": 0, "MAX_THREADS_PER_BLOCK": 512}
        return OK, values[attribute.name.removeprefix("CU_FUNC_ATTRIBUTE_")]

    def cuFuncSetAttribute(self, function, attribute, value):
        return (OK if value <= 232448 else CUresult.CUDA_ERROR_INVALID_VALUE,)

    def _launch(self, stream, config, kernel, *pointers):
        """cuda-core's ``launch``; its errors begin with the driver's name for the status."""
        self.calls.append("launch")
        if self.sticky is not None:
            raise Exception(f"{self.sticky.name}: said in many words")
        self._run(int(kernel.handle), (*config.grid, *config.block, config.shmem_size), pointers)
        self.overlapping.append(config.programmatic_stream_serialization)

    def cuLaunchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, params, extra):
        assert params == 0, "kernels with arguments are launched by cuda-core"
        return self._run(function, (gx, gy, gz, bx, by, bz, shared), ())

    def _run(self, function, geometry, pointers):
        body = self.loaded[function]
        assert len(pointers) == body.arguments

        def work():
            self.launched.append(geometry)
            self.clock += self.cold_us if self.flushed else self.kernel_us
            self.flushed = False
            try:
                body([self._at(pointer).view(np.uint32) for pointer in pointers])
            except Fault as fault:
                self.sticky = CUresult[str(fault)]
            except Hang:
                self.hung = True

        return self._enqueue(work)

    # streams, events, graphs
    def cuStreamCreate(self, flags):
        assert isinstance(flags, int)
        return OK, self._new()

    def cuEventCreate(self, flags):
        assert isinstance(flags, int)
        return OK, self._new()

    def cuEventRecord(self, event, stream):
        assert self.capturing is None
        self.events[event] = self.clock
        return (OK,)

    def cuEventQuery(self, event):
        return (CUresult.CUDA_ERROR_NOT_READY if self.hung else OK,)

    def cuEventElapsedTime(self, start, stop):
        return OK, (self.events[stop] - self.events[start]) / 1000

    def cuEventDestroy(self, event):
        self.events.pop(event, None)
        return (OK,)

    def cuStreamBeginCapture(self, stream, mode):
        assert self.capturing is None
        self.capturing = []
        return (OK,)

    def cuStreamEndCapture(self, stream):
        work, self.capturing = self.capturing, None
        handle = self._new()
        self.graphs[handle] = work
        return OK, handle

    def cuGraphInstantiate(self, graph, flags):
        handle = self._new()
        self.graphs[handle] = self.graphs[graph]
        return OK, handle

    def cuGraphLaunch(self, executable, stream):
        for work in self.graphs[executable]:
            work()
        return (OK,)

    def cuGraphDestroy(self, graph):
        del self.graphs[graph]
        return (OK,)

    def cuGraphExecDestroy(self, executable):
        del self.graphs[executable]
        return (OK,)


def kernel(arguments):
    """Mark a function as a fake kernel with so many pointer arguments."""

    def mark(function):
        function.arguments = arguments
        return function

    return mark

"""The CUDA driver: loaded on first use, its errors, the GPUs it sees.

``cuda.bindings`` and ``cuda.core`` are imported by :func:`load_api`: importing this module needs neither a GPU nor a
driver. GPUs are described through ``cuda.bindings``: cuda-core has no memory size, and it gets the bus id from the CUDA
runtime, which refuses a driver older than itself; ``subbyte doctor`` must be able to report such a driver.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

from subbyte.errors import InvalidInput, MissingDependency, SubbyteError

_WITHOUT = '; device="emulator" runs kernels on the CPU'
_CRASHES = frozenset(
    "CUDA_ERROR_" + name
    for name in (
        "ILLEGAL_ADDRESS", "LAUNCH_FAILED", "MISALIGNED_ADDRESS", "ILLEGAL_INSTRUCTION", "HARDWARE_STACK_ERROR",
        "INVALID_ADDRESS_SPACE", "INVALID_PC", "LAUNCH_TIMEOUT", "ASSERT", "UNKNOWN", "CONTEXT_IS_DESTROYED",
        "ECC_UNCORRECTABLE", "CONTAINED", "TENSOR_MEMORY_LEAK",
    )
)  # fmt: skip
_NO_GPU = ("CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_STUB_LIBRARY", "CUDA_ERROR_DEVICE_UNAVAILABLE")


class CudaError(SubbyteError):
    """A driver call failed. ``code`` is the driver's name for it; ``kind`` is ``memory``, ``crash`` or ``launch``."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def kind(self) -> str:
        """The failure kind that a measurement records. ``crash`` leaves the context unusable until it is reset."""
        if self.code == "CUDA_ERROR_OUT_OF_MEMORY":
            return "memory"
        return "crash" if self.code in _CRASHES else "launch"


class DeviceHang(CudaError):
    """A kernel did not end within its time limit. Only a new process can use the device again."""

    @property
    def kind(self) -> str:
        """Always ``timeout``."""
        return "timeout"


@dataclass(frozen=True)
class GpuInfo:
    """Description of a device. ``arch`` is the compilation target (``sm_90a``); sizes are bytes."""

    ordinal: int
    name: str
    arch: str
    sms: int
    memory_bytes: int
    l2_bytes: int
    shared_per_block: int
    cuda_version: str
    """Newest CUDA version that the driver supports, such as ``13.0``."""
    driver_version: str | None
    """The driver's own version, such as ``580.159.04``; None when NVML is not installed."""
    bus_id: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


def load_api() -> Any:
    """The contents of ``cuda.bindings.driver``, initialised, with the module ``cuda.core`` as ``core``.

    Raises MissingDependency that says what this machine lacks.
    """
    try:
        from cuda.bindings import driver
    except ImportError:
        raise MissingDependency(
            "no CUDA bindings for Python: install the package cuda-bindings (pip install cuda-bindings)" + _WITHOUT
        ) from None
    core = _load_core()
    try:
        status = driver.cuInit(0)[0]
    except Exception as error:  # the bindings raise whatever their dynamic loader raised
        raise MissingDependency(f"no NVIDIA driver ({error})" + _WITHOUT) from None
    name = status_name(status)
    if name in _NO_GPU:
        raise MissingDependency("no NVIDIA GPU is visible to the driver" + _WITHOUT)
    if int(status):
        raise MissingDependency(f"the NVIDIA driver could not start ({name})" + _WITHOUT)
    return SimpleNamespace(**vars(driver), core=core)


def _load_core() -> ModuleType:
    try:
        import cuda.core as core

        if hasattr(core.LaunchConfig, "programmatic_stream_serialization"):  # new in 1.2
            return core
        found = f"cuda-core {core.__version__} is too old"
    except ImportError as error:
        found = f"cuda-core cannot be imported ({error})"
    raise MissingDependency(f"{found}: pip install 'cuda-core>=1.2,<2'" + _WITHOUT)


def status_name(status: Any) -> str:
    """The driver's name for a status, such as ``CUDA_SUCCESS``."""
    return str(getattr(status, "name", status))


def call(api: Any, function: str, *arguments: Any) -> Any:
    """Call a driver function by name; returns its values without the status. Raises CudaError."""
    status, *values = getattr(api, function)(*arguments)
    if int(status):
        code = status_name(status)
        raise CudaError(f"{function} failed: {code}", code)
    return values[0] if len(values) == 1 else tuple(values)


def refused(what: str, error: Exception) -> CudaError:
    """cuda-core's error as ours: its message begins with the driver's name for the status. Any other error is raised
    again.

    cuda-core has no public class for its errors, and they carry no status.
    """
    code = str(error).partition(":")[0]
    if not code.startswith("CUDA_ERROR_"):
        raise error
    return CudaError(f"{what} failed: {code}", code)


def detect(api: Any = None) -> list[GpuInfo]:
    """Every visible GPU. Raises MissingDependency when there is no driver, no GPU or no ``cuda-bindings``."""
    api = api or load_api()
    return [describe(ordinal, api) for ordinal in range(int(call(api, "cuDeviceGetCount")))]


def describe(ordinal: int, api: Any = None) -> GpuInfo:
    """The device with this number. Raises InvalidInput when there are fewer devices."""
    api = api or load_api()
    count = int(call(api, "cuDeviceGetCount"))
    if not 0 <= ordinal < count:
        allowed = ", ".join(f"cuda:{i}" for i in range(count)) or "none (no GPU is visible)"
        raise InvalidInput(f"device cuda:{ordinal}: this machine has {count} GPU(s); allowed: {allowed}")
    device = call(api, "cuDeviceGet", ordinal)

    def attribute(name: str) -> int:
        return int(call(api, "cuDeviceGetAttribute", getattr(api.CUdevice_attribute, _ATTRIBUTE + name), device))

    major, minor = attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")
    version = int(call(api, "cuDriverGetVersion"))
    return GpuInfo(
        ordinal=ordinal,
        name=_text(call(api, "cuDeviceGetName", 256, device)),
        arch=f"sm_{major}{minor}" + ("a" if major >= 9 else ""),
        sms=attribute("MULTIPROCESSOR_COUNT"),
        memory_bytes=int(call(api, "cuDeviceTotalMem", device)),
        l2_bytes=attribute("L2_CACHE_SIZE"),
        shared_per_block=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        cuda_version=f"{version // 1000}.{version % 1000 // 10}",
        driver_version=_driver_version(),
        bus_id=_text(call(api, "cuDeviceGetPCIBusId", 32, device)),
    )


_ATTRIBUTE = "CU_DEVICE_ATTRIBUTE_"


def _text(value: bytes) -> str:
    return value.split(b"\0", 1)[0].decode()


def _driver_version() -> str | None:
    from subbyte.gpu.telemetry import driver_version

    return driver_version()

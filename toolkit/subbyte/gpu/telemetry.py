"""The state of the GPU during a measurement: clocks, power, temperature, throttling, read through NVML.

The package ``nvidia-ml-py`` is optional: without it, or if NVML refuses a reading, the value is None.
cuda-core reads neither the power nor, with the pinned ``cuda-bindings`` 13.0, anything else from NVML.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

_REASONS = {
    "gpu idle": 0x1,
    "application clocks": 0x2,
    "power cap": 0x4,
    "hardware slowdown": 0x8,
    "sync boost": 0x10,
    "software thermal": 0x20,
    "hardware thermal": 0x40,
    "power brake": 0x80,
    "display clocks": 0x100,
}
"""Bits of NVML's clocks-event reasons (nvml.h, ``nvmlClocksEventReason*``)."""


@dataclass(frozen=True)
class Snapshot:
    """One reading. Clocks in MHz, power in watts, temperature in degrees Celsius; None = not available."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    power_watts: float | None = None
    temperature_c: int | None = None
    throttle: tuple[str, ...] | None = None
    """Why clocks are lower than they could be; empty = nothing limits them."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        data = asdict(self)
        return {**data, "throttle": None if self.throttle is None else list(self.throttle)}


class Telemetry:
    """Readings of the GPU with this PCI bus id. Never raises: values that cannot be read are None."""

    def __init__(self, bus_id: str, nvml: Any = None) -> None:
        self._nvml = nvml or _load()
        self._handle = None
        if self._nvml is not None:
            self._handle = self._read(lambda: self._nvml.nvmlDeviceGetHandleByPciBusId(bus_id))

    def snapshot(self) -> Snapshot:
        """Clocks, power, temperature and throttle reasons now."""
        nvml, handle = self._nvml, self._handle
        if handle is None:
            return Snapshot()
        milliwatts = self._read(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        bits = self._read(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
        return Snapshot(
            sm_mhz=self._read(lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))),
            memory_mhz=self._read(lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))),
            power_watts=None if milliwatts is None else milliwatts / 1000,
            temperature_c=self._read(lambda: int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))),
            throttle=None if bits is None else tuple(name for name, bit in _REASONS.items() if bits & bit),
        )

    def uuid(self) -> str | None:
        """The GPU's unique id."""
        if self._handle is None:
            return None
        value = self._read(lambda: self._nvml.nvmlDeviceGetUUID(self._handle))
        return value.decode() if isinstance(value, bytes) else value

    @staticmethod
    def _read(reading: Callable[[], Any]) -> Any:
        try:
            return reading()
        except Exception:  # NVML has one exception class per error; a telemetry value is never worth a failure
            return None


def driver_version() -> str | None:
    """The NVIDIA driver's version, such as ``580.159.04``; None without NVML."""
    nvml = _load()
    if nvml is None:
        return None
    value = Telemetry._read(nvml.nvmlSystemGetDriverVersion)
    return value.decode() if isinstance(value, bytes) else value


def _load() -> Any:
    """The initialised NVML module, or None."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # not installed, or no driver
        return None
    return pynvml

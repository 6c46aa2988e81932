import json
import sys
import types

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.driver import CudaError, DeviceHang
from subbyte.gpu.telemetry import Snapshot, Telemetry, driver_version
from subbyte.gpu.timing import TimingProtocol, command_line, time_launch

SHORT = TimingProtocol(min_total_ms=1, repeats=3, cold_repeats=2, spin_up_ms=1)


def _launchable(fake, body=None):
    @fake.kernel(1)
    def nothing(arrays):
        pass

    driver = fake.Driver({b"cubin": body or nothing})
    device = CudaDevice(0, driver)
    function = device.load(b"cubin", "conv_kernel")
    pointer = device.alloc(4).pointer
    return device, lambda: function.launch((1, 1, 1), (32, 1, 1), 0, [pointer])


def test_hot_and_cold_are_per_launch(fake):
    device, launch = _launchable(fake)
    timing = time_launch(device, launch, SHORT)
    assert timing.microseconds == pytest.approx(4.0)
    assert timing.samples == pytest.approx((4.0,) * 3)
    assert timing.cold_microseconds == pytest.approx(6.5)
    assert timing.cold_samples == pytest.approx((6.5,) * 2)
    assert timing.spread == pytest.approx(0.0)
    assert timing.tops(8_000_000) == pytest.approx(2.0)


def test_median_and_spread_follow_the_samples(fake):
    device, launch = _launchable(fake)
    times = iter([5.0] * 1000)

    def change():
        device.api.kernel_us = next(times, 5.0)
        launch()

    timing = time_launch(device, change, TimingProtocol(min_total_ms=1, repeats=4, cold=False, spin_up_ms=0))
    assert timing.cold_microseconds is None
    assert timing.cold_samples == ()
    assert len(timing.samples) == 4
    assert min(timing.samples) <= timing.microseconds <= max(timing.samples)


def test_samples_last_as_long_as_asked(fake):
    device, launch = _launchable(fake)
    time_launch(device, launch, TimingProtocol(min_total_ms=8, repeats=2, cold=False, warmup_ms=0, spin_up_ms=0))
    # one direct launch, two of the graph to learn its length, then at least 8 ms of 4 us launches
    assert len(device.api.launched) >= 1 + 2 * 20 + 8000 / 4


def test_clocks_are_raised_once_per_context(fake):
    device, launch = _launchable(fake)
    how = TimingProtocol(min_total_ms=1, repeats=1, cold=False, spin_up_ms=100)
    time_launch(device, launch, how)
    first = device.api.clock
    time_launch(device, launch, how)
    assert first > 100_000
    assert device.api.clock - first < 10_000


def test_record_is_json_with_provenance(fake):
    device, launch = _launchable(fake)
    data = json.loads(json.dumps(time_launch(device, launch, SHORT).to_dict()))
    assert data["device"]["name"] == "Fake GPU"
    assert data["protocol"]["launches"] == 20
    assert set(data["clocks"]) == {"before", "after"}
    assert data["date"].startswith("20")
    assert data["command"]


@pytest.mark.parametrize(
    "wrong", [{"launches": 0}, {"repeats": 1.5}, {"min_total_ms": -1}, {"min_total_ms": float("nan")}, {"timeout_s": 0}]
)
def test_impossible_protocols_are_refused(wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        TimingProtocol(**wrong)


def test_fault_and_hang_while_timing(fake):
    calls = []

    @fake.kernel(1)
    def crash_later(arrays):
        calls.append(1)
        if len(calls) > 30:
            raise fake.Fault("CUDA_ERROR_ILLEGAL_ADDRESS")

    device, launch = _launchable(fake, crash_later)
    with pytest.raises(CudaError) as caught:
        time_launch(device, launch, SHORT)
    assert caught.value.kind == "crash"

    @fake.kernel(1)
    def hang(arrays):
        raise fake.Hang

    device, launch = _launchable(fake, hang)
    with pytest.raises(DeviceHang):
        time_launch(device, launch, TimingProtocol(timeout_s=0.02))


class Nvml:
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def nvmlDeviceGetHandleByPciBusId(self, bus):
        return "handle"

    def nvmlDeviceGetClockInfo(self, handle, which):
        return {1: 1980, 2: 3201}[which]

    def nvmlDeviceGetPowerUsage(self, handle):
        raise RuntimeError("not supported")

    def nvmlDeviceGetTemperature(self, handle, which):
        return 41

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return 0x4 | 0x20

    def nvmlDeviceGetUUID(self, handle):
        return b"GPU-1"


def test_telemetry_reads_what_there_is():
    telemetry = Telemetry("0000:01:00.0", Nvml())
    assert telemetry.snapshot() == Snapshot(1980, 3201, None, 41, ("power cap", "software thermal"))
    assert telemetry.uuid() == "GPU-1"


def test_telemetry_without_nvml_is_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    telemetry = Telemetry("0000:01:00.0")
    assert telemetry.snapshot() == Snapshot()
    assert telemetry.uuid() is None
    assert driver_version() is None


def test_driver_version_comes_from_nvml(monkeypatch):
    module = types.SimpleNamespace(nvmlInit=lambda: None, nvmlSystemGetDriverVersion=lambda: "580.1")
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert driver_version() == "580.1"


def test_commands_keep_no_absolute_path(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/anywhere/bin/subbyte", "bench", "/anywhere/bundle/", "--out", "a/b.json"])
    assert command_line() == "subbyte bench bundle --out a/b.json"


def test_flush_covers_twice_the_l2(fake):
    device = CudaDevice(0, fake.Driver())
    assert device.flush_buffer().nbytes >= 2 * device.info.l2_bytes
    assert np.all(device.flush_buffer().nbytes % 4 == 0)

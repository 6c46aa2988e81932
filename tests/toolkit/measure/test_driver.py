import sys
import threading
import types

import numpy as np
import pytest

from subbyte.errors import InvalidInput, MissingDependency
from subbyte.gpu import device as module
from subbyte.gpu.device import CudaDevice, CudaFunction
from subbyte.gpu.driver import CudaError, DeviceHang, describe, detect, load_api


@pytest.fixture
def double(fake):
    @fake.kernel(2)
    def body(arrays):
        arrays[1][:] = 2 * arrays[0]

    return body


def test_detect_reports_what_the_device_is(fake):
    (info,) = detect(fake.Driver())
    assert (info.name, info.arch, info.sms, info.cuda_version) == ("Fake GPU", "sm_90a", 132, "13.0")
    assert info.bus_id == "0000:01:00.0"
    assert info.to_dict()["memory_bytes"] == 1 << 37


def test_unknown_device_lists_those_there_are(fake):
    with pytest.raises(InvalidInput, match=r"cuda:3.*2 GPU.*cuda:0, cuda:1"):
        describe(3, fake.Driver(devices=2))


def _bindings(monkeypatch, initialise):
    import cuda.core  # itself needs the real ones

    module = types.ModuleType("cuda.bindings")
    module.driver = types.SimpleNamespace(cuInit=initialise)
    monkeypatch.setitem(sys.modules, "cuda.bindings", module)
    return cuda.core


def test_no_bindings_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(MissingDependency, match=r"cuda-bindings.*emulator"):
        load_api()


def test_no_driver_is_one_sentence(monkeypatch):
    def initialise(flags):
        raise RuntimeError("Failed to dlopen libcuda.so.1")

    _bindings(monkeypatch, initialise)
    with pytest.raises(MissingDependency, match=r"no NVIDIA driver.*libcuda.*emulator"):
        load_api()


@pytest.mark.parametrize(
    ("code", "message"), [("CUDA_ERROR_NO_DEVICE", "no NVIDIA GPU"), ("CUDA_ERROR_X", "not start")]
)
def test_no_gpu_is_one_sentence(monkeypatch, code, message):
    class Status(int):
        name = code

    _bindings(monkeypatch, lambda flags: (Status(100),))
    with pytest.raises(MissingDependency, match=message):
        load_api()


def test_load_api_gives_the_driver_and_cuda_core(monkeypatch):
    def initialise(flags):
        return (0,)

    core = _bindings(monkeypatch, initialise)
    api = load_api()
    assert api.cuInit is initialise
    assert api.core is core


def test_no_cuda_core_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    with pytest.raises(MissingDependency, match=r"cuda-core cannot be imported.*pip install.*emulator"):
        load_api()


def test_an_old_cuda_core_is_named(monkeypatch):
    import cuda

    old = types.ModuleType("cuda.core")
    old.__version__, old.LaunchConfig = "1.0.1", type("LaunchConfig", (), {})
    monkeypatch.setitem(sys.modules, "cuda.core", old)
    monkeypatch.setattr(cuda, "core", old)
    with pytest.raises(MissingDependency, match=r"cuda-core 1\.0\.1 is too old: pip install 'cuda-core>=1\.2,<2'"):
        load_api()


def test_memory_comes_back_as_it_went(fake):
    device = CudaDevice(0, fake.Driver())
    array = np.arange(35, dtype=np.int32).reshape(5, 7)
    buffer = device.upload(array[:, ::-1])
    assert (buffer.download((5, 7), np.int32) == array[:, ::-1]).all()
    buffer.fill(0xCD)
    assert (buffer.download((35,), np.uint32) == 0xCDCDCDCD).all()
    buffer.free()
    assert not device.api.memory


def test_wrong_sizes_are_refused(fake):
    buffer = CudaDevice(0, fake.Driver()).alloc(16)
    with pytest.raises(InvalidInput, match=r"20 bytes.*16 bytes"):
        buffer.upload(np.zeros(5, np.int32))
    with pytest.raises(InvalidInput, match=r"12 bytes.*16 bytes"):
        buffer.download((3,), np.int32)


def test_out_of_memory_has_its_kind(fake):
    driver = fake.Driver()
    driver.free_bytes = 100
    with pytest.raises(CudaError) as caught:
        CudaDevice(0, driver).alloc(101)
    assert caught.value.kind == "memory"


def test_launch_passes_pointers_and_geometry(fake, double):
    device = CudaDevice(0, fake.Driver({b"cubin": double}))
    function = device.load(b"cubin", "conv_kernel")
    assert function.attributes.registers == 96
    source, target = device.upload(np.arange(9, dtype=np.uint32)), device.alloc(36)
    function.launch((3, 2, 1), (64, 1, 1), 128, [source.pointer, target.pointer])
    assert (target.download((9,), np.uint32) == 2 * np.arange(9)).all()
    assert device.api.launched == [(3, 2, 1, 64, 1, 1, 128)]
    assert device.api.overlapping == [False]
    function.launch((3, 2, 1), (64, 1, 1), 128, [source.pointer, target.pointer], overlap=True)
    assert device.api.overlapping == [False, True]


def test_a_launch_after_a_crash_names_the_kernel_and_the_status(fake):
    device, buffer = _crashing(fake, recovers=True)
    with pytest.raises(CudaError, match=r"^the launch of conv_kernel failed: CUDA_ERROR_ILLEGAL_ADDRESS$") as caught:
        CudaFunction(device, 0, 0, "conv_kernel").launch((1, 1, 1), (1, 1, 1), 0, [buffer.pointer])
    assert caught.value.kind == "crash"


def test_what_cuda_core_refuses_by_itself_stays_as_it_is(fake, double):
    device = CudaDevice(0, fake.Driver({b"cubin": double}))
    with pytest.raises(ValueError, match="grid"):
        device.load(b"cubin", "conv_kernel").launch((0, 1, 1), (64, 1, 1), 0, [])


def test_cubin_of_another_gpu_names_the_arch(fake):
    with pytest.raises(CudaError, match="built for sm_90a") as caught:
        CudaDevice(0, fake.Driver()).load(b"other", "conv_kernel")
    assert caught.value.kind == "launch"


def test_missing_entry_and_too_much_shared_memory(fake, double):
    device = CudaDevice(0, fake.Driver({b"cubin": double}))
    with pytest.raises(CudaError, match="no kernel called 'other'"):
        device.load(b"cubin", "other")
    assert not device.api.loaded
    with pytest.raises(CudaError, match=r"300000 bytes.*at most 232448"):
        device.load(b"cubin", "conv_kernel").allow_shared(300000)


def test_graph_replays_what_was_recorded(fake, double):
    device = CudaDevice(0, fake.Driver({b"cubin": double}))
    function = device.load(b"cubin", "conv_kernel")
    pointers = [device.upload(np.ones(4, np.uint32)).pointer, device.alloc(16).pointer]
    with device.graph(lambda: [function.launch((1, 1, 1), (32, 1, 1), 0, pointers) for _ in range(3)]) as replay:
        assert not device.api.launched
        assert device.elapsed_us(replay) == pytest.approx(12.0)
    assert len(device.api.launched) == 3
    assert not device.api.graphs
    assert not device.api.events.keys() - {device._done}


def test_failed_recording_leaves_the_stream_usable(fake):
    device = CudaDevice(0, fake.Driver())
    with pytest.raises(ZeroDivisionError), device.graph(lambda: 1 / 0):
        pass
    assert device.api.capturing is None


def _crashing(fake, recovers):
    @fake.kernel(1)
    def body(arrays):
        raise fake.Fault("CUDA_ERROR_ILLEGAL_ADDRESS")

    device = CudaDevice(0, fake.Driver({b"cubin": body}, recovers=recovers))
    buffer = device.alloc(4)
    device.load(b"cubin", "conv_kernel").launch((1, 1, 1), (1, 1, 1), 0, [buffer.pointer])
    return device, buffer


def test_crash_is_reported_and_the_context_made_anew(fake):
    device, buffer = _crashing(fake, recovers=True)
    with pytest.raises(CudaError, match="ILLEGAL_ADDRESS") as caught:
        device.synchronize()
    assert caught.value.kind == "crash"
    device.reset()
    buffer.free()  # its context is gone: nothing to free, nothing raised
    assert (device.upload(np.ones(2, np.int32)).download((2,), np.int32) == 1).all()


def test_unrecovered_crash_loses_the_device(fake):
    device, _ = _crashing(fake, recovers=False)
    with pytest.raises(CudaError, match="new process"):
        device.reset()
    assert device.lost
    with pytest.raises(CudaError, match="new process"):
        device.alloc(4)


def test_hang_ends_at_the_limit(fake):
    @fake.kernel(1)
    def body(arrays):
        raise fake.Hang

    device = CudaDevice(0, fake.Driver({b"cubin": body}))
    device.load(b"cubin", "conv_kernel").launch((1, 1, 1), (1, 1, 1), 0, [device.alloc(4).pointer])
    with pytest.raises(DeviceHang, match=r"0.05 s") as caught:
        device.synchronize(0.05)
    assert caught.value.kind == "timeout"
    assert device.lost


def test_a_device_is_opened_once_per_thread(fake, monkeypatch):
    monkeypatch.setattr(module, "load_api", fake.Driver)
    monkeypatch.setattr(module, "_opened", threading.local())
    assert module.open_device(0) is module.open_device(0)
    other = []
    thread = threading.Thread(target=lambda: other.append(module.open_device(0)))
    thread.start()
    thread.join()
    assert other[0] is not module.open_device(0)

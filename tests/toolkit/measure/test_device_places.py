"""Layers on a GPU, with the driver in Python: which stream they go to, what overlaps, what is refused."""

import ctypes
import struct
import types

import cuda.core
import numpy as np
import pytest
from cuda.bindings import driver as bindings

from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput, WrongResult
from subbyte.gpu import device as gpu_device
from subbyte.gpu import quick
from subbyte.gpu.borrowed import stream_handle
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.driver import CudaError
from subbyte.gpu.seen import HOST, Seen
from subbyte.kernel.device_layer import DeviceLayer, Ends, Link
from subbyte.kernel.execute import run_outputs
from subbyte.kernel.place import GpuPlace

WORDS = 8


class Array:
    """A device array of a library that is no more than this."""

    def __init__(self, place, shape=(WORDS,), dtype="int32", ordinal=0):
        self.address = int(place.device.call("cuMemAlloc", 4 * WORDS))
        self.shape, self.dtype, self.ordinal = shape, dtype, ordinal


class Library:
    name = "fake"

    def __init__(self, place, current):
        self.place, self.current, self.made = place, current, []

    def look(self, array, name, stream):
        return Seen(array.address, array.shape, array.dtype, array.ordinal, True)

    def empty(self, shape, dtype, like, stream):
        self.made.append((shape, dtype, stream))
        pointer = int(self.place.device.call("cuMemAlloc", 4 * WORDS + 1024))
        return pointer, pointer

    def stream(self, ordinal):
        return self.current

    def finished(self, made, stream):
        return made


def _program(dependent=False):
    arguments = (Argument("A", "uint32", (WORDS,), "in"), Argument("Out", "uint32", (WORDS,), "out"),
                 Argument("Wt", "uint32", (WORDS,), "in"))  # fmt: skip
    launch = Launch("conv_kernel", (1, 1, 1), (32, 1, 1), 0, arguments, 1, dependent)
    return types.SimpleNamespace(launch=launch, cubin=b"cubin", cuda="")


@pytest.fixture
def place(fake, monkeypatch):
    @fake.kernel(3)
    def add(arrays):
        arrays[1][:WORDS] = arrays[0][:WORDS] + arrays[2][:WORDS]

    driver = fake.Driver({b"cubin": add})
    driver.streams, driver.contexts, driver.refuse, driver.meanwhile = [], [], [], []
    for name in ("CUlaunchConfig", "CUlaunchAttribute", "CUlaunchAttributeID", "CUstream"):
        setattr(driver, name, getattr(bindings, name))
    driver.cuCtxPushCurrent = lambda context: driver.contexts.append(context) or (0,)
    driver.cuCtxPopCurrent = lambda: (0, driver.contexts.pop())

    def launch(config, function, block, extra):
        """The driver's own function: what it is given as the driver reads it."""
        if driver.refuse and not driver.contexts:
            return driver.refuse[0]
        if driver.meanwhile:
            driver.meanwhile.pop()()
        config, function, block = config.value, function.value, block.value
        *geometry, stream, _, count = struct.unpack("7I4xQQI4x", ctypes.string_at(config, 56))
        pointers = [ctypes.c_uint64.from_address(place).value for place in (ctypes.c_uint64 * 3).from_address(block)]
        driver.streams.append(stream)
        driver.overlapping.append(bool(count))
        # working memory begins inside a piece: the fake knows pieces by their first byte
        begins = [max(key for key in driver.memory if key <= pointer) for pointer in pointers]
        for pointer, start in zip(pointers, begins, strict=True):
            driver.memory.setdefault(pointer, driver.memory[start][pointer - start :])
        driver._run(function, tuple(geometry), pointers)
        return 0

    monkeypatch.setattr(quick, "native", lambda name, arguments: launch)
    found = GpuPlace.__new__(GpuPlace)
    found.ordinal, found.device = 0, CudaDevice(0, driver)
    return found


def _layer(place, monkeypatch, layers=1, dependent=False, current=77):
    library = Library(place, current)
    monkeypatch.setattr("subbyte.kernel.device_layer.borrowed", lambda array, name: library)
    words = np.arange(WORDS, dtype=np.uint32)
    links = [Link(_program(dependent), {"Wt": words}) for _ in range(layers)]
    return DeviceLayer(links, place, Ends((1, 1, 1, 1), (1, 1, 1, 1), "int8", None, None, "no conversion")), library


def test_work_goes_to_the_callers_stream(place, monkeypatch):
    layer, library = _layer(place, monkeypatch)
    driver = place.device.api
    x = Array(place)
    driver.memory[x.address].view(np.uint32)[:] = 5
    out = layer(x)
    assert (driver.memory[out].view(np.uint32)[:WORDS] == 5 + np.arange(WORDS)).all()
    assert driver.streams == [77]
    assert library.made == [((WORDS,), "int32", 77)]
    library.current = 0  # the default stream
    layer(x)
    layer(x, stream=types.SimpleNamespace(cuda_stream=4242))
    layer(x, stream=cuda.core.Stream.from_handle(4243))
    assert driver.streams == [77, 0, 4242, 4243]
    assert driver.launched == [(1, 1, 1, 32, 1, 1, 0)] * 4


def test_nothing_waits(place, monkeypatch):
    layer, _ = _layer(place, monkeypatch)
    x = Array(place)
    place.device.api.calls.clear()
    layer(x)
    assert {"cuCtxSynchronize", "cuEventQuery", "cuMemcpyDtoHAsync"}.isdisjoint(place.device.api.calls)


def test_layers_of_a_chain_overlap_where_they_can(place, monkeypatch):
    layer, library = _layer(place, monkeypatch, layers=3, dependent=True)
    layer(Array(place))
    assert place.device.api.overlapping == [False, True, True]  # the first waits for work of others
    assert [made[0] for made in library.made] == [(WORDS,), (2 * 256 + 256,)]
    other, _ = _layer(place, monkeypatch, layers=2)
    place.device.api.overlapping.clear()
    other(Array(place))
    assert place.device.api.overlapping == [False, False]


def test_a_stream_that_is_gone_is_refused(place, monkeypatch):
    """A closed one says so; a number does not, and the driver would crash on it."""
    layer, _ = _layer(place, monkeypatch)
    stream = cuda.core.Stream.from_handle(4242)
    stream.close()
    for gone, message in ((stream, "stream is closed"), (4242, "a number does not say whether its stream is still")):
        with pytest.raises(InvalidInput, match=message):
            layer(Array(place), stream=gone)
    assert place.device.api.streams == []


@pytest.mark.parametrize(
    "about",
    [{"device": types.SimpleNamespace(index=1)}, {"device_id": 1}],
    ids=["torch", "cupy"],
)
def test_a_stream_of_another_gpu_is_refused(place, monkeypatch, about):
    layer, _ = _layer(place, monkeypatch)
    with pytest.raises(InvalidInput, match="stream is of cuda:1: must be of cuda:0, where the weights are"):
        layer(Array(place), stream=types.SimpleNamespace(cuda_stream=4242, **about))
    assert place.device.api.streams == []
    layer(Array(place), stream=types.SimpleNamespace(cuda_stream=4242, device_id=-1))
    assert place.device.api.streams == [4242]


def test_a_thread_with_another_context_gets_it_back(place, monkeypatch):
    layer, _ = _layer(place, monkeypatch)
    driver = place.device.api
    driver.refuse = [201]
    layer(Array(place))
    assert driver.streams == [77]
    assert driver.contexts == []
    for error, why in (("VALUE", "$"), ("HANDLE", "; the stream is of another GPU, or gone$")):
        driver.refuse = [int(driver.CUresult[f"CUDA_ERROR_INVALID_{error}"])]
        driver.cuCtxPushCurrent = lambda context: (0,)
        driver.cuCtxPopCurrent = lambda: (0,)
        with pytest.raises(CudaError, match=f"the launch of conv_kernel failed: CUDA_ERROR_INVALID_{error}{why}"):
            layer(Array(place))


@pytest.mark.parametrize(("before", "ordinal", "after"), [(77, 1, 77), (78, 0, 78), (0, 1, 0), (0, 0, 77), (77, 0, 77)])
def test_the_thread_stays_on_its_gpu(fake, monkeypatch, before, ordinal, after):
    """Contexts are 77 of the first GPU and 78 of the second; 0 is none, which counts as the first."""
    driver = fake.Driver({b"cubin": fake.kernel(3)(lambda arrays: None)}, devices=2)
    driver.current, activated = before, []
    set_current = driver.cuCtxSetCurrent
    driver.cuCtxSetCurrent = lambda context: activated.append(context) or set_current(context)
    monkeypatch.setattr(gpu_device, "load_api", lambda: driver)
    monkeypatch.setattr(gpu_device, "_opened", types.SimpleNamespace())
    monkeypatch.setattr(quick, "native", lambda name, arguments: lambda *given: 0)
    place = GpuPlace(ordinal)
    assert driver.current == after
    layer, _ = _layer(place, monkeypatch)
    assert driver.current == after
    place.load(_program())  # as a conversion is, at a call
    driver.current = before  # from here on in a thread of the caller's
    program = _program()
    words = {name: np.zeros(WORDS, np.uint32) for name in ("A", "Wt")}
    with pytest.raises(WrongResult):  # its kernel writes nothing
        run_outputs(program, words, f"cuda:{ordinal}")
    del layer
    assert driver.current == after
    assert 77 + ordinal in activated


def test_a_launch_between_another_ones_steps_leaves_its_arguments_alone(place, monkeypatch):
    """As when another thread comes in between what fills the arguments and the driver's call."""
    layer, _ = _layer(place, monkeypatch)
    driver = place.device.api
    given, found = [Array(place) for _ in range(2)], {}
    for value, x in zip((5, 9), given, strict=True):
        driver.memory[x.address].view(np.uint32)[:] = value
    driver.meanwhile.append(lambda: found.update({9: layer(given[1])}))
    found[5] = layer(given[0])
    for value, out in found.items():
        assert (driver.memory[out].view(np.uint32)[:WORDS] == value + np.arange(WORDS)).all()


def test_a_device_that_was_reset_is_refused(place, monkeypatch):
    layer, _ = _layer(place, monkeypatch)
    x = Array(place)
    place.device.generation += 1
    with pytest.raises(CudaError, match="the GPU was reset since: build this again"):
        layer(x)


def test_arrays_of_another_device_are_refused(place, monkeypatch):
    layer, _ = _layer(place, monkeypatch)
    with pytest.raises(InvalidInput, match=r"x is on cuda:1: must be on cuda:0, where the weights are"):
        layer(Array(place, ordinal=1))
    with pytest.raises(
        InvalidInput, match=r"x is in host memory: must be on cuda:0.*Kernel.run takes arrays of the host"
    ):
        layer(Array(place, ordinal=HOST))


def test_weights_are_freed_with_the_layer(place, monkeypatch):
    before = len(place.device.api.memory)
    layer, _ = _layer(place, monkeypatch, layers=2)
    assert len(place.device.api.memory) == before + 2
    del layer
    assert len(place.device.api.memory) == before


def test_streams_of_every_library_are_known():
    handle = 0x1234
    named = [types.SimpleNamespace(**{name: handle}) for name in ("cuda_stream", "ptr")]
    protocol = types.SimpleNamespace(__cuda_stream__=lambda: (0, handle))
    for stream in (*named, protocol, cuda.core.Stream.from_handle(handle)):
        assert stream_handle(stream) == handle
    assert [stream_handle(number) for number in range(3)] == [0, 1, 2]

"""Layers on a GPU, with the driver in Python: which stream they go to, what overlaps, what is refused."""

import types

import cuda.core
import numpy as np
import pytest

from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput
from subbyte.gpu.borrowed import stream_handle
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.driver import CudaError
from subbyte.gpu.seen import HOST, Seen
from subbyte.kernel.device_layer import DeviceLayer, Ends, Link
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
    driver.streams = []
    launch = driver.core.launch

    def counted(stream, config, kernel, *pointers):
        driver.streams.append(int(stream.handle))
        # working memory begins inside a piece: the fake knows pieces by their first byte
        begins = [max(key for key in driver.memory if key <= pointer) for pointer in pointers]
        for pointer, start in zip(pointers, begins, strict=True):
            driver.memory.setdefault(pointer, driver.memory[start][pointer - start :])
        return launch(stream, config, kernel, *pointers)

    driver.core.launch = counted
    driver.cuStreamGetCtx = lambda stream: (
        (0, 7) if stream == 4242 else (driver.CUresult.CUDA_ERROR_INVALID_VALUE, None)
    )
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
    library.current = 0  # the default stream, which cuda-core knows by another handle
    layer(x)
    assert driver.streams == [77, 1]
    layer(x, stream=types.SimpleNamespace(cuda_stream=4242))
    assert driver.streams == [77, 1, 4242]


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
    layer, _ = _layer(place, monkeypatch)
    with pytest.raises(
        InvalidInput, match=r"stream=9999: no stream of this process .CUDA_ERROR_INVALID_VALUE.; give one"
    ):
        layer(Array(place), stream=9999)
    assert place.device.api.streams == []


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
    assert stream_handle(handle) == handle
    named = [types.SimpleNamespace(**{name: handle}) for name in ("cuda_stream", "ptr", "handle")]
    protocol = types.SimpleNamespace(__cuda_stream__=lambda: (0, handle))
    for stream in (*named, protocol, cuda.core.Stream.from_handle(handle)):
        assert stream_handle(stream) == handle
    with pytest.raises(InvalidInput, match="stream is a object: must be"):
        stream_handle(object())

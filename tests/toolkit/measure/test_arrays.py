import contextlib
import ctypes
import sys
import types

import cuda.core.utils
import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.gpu import device as gpu
from subbyte.gpu.arrays import Origin, device_pointer, library_of, to_host


class Tensor:
    """The part of a torch tensor that is used."""

    layout, is_quantized, is_cuda = "strided", False, True

    def __init__(self, array, device="cuda:1", dtype="torch.int32"):
        self.array, self.device = array, types.SimpleNamespace(index=1, __str__=lambda self: device)
        self.dtype, self.shape = dtype, array.shape

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.array

    def to(self, device):
        self.device = device
        return self

    def __dlpack__(self, **_):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return (2, 1) if self.is_cuda else (1, 0)


@pytest.fixture
def torch(monkeypatch):
    module = types.SimpleNamespace(Tensor=Tensor, strided="strided", from_numpy=Tensor)
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def cupy(monkeypatch):
    class ndarray:
        def __init__(self, array):
            self.array, self.device = array, types.SimpleNamespace(id=2)

        def get(self):
            return self.array

    class Device:
        current = None

        def __init__(self, ordinal):
            self.ordinal = ordinal

        def __enter__(self):
            Device.current = self.ordinal

        def __exit__(self, *_):
            pass

    module = types.SimpleNamespace(ndarray=ndarray, asarray=ndarray, cuda=types.SimpleNamespace(Device=Device))
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


X = np.arange(6, dtype=np.int8).reshape(2, 3)


def test_numpy_stays_numpy_without_a_copy():
    host, origin = to_host(X, "x")
    assert host is X
    assert origin == Origin("numpy")
    assert origin.give_back(host) is X
    assert not origin.on_gpu


def test_torch_comes_back_on_its_device(torch):
    host, origin = to_host(Tensor(X), "x")
    assert host is X
    back = origin.give_back(X)
    assert isinstance(back, Tensor)
    assert back.device is origin.device
    frozen = X.copy()
    frozen.flags.writeable = False
    assert origin.give_back(frozen).array.flags.writeable  # torch warns about read-only memory


def test_cupy_comes_back_on_its_device(cupy):
    host, origin = to_host(cupy.ndarray(X), "x")
    assert host is X
    assert origin.on_gpu
    assert isinstance(origin.give_back(X), cupy.ndarray)
    assert cupy.cuda.Device.current == 2


def test_sparse_tensor_is_refused(torch):
    tensor = Tensor(X)
    tensor.layout = "sparse"
    with pytest.raises(InvalidInput, match="x is a sparse"):
        to_host(tensor, "x")


def test_tensor_without_a_numpy_counterpart_is_refused(torch):
    class Half(Tensor):
        def numpy(self):
            raise TypeError("Got unsupported ScalarType BFloat16")

    with pytest.raises(InvalidInput, match=r"torch\.bfloat16: must be int8"):
        to_host(Half(X, dtype="torch.bfloat16"), "x")


def test_any_dlpack_array_is_read():
    class Foreign:
        def __dlpack__(self, **options):
            return X.__dlpack__(**options)

        def __dlpack_device__(self):
            return X.__dlpack_device__()

    host, origin = to_host(Foreign(), "x")
    assert (host == X).all()
    assert origin.library == "numpy"


@pytest.mark.parametrize("value", [[1, 2], "x", None, 3])
def test_what_is_no_array_is_refused(value):
    with pytest.raises(InvalidInput, match=r"x is a .*must be an array"):
        to_host(value, "x")


def test_library_of_imports_nothing():
    assert library_of(X) == "numpy"
    assert library_of([1]) == "other"


def test_torch_pointers(torch):
    words = np.zeros((2, 3), np.int32)
    assert device_pointer(Tensor(words), "A", (6,), 1) == words.ctypes.data
    assert device_pointer(Tensor(words[:1]), "A", (3,), 1) == words.ctypes.data
    with pytest.raises(InvalidInput, match="A is on cuda:1: must be on cuda:0"):
        device_pointer(Tensor(words), "A", (6,), 0)
    with pytest.raises(InvalidInput, match="elements of type int64: must be 32-bit integers"):
        device_pointer(Tensor(words.astype(np.int64)), "A", (6,), 1)
    for strided in (words.T, np.zeros((4, 3), np.int32)[::2], np.lib.stride_tricks.as_strided(words, (2, 3), (0, 4))):
        with pytest.raises(InvalidInput, match="not C-contiguous"):
            device_pointer(Tensor(strided), "A", (6,), 1)
    host = Tensor(words)
    host.is_cuda = False
    with pytest.raises(InvalidInput, match="A is a Tensor in host memory: must be on cuda:1"):
        device_pointer(host, "A", (6,), 1)


def test_a_tensor_is_looked_at_through_its_public_protocol(torch, monkeypatch):
    """cuda-core reads a torch tensor's C struct when it is given one; it is given something else."""
    seen = []
    real = cuda.core.utils.StridedMemoryView

    class View:
        @staticmethod
        def from_dlpack(given, stream_ptr):
            seen.append((type(given), stream_ptr))
            return real.from_dlpack(given, stream_ptr=stream_ptr)

    monkeypatch.setattr(cuda.core.utils, "StridedMemoryView", View)
    device_pointer(Tensor(np.zeros(4, np.int32)), "A", (4,), 1)
    assert seen == [(types.SimpleNamespace, -1)]


@pytest.mark.parametrize("error", [BufferError, RuntimeError, TypeError, AttributeError, NotImplementedError])
def test_what_cannot_be_viewed_is_refused(torch, error):
    class Odd(Tensor):
        def __dlpack__(self, **_):
            raise error("a sparse one")

    with pytest.raises(InvalidInput, match=r"A cannot be viewed \(a sparse one\)"):
        device_pointer(Odd(np.zeros(4, np.int32)), "A", (4,), 1)


def test_an_old_array_interface_is_refused():
    class Old:
        def __init__(self):
            self.__cuda_array_interface__ = {
                "typestr": "<u4", "shape": (4,), "strides": None, "data": (64, False), "version": 2,
            }  # fmt: skip

    with pytest.raises(InvalidInput, match=r"A cannot be viewed.*v3"):
        device_pointer(Old(), "A", (4,), 0)


@pytest.mark.parametrize("value", [[1, 2], None, 3])
def test_no_pointer_of_what_is_no_array(value):
    with pytest.raises(InvalidInput, match="in host memory: must be on cuda:0"):
        device_pointer(value, "A", (2,), 0)


def test_a_foreign_array_is_copied_from_its_gpu(monkeypatch):
    """Any library's array on a GPU: viewed, waited for, copied by the device it lies on."""
    called = []

    class Device:
        def __init__(self, ordinal):
            self.ordinal, self.unmoved = ordinal, contextlib.nullcontext

        def activate(self):
            called.append(f"activate {self.ordinal}")

        def wait_for_others(self):
            called.append("wait")

        def call(self, function, target, source, count):
            called.append(function)
            ctypes.memmove(target, source, count)

    monkeypatch.setattr(gpu, "open_device", lambda ordinal=0: Device(ordinal))
    tensor = Tensor(X)  # torch is not imported: an array like any other
    host, origin = to_host(tensor, "x")
    assert (host == X).all()
    assert origin == Origin("numpy")
    assert called == ["activate 1", "wait", "cuMemcpyDtoH"]
    with pytest.raises(InvalidInput, match="x is not C-contiguous"):
        to_host(Tensor(X.T), "x")

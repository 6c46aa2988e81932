import sys
import types

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.gpu.arrays import Origin, device_pointer, library_of, to_host


class Tensor:
    """The part of a torch tensor that is used."""

    layout, is_quantized, is_cuda = "strided", False, True

    def __init__(self, array, device="cuda:1", dtype="torch.int32", contiguous=True):
        self.array, self.device = array, types.SimpleNamespace(index=1, __str__=lambda self: device)
        self.dtype, self.contiguous, self.shape = dtype, contiguous, array.shape

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.array

    def to(self, device):
        self.device = device
        return self

    def is_contiguous(self):
        return self.contiguous

    def stride(self):
        return tuple(reversed(range(1, 1 + self.array.ndim)))

    def data_ptr(self):
        return 4096


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
    assert device_pointer(Tensor(words), "A", (6,), 1) == 4096
    with pytest.raises(InvalidInput, match="A is on cuda:1: must be on cuda:0"):
        device_pointer(Tensor(words), "A", (6,), 0)
    with pytest.raises(InvalidInput, match=r"torch\.int64"):
        device_pointer(Tensor(words, dtype="torch.int64"), "A", (6,), 1)
    with pytest.raises(InvalidInput, match="not C-contiguous"):
        device_pointer(Tensor(words, contiguous=False), "A", (6,), 1)
    host = Tensor(words)
    host.is_cuda = False
    with pytest.raises(InvalidInput, match="must be on cuda:1"):
        device_pointer(host, "A", (6,), 1)

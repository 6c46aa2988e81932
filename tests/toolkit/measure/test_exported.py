"""Arrays of ours for other libraries, over DLPack: on the host, where NumPy takes them, and what a stream is told."""

import contextlib
import gc
import types

import numpy as np
import pytest

from subbyte.gpu import exported
from subbyte.gpu.borrowed import gpu_number
from subbyte.gpu.exported import Exported, Foreign, StreamMemory
from subbyte.gpu.seen import HOST


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "float32"])
def test_numpy_takes_them_without_a_copy(dtype):
    held = np.arange(12).astype(dtype)
    taken = np.from_dlpack(Exported(held.ctypes.data, (3, 4), dtype, HOST, held))
    assert taken.dtype == held.dtype
    assert np.array_equal(taken, held.reshape(3, 4))
    held[5] = 99
    assert taken[1, 1] == 99


def test_memory_is_held_as_long_as_somebody_holds_it():
    before = len(exported._held)
    held = np.arange(4, dtype=np.int32)
    given = Exported(held.ctypes.data, (4,), "int32", HOST, held)
    taken = np.from_dlpack(given)
    del given, held
    gc.collect()
    assert taken.tolist() == [0, 1, 2, 3]
    assert len(exported._held) == before + 1
    del taken
    gc.collect()
    assert len(exported._held) == before
    capsule = Exported(np.zeros(1).ctypes.data, (1,), "int32", HOST, None).__dlpack__()
    assert len(exported._held) == before + 1
    del capsule  # that nobody took
    assert len(exported._held) == before


class Recorder:
    """A device that writes down what it is asked for."""

    def __init__(self):
        self.asked = []
        self.api = types.SimpleNamespace(
            CUevent_flags=types.SimpleNamespace(CU_EVENT_DISABLE_TIMING=types.SimpleNamespace(value=2)),
            cuEventDestroy=lambda event: None, cuMemFreeAsync=lambda *given: self.asked.append(("free", *given)),
        )  # fmt: skip

    unmoved = contextlib.nullcontext

    def activate(self):
        pass

    def call(self, name, *given):
        self.asked.append((name, *given))
        return 0x1000


def test_who_takes_one_waits_for_its_stream():
    device = Recorder()
    memory = StreamMemory(device, 64, 55)
    array = Exported(memory.pointer, (16,), "int32", 0, memory)
    assert array.__cuda_array_interface__["stream"] == 55
    assert array.__dlpack_device__() == (2, 0)
    assert gpu_number(array) == 0
    array.__dlpack__(stream=-1)
    array.__dlpack__(stream=55)
    assert device.asked == [("cuMemAllocAsync", 64, 55)]
    array.__dlpack__(stream=66)
    assert device.asked[-2:] == [("cuEventRecord", 0x1000, 55), ("cuStreamWaitEvent", 66, 0x1000, 0)]
    array.__dlpack__()
    assert device.asked[-1] == ("cuStreamWaitEvent", 1, 0x1000, 0)
    del array, memory
    gc.collect()
    assert device.asked[-1] == ("free", 0x1000, 55)


def test_foreign_arrays_of_the_host_are_seen():
    class Theirs:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **_):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    held = np.arange(12, dtype=np.int32).reshape(3, 4)
    seen = Foreign.of(Theirs(held)).look(Theirs(held), "x", 0)
    assert (seen.address, seen.shape, seen.dtype, seen.ordinal, seen.dense) == (
        held.ctypes.data,
        (3, 4),
        "int32",
        HOST,
        True,
    )
    assert not Foreign.of(Theirs(held)).look(Theirs(held.T), "x", 0).dense
    assert gpu_number(Theirs(held)) is None

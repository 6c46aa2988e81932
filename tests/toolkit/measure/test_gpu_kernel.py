import numpy as np
import pytest

from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput, WrongResult
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.driver import CudaError
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import TimingProtocol

LAUNCH = Launch(
    "conv_kernel", (2, 1, 1), (64, 1, 1), 1024,
    (Argument("A", "uint32", (6,), "in"), Argument("Out", "uint32", (6,), "out"), Argument("Wt", "int32", (6,), "in")),
)  # fmt: skip
A, WT = np.arange(6, dtype=np.uint32), np.full(6, 10, np.int32)


def _kernel(fake, body=None, launch=LAUNCH):
    @fake.kernel(3)
    def add(arrays):
        arrays[1][:] = arrays[0] + arrays[2]

    return GpuKernel(b"cubin", launch, CudaDevice(0, fake.Driver({b"cubin": body or add})))


def test_run_gives_the_outputs_by_name(fake):
    with _kernel(fake) as kernel:
        assert (kernel.run({"A": A, "Wt": WT})["Out"] == A + 10).all()
        assert (kernel.run({"A": 2 * A, "Wt": WT})["Out"] == 2 * A + 10).all()
        assert kernel.attributes.registers == 96
        memory, loaded = kernel.device.api.memory, kernel.device.api.loaded
        assert len(memory) == 3
    assert not memory
    assert not loaded


def test_unwritten_words_are_found(fake):
    @fake.kernel(3)
    def partial(arrays):
        arrays[1][:4] = arrays[0][:4]

    with pytest.raises(WrongResult, match="2 of 6 words of Out"):
        _kernel(fake, partial).run({"A": A, "Wt": WT})


def test_race_is_found(fake):
    turns = []

    @fake.kernel(3)
    def racy(arrays):
        turns.append(0)
        arrays[1][:] = len(turns)

    with pytest.raises(WrongResult, match="race"):
        _kernel(fake, racy).run({"A": A, "Wt": WT})


@pytest.mark.parametrize(
    ("buffers", "message"),
    [
        ({"A": A}, "missing buffer.*Wt"),
        ({"A": A, "Wt": WT, "B": A}, "unknown buffer 'B'"),
        ({"A": A, "Wt": WT, "Out": A}, "unknown buffer 'Out'"),
        ({"A": A.astype(np.int64), "Wt": WT}, "A is int64.*must be uint32"),
        ({"A": A[:5], "Wt": WT}, r"A is uint32\[5\].*uint32\[6\]"),
    ],
)
def test_wrong_buffers_are_named(fake, buffers, message):
    with pytest.raises(InvalidInput, match=message):
        _kernel(fake).run(buffers)


def test_shared_buffers_stay_the_callers(fake):
    kernel = _kernel(fake)
    held = kernel.device.upload(A)
    held.shared = True
    assert (kernel.run({"A": held, "Wt": WT})["Out"] == A + 10).all()
    kernel.close()
    kernel.close()
    assert list(kernel.device.api.memory) == [held.pointer]
    short = kernel.device.alloc(8)
    with pytest.raises(InvalidInput, match="A has 8 bytes: must have 24"):
        _kernel(fake).run({"A": short, "Wt": WT})


def test_time_needs_buffers(fake):
    kernel = _kernel(fake)
    how = TimingProtocol(min_total_ms=1, repeats=3, cold=False, spin_up_ms=0)
    with pytest.raises(InvalidInput, match="run first"):
        kernel.time(how)
    kernel.run({"A": A, "Wt": WT})
    assert kernel.time(how).microseconds == pytest.approx(4.0)
    assert kernel.time(how, {"A": A, "Wt": WT}).microseconds == pytest.approx(4.0)


def test_block_too_large_for_the_kernel(fake):
    launch = Launch("conv_kernel", (1, 1, 1), (1024, 1, 1), 0, LAUNCH.arguments)
    with pytest.raises(CudaError, match=r"1024 threads.*at most 512") as caught:
        _kernel(fake, launch=launch)
    assert caught.value.kind == "launch"


class OnDevice:
    """An array in the fake driver's memory, as another library would export it."""

    def __init__(self, buffer, shape, typestr="<u4", strides=None, ordinal=0):
        memory = buffer.device.api.memory[buffer.pointer].view(typestr)
        self._array, self._ordinal = np.lib.stride_tricks.as_strided(memory, shape, strides), ordinal

    def __dlpack__(self, **_):
        return self._array.__dlpack__()

    def __dlpack_device__(self):
        return 2, self._ordinal


def test_device_arrays_run_without_a_copy(fake):
    kernel = _kernel(fake)
    device = kernel.device
    buffers = [device.upload(A), device.alloc(24), device.upload(WT)]
    before = [call for call in device.api.calls if "Memcpy" in call]
    kernel.run_device({
        "A": OnDevice(buffers[0], (2, 3)), "Out": OnDevice(buffers[1], (6,), "<i4"),
        "Wt": OnDevice(buffers[2], (2, 3), strides=(12, 4)),
    })  # fmt: skip
    assert before == [call for call in device.api.calls if "Memcpy" in call]
    assert (buffers[1].download((6,), np.uint32) == A + 10).all()


@pytest.mark.parametrize(
    ("shape", "typestr", "strides", "message"),
    [
        ((5,), "<u4", None, "must hold 6 words"),
        ((6,), "<f4", None, "must be 32-bit integers"),
        ((6,), "|i1", None, "must be 32-bit integers"),
        ((2, 3), "<u4", (4, 8), "not C-contiguous"),
    ],
)
def test_unfit_device_arrays_are_refused(fake, shape, typestr, strides, message):
    kernel = _kernel(fake)
    good = OnDevice(kernel.device.upload(A), (6,))
    with pytest.raises(InvalidInput, match=message):
        kernel.run_device({"A": OnDevice(kernel.device.upload(A), shape, typestr, strides), "Out": good, "Wt": good})


def test_host_array_for_a_device_launch_is_refused(fake):
    kernel = _kernel(fake)
    good = OnDevice(kernel.device.upload(A), (6,))
    with pytest.raises(InvalidInput, match="A is a ndarray in host memory"):
        kernel.run_device({"A": A, "Out": good, "Wt": good})

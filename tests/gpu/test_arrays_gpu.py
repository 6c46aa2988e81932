"""PyTorch and CuPy arrays: words already on the device run without a copy, results come back in kind."""

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.gpu.arrays import library_of, to_host
from subbyte.gpu.launched import GpuKernel
from subbyte.measure.case import Case
from subbyte.numerics import Requantization

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]


@pytest.fixture
def case(first):
    drawn = Case(first.workload, seed=5)
    requant = Requantization(drawn.requant.bias, drawn.requant.multiplier, drawn.requant.shift, first.clip)
    return Case(first.workload, seed=5, requant=requant)


@pytest.fixture
def gpu(first, device):
    with GpuKernel(first.cubin, first.launch, device) as kernel:
        yield kernel


def test_torch_words_run_in_place(case, gpu):
    torch = pytest.importorskip("torch")
    arrays = {a.name: torch.from_numpy(case.operand(a).view(np.int32)).cuda() for a in gpu.inputs}
    out = gpu.outputs[0]
    arrays["Out"] = torch.full(out.shape, -1, dtype=torch.int32, device="cuda")
    gpu.run_device(arrays)
    assert case.check(arrays["Out"].cpu().numpy().view(np.uint32), out).ok


def test_torch_work_enqueued_before_is_waited_for(case, gpu):
    torch = pytest.importorskip("torch")
    arrays = {a.name: torch.from_numpy(case.operand(a).view(np.int32)).cuda() for a in gpu.inputs}
    out = gpu.outputs[0]
    arrays["Out"] = torch.zeros(out.shape, dtype=torch.int32, device="cuda")
    right = arrays["A"].clone()
    arrays["A"].zero_()
    busy = torch.randn(4096, 4096, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        for _ in range(20):
            busy = busy @ busy
        arrays["A"].copy_(right)
        gpu.run_device(arrays)
    assert case.check(arrays["Out"].cpu().numpy().view(np.uint32), out).ok


def test_cupy_words_run_in_place(case, gpu):
    cupy = pytest.importorskip("cupy")
    arrays = {a.name: cupy.asarray(case.operand(a)) for a in gpu.inputs}
    out = gpu.outputs[0]
    arrays["Out"] = cupy.full(out.shape, 0xFFFFFFFF, dtype=cupy.uint32)
    gpu.run_device(arrays)
    assert case.check(cupy.asnumpy(arrays["Out"]), out).ok


def test_results_come_back_in_kind(case):
    torch = pytest.importorskip("torch")
    cupy = pytest.importorskip("cupy")
    for given in (torch.from_numpy(case.x).cuda(), cupy.asarray(case.x), torch.from_numpy(case.x), case.x):
        host, origin = to_host(given, "x")
        assert (host == case.x).all()
        back = origin.give_back(host)
        assert library_of(back) == library_of(given)
        assert type(back) is type(given)
        if hasattr(given, "device"):
            assert str(back.device) == str(given.device)


def test_a_foreign_device_array_is_read(case, device):
    cupy = pytest.importorskip("cupy")
    held = cupy.asarray(case.x)

    class Foreign:
        __cuda_array_interface__ = held.__cuda_array_interface__

    host, origin = to_host(Foreign(), "x")
    assert (host == case.x).all()
    assert origin.library == "numpy"


def test_faulty_arrays_are_refused(case, gpu):
    torch = pytest.importorskip("torch")
    good = {a.name: torch.from_numpy(case.operand(a).view(np.int32)).cuda() for a in gpu.inputs}
    good["Out"] = torch.empty(gpu.outputs[0].shape, dtype=torch.int32, device="cuda")
    for wrong, message in (
        (good["A"].cpu(), "must be on cuda:0"),
        (good["A"][:-1], "must hold"),
        (good["A"].to(torch.int64), "32-bit integers"),
        (good["A"].repeat_interleave(2)[::2], "not C-contiguous"),
    ):
        with pytest.raises(InvalidInput, match=message):
            gpu.run_device({**good, "A": wrong})

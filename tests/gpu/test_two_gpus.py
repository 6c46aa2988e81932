"""Layers on the second GPU of a machine, while the first is the current one: every element, streams, refusals.

Skipped where there is one GPU. Programs come from the cache of ``tensor_cases.py``, as for ``test_tensors_gpu.py``."""

import numpy as np
import pytest
import tensor_cases as cases

import subbyte
from subbyte.errors import InvalidInput
from subbyte.gpu.driver import CudaError

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(240)]
NAME, SECOND = "stage4", "cuda:1"


@pytest.fixture(scope="module")
def torch(device):
    found = pytest.importorskip("torch")
    if found.cuda.device_count() < 2:
        pytest.skip("this machine has one GPU")
    if device.info.arch != cases.ARCH:
        pytest.skip(f"programs are built for {cases.ARCH}, this GPU is {device.info.arch}")
    return found


@pytest.fixture(scope="module")
def layers(torch):
    """The same layer on both GPUs."""
    _, _, w, requant = cases.drawn(NAME)
    return [cases.kernels(NAME)[0].on_device(w, requant, f"cuda:{ordinal}") for ordinal in range(2)]


def _x(torch, ordinal):
    return torch.from_numpy(cases.drawn(NAME)[1]).to(f"cuda:{ordinal}")


def test_each_gpu_has_its_own(torch, layers):
    """In turns, from a thread whose current GPU is the first; nothing of the second one changes that."""
    given = [_x(torch, ordinal) for ordinal in range(2)]
    for _ in range(3):
        for ordinal, (layer, x) in enumerate(zip(layers, given, strict=True)):
            y = layer(x)
            assert y.device == torch.device("cuda", ordinal)
            assert np.array_equal(y.cpu().numpy(), cases.right(NAME))
    assert torch.cuda.current_device() == 0
    with torch.cuda.device(1):  # and the other way round
        assert np.array_equal(layers[0](given[0]).cpu().numpy(), cases.right(NAME))
        assert torch.cuda.current_device() == 1


def test_work_on_a_side_stream_of_the_second(torch, layers):
    side, x = torch.cuda.Stream(SECOND), _x(torch, 1)
    torch.cuda.synchronize(1)
    y = layers[1](x, stream=side)
    side.synchronize()
    assert np.array_equal(y.cpu().numpy(), cases.right(NAME))
    with torch.cuda.stream(side):
        late = layers[1](x)
    side.synchronize()
    assert np.array_equal(late.cpu().numpy(), cases.right(NAME))


def test_what_lies_on_the_other_gpu_is_refused(torch, layers):
    with pytest.raises(InvalidInput, match="x is on cuda:0: must be on cuda:1"):
        layers[1](_x(torch, 0))
    out = torch.zeros(cases.right(NAME).shape, dtype=torch.int8, device="cuda:0")
    with pytest.raises(InvalidInput, match="out is on cuda:0: must be on cuda:1"):
        layers[1](_x(torch, 1), out)
    with pytest.raises(InvalidInput, match="stream is of cuda:0: must be of cuda:1"):
        layers[1](_x(torch, 1), stream=torch.cuda.Stream("cuda:0"))
    core = pytest.importorskip("cuda.core")
    first = torch.cuda.Stream("cuda:0")
    foreign = core.Stream.from_handle(first.cuda_stream)
    with pytest.raises(CudaError, match="the stream is of another GPU, or gone"):  # it does not know its GPU
        layers[1](_x(torch, 1), stream=foreign)
    assert np.array_equal(layers[1](_x(torch, 1)).cpu().numpy(), cases.right(NAME))


def test_conv2d_runs_where_x_lies(torch):
    wl, _, w, requant = cases.drawn(NAME)
    y = subbyte.conv2d(_x(torch, 1), w, requant, pad=wl.pad, stride=wl.stride)
    assert y.device == torch.device(SECOND)
    assert np.array_equal(y.cpu().numpy(), cases.right(NAME))


def test_a_module_on_the_second(torch):
    from subbyte.torch import Conv2d

    wl, _, w, requant = cases.drawn(NAME)
    given = torch.from_numpy(np.ascontiguousarray(w.transpose(0, 3, 1, 2)))
    layer = Conv2d(given, requant, (wl.n, wl.h, wl.w), padding=wl.pad, stride=wl.stride, arch=cases.ARCH).to(SECOND)
    right = cases.right(NAME).transpose(0, 3, 1, 2)
    x = _x(torch, 1).permute(0, 3, 1, 2)
    assert np.array_equal(layer(x).cpu().numpy(), right)
    with pytest.raises(InvalidInput, match="weight is on cuda:1: must be on cuda:0"):
        layer(_x(torch, 0).permute(0, 3, 1, 2))
    with torch.cuda.device(1):
        static = torch.zeros_like(x)
        layer(static)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = layer(static)
        static.copy_(x)
        graph.replay()
        torch.cuda.synchronize()
    assert np.array_equal(y.cpu().numpy(), right)
    assert np.array_equal(layer.to("cuda:0")(_x(torch, 0).permute(0, 3, 1, 2)).cpu().numpy(), right)


def test_a_chain_on_the_second(torch):
    chain = cases.chain()
    assert np.array_equal(chain.on_device(SECOND)(_x(torch, 1)).cpu().numpy(), cases.chain_right())
    assert np.array_equal(chain.run(cases.drawn(NAME)[1], SECOND), cases.chain_right())

"""Pool2d on a CPU build of PyTorch, in the emulator: exact, between packed layers, in one graph, exported."""

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.kernel import Pooling
from subbyte.numerics.pooling import pooling_reference

POOLING = Pooling("max", 3, 2, 1)
SIZE = (2, 40, 5, 6)


@pytest.fixture(scope="module")
def layer(torch):
    from subbyte.torch import Pool2d

    return Pool2d(POOLING, SIZE, gives="int8", arch="sm_80")


@pytest.fixture(scope="module")
def given(torch):
    values = np.random.default_rng(0).integers(-8, 8, SIZE, np.int8)
    return torch.from_numpy(values)


@pytest.fixture(scope="module")
def right(given):
    return pooling_reference(given.numpy().transpose(0, 2, 3, 1), "max", (3, 3), 2, 1).transpose(0, 3, 1, 2)


def test_values_and_packed_words_are_pooled_as_torch_does(torch, layer, given, right):
    from subbyte.torch import Pool2d

    assert np.array_equal(layer(given).numpy(), right)
    theirs = torch.nn.functional.max_pool2d(given.float(), 3, 2, 1)
    assert np.array_equal(theirs.numpy(), right)
    packed = Pool2d(POOLING, SIZE, arch="sm_80")
    words = packed(given)
    assert words.dtype == torch.int32
    again = Pool2d(Pooling.over(3, 3), (2, 40, 3, 3), gives="int8", arch="sm_80")(words)
    mean = torch.from_numpy(right.astype(np.float64)).mean((2, 3), keepdim=True)
    assert np.array_equal(again.numpy(), torch.floor(mean + 0.5).numpy())


@pytest.mark.parametrize("operand", ["int8", "uint8"])
@pytest.mark.parametrize("kind", ["max", "average"])
def test_bytes_are_pooled_as_torch_does_with_windows_that_hang_over(torch, operand, kind):
    from subbyte.torch import Pool2d

    low, high = (-128, 128) if operand == "int8" else (0, 256)
    x = torch.from_numpy(np.random.default_rng(1).integers(low, high, (2, 20, 6, 8)).astype(operand))
    made = Pool2d(Pooling(kind, 3, 2, 1, ceil_mode=True), x.shape, gives=operand, arch="sm_80", operand=operand)
    theirs = getattr(torch.nn.functional, "max_pool2d" if kind == "max" else "avg_pool2d")
    right = torch.floor(theirs(x.double(), 3, 2, 1, ceil_mode=True) + (0.5 if kind == "average" else 0))
    found = made(x)
    assert found.dtype == x.dtype
    assert found.shape == (2, 20, 4, 5)
    assert torch.equal(found.double(), right)
    with pytest.raises(InvalidInput, match="gives='uint8': int8 values are given as packed or int8"):
        Pool2d(POOLING, SIZE, gives="uint8", operand="int8")


def test_it_is_compiled_in_one_graph_and_passes_opcheck(torch, layer, given, right):
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert np.array_equal(compiled(given).numpy(), right)
    exported = torch.export.export(layer, (given,))
    assert np.array_equal(exported.module()(given).numpy(), right)
    words = torch.ops.subbyte.pack(given.permute(0, 2, 3, 1).contiguous(), None, "nhwcnc", "sm_80")
    torch.library.opcheck(torch.ops.subbyte.pool.default, (words, layer.kernel))


@pytest.mark.parametrize("size", [(2, 40, 5), (2, 40, 5, 0), "2,40,5,6"])
def test_bad_sizes_are_refused(torch, size):
    from subbyte.torch import Pool2d

    with pytest.raises(InvalidInput, match="input_size"):
        Pool2d(POOLING, size)
    with pytest.raises(InvalidInput, match="operand 'int2': conversions are of int4, uint4, int8, uint8"):
        Pool2d(POOLING, SIZE, operand="int2")


def test_tensors_that_do_not_fit_are_refused(torch, layer, given):
    with pytest.raises(InvalidInput, match=r"x is torch.float32 .* takes int8"):
        layer(given.float())
    with pytest.raises(InvalidInput, match=r"words is torch.int32 with 7 elements"):
        layer(torch.zeros(7, dtype=torch.int32))
    with pytest.raises(InvalidInput, match=r"pooling is a str: must be a subbyte\.Pooling"):
        type(layer)("max", SIZE)

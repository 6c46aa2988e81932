"""A chain of layers: packed output is packed input, of either family, without a kernel between."""

import numpy as np
import pytest

from subbyte import Chain
from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import best_known
from subbyte.numerics import Requantization, reference
from subbyte.workload import ConvWorkload

LAYERS = (
    ConvWorkload(8, 6, 6, 32, 64, 1, 1, 0),
    ConvWorkload(8, 6, 6, 64, 64, 3, 3, 1),
    ConvWorkload(8, 6, 6, 64, 96, 3, 3, 1, 2),
)


def _operands(rng):
    x = rng.integers(-8, 8, (8, 6, 6, 32), np.int8)
    weights = [rng.integers(-8, 8, (w.k, w.r, w.s, w.c), np.int8) for w in LAYERS]
    return x, weights, [Requantization.random(w, rng) for w in LAYERS]


def _kernel(workload, family="auto"):
    """The kernel that ``compile`` takes, without its machine code, for which nobody asks on the CPU."""
    return Kernel(make_plan(workload, best_known(workload, family=family)[0], "sm_90a", None, None, "fixed"))


@pytest.mark.sample("1")
@pytest.mark.parametrize("other", [None, 1])
def test_three_layers_of_one_or_two_families(other):
    x, weights, requants = _operands(np.random.default_rng(1))
    kernels = [_kernel(w, "mma" if number == other else "auto") for number, w in enumerate(LAYERS)]
    out = Chain(kernels, weights, requants).run(x, device="emulator")
    expected = x
    for workload, w, requant in zip(LAYERS, weights, requants, strict=True):
        expected = requant.apply(reference(workload, expected, w))
    assert np.array_equal(out, expected)


def test_layers_that_do_not_fit_are_refused():
    _, weights, requants = _operands(np.random.default_rng(1))
    kernels = [_kernel(w) for w in LAYERS]
    with pytest.raises(InvalidInput, match="layer 0 gives"):
        Chain(kernels[:1] * 2, weights[:1] * 2, requants[:1] * 2)
    with pytest.raises(InvalidInput, match="expected the same number of each"):
        Chain(kernels, weights[:2], requants)
    with pytest.raises(InvalidInput, match="at least one layer"):
        Chain([], [], [])


def test_weights_and_requantizations_are_those_of_their_layers():
    _, weights, requants = _operands(np.random.default_rng(1))
    plain = MmaConfig(blk_col_warps=1)
    kernels = [Kernel(make_plan(w, plain, "sm_90a", "int4", (-8, 7), "fixed")) for w in LAYERS[:2]]
    with pytest.raises(InvalidInput, match=r"weights\[1\] is int8 \[64, 1, 1, 32\]: expected int8 \[64, 3, 3, 64\]"):
        Chain(kernels, weights[:1] * 2, requants[:2])
    with pytest.raises(InvalidInput, match="requantization of 96 channels: the layer has 64"):
        Chain(kernels, weights[:2], requants[1:])

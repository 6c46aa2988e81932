"""Chains with residual branches: values of an earlier layer, or of the chain's input, are added to a later one's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import subbyte
from subbyte.errors import InvalidInput
from subbyte.families import config_from_key
from subbyte.kernel import Chain, Kernel
from subbyte.kernel.execute import random_operands
from subbyte.numerics import reference

TYPES = ":w4a4:signed.unsigned"
SPEC = f"n9h4w5c40k40r3s3p1{TYPES}"
KEYS = ("brw2-bcw1-wrt2-wct4-ch1-ri0", "wgp-tw6-tr1-cm1-sg1-st4")


def block(key: str) -> tuple[list[Kernel], list[int | None]]:
    """Four layers; the second adds the input, the fourth what the second gave."""
    outputs = [None, "uint4+adduint4", None, "uint4+adduint4"]
    return [subbyte.build(SPEC, config_from_key(key), output=one) for one in outputs], [None, -1, None, 1]


@pytest.fixture(scope="module", params=KEYS)
def chain(request: pytest.FixtureRequest) -> Chain:
    kernels, residuals = block(request.param)
    drawn = [random_operands(kernel, seed) for seed, kernel in enumerate(kernels)]
    return Chain(kernels, [w for _, w, _ in drawn], [requant for *_, requant in drawn], residuals)


def wanted(chain: Chain, x: np.ndarray) -> np.ndarray:
    """Layer by layer, from the reference."""
    values: dict[int, np.ndarray] = {-1: x}
    for number, (kernel, (w, requant, source)) in enumerate(zip(chain.kernels, chain.operands, strict=True)):
        sums = reference(kernel.workload, values[number - 1], w)
        values[number] = requant.apply(sums, None if source is None else values[source])
    return values[len(chain.kernels) - 1]


@pytest.mark.sample("brw2")
def test_every_way_to_run_it_gives_the_reference(chain: Chain, tmp_path: Path) -> None:
    x = random_operands(chain.kernels[0], 7)[0]
    right = wanted(chain, x)
    assert len(np.unique(right)) > 8
    np.testing.assert_array_equal(chain.run(x, device="emulator"), right)
    np.testing.assert_array_equal(chain.on_device("emulator")(x), right)
    loaded = subbyte.load_chain(chain.save(tmp_path / "chain.safetensors"))
    np.testing.assert_array_equal(loaded.run(x, device="emulator"), right)


def test_values_of_another_layer_are_noticed(chain: Chain) -> None:
    x = random_operands(chain.kernels[0], 7)[0]
    weights, requants, residuals = zip(*chain.operands, strict=True)
    other = Chain(chain.kernels, weights, requants, [*residuals[:3], 0])
    assert (other.run(x, device="emulator") != wanted(chain, x)).any()


@pytest.mark.parametrize(
    ("residuals", "says"),
    [
        ([None, None, None, 1], "layer 1 .* adds a residual: name the layer that has it"),
        ([None, -1, 0, 1], "layer 2 .* adds none, but layer 0 is named"),
        ([None, -1, None, 3], "adds values of layer 3: name an earlier one, or -1"),
        ([None, -2, None, 1], "adds values of layer -2"),
    ],
)
def test_sources_that_do_not_exist_are_refused(chain: Chain, residuals: list[int | None], says: str) -> None:
    weights, requants, _ = zip(*chain.operands, strict=True)
    with pytest.raises(InvalidInput, match=says):
        Chain(chain.kernels, weights, requants, residuals)


def test_values_of_another_type_are_refused() -> None:
    config = config_from_key(KEYS[0])
    kernels = [subbyte.build(SPEC, config), subbyte.build(SPEC, config, output="uint4+addint4")]
    drawn = [random_operands(kernel, seed) for seed, kernel in enumerate(kernels)]
    with pytest.raises(InvalidInput, match=r"layer 0 has uint4 .* layer 1 adds int4 .*: type, sizes and layout"):
        Chain(kernels, [w for _, w, _ in drawn], [requant for *_, requant in drawn], [None, 0])

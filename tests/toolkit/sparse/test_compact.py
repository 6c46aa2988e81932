"""A layer without its dead channels gives the sums of the whole one, in a smaller kernel."""

import numpy as np
import pytest

import subbyte
from subbyte.errors import InvalidInput
from subbyte.numerics import Requantization, random_values, reference
from subbyte.sparse import compact


def pruned(layer, channels, filters, seed=0):
    """Random operands; weights of these input channels and filters alone."""
    rng = np.random.default_rng(seed)
    x = random_values(layer.precision.activations, (layer.n, layer.h, layer.w, layer.c), rng)
    w = random_values(layer.precision.weights, (layer.k, layer.r, layer.s, layer.c), rng)
    w[..., [c for c in range(layer.c) if c not in channels]] = 0
    w[[k for k in range(layer.k) if k not in filters]] = 0
    return x, w, Requantization.random(layer, rng)


@pytest.mark.parametrize(
    ("spec", "channels", "filters"),
    [
        ("n8h7w6c96k64r3s3p1", range(0, 96, 3), range(5, 40)),
        ("n3h5w5c40k24r3s3p1u2", range(40), (3, 4)),
        ("n2h4w4c33k9r1s1p0:w4a4:signed-2of4.signed", (0, 1, 5, 32), range(9)),
        ("n2h4w4c16k8r3s3p1:w4a4:offset.offset:minus", (2,), (7,)),
        ("n2h4w4c16k8r3s3p1", (), ()),
    ],
)
def test_the_smaller_layer_gives_the_same(spec, channels, filters):
    layer = subbyte.workload(spec)
    x, w, requant = pruned(layer, channels, filters)
    found = compact(layer, w)
    assert (found.workload.c, found.workload.k) == (max(1, len(channels)), max(1, len(filters)))
    assert found.gain == layer.c * layer.k / (found.workload.c * found.workload.k)
    assert f"{found.workload.c} of {layer.c} input channels" in str(found)
    sums = reference(found.workload, found.inputs(x), found.w)
    wanted = reference(layer, x, w)
    np.testing.assert_array_equal(found.outputs(sums), wanted)
    values = found.requantization(requant).apply(sums)
    np.testing.assert_array_equal(found.outputs(values, requant), requant.apply(wanted))


def test_a_kernel_of_it_runs_on_the_cpu():
    layer = subbyte.workload("n8h4w4c96k40r3s3p1")
    x, w, requant = pruned(layer, range(10, 40), range(0, 40, 5))
    found = compact(layer, w)
    kernel = subbyte.compile(found.workload, "sm_80")
    y = kernel.run(found.inputs(x), found.w, found.requantization(requant), "emulator")
    np.testing.assert_array_equal(found.outputs(y, requant), requant.apply(reference(layer, x, w)))


def test_wrong_requests_end_in_one_sentence():
    layer = subbyte.workload("n2h4w4c16k8r3s3p1")
    x, w, requant = pruned(layer, (1, 2), (3,))
    found = compact(layer, w)
    for call in (
        lambda: compact(layer, w[..., :8]), lambda: compact("nolayer@8", w), lambda: compact(layer, None),
        lambda: compact(layer, w.astype(np.float32)), lambda: found.inputs(x[..., :8]), lambda: found.outputs(x),
        lambda: found.requantization(found.requantization(requant)),
    ):  # fmt: skip
        with pytest.raises(InvalidInput) as error:
            call()
        assert len(str(error.value).splitlines()) == 1

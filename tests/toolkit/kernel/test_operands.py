"""Callers' arrays as a kernel's words and back, by the types of the workload; also of a type that only a test knows."""

import numpy as np
import pytest

from subbyte.device.launch import Argument
from subbyte.errors import InvalidInput
from subbyte.kernel import operands
from subbyte.measure.case import Case
from subbyte.numerics import Requantization, from_nhwcnc, random_values, reference, to_nhwc_words, to_nhwcnc
from subbyte.workload import ConvWorkload, Encoding, Precision, register_encoding, unregister_encoding, workload

SPEC = "n9h3w4c70k37r3s3p1"


@pytest.fixture
def ternary():
    register_encoding(Encoding("ternary", lambda code, bits: (0, 1, -1, 0)[code & 3], "ter", "-1, 0 and 1"))
    yield "w2a2:ternary.ternary"
    unregister_encoding("ternary")


def argument(name, form, words, dtype="uint32"):
    return Argument(name, dtype, words.shape, "in", form)


@pytest.mark.parametrize("types", ["", "w1a1", "w1a2", "w2a2:signed.unsigned", "w3a5", "w8a8", "w8a8:signed.bipolar"])
@pytest.mark.parametrize("form", ["nhwc", "nhwcnc", "nhwcnc.planes"])
def test_activations_and_outputs_are_packed_by_type(types, form):
    wl = workload(f"{SPEC}{types and ':'}{types}")
    case = Case(wl, 3) if wl.precision.output.contiguous else None
    layout, _, stored = form.partition(".")
    operand = wl.precision.activations
    rng = np.random.default_rng(3)
    x = random_values(operand, (wl.n, wl.h, wl.w, wl.c), rng)
    wanted = (to_nhwcnc if layout == "nhwcnc" else to_nhwc_words)(x, operand, stored or None)
    found = operands.activation_words(argument("A", form, wanted), wl, x)
    np.testing.assert_array_equal(found, wanted)
    if case is None:
        return
    np.testing.assert_array_equal(case.x, x)
    np.testing.assert_array_equal(case.expected, case.requant.apply(reference(wl, case.x, case.w)))
    words = operands.layout_words(form, case.expected, wl.precision.output)
    out = argument("Out", form, words)
    np.testing.assert_array_equal(operands.output_values(out, wl, words.ravel()), case.expected)
    assert case.check(words.ravel(), out).ok
    wrong = words.copy()
    wrong.flat[0] ^= 1
    assert case.check(wrong.ravel(), out).wrong == 1


def test_a_type_of_ones_own_needs_nothing_of_the_library(ternary):
    wl = workload(f"{SPEC}:{ternary}")
    case = Case(wl, 1)
    assert set(np.unique(case.x)) == {-1, 0, 1}
    words = to_nhwcnc(case.x, wl.precision.activations)
    found = operands.activation_words(argument("A", "nhwcnc", words), wl, case.x)
    np.testing.assert_array_equal(from_nhwcnc(found, wl.n, wl.c, wl.precision.activations), case.x)
    assert np.abs(case.accumulators).max() <= wl.r * wl.s * wl.c
    with pytest.raises(InvalidInput, match="x holds values from 2 to 2: expected ter2 values -1 to 1"):
        operands.activation_words(argument("A", "nhwcnc", words), wl, np.full_like(case.x, 2))


def test_parameters_of_another_output_are_refused():
    wl = ConvWorkload(1, 4, 4, 8, 5, 1, 1, precision=Precision.of("w1a2"))
    prm = argument("Prm", "general", np.zeros((3, 64)), "int32")  # K in a block of uint2
    w = np.ones((5, 1, 1, 8), np.int8)
    operands.parameter_words(prm, wl, Requantization.from_scale(0.1, workload=wl), w)
    with pytest.raises(InvalidInput, match="requantization to int4: the layer gives uint2"):
        operands.parameter_words(prm, wl, Requantization.from_scale(0.1, k=5), w)


@pytest.mark.parametrize("types", ["", "w1a2", "w3a5"])
def test_raw_sums_stand_in_blocks_of_the_output_type(types):
    wl = workload(f"{SPEC}{types and ':'}{types}")
    sums = np.random.default_rng(1).integers(-(1 << 31), 1 << 31, (wl.n, wl.p, wl.q, wl.k), np.int32)
    block = wl.precision.output.block
    padded = np.zeros((16, wl.p, wl.q, -(-wl.k // block) * block), np.int32)
    padded[: wl.n, ..., : wl.k] = sums
    blocked = padded.reshape(2, 8, wl.p, wl.q, -1, block).transpose(0, 2, 3, 4, 1, 5)
    for form, words in (("nhwc", padded), ("nhwcnc", blocked)):
        found = operands.output_values(argument("Out", form, words, "int32"), wl, words.ravel())
        np.testing.assert_array_equal(found, sums)

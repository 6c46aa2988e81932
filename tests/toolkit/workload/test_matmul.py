"""Matrix products: a kind of their own, and exactly a convolution of single pixels."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operand_types import precisions

import subbyte
from subbyte.errors import InvalidInput
from subbyte.numerics import random_values, reference
from subbyte.workload import ConvWorkload, MatmulWorkload, Precision, gemm, workload

size = st.integers(1, 40)


@settings(max_examples=60, deadline=None)
@given(size, size, size, precisions(), st.integers(0, 99))
def test_products_are_what_numpy_says(m, n, k, precision, seed):
    wl = gemm(m, n, k, precision)
    rng = np.random.default_rng(seed)
    a, b = random_values(precision.activations, (m, k), rng), random_values(precision.weights, (n, k), rng)
    x, w = a.reshape(wl.n, wl.h, wl.w, wl.c), b.reshape(wl.k, 1, 1, wl.c)
    y = reference(wl, x, w)
    np.testing.assert_array_equal(y.reshape(m, n), a.astype(np.int64) @ b.astype(np.int64).T)
    np.testing.assert_array_equal(y, reference(wl.convolution, x, w))
    assert (wl.rows, wl.columns, wl.depth) == (m, n, k)
    assert wl.operations == 2 * m * n * k
    assert wl.spec == f"gemm{m}x{n}x{k}" + (f":{precision.text}" if precision.text else "")
    assert workload(wl.spec) == wl


def test_a_product_is_no_convolution():
    wl = gemm(64, 1024, 512)
    assert isinstance(wl, MatmulWorkload)
    assert (wl.kind, wl.convolution.kind) == ("matmul", "conv")
    assert wl != wl.convolution
    assert len({wl, wl.convolution}) == 2
    assert wl.convolution.spec == "n8h1w8c512k1024r1s1p0"
    assert wl.bytes_moved == (64 * 512 + 1024 * 512 + 64 * 1024) // 2
    assert replace(wl, name="fc") == wl
    assert replace(wl, name="fc").label == "fc"
    assert "activations [M,K]" in wl._repr_html_()


@pytest.mark.parametrize(("m", "pixels"), [(64, (8, 1, 8)), (8, (8, 1, 1)), (7, (7, 1, 1)), (20, (20, 1, 1))])
def test_rows_are_pixels(m, pixels):
    wl = gemm(m, 3, 5)
    assert (wl.n, wl.h, wl.w) == pixels


def test_texts():
    assert workload("GEMM4096") == gemm(4096, 4096, 4096)
    assert [workload(text).label for text in ("GEMM4096", "gemm4:w1a2", "gemm4x4x4")] == [
        "gemm4096",
        "gemm4:w1a2",
        "gemm4x4x4",
    ]
    assert workload(workload("gemm4:w1a2").label) == gemm(4, 4, 4, "w1a2")
    assert workload("gemm64x1024x512:w1a2") == subbyte.gemm(64, 1024, 512, "w1a2")
    assert gemm(64, 1024, 512, Precision.of("w1a2")).precision.text == "w1a2"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: workload("gemm64x3"), "expected M x N x K, such as gemm64x1024x1024"),
        (lambda: workload("gemm64x3x"), "expected M x N x K"),
        (lambda: workload("gemm64x64x64@8"), "it has no images"),
        (lambda: workload("gem64x64x64"), "gemm64x1024x1024"),
        (lambda: gemm(0, 1, 1), "matrix product m=0"),
        (lambda: gemm(1, 1, 10**9), "matrix product k=1000000000"),
        (lambda: gemm(1, 1.5, 1), "n=1.5"),
        (lambda: gemm(1, 1, 1, "w1"), "operand types 'w1'"),
        (lambda: MatmulWorkload(64, 1, 1, 3, 3, 1, 1), "not a matrix product; make one with subbyte.gemm"),
        (lambda: MatmulWorkload(8, 3, 3, 3, 3, 3, 3), "not a matrix product"),
        (lambda: replace(gemm(64, 3, 3), pad=1), "not a matrix product"),
    ],
)
def test_refused_products(make, words):
    with pytest.raises(InvalidInput) as error:
        make()
    assert words in str(error.value)


def test_a_plain_convolution_of_one_pixel_stays_one():
    assert workload("n8h1w8c512k1024r1s1") == ConvWorkload(8, 1, 8, 512, 1024, 1, 1) == gemm(64, 1024, 512).convolution

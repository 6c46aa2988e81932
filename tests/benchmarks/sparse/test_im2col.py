"""Kernels that lower sparse maps: what they store is the dense lowering, checked in the emulator."""

from __future__ import annotations

import numpy as np
import pytest

import subbyte
from benchmarks.sparse.im2col import Shape, decoded, inputs, lowered, random_map
from subbyte.emulator import run_cuda
from subbyte.errors import InvalidInput

NARROW, WIDE = Shape(1, 2, 5, 7, 3, 1), Shape(1, 1, 3, 33, 3, 2)


@pytest.mark.parametrize("kernel", ["dense", "bitmap", "csr_thread"])
@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=["narrow", "wide"])
def test_kernels_lower_the_same_matrix(shape: Shape, kernel: str) -> None:
    for sparsity in (0.0, 0.6, 1.0):
        x = random_map(shape, sparsity, 1)
        words = inputs(shape, x)[kernel]
        launch = shape.launch(kernel, {name: one.size for name, one in words.items()})
        found = {one.name: np.zeros(one.shape, np.uint32) for one in launch.arguments if one.role == "out"}
        run = run_cuda(shape.text(), launch, {**words, **found})
        assert not run.findings
        np.testing.assert_array_equal(decoded(shape, kernel, found), lowered(shape, x))


def test_a_shift_of_the_bitmap_by_one_is_found() -> None:
    text = NARROW.text().replace("% TAPS - PAD; }", "% TAPS - PAD + 1; }")
    x = random_map(NARROW, 0.5, 1)
    words = inputs(NARROW, x)["bitmap"]
    launch = NARROW.launch("bitmap", {name: one.size for name, one in words.items()})
    found = {one.name: np.zeros(one.shape, np.uint32) for one in launch.arguments if one.role == "out"}
    assert text != NARROW.text()
    run_cuda(text, launch, {**words, **found})
    assert (decoded(NARROW, "bitmap", found) != lowered(NARROW, x)).any()


def test_lowered_by_numpy_is_the_definition() -> None:
    x = random_map(NARROW, 0.3, 2)
    found = lowered(NARROW, x)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    for r, s, p, q in np.ndindex(found.shape[2:]):
        np.testing.assert_array_equal(found[:, :, r, s, p, q], padded[:, :, p + r, q + s])


def test_strides_are_refused() -> None:
    with pytest.raises(InvalidInput, match="stride 1"):
        Shape.of(subbyte.workload("resnet50.stage3.down3x3@8"))

"""Blocks of pixels: where each pixel of an image goes, and what lies beyond it."""

from __future__ import annotations

import numpy as np
import pytest

from subbyte.numerics.pixel_blocks import BlockForm


@pytest.mark.parametrize(("form", "shape"), [
    (BlockForm(4, 3, 3, 4), (2, 9, 11, 3)), (BlockForm(2, 0, 3, 3), (1, 6, 6, 5)),
    (BlockForm(7, 0, 1, 1), (3, 7, 7, 1)),
    (BlockForm(4, 2, 2, 2), (1, 9, 9, 2)),
])  # fmt: skip
def test_every_pixel_is_in_its_block(form: BlockForm, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)
    blocks = form.apply(x)
    n, height, width, channels = shape
    for row in range(form.rows * form.size):
        for column in range(form.columns * form.size):
            y, z = row - form.pad, column - form.pad
            place = (row % form.size * form.size + column % form.size) * channels
            found = blocks[:, row // form.size, column // form.size, place : place + channels]
            inside = 0 <= y < height and 0 <= z < width
            np.testing.assert_array_equal(found, x[:, y, z] if inside else np.zeros((n, channels), np.int8))


def test_a_text_is_a_form() -> None:
    form = BlockForm(4, 3, 57, 58)
    assert form.text == "blocks4p3h57w58"
    assert BlockForm.of(form.text) == form
    assert BlockForm.of("nhwcnc") is None

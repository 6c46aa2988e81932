"""Weights in the order of the warpgroup family: every nibble where the formula in the docstring says."""

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.families.wgmma.weights import prepare_warpgroup_weights


@pytest.mark.parametrize(
    ("k", "c", "split", "groups", "order"),
    [
        (64, 64, 1, 1, "rows"),
        (96, 256, 2, 1, "rows"),
        (128, 256, 2, 2, "groups"),
        (64, 96, 1, 1, "rows"),
        (64, 128, 1, 2, "taps"),
    ],
)
def test_every_nibble_is_where_the_formula_says(k, c, split, groups, order):
    rng = np.random.default_rng(0)
    w = rng.integers(-8, 8, (k, 3, 2, c), np.int8)
    words = prepare_warpgroup_weights(w, split, groups, order)
    part = c // 32 // (split * groups)
    halves = 2 if part % 2 == 0 else 1
    seen = np.zeros_like(w, dtype=np.int64)
    for place in np.ndindex(*words.shape):
        tile, rank, first, second, step, s, thread, i = place
        r, group = (first, second) if order == "rows" else (second, first)
        if order == "taps":
            step, s = s, step
        warp, g, q = thread // 32, thread % 32 // 4, thread % 4
        filter_ = 64 * tile + 16 * warp + 2 * g + i % 2
        for byte in range(4):
            pair = int(words[place]) >> 8 * byte & 255
            block = (rank * groups + group) * part + step * halves
            for half in range(halves):
                channel = (block + half) * 32 + 2 * (4 * q + byte) + i // 2
                want = int(w[filter_, r, s, channel]) & 15 if filter_ < k else 0
                assert pair >> 4 * half & 15 == want
                if filter_ < k:
                    seen[filter_, r, s, channel] += 1
            if halves == 1:
                assert pair >> 4 == 0
    assert (seen == 1).all()


def test_more_tiles_are_zeros_and_wrong_parts_are_refused():
    w = np.ones((32, 1, 1, 64), np.int8)
    words = prepare_warpgroup_weights(w, tiles=3)
    assert words.shape == (3, 1, 1, 1, 1, 1, 128, 4)
    assert not words[1:].any()
    with pytest.raises(InvalidInput, match="must divide 2 blocks"):
        prepare_warpgroup_weights(w, split=4)
    with pytest.raises(InvalidInput, match="rows, groups"):
        prepare_warpgroup_weights(w, order="columns")

"""Prepared weights: each lane's word is checked element by element against the definition."""

import itertools

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.families.mma.weights import prepare_weights


@pytest.mark.parametrize("vec", [1, 2, 4])
@pytest.mark.parametrize("shape", [(64, 3, 3, 64), (40, 2, 3, 50), (3, 1, 1, 3), (33, 1, 2, 32)])
def test_every_nibble_has_its_place(shape, vec):
    k, r, s, c = shape
    w = np.random.default_rng(1).integers(-8, 8, shape, dtype=np.int8)
    words = prepare_weights(w, vec)
    tiles, blocks = 4 * -(-k // 32), -(-c // 32)
    assert words.dtype == np.uint32
    assert words.shape == (blocks, r * s, tiles // vec, 32, vec)
    for block, tap, group, lane, v in itertools.product(*map(range, words.shape)):
        filter_, channel = 8 * (group * vec + v) + lane // 4, 32 * block + 8 * (lane % 4)
        word = int(words[block, tap, group, lane, v])
        for i in range(8):
            inside = filter_ < k and channel + i < c
            expected = int(w[filter_, tap // s, tap % s, channel + i]) if inside else 0
            assert (word >> 4 * i) & 15 == expected % 16


@pytest.mark.parametrize("vec", [0, 3, 8, -1])
def test_an_impossible_vector_is_refused(vec):
    with pytest.raises(InvalidInput, match="allowed: 1, 2, 4"):
        prepare_weights(np.zeros((32, 1, 1, 32), np.int8), vec)


def test_wrong_weights_are_named():
    with pytest.raises(InvalidInput, match="w holds values from -128"):
        prepare_weights(np.full((1, 1, 1, 1), -128, np.int8), 4)
    with pytest.raises(InvalidInput, match=r"w is float32 \[1, 1, 1, 1\]"):
        prepare_weights(np.zeros((1, 1, 1, 1), np.float32), 4)

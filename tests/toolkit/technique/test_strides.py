"""Loads of a tile by the distance of its rows: the numbers of TCBNN's model, and the bytes of packed words."""

import json
from math import gcd

import numpy as np
import pytest

from subbyte.cli.main import main
from subbyte.errors import InvalidInput
from subbyte.numerics import pack_planes
from subbyte.technique.strides import strides
from subbyte.workload.operand import BIPOLAR, Operand


def test_the_wavefronts_follow_the_greatest_common_divisor():
    plain = strides().plain
    assert [one.distance for one in plain] == list(range(128, 1025, 128))
    assert [one.wavefronts for one in plain] == [1, 2, 1, 4, 1, 2, 1, 8]
    assert [one.gcd for one in plain] == [gcd(one.distance // 128, 8) for one in plain]
    assert [len(one.sectors) for one in plain] == [4] + [8] * 7
    assert [len(one.lines) for one in plain] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [one.useful for one in plain] == [1] + [0.5] * 7
    for one in plain:  # without the library: how many words each bank must give
        words = [(one.distance // 8 * row + 4 * word) // 4 for row in range(8) for word in range(4)]
        assert max(sum(word % 32 == bank for word in words) for bank in range(32)) == one.wavefronts
        assert [bank for row in one.banks for bank in row] == [word % 32 for word in words]


@pytest.mark.parametrize("bits", [128, 384, 1024])
def test_a_tile_is_where_its_bits_are_packed(bits):
    """Ones in the tile alone: the bytes that are set in the packed words are those of the record."""
    ones = -np.ones((8, bits), np.int8)
    ones[:, :128] = 1
    for load in strides([bits]).loads:
        words = pack_planes(ones, Operand(1, BIPOLAR), load.layout).words
        found = np.flatnonzero(words.ravel().view(np.uint8))
        assert found.tolist() == [start + i for start in load.addresses for i in range(16)]
        assert load.distance == (bits if load.layout == "nhwc" else 128)


def test_tiles_in_one_piece_cost_least():
    for one in strides().blocks:
        assert (one.wavefronts, len(one.sectors), len(one.lines), one.useful) == (1, 4, 1, 1)


@pytest.mark.parametrize("wrong", [[], [100], [0], [1 << 21]])
def test_widths_that_no_matrix_has_are_refused(wrong):
    with pytest.raises(InvalidInput, match="expected one or more multiples of 128"):
        strides(wrong)


def test_the_command(capsys):
    assert main(["explain", "strides", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["gcd"], len(one["sectors"])) for one in found["loads"][:4]] == [(1, 4), (2, 8), (1, 8), (4, 8)]
    assert main(["explain", "strides", "--ldm", "512"]) == 0
    assert "512  512                4           4        8      4     50.00" in capsys.readouterr().out
    assert main(["explain", "strides", "--ldm", "x"]) == 2
    assert "--ldm 'x': expected numbers of bits" in capsys.readouterr().err

"""What a thread of a 2:4 kernel holds: the record against the words that the exact kernels read."""

from __future__ import annotations

import numpy as np
import pytest

import subbyte
from subbyte import PipelineConfig
from subbyte.device.arch import arch
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.wgmma.explain.metadata import sparse_fragment
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.sparse.config import SparseConfig
from subbyte.families.wgmma.sparse.weights import prepare_sparse_weights
from subbyte.numerics import random_values

LAYER = subbyte.workload("n8h6w8c64k64r1s1p0:w4a4:signed-2of4.signed")
PLAN = WgmmaPlan(LAYER, SparseConfig(tile_width=8, resident=1), arch("sm_90a"))


def test_the_records_of_all_threads_give_the_weights_back() -> None:
    w = random_values(LAYER.precision.weights, (64, 1, 1, 64), np.random.default_rng(0))
    words = prepare_sparse_weights(w).reshape(-1)
    every = [sparse_fragment(PLAN, thread) for thread in range(128)]
    places = np.full((64, 64), -1)  # by output channel and first channel of four: both places
    for one in every:
        metadata = int(words[one.word]) ^ 0xFFFFFFFF
        for group, first in enumerate(one.groups):
            assert places[one.filter, first] == -1
            places[one.filter, first] = metadata >> 4 * group & 15
    found = np.zeros((64, 64), np.int8)
    for one in every:
        for held in one.registers:
            nibbles = int(words[held.word]) >> (4 if held.nibbles == "high" else 0)
            for byte in range(4):
                first = held.channels[byte // 2 * 4]
                place = places[held.filter, first] >> 2 * (byte % 2) & 3
                value = nibbles >> 8 * byte & 15
                assert found[held.filter, first + place] == 0
                found[held.filter, first + place] = value - (value >> 3 << 4)
    np.testing.assert_array_equal(found, w[:, 0, 0])
    rows = {(held.row, held.filter) for one in every for held in one.registers}
    assert rows == {(one.row, one.filter) for one in every}  # values and metadata agree which row a filter is
    assert len({row for row, _ in rows}) == len(rows) == 64


def test_it_prints_and_refuses() -> None:
    record = sparse_fragment(PLAN, 5)
    assert "metadata" in record.text()
    assert record.title() == (
        "2:4 fragment of thread 5 (s8.wgmma.sp.m64n64k64, wg24-tw8-tr1-cm1-sg1-st4-res1): weights stay in registers"
    )
    with pytest.raises(InvalidInput, match="threads 0 to 127"):
        sparse_fragment(PLAN, 128)
    with pytest.raises(Unsupported, match="dense weights"):
        sparse_fragment(WgmmaPlan(LAYER, PipelineConfig(), arch("sm_90a")))

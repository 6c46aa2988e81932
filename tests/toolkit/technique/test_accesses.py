"""Sectors and banks of known patterns; a warp's addresses against packed arrays that hold their own coordinates."""

from __future__ import annotations

import json

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.weights import prepare_weights
from subbyte.numerics import relayout
from subbyte.technique import Access, accesses, bank_conflicts, sectors
from subbyte.workload import ConvWorkload

STAGE2 = ConvWorkload(8, 56, 56, 64, 64, 3, 3, 1, name="resnet50.stage2@8")
SMALL = ConvWorkload(16, 9, 10, 64, 128, 3, 3, 1)
CONFIG = MmaConfig(blk_row_warps=2, blk_col_warps=2, warp_row_tiles=4, warp_col_tiles=4, chunk=1)


def test_the_eight_images_of_a_tile_use_half_of_nhwc_sectors_and_all_of_nhwcnc() -> None:
    """Choi et al. 2022, Figure 11: 16-byte pieces that lie apart, against 128 contiguous bytes."""
    expected = {"nhwc": (8, 8, 0.5), "hwnc": (8, 2, 0.5), "nhwcnc": (4, 1, 1.0)}
    for layout, (count, lines, efficiency) in expected.items():
        use = accesses(STAGE2, None, layout).tile.sectors
        assert use is not None
        assert (len(use.sectors), use.lines, use.efficiency) == (count, lines, efficiency)
        assert use.useful_bytes == 128


def test_sectors_of_known_patterns() -> None:
    whole = sectors([4 * lane for lane in range(32)], 4)
    assert (whole.sectors, whole.lines, whole.efficiency) == ((0, 1, 2, 3), 1, 1.0)
    same = sectors([64] * 32, 4)
    assert (same.sectors, same.used, same.efficiency) == ((2,), (4,), 0.125)
    spread = sectors([32 * lane for lane in range(32)], 4)
    assert (len(spread.sectors), spread.lines, spread.efficiency) == (32, 8, 0.125)
    idle = sectors([None] * 32, 16)
    assert (idle.sectors, idle.moved_bytes, idle.efficiency) == ((), 0, 1.0)
    mixed = sectors([0, 16, None], [16, 8, 4])
    assert (mixed.used, mixed.moved_bytes) == ((24,), 32)


def _plain_degree(addresses: list[int], size: int) -> int:
    """Bank conflicts by counting, quarter by quarter."""
    together, most = 128 // size, 0
    for first in range(0, 32, together):
        for bank in range(32):
            words = {
                address // 4 + i
                for address in addresses[first : first + together]
                for i in range(size // 4)
                if (address // 4 + i) % 32 == bank
            }
            most = max(most, len(words))
    return most


@pytest.mark.parametrize("size", [4, 8, 16])
def test_bank_conflicts_against_a_plain_count(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(5):
        addresses = [int(word) * size for word in rng.integers(0, 200, 32)]
        assert bank_conflicts(addresses, size).degree == _plain_degree(addresses, size)


def test_bank_conflicts_of_known_patterns() -> None:
    assert bank_conflicts([4 * lane for lane in range(32)], 4).degree == 1
    assert bank_conflicts([0] * 32, 4).degree == 1
    two = bank_conflicts([8 * lane for lane in range(32)], 4)
    assert (two.degree, two.wavefronts, two.ideal) == (2, 2, 1)
    assert bank_conflicts([128 * lane for lane in range(32)], 4).degree == 32
    wide = bank_conflicts([16 * lane for lane in range(32)], 16)
    assert (wide.degree, wide.wavefronts, wide.ideal) == (1, 4, 4)
    assert bank_conflicts([None] * 32, 4).wavefronts == 0


@pytest.mark.parametrize("layout", ["nhwc", "hwnc", "nhwcnc"])
@pytest.mark.parametrize("duplicate_aware", ["none", "shared", "full"])
def test_activation_loads_read_the_words_of_their_places(layout: str, duplicate_aware: str) -> None:
    """Words that hold their own NHWC word index, in the layout under test: the address must find the place."""
    w = SMALL
    words = np.arange(16 * w.h * w.w * 8, dtype=np.uint32).reshape(16, w.h, w.w, 8)
    memory = relayout(words, "nhwc", layout).ravel()
    config = MmaConfig.from_dict({**CONFIG.to_dict(), "duplicate_aware": duplicate_aware})
    record = accesses(w, config, layout, block=(5, 1), warp=1, iteration=1)
    found = 0
    for access in record.of("activation load"):
        for address, place in zip(access.addresses, access.places, strict=True):
            assert (address is None) == (place is None)
            if address is None or place is None:
                continue
            image, row, column, block = place
            assert np.array_equal(memory[address // 4 : address // 4 + 4], words[image, row, column, 4 * block :][:4])
            found += 1
    assert found


def test_weight_loads_read_the_words_of_their_places() -> None:
    w = SMALL
    values = np.random.default_rng(0).integers(-8, 8, (w.k, w.r, w.s, w.c), dtype=np.int8)
    memory = np.asarray(prepare_weights(values, 4)).ravel()
    record = accesses(w, CONFIG, block=(0, 1), iteration=1)
    for access in record.of("weight load"):
        assert access.sectors is not None
        assert access.sectors.efficiency == 1.0
        for address, place in zip(access.addresses, access.places, strict=True):
            assert address is not None
            assert place is not None
            block, tap, tile, lane = place
            for v in range(4):
                first = 32 * block + 8 * (lane % 4)
                channels = values[8 * (tile + v) + lane // 4, tap // 3, tap % 3, first : first + 8]
                assert sum((int(x) & 15) << (4 * i) for i, x in enumerate(channels)) == int(memory[address // 4 + v])


@pytest.mark.sample(1)
@pytest.mark.parametrize("layout", ["nhwc", "hwnc", "nhwcnc"])
@pytest.mark.parametrize("register_packing", [True, False])
def test_output_stores_of_all_warps_cover_every_word_once(layout: str, register_packing: bool) -> None:
    w = ConvWorkload(8, 6, 7, 32, 64, 3, 3, 1)
    config = MmaConfig(2, 1, 2, 4, register_packing=register_packing)
    words = np.arange(8 * w.p * w.q * 8, dtype=np.uint32).reshape(8, w.p, w.q, 8)
    memory = relayout(words, "nhwc", layout).ravel()
    seen: list[int] = []
    from subbyte.families.mma.plan import plan

    planned = plan(w, config)
    for bx in range(planned.launch.grid[0]):
        for by in range(planned.launch.grid[1]):
            for warp in range(2):
                for access in accesses(w, config, layout, block=(bx, by), warp=warp).of("output store"):
                    seen += _stored(access, memory, words)
    assert sorted(seen) == list(range(memory.size))


def _stored(access: Access, memory: np.ndarray, words: np.ndarray) -> list[int]:
    found = []
    for address, place in zip(access.addresses, access.places, strict=True):
        if address is not None and place is not None:
            image, row, column, tile = place
            assert memory[address // 4] == words[image, row, column, tile]
            found.append(address // 4)
    return found


@pytest.mark.parametrize(("duplicate_aware", "count"), [("none", 36), ("shared", 36)])
def test_fragment_loads_without_reuse_are_one_for_each_tap_and_pixel(duplicate_aware: str, count: int) -> None:
    config = MmaConfig.from_dict({**CONFIG.to_dict(), "duplicate_aware": duplicate_aware})
    assert len(accesses(SMALL, config).of("activation fragment")) == count


def test_fragment_loads_with_reuse_are_the_genuine_ones_without_conflicts() -> None:
    from subbyte.technique import duplicates

    record = accesses(SMALL, CONFIG, warp=1)
    from subbyte.families.mma.plan import plan

    warp = duplicates(SMALL, plan(SMALL, CONFIG).tile).warp(1, 4)
    loads = record.of("activation fragment")
    assert {access.places[0][0] for access in loads if access.places[0]} == set(warp.slot)
    assert len(loads) == warp.genuine
    for access in (*loads, *record.of("weight fragment")):
        assert access.banks is not None
        assert access.banks.wavefronts == access.banks.ideal


def test_packed_stores_fill_lines_in_nhwcnc_only() -> None:
    for layout, efficiency, lines in (("nhwcnc", 1.0, 1), ("nhwc", 0.5, 8)):
        store = accesses(STAGE2, None, layout).of("output store")[0]
        assert store.sectors is not None
        assert (store.sectors.efficiency, store.sectors.lines) == (efficiency, lines)


def test_record_goes_to_json_table_and_text() -> None:
    record = accesses(STAGE2)
    data = json.loads(record.to_json())
    assert data["layout"] == "nhwcnc"
    assert data["config"]["warp_row_tiles"] == 4
    assert "activation load" in set(record.to_frame()["kind"])
    assert "[32/32]" in record.text()
    assert len(record.accesses[0].to_frame()) == 32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layout": "nchw"}, "nhwc"),
        ({"warp": 9}, "warp 9"),
        ({"block": (9999, 0)}, "pixel tile 9999"),
        ({"iteration": 99}, "iteration 99"),
        ({"config": MmaConfig(chunk=8)}, "chunk 8"),
        ({"arch": "sm_99"}, "sm_90a"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        accesses(STAGE2, **arguments)  # type: ignore[arg-type]


def test_wrong_addresses_are_refused() -> None:
    with pytest.raises(InvalidInput, match="multiple of its 4"):
        sectors([2], 4)
    with pytest.raises(InvalidInput, match="4, 8, 16"):
        sectors([0], 3)
    with pytest.raises(InvalidInput, match="32 lanes"):
        bank_conflicts([0], 4)
    with pytest.raises(InvalidInput, match="same number"):
        bank_conflicts([0] * 32, [4] * 31 + [8])

"""The map of an access against its own counts: as many sectors, bytes and turns as the record says, no word twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from subbyte.families.mma.config import MmaConfig
from subbyte.technique import Access, access_map, accesses, bank_conflicts
from subbyte.technique.access_map import AccessMap
from subbyte.workload import ConvWorkload

WORKLOAD = ConvWorkload(16, 9, 10, 64, 128, 3, 3, 1)
CONFIGS = [
    MmaConfig(2, 2, 4, 4),
    MmaConfig(2, 1, 2, 4, register_packing=False, duplicate_aware="none"),
    MmaConfig(1, 2, 4, 2, chunk=2),
]


def check(drawn: AccessMap) -> None:
    """Raise AssertionError unless the map has the words, sectors and turns of its access."""
    access = drawn.access
    where = [(p.row, p.column + i, lane) for p in drawn.pieces for i in range(p.words) for lane in p.lanes]
    active = sum(address is not None for address in access.addresses)
    assert len(where) == len(set(where)) == active * access.bytes_per_lane // 4
    for row, column, lane in where:
        address = access.addresses[lane]
        assert address is not None
        words = range(address // 4, (address + access.bytes_per_lane) // 4)
        if access.memory == "global":
            assert drawn.rows[row].number // 4 + column in words
        else:
            assert column in {word % 32 for word in words}
    if access.sectors is not None:
        moved = [count for row in drawn.rows for count in row.used if count is not None]
        assert (len(moved), sum(moved)) == (len(access.sectors.sectors), access.sectors.useful_bytes)
        assert len(drawn.rows) == access.sectors.lines
    if access.banks is not None:
        assert len(drawn.rows) == access.banks.wavefronts
        assert len({(p.row, p.column) for p in drawn.pieces}) == len(drawn.pieces), "a bank gives one word a turn"


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("layout", ["nhwc", "hwnc", "nhwcnc"])
def test_every_access_of_a_warp(config: MmaConfig, layout: str) -> None:
    record = accesses(WORKLOAD, config, layout, block=(5, 1), warp=1)
    for access in (record.tile, *record.accesses):
        check(access_map(access))


@pytest.mark.parametrize("size", [4, 8, 16])
def test_random_shared_accesses(size: int) -> None:
    rng = np.random.default_rng(size)
    like = accesses(WORKLOAD, CONFIGS[0]).of("activation fragment")[0]
    for _ in range(20):
        addresses = tuple(int(word) * size if rng.random() < 0.9 else None for word in rng.integers(0, 120, 32))
        places = tuple(None if address is None else (0, 0, 0) for address in addresses)
        access = replace(
            like, addresses=addresses, places=places, bytes_per_lane=size, banks=bank_conflicts(addresses, size)
        )
        check(access_map(access))


def test_figure_11() -> None:
    """Eight half-used sectors in eight lines in NHWC; one full line in NHWCnc."""
    maps = {name: access_map(accesses("resnet50.stage2@8", None, name).tile) for name in ("nhwc", "nhwcnc")}
    assert [row.used for row in maps["nhwc"].rows] == [(16, None, None, None)] * 8
    assert [row.used for row in maps["nhwcnc"].rows] == [(32, 32, 32, 32)]
    assert [(p.column, p.words, p.lanes) for p in maps["nhwcnc"].pieces] == [(4 * i, 4, (i,)) for i in range(8)]


def wrong_maps(good: AccessMap) -> list[AccessMap]:
    """Maps with a word moved, dropped and counted twice, and one with a sector too many."""
    first, *rest = good.pieces
    return [
        replace(good, pieces=(replace(first, column=first.column + 4), *rest)),
        replace(good, pieces=tuple(rest)),
        replace(good, pieces=(first, *good.pieces)),
        replace(good, rows=(replace(good.rows[0], used=(16, 1, None, None)), *good.rows[1:])),
    ]


@pytest.mark.parametrize("number", range(4))
def test_a_wrong_map_is_refused(number: int) -> None:
    access: Access = accesses("resnet50.stage2@8", None, "nhwc").tile
    with pytest.raises(AssertionError):
        check(wrong_maps(access_map(access))[number])

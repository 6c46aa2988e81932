"""Packed stores of the wgmma family: the record packs values right, and a kernel's own run moves them so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from subbyte import PipelineConfig
from subbyte.emulator.trace import of_kind
from subbyte.errors import InvalidInput
from subbyte.kernel import Kernel
from subbyte.kernel.execute import expected, random_operands
from subbyte.technique import PackedStores, packed_stores

LAYER = "n8h8w8c64k64r3s3p1"
CONFIG = PipelineConfig(tile_width=8, segments=2, stages=5, stagger=0)


@pytest.mark.parametrize("warp", range(4))
def test_values_come_out_packed_in_nhwcnc_order(warp: int) -> None:
    values = np.random.default_rng(warp).integers(-8, 8, (2, 8, 16), dtype=np.int8)
    bits = (values.astype(np.uint32) & 15).reshape(2, 8, 2, 8) << (4 * np.arange(8, dtype=np.uint32))
    assert np.array_equal(packed_stores(warp).words(values), bits.sum(3, dtype=np.uint32))


def test_every_place_is_used_once() -> None:
    record = packed_stores(1)
    for place in (
        lambda b: (b.lane, b.register_byte),
        lambda b: b.shared_byte,
        lambda b: (b.pixel, b.reader, b.word, b.word_byte),
        lambda b: (b.pixel, b.output_byte),
    ):
        assert len({place(byte) for byte in record.bytes}) == len(record.bytes) == 128
    assert {byte.output_byte for byte in record.bytes if byte.image == 0} == set(range(8, 16))
    assert {byte.output_byte % 16 // 8 for byte in packed_stores(2).bytes} == {0}


def test_a_wrong_record_packs_wrong() -> None:
    record = packed_stores()
    swapped = [replace(b, word_byte=b.word_byte ^ 1) if b.lane == 5 else b for b in record.bytes]
    values = np.random.default_rng(0).integers(-8, 8, (2, 8, 16), dtype=np.int8)
    assert not np.array_equal(PackedStores(0, tuple(swapped)).words(values), record.words(values))


@pytest.mark.sample("knobs1")
@pytest.mark.parametrize("knobs", [{}, {"tile_width": 6, "consumers_n": 2}, {"tiles_m": 2}, {"producers": 2}])
def test_a_kernel_stores_what_and_where_the_record_says(emulated: Callable[..., Kernel], knobs: dict[str, int]) -> None:
    kernel = emulated(LAYER.replace("k64", "k128") if "tiles_m" in knobs else LAYER, CONFIG.with_values(knobs))
    right = expected(kernel, *random_operands(kernel, 0))[:, 0, :2]  # image, pixel, channel of output row 0
    trace, blocks = kernel.trace(blocks=(0,), seed=0).trace, kernel.workload.filter_blocks
    loads, stores = (of_kind(trace, kind) for kind in ("shared_load", "global_store"))
    for warp in range(4):
        record = packed_stores(warp)
        loaded, stored = (
            rows[(rows["warp"] == warp) & (rows["size"] == size)] for rows, size in ((loads, 16), (stores, 8))
        )
        words = record.words(right[:, :, 16 * warp : 16 * warp + 16].transpose(1, 0, 2)).view(np.uint64)[..., 0]
        first = {(b.pixel, b.reader): b for b in record.bytes if (b.word, b.word_byte) == (0, 0)}
        start = loaded[loaded["lane"] == 0][0]["shared"]
        for (pixel, reader), byte in first.items():
            load, store = (rows[rows["lane"] == reader] for rows in (loaded, stored))
            assert load[0]["shared"] - start == byte.shared_byte // 16 * 16
            assert store[pixel]["value"] == words[pixel, byte.image]
            place = store[pixel]["offset"] // 128 * 128 + byte.output_byte
            assert store[pixel]["offset"] == place == blocks * 128 * pixel + 128 * (warp // 2) + byte.output_byte


def test_other_warps_and_shapes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="warps 0 to 3"):
        packed_stores(4)
    with pytest.raises(InvalidInput, match=r"expected \[2 pixels, 8 images, 16 channels\]"):
        packed_stores().words(np.zeros((2, 8, 8), np.int8))


def test_the_record_as_text() -> None:
    record = packed_stores(3)
    assert record.title() == "Packed stores of warp 3: channels 48 to 63 of two pixels"
    assert len(record.table().rows) == 128
    assert record.to_dict()["bytes"][0]["sums"] == [0, 2]

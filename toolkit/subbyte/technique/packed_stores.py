"""How a warp of a warpgroup turns sums into packed words of the next layer's input, byte by byte."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subbyte.arguments import checked
from subbyte.families.wgmma.explain import stores
from subbyte.families.wgmma.explain.stores import IMAGE_BYTES, IMAGES, PAIRS, PIXELS, PackedByte, PackedStores
from subbyte.numerics.requant import Requantization

__all__ = [
    "IMAGES",
    "IMAGE_BYTES",
    "PAIRS",
    "PIXELS",
    "PackedByte",
    "PackedStores",
    "WorkedStores",
    "packed_stores",
    "worked_stores",
]
SHIFT = 6
"""The example's requantization: sums are divided by 64 and rounded, then clipped to int4."""


@dataclass(frozen=True)
class WorkedStores:
    """Packed stores with numbers: for each byte of the record both sums, both int4 values, its bits and its word."""

    sums: tuple[tuple[int, int], ...]
    values: tuple[tuple[int, int], ...]
    bytes: tuple[int, ...]
    words: tuple[int, ...]


def worked_stores(record: PackedStores, seed: int = 0) -> WorkedStores:
    """The record's path with random int32 sums, requantized and packed: every number as a kernel computes it."""
    shape = (PIXELS, IMAGES, 2 * PAIRS)
    sums = np.random.default_rng(seed).integers(-700, 701, shape, dtype=np.int32)
    values = Requantization.per_tensor(2 * PAIRS, 1, SHIFT).apply(sums)
    words = record.words(values)

    def pair(of: np.ndarray, b: PackedByte) -> tuple[int, int]:
        return int(of[b.pixel, b.image, b.channel]), int(of[b.pixel, b.image, b.channel + 1])

    mine = [int(words[b.pixel, b.reader, b.word]) for b in record.bytes]
    return WorkedStores(
        tuple(pair(sums, b) for b in record.bytes),
        tuple(pair(values, b) for b in record.bytes),
        tuple(word >> 8 * b.word_byte & 0xFF for word, b in zip(mine, record.bytes, strict=True)),
        tuple(mine),
    )


@checked
def packed_stores(warp: int = 0) -> PackedStores:
    """The packed stores of one of the four warps of a warpgroup. Raises InvalidInput for another warp."""
    return stores.packed_stores(None, warp)

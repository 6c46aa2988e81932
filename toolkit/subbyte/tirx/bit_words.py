"""From comparisons to words of bits: signs expanded to bytes, bytes exchanged between lanes."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.tirx import instructions as op
from subbyte.tirx.emit import registers

_SIGNS = 0x00FB
"""Selector of prmt: the signs of two words, each expanded to a byte."""
_LOW_HALVES = 0x5410


def sign_bytes(words: list[Any]) -> Any:
    """Four words -> one word with a byte for each: all ones where the word is negative."""
    low, high, both = registers("low", 1), registers("high", 1), registers("mask", 1)
    op.permute_bytes(low[0], words[0], words[1], T.uint32(_SIGNS))
    op.permute_bytes(high[0], words[2], words[3], T.uint32(_SIGNS))
    op.permute_bytes(both[0], low[0], high[0], T.uint32(_LOW_HALVES))
    return both[0]


def exchange_bytes(word: Any, quarter: Any) -> None:
    """Transpose the bytes of four neighbouring lanes, of which this is number ``quarter``: it gets byte ``quarter`` of
    each of them."""
    exchange_selected(word, exchange_selectors(quarter))


def exchange_selectors(quarter: Any) -> list[Any]:
    """The byte selectors of a lane for the two steps of an exchange."""
    halves = ((2, 0x5410, 0x3276), (1, 0x6240, 0x3715))
    return [T.Select((quarter & mask) != 0, T.uint32(high), T.uint32(low)) for mask, low, high in halves]


def exchange_selected(word: Any, selectors: list[Any]) -> None:
    """:func:`exchange_bytes` with selectors that were computed before."""
    other, merged = registers("other", 1), registers("merged", 1)
    full = T.uint32(op.FULL_WARP)
    for mask, selector in zip((2, 1), selectors, strict=True):
        T.evaluate(T.ptx.shfl_sync.bfly.b32(other[0], word[0], T.uint32(mask), T.uint32(0x1F), full))
        op.permute_bytes(merged[0], word[0], other[0], selector)
        T.buffer_store(word, merged[0], [0])


def rank_plane(masks: list[Any], plane: int) -> Any:
    """Bit ``plane`` of the number of thresholds passed, from the masks of all thresholds, in ascending order."""
    step = 1 << plane
    found = masks[step - 1]
    for passed in range(2 * step - 1, len(masks), step):
        found = found ^ masks[passed]
    return found


def class_of(classes: tuple[int, ...], index: Any) -> Any:
    """The class of an index, looked up in ``classes``, where equal classes come in runs."""
    found: Any = T.int32(classes[-1])
    for place in range(len(classes) - 2, -1, -1):
        if classes[place] != classes[place + 1]:
            found = T.Select(index <= place, T.int32(classes[place]), found)
    return found

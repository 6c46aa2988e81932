"""Four-bit codes from one multiplication per sum, instead of 15 comparisons (subbyte.numerics.float_requant).

Each byte holds two codes, so a word holds (first pixel, second) x (two words); four such words of channels are
bit-transposed, and each bit of the codes becomes a plane.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.stores import Pixel
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import registers

Entry = Callable[[Pixel, int, int], Any]
"""Reads the entry of a pixel's class for a word and channel 8 q + k: registers with addend, factor, offset."""
Scaled = Callable[[int, int, int], Any]
"""The scaled sum of a word, channel 8 q + k and half, without the residual."""


def plane_words(words: tuple[int, ...], pixels: list[Pixel], scaled: Scaled, entry: Entry) -> list[Any]:
    """The four planes of a gather's codes, in the form that comparisons give: bit k of a byte is channel 8 q + k."""
    pairs = []
    for low in range(4):
        packed = registers("codes", 1)
        T.buffer_store(packed, T.uint32(0), [0])
        for pixel in reversed(pixels):
            codes = {word: [_code(word, k, pixel, scaled, entry) for k in (low, low + 4)] for word in words}
            for word in (words[-1], words[0]):
                op.pack_int4(packed[0], codes[word][1], codes[word][0], signed=False)
        pairs.append(packed)
    return transposed(pairs)


def _code(word: int, k: int, pixel: Pixel, scaled: Scaled, entry: Entry) -> Any:
    """The level that a sum reaches; not yet clipped to 0 and 15."""
    held = entry(pixel, word, k)
    reached = registers("reached", 1, "float32")
    pattern = T.reinterpret("float32", scaled(word, k, pixel.half) + held[0])
    op.multiply_add(reached[0], pattern, T.reinterpret("float32", held[1]), T.reinterpret("float32", held[2]))
    return T.reinterpret("int32", reached[0])


def transposed(words: list[Any]) -> list[Any]:
    """Four words of nibbles -> four words whose nibbles hold bit p of words 0 to 3."""
    for distance, low in ((2, 0x33333333), (1, 0x55555555)):
        below, above = T.uint32(low), T.uint32(0xFFFFFFFF ^ low)
        for first in range(4):
            if first & distance:
                continue
            a, b = words[first], words[first + distance]
            upper = registers("upper_bits", 1)
            T.buffer_store(upper, ((a[0] >> T.uint32(distance)) & below) | (b[0] & above), [0])
            T.buffer_store(a, (a[0] & below) | ((b[0] & below) << T.uint32(distance)), [0])
            words[first + distance] = upper
    return words

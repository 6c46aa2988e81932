"""The words of a short window's string, from two neighbouring words of each input row. What output rows share is made
once."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.stem.strings import Part
from subbyte.numerics.pixel_strips import WORD_VALUES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers

IN_PAIR = 0x5410
"""The first two bytes of two words."""
Place = tuple[int, int, int]
"""Input row, word and byte."""


class ShortWords:
    """Makes words of strings from the words that a thread has read in one pass: ``read(row, word)``."""

    def __init__(self, read: Any) -> None:
        self.read = read
        self.made: dict[Any, Any] = {}

    def word(self, part: Part, top: int) -> Any:
        """A word of the string of the output row whose first input row is ``top``."""
        constants = sum(one << 8 * byte for byte, one in enumerate(part) if isinstance(one, int))
        given = {byte: (top + one[0], one[1]) for byte, one in enumerate(part) if not isinstance(one, int)}
        if not given:
            return T.uint32(constants)
        key = (tuple(given.items()), constants)
        if key not in self.made:
            places = {byte: (row, value // WORD_VALUES, value % WORD_VALUES // 2) for byte, (row, value) in given.items()}
            even = {value % 2 == 0 for _, value in given.values()}
            mask = T.uint32(sum(LOW_NIBBLES & 0xFF << 8 * byte for byte in given))
            if even == {True}:
                value = (self._chosen(places) << T.uint32(4)) & mask
            elif even == {False}:
                value = self._chosen(places) & mask
            else:
                value = self._mixed(places) & mask
            self.made[key] = bind("part", value | T.uint32(constants) if constants else value)
        return self.made[key]

    def _mixed(self, places: dict[int, Place]) -> Any:
        """Odd values of a row's first word, then even ones of its second word."""
        row = places[0][0]
        shifted = bind("shifted", self.read(row, 1) << T.uint32(4))
        return _bytes(self.read(row, 0), shifted, [byte + 4 * word for _, word, byte in places.values()])

    def _chosen(self, places: dict[int, Place]) -> Any:
        """A word with these bytes of the words that were read: of one, of two, or of the halves of up to four."""
        found = list(dict.fromkeys((row, word) for row, word, _ in places.values()))
        halves = [found[first : first + 2] for first in range(0, len(found), 2)]
        if any(word for _, word in found) and len(found) > 1:
            sources = [self._pair(*own) if len(own) > 1 else self.read(*own[0]) for own in halves]
            number = {one: (4 * half + 2 * place) for half, own in enumerate(halves) for place, one in enumerate(own)}
        else:
            sources = [self.read(*one) for one in found]
            number = {one: 4 * place for place, one in enumerate(found)}
        selected = [0, 1, 2, 3]
        for byte, (row, word, inside) in places.items():
            selected[byte] = number[row, word] + inside
        return sources[0] if selected == [0, 1, 2, 3] else _bytes(sources[0], sources[-1], selected)

    def _pair(self, first: tuple[int, int], second: tuple[int, int]) -> Any:
        """The first halves of two words."""
        if (first, second) not in self.made:
            both = registers("pair", 1)
            op.permute_bytes(both[0], self.read(*first), self.read(*second), T.uint32(IN_PAIR))
            self.made[first, second] = both[0]
        return self.made[first, second]


def _bytes(first: Any, second: Any, chosen: list[int]) -> Any:
    """Select four of the eight bytes of two words."""
    both = registers("both", 1)
    op.permute_bytes(both[0], first, second, T.uint32(sum(byte << 4 * place for place, byte in enumerate(chosen))))
    return both[0]

"""Where the words of one warp's access are: in 128-byte lines of global memory, or in wavefronts over the 32 shared
banks.

Source of the comparison: Choi et al. 2022 (arXiv 2202.06819), section 3.3 and Figure 11. In both cases the grid has 32
columns of 4 bytes: the words of a line, or the banks.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from subbyte.arguments import checked
from subbyte.device.memory import BANKS, LINE, SECTOR, WORD
from subbyte.technique.accesses import Access
from subbyte.technique.record import InfoRecord, Table

SECTORS_OF_A_LINE = LINE // SECTOR


@dataclass(frozen=True)
class MapRow:
    """One row of the grid."""

    number: int
    """Global memory: the byte address of the line. Shared memory: the wavefront."""
    used: tuple[int | None, ...]
    """Global memory: bytes requested from each of the four sectors, None for a sector that is not moved. Else empty."""


@dataclass(frozen=True)
class Piece:
    """Neighbouring words requested by the same lanes."""

    row: int
    column: int
    words: int
    lanes: tuple[int, ...]


@dataclass(frozen=True)
class AccessMap(InfoRecord):
    """An access drawn over its memory. For shared memory the rows are its wavefronts."""

    access: Access
    rows: tuple[MapRow, ...]
    pieces: tuple[Piece, ...]

    def title(self) -> str:
        """The access's own title."""
        return self.access.title()

    def table(self) -> Table:
        """One row per piece."""
        return Table(
            ("row", "column", "words", "lanes"), tuple((p.row, p.column, p.words, p.lanes) for p in self.pieces)
        )


@checked
def access_map(access: Access) -> AccessMap:
    """The map of one access.

    A shared-memory access of 8 or 16 bytes per lane is served in two or four parts; within each part a bank delivers
    one word per wavefront, in the order of the lanes that request them.
    """
    return _lines(access) if access.memory == "global" else _turns(access)


def _lines(access: Access) -> AccessMap:
    use = access.sectors
    assert use is not None
    used = dict(zip(use.sectors, use.used, strict=True))
    lines = sorted({sector // SECTORS_OF_A_LINE for sector in used})
    rows = tuple(
        MapRow(line * LINE, tuple(used.get(line * SECTORS_OF_A_LINE + i) for i in range(SECTORS_OF_A_LINE)))
        for line in lines
    )
    lanes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for lane, address in enumerate(access.addresses):
        if address is not None:
            lanes[lines.index(address // LINE), address % LINE // WORD].append(lane)
    words = access.bytes_per_lane // WORD
    return AccessMap(access, rows, tuple(Piece(*place, words, tuple(group)) for place, group in sorted(lanes.items())))


def _turns(access: Access) -> AccessMap:
    together = BANKS * WORD // access.bytes_per_lane
    pieces: list[Piece] = []
    turns = 0
    for first in range(0, len(access.addresses), together):
        asked: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for lane in range(first, first + together):
            address = access.addresses[lane]
            if address is not None:
                for word in range(address // WORD, (address + access.bytes_per_lane) // WORD):
                    asked[word % BANKS][word].append(lane)
        for bank, words in sorted(asked.items()):
            pieces += [Piece(turns + i, bank, 1, tuple(lanes)) for i, lanes in enumerate(words.values())]
        turns += max(map(len, asked.values()), default=0)
    return AccessMap(access, tuple(MapRow(turn, ()) for turn in range(turns)), tuple(pieces))

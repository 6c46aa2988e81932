"""The cost of loading a tile of one-bit operands as a function of its row distance, as an info record.

A matrix instruction takes a tile of 8 rows of 128 bits. In the plain layout its rows are a *leading dimension*
apart, the bits of a whole matrix row. TCBNN (arXiv 2006.16578) measures how the load time depends on
that distance, and stores tiles contiguously instead (``fsb``); so does ``nb8``, with another order of tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from subbyte.arguments import checked, is_several, is_whole
from subbyte.device.memory import BANKS, LINE, WORD, bank_conflicts, sectors
from subbyte.errors import InvalidInput, shown
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.numerics.planes import FSB, NB8, NHWC, PlaneWords, words_shape
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named
from subbyte.workload.conv import BATCH_GROUP, ceil_div
from subbyte.workload.operand import BIPOLAR, BLOCK_BITS, WORD_BITS, Operand

DISTANCES = tuple(range(128, 1025, 128))
"""Leading dimensions of TCBNN's experiment, in bits."""
MOST_BITS = 1 << 20
PIECE_BYTES = BLOCK_BITS // 8
"""Bytes in a row of a tile: what a lane loads at once."""
_LANES = 32


@dataclass(frozen=True)
class TileLoad:
    """A tile of 8 rows x 128 bits, loaded by 8 lanes with 16 bytes each.

    ``bits`` is the width of the matrix, ``distance`` the bits from one row of the tile to the next, the leading
    dimension. ``addresses`` are the rows' first bytes; ``banks`` the 4 of each row in shared memory. ``wavefronts`` are
    the cycles of a load from shared memory, 1 if no two rows share a bank; ``sectors`` (32 bytes) and ``lines`` (128
    bytes) are what a load from global memory touches, ``useful`` the fraction of the moved bytes that belong to the
    tile. ``gcd`` is that of distance / 128 and 8, which determines the wavefronts.
    """

    layout: str
    bits: int
    distance: int
    addresses: tuple[int, ...]
    banks: tuple[tuple[int, ...], ...]
    wavefronts: int
    gcd: int
    sectors: tuple[int, ...]
    lines: tuple[int, ...]
    useful: float


@dataclass(frozen=True)
class Strides(InfoRecord):
    """The loads of a tile: in the plain layout for several leading dimensions, then in the layouts with contiguous
    tiles."""

    loads: tuple[TileLoad, ...]

    @property
    def plain(self) -> tuple[TileLoad, ...]:
        """Loads in the plain layout."""
        return tuple(load for load in self.loads if load.layout == NHWC)

    @property
    def blocks(self) -> tuple[TileLoad, ...]:
        """Loads of contiguous tiles."""
        return tuple(load for load in self.loads if load.layout != NHWC)

    def title(self) -> str:
        """The tile that is loaded."""
        return "A tile of 8 rows x 128 bits: what a load costs by the distance of its rows"

    def table(self) -> Table:
        """One row per load."""
        rows = tuple(
            (one.layout, one.bits, one.distance, one.gcd, one.wavefronts, len(one.sectors), len(one.lines),
             100 * one.useful)
            for one in self.loads
        )  # fmt: skip
        names = ("layout", "matrix bits", "ldm", "gcd(ldm/128, 8)", "wavefronts", "sectors", "lines", "useful %")
        return Table(names, rows)

    def text(self) -> str:
        """The table, and its conclusion."""
        return "\n".join([
            self.title(), "", columns_text(self.table()), "",
            "wavefronts: of shared memory, 1 without bank conflicts; sectors (32 bytes), lines (128): of global memory",
            "ldm: bits from one row of the tile to the next; fsb and nb8 keep it at 128 whatever the matrix",
        ])  # fmt: skip


@checked
def strides(distances: Sequence[int] = DISTANCES) -> Strides:
    """The loads of the first tile of a matrix [8 rows, bits], for each width in bits (multiples of 128).

    Raises InvalidInput for a width that is not a multiple of a tile's.
    """
    given = list(distances) if is_several(distances) else []
    if not given or not all(is_whole(one) and 0 < one <= MOST_BITS and one % BLOCK_BITS == 0 for one in given):
        raise InvalidInput(
            f"ldm {shown(distances)}: expected one or more multiples of {BLOCK_BITS} up to {MOST_BITS}, such as 256"
        )
    widest = int(max(given))
    loads = [_load(NHWC, int(bits)) for bits in given]
    return Strides((*loads, *(_load(layout, widest) for layout in (FSB, NB8))))


@checked
def pixel_distance(workload: ConvWorkload | str) -> int:
    """Bits from one input pixel to the next in the plain layout of a plane: the leading dimension of neighbouring
    pixels. Raises InvalidInput for an unknown workload."""
    return ceil_div(workload_named(workload).c, BLOCK_BITS) * BLOCK_BITS


def _load(layout: str, bits: int) -> TileLoad:
    operand, shape = Operand(1, BIPOLAR), (BATCH_GROUP, bits)
    matrix = PlaneWords(np.zeros(words_shape(layout, operand, shape), np.uint32), layout, operand, shape)
    addresses = [int(matrix.word_index(0, row, 0, 0, 0)) * WORD_BITS // 8 for row in range(BATCH_GROUP)]
    touched = sectors(addresses, PIECE_BYTES)
    idle = [None] * (_LANES - len(addresses))
    return TileLoad(
        layout=layout,
        bits=bits,
        distance=8 * (addresses[1] - addresses[0]),
        addresses=tuple(addresses),
        banks=tuple(
            tuple((address // WORD + word) % BANKS for word in range(PIECE_BYTES // WORD)) for address in addresses
        ),
        wavefronts=bank_conflicts([*addresses, *idle], PIECE_BYTES).wavefronts,
        gcd=gcd((addresses[1] - addresses[0]) // PIECE_BYTES, BATCH_GROUP),
        sectors=touched.sectors,
        lines=tuple(sorted({address // LINE for address in addresses})),
        useful=touched.efficiency,
    )

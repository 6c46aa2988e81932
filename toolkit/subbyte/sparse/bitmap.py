"""Two-level bitmaps: how the dual-side sparse Tensor Core stores an operand (Wang et al. 2021, arXiv 2105.09564).

The left operand A [M, K] is encoded along its columns, the right operand B [K, N] along its rows: in both cases the 32
positions of a sparse warp tile share one k. Level 1 has one bit for each such tile, 32 x 16 of A or 16 x 32 of B, which
is set if the tile is not empty. Level 2 has 16 words for each tile that is not empty: word k has bit p set if position
p of the tile is not zero. The values follow, packed, tile by tile, k by k, position by position. Empty tiles store
nothing but their level-1 bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput, did_you_mean
from subbyte.info_record import InfoRecord, Table, grid_text

POSITIONS = 32
"""Rows of A (or columns of B) of a warp tile: one bitmap word."""
SLICE = 16
"""Values of k in a warp tile."""
SIDES = ("columns", "rows")
RANGES = {"int4": (-8, 7), "int8": (-128, 127)}
BITS = {"int4": 4, "int8": 8, "fp16": 16}
"""Bits per stored value, by kind of value."""
_TOGETHER = 1 << 20
"""Elements that are encoded at a time: few enough to stay in a cache."""
LARGEST_MATRIX = 1 << 26
"""Most elements of a matrix that :func:`encode` accepts: 8,192 x 8,192."""

Words = NDArray[np.uint32]


class CondensedVector(NamedTuple):
    """One k of a warp tile without its zeros: positions 0 to 31 in the tile, ascending, and their values."""

    positions: NDArray[np.int64]
    values: NDArray[Any]


@dataclass(frozen=True, eq=False)
class TwoLevelBitmap(InfoRecord):
    """A sparse matrix as a two-level bitmap; created by :func:`encode`, converted back by :meth:`decode`. Arrays are
    read-only.

    Tiles run along the rows of A or the columns of B (``length``), slices along k (``depth``).
    """

    shape: tuple[int, int]
    """Shape of the matrix: [M, K] encoded along columns, [K, N] encoded along rows."""
    side: str
    """``columns`` (a left operand) or ``rows`` (a right operand)."""
    kind: str
    """Type of the values: int4, int8 or fp16."""
    level1: NDArray[np.bool_]
    """[tiles, slices]: whether the warp tile holds any non-zero."""
    level2: Words
    """uint32 [live tiles, 16]: one word for each k of each tile that is not empty, in the order of ``level1``."""
    values: NDArray[Any]
    """[non-zeros], int8 or float16."""

    @property
    def depth(self) -> int:
        """The extent of k."""
        return self.shape[1] if self.side == "columns" else self.shape[0]

    @property
    def length(self) -> int:
        """The other extent: rows of A, columns of B."""
        return self.shape[0] if self.side == "columns" else self.shape[1]

    @property
    def tiles(self) -> int:
        """Number of warp tiles along the length, the last one padded with zeros."""
        return int(self.level1.shape[0])

    @property
    def density(self) -> float:
        """Non-zeros over elements."""
        return len(self.values) / (self.shape[0] * self.shape[1])

    @property
    def bytes_stored(self) -> int:
        """Both levels and the packed values, each rounded up to whole bytes."""
        packed = -(-len(self.values) * BITS[self.kind] // 8)
        return int(-(-self.level1.size // 8) + 4 * self.level2.size + packed)

    @property
    def bytes_dense(self) -> int:
        """The matrix without any encoding."""
        return -(-self.shape[0] * self.shape[1] * BITS[self.kind] // 8)

    @cached_property
    def words(self) -> Words:
        """uint32 [tiles, slices * 16]: level 2 with the words of empty tiles, which are zero, put back."""
        spread = np.zeros((*self.level1.shape, SLICE), np.uint32)
        spread[self.level1] = self.level2
        return spread.reshape(self.tiles, -1)

    @cached_property
    def counts(self) -> NDArray[np.uint8]:
        """uint8 [tiles, depth]: non-zeros of each k of each tile, 0 to 32 (one POPC each)."""
        return np.bitwise_count(self.words)[:, : self.depth]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """int64 [tiles, slices * 16]: index in ``values`` where each k of each tile starts."""
        counts = np.bitwise_count(self.words).astype(np.int64)
        return (np.cumsum(counts) - counts.ravel()).reshape(counts.shape)

    def vector(self, tile: int, k: int) -> CondensedVector:
        """The condensed vector of one k of one tile. Raises InvalidInput for an index outside the matrix."""
        if tile not in range(self.tiles) or k not in range(self.depth):
            raise InvalidInput(f"tile {tile}, k {k}: tiles are 0 to {self.tiles - 1}, k is 0 to {self.depth - 1}")
        positions = positions_of(self.words[tile, k])
        first = int(self.starts[tile, k])
        return CondensedVector(positions, self.values[first : first + len(positions)])

    def decode(self) -> NDArray[Any]:
        """The matrix with its zeros, int8 or float16, in its shape."""
        octets = self.words.astype("<u4").view(np.uint8).reshape(self.tiles, -1, 4)
        mask = np.unpackbits(octets, axis=-1, bitorder="little").astype(bool)
        full = np.zeros(mask.shape, self.values.dtype)
        full[mask] = self.values
        matrix = full.transpose(0, 2, 1).reshape(self.tiles * POSITIONS, -1)[: self.length, : self.depth]
        return np.ascontiguousarray(matrix if self.side == "columns" else matrix.T)

    def __eq__(self, other: object) -> bool:
        """Whether side, kind, shape and content are the same."""
        if not isinstance(other, TwoLevelBitmap):
            return NotImplemented
        mine, theirs = (self.shape, self.side, self.kind), (other.shape, other.side, other.kind)
        pairs = ((self.level1, other.level1), (self.level2, other.level2), (self.values, other.values))
        return mine == theirs and all(np.array_equal(one, two) for one, two in pairs)

    __hash__ = None  # type: ignore[assignment]

    def title(self) -> str:
        """One line: what is stored and how large it is."""
        return (
            f"{self.kind} matrix {self.shape[0]} x {self.shape[1]} along {self.side}: {len(self.values):,} non-zeros "
            f"(density {self.density:.3f}), {int(self.level1.sum()):,} of {self.level1.size:,} warp tiles live, "
            f"{self.bytes_stored:,} bytes (dense {self.bytes_dense:,})"
        )

    def table(self) -> Table:
        """One row for each warp tile."""
        return Table(("tile", "slice", "live", "non-zeros"), tuple(self._tiles()))

    def text(self) -> str:
        """The title, and for a small matrix level 1 with the non-zeros of each tile."""
        if self.level1.size > 512:
            return self.title()
        counts = self._nonzeros()
        cells = [[str(count) if count else "." for count in row] for row in counts.tolist()]
        top = [f"k{SLICE * i}" for i in range(self.level1.shape[1])]
        left = [f"{'row' if self.side == 'columns' else 'column'} {POSITIONS * i}" for i in range(self.tiles)]
        return self.title() + "\n\nnon-zeros of each warp tile; a dot is an empty one\n" + grid_text(top, left, cells)

    def _nonzeros(self) -> NDArray[np.int64]:
        counts = np.bitwise_count(self.words).astype(np.int64)
        return np.asarray(counts.reshape(self.tiles, -1, SLICE).sum(-1), np.int64)

    def _tiles(self) -> Iterator[tuple[int, int, bool, int]]:
        for tile, row in enumerate(self._nonzeros().tolist()):
            for place, count in enumerate(row):
                yield tile, place, count > 0, count


def encode(matrix: NDArray[Any], side: str, kind: str | None = None) -> TwoLevelBitmap:
    """The two-level bitmap of a matrix: ``columns`` for a left operand [M, K], ``rows`` for a right one [K, N].

    ``kind``: ``int4`` (-8 to 7) or ``int8`` (-128 to 127) for integers of any dtype, ``fp16`` for float16; the default
    is int8 or, for float16, fp16. Raises InvalidInput for another dtype, a value out of range or not finite, and a
    shape that is not two-dimensional, is empty or has more than 2^26 elements.
    """
    if side not in SIDES:
        raise InvalidInput(f"side {side!r}: {did_you_mean(side, SIDES)} (columns: left operand, rows: right operand)")
    values, kind = checked_values(matrix, kind)
    if values.ndim != 2 or 0 in values.shape:
        raise InvalidInput(f"matrix of shape {values.shape}: expected two dimensions of at least 1")
    if values.size > LARGEST_MATRIX:
        raise InvalidInput(f"matrix of shape {values.shape}: at most {LARGEST_MATRIX:,} elements, such as 8192 x 8192")
    along = values if side == "columns" else values.T
    length, depth = along.shape
    tiles, slices = -(-length // POSITIONS), -(-depth // SLICE)
    words = np.zeros((tiles, slices * SLICE), np.uint32)
    parts = []
    together = max(1, _TOGETHER // (POSITIONS * depth))
    for first in range(0, tiles, together):
        some = along[first * POSITIONS : (first + together) * POSITIONS]
        tiled = np.pad(some, ((0, -len(some) % POSITIONS), (0, 0))).reshape(-1, POSITIONS, depth).transpose(0, 2, 1)
        mask = tiled != 0
        words[first : first + together, :depth] = packed_words(mask)[..., 0]
        parts.append(tiled[mask])
    return assemble((int(values.shape[0]), int(values.shape[1])), side, kind, words, np.concatenate(parts))


def assemble(shape: tuple[int, int], side: str, kind: str, words: Words, values: NDArray[Any]) -> TwoLevelBitmap:
    """A two-level bitmap from the words uint32 [tiles, depth padded to 16] and the values in their order."""
    sliced = words.reshape(words.shape[0], -1, SLICE)
    level1: NDArray[np.bool_] = np.asarray(sliced.any(-1))
    level2 = np.ascontiguousarray(sliced[level1])
    for array in (level1, level2, values):
        array.setflags(write=False)
    return TwoLevelBitmap(shape, side, kind, level1, level2, values)


def checked_values(values: NDArray[Any], kind: str | None) -> tuple[NDArray[Any], str]:
    """The values as int8 or float16, with their kind. Raises InvalidInput as described in :func:`encode`."""
    if not isinstance(values, np.ndarray):
        raise InvalidInput(f"values are a {type(values).__name__}: expected a numpy array")
    if kind is not None and kind not in BITS:
        raise InvalidInput(f"kind {kind!r}: {did_you_mean(kind, BITS)}")
    if values.dtype == np.float16 and kind in (None, "fp16"):
        if not np.isfinite(values).all():
            raise InvalidInput("fp16 values must be finite: a skipped zero times infinity would not be zero")
        return values, "fp16"
    kind = kind or "int8"
    if not np.issubdtype(values.dtype, np.integer) or kind == "fp16":
        wanted = "float16 (.astype(np.float16))" if kind == "fp16" else "integers, or float16 for fp16"
        raise InvalidInput(f"values of dtype {values.dtype} as {kind}: expected {wanted}")
    low, high = RANGES[kind]
    if values.size and (values.min() < low or values.max() > high):
        raise InvalidInput(f"values from {values.min()} to {values.max()}: {kind} holds {low} to {high}")
    return values.astype(np.int8, copy=False), kind


def packed_words(mask: NDArray[np.bool_]) -> Words:
    """Bits [..., 32 * n] as words uint32 [..., n], the first bit lowest."""
    octets = np.ascontiguousarray(np.packbits(mask, axis=-1, bitorder="little"))
    return octets.view("<u4").astype(np.uint32)


def positions_of(word: np.uint32) -> NDArray[np.int64]:
    """The set bits of a word, ascending."""
    return np.flatnonzero(np.unpackbits(np.array([word], "<u4").view(np.uint8), bitorder="little"))

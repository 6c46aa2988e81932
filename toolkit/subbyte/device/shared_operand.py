"""How an operand of a warpgroup instruction is laid out in shared memory, and the descriptor that specifies it.

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout" and "Matrix Descriptor Format", for K-major
operands; every layout here gave the right product of random matrices on an H200. One instruction reads 32 bytes of each
row (32 signed bytes, or 256 bits), as two pieces of 16 bytes:

* without swizzle: eight rows of one piece form a *core matrix* of 128 contiguous bytes. The leading offset is the
  distance from the first half of k to the second, the stride offset the distance from eight rows to the next eight.
* with a swizzle of 32, 64 or 128 bytes: a row is as wide as the swizzle, rows are contiguous, and the stride offset is
  the distance to the next eight rows. The position of a piece in its row is XORed with address bits from bit 7 on, so
  that the pieces of eight neighbouring rows fall into different banks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from subbyte.errors import InvalidInput
from subbyte.info_record import Table

PIECE_BYTES = 16
SWIZZLES = (0, 32, 64, 128)
"""Bytes of a row in each layout; 0: core matrices without swizzle."""
_LAYOUT_BITS = {0: 0, 128: 1, 64: 2, 32: 3}
_CORE_BYTES = 128


@dataclass(frozen=True)
class SharedOperand:
    """One operand with ``rows`` rows (the columns of B, or the rows of A). Offsets are in bytes."""

    rows: int
    swizzle: int
    leading: int
    stride: int

    @classmethod
    def of(cls, rows: int, swizzle: int = 0) -> SharedOperand:
        """The operand with no gaps between its groups of eight rows. Raises InvalidInput for an unknown swizzle."""
        if swizzle not in SWIZZLES:
            raise InvalidInput(f"swizzle {swizzle!r}: allowed: {', '.join(map(str, SWIZZLES))} bytes")
        return cls(rows, swizzle, _CORE_BYTES, 8 * swizzle or 2 * _CORE_BYTES)

    def address(self, row: int, byte: int) -> int:
        """Offset of a byte (0 to 31) of a row from the start of the operand (swizzles: aligned to eight rows)."""
        if not (0 <= row < self.rows and 0 <= byte < 2 * PIECE_BYTES):
            raise InvalidInput(f"row {row}, byte {byte}: the operand has {self.rows} rows of {2 * PIECE_BYTES} bytes")
        half, within = divmod(byte, PIECE_BYTES)
        start = row // 8 * self.stride + within
        if not self.swizzle:
            return start + row % 8 * PIECE_BYTES + half * self.leading
        plain = start + row % 8 * self.swizzle + half * PIECE_BYTES
        return plain ^ (plain >> 7 & self.swizzle // PIECE_BYTES - 1) << 4

    def pieces(self) -> Iterator[tuple[int, int]]:
        """(row, half of k) of each piece, in address order."""
        places = [(row, half) for row in range(self.rows) for half in range(2)]
        return iter(sorted(places, key=lambda place: self.address(place[0], place[1] * PIECE_BYTES)))

    def descriptor(self, start: int = 0) -> int:
        """The 64-bit descriptor of the operand that starts at this byte of shared memory."""
        fields = ((start, 0), (self.leading, 16), (self.stride, 32))
        return sum((value >> 4 & 0x3FFF) << shift for value, shift in fields) | _LAYOUT_BITS[self.swizzle] << 62

    def table(self) -> Table:
        """Byte offsets of each row's two pieces."""
        name = f"{self.swizzle}-byte swizzle" if self.swizzle else "no swizzle"
        rows = ((row, *(self.address(row, half * PIECE_BYTES) for half in range(2))) for row in range(self.rows))
        return Table((f"{name}: row", "first half of k at byte", "second half at byte"), tuple(rows))

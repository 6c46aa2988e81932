"""What a kernel derives from its operand types: sizes of blocks and words, and the places of weights and zero
points."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.device.atoms import Atom
from subbyte.families.shared.operand_types import OperandTypes

BLOCK_WORDS = 32
"""32-bit words of one 8 x 32 block of 4-bit values, or of one 8 x 16 block of bytes."""


@dataclass(frozen=True)
class OperandSizes(OperandTypes):
    """The part of a plan that follows from its workload's precision."""

    @property
    def atom(self) -> Atom:
        """The matrix instruction."""
        raise NotImplementedError

    @property
    def vector(self) -> int:
        """Column tiles whose weight words a lane loads at once."""
        raise NotImplementedError

    @property
    def tiles_together(self) -> int:
        """Column tiles whose weights share a word: two for 4-bit weights with 8-bit activations."""
        return 2 if self.bytes_in and self.workload.precision.weights.bits == 4 else 1

    @property
    def tile_words(self) -> int:
        """Words of an 8-channel tile of the output, per image."""
        return 8 // self.word_values

    @property
    def filters(self) -> int:
        """Output channels, padded to whole blocks."""
        return self.workload.padded_filters

    @property
    def correction_base(self) -> int:
        """Words of the prepared weights alone; with a zero point, the initial sums follow them."""
        w = self.workload
        return w.channel_blocks * w.r * w.s * (self.filters // 8 // self.tiles_together) * BLOCK_WORDS

    @property
    def weight_form(self) -> str:
        """Layout of the prepared weights: words per load and, unless operands are int4, the types, the number of
        filters after padding, and the zero point with the power of two by which sums are scaled."""
        types = self.workload.precision
        if not self.bytes_in and not self.zero_point and not self.bytes_out:
            return str(self.vector)
        kind = "nibbles" if not self.bytes_in else f"w{types.weights.bits}a8."
        zero = f".z{self.zero_point}s{self.atom.scale_log2}" if self.zero_point else ""
        return f"{kind}{self.vector}k{types.output.block}{zero}"

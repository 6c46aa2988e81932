"""What the types of its operands mean to a kernel: sizes of blocks and words, and where weights and zero points go."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.device.atoms import Atom
from subbyte.families.shared.operand_types import OperandTypes

BLOCK_WORDS = 32
"""32-bit words of one 8 x 32 block of 4-bit values, or of one 8 x 16 block of bytes."""


@dataclass(frozen=True)
class OperandSizes(OperandTypes):
    """The part of a plan that its workload's precision decides."""

    @property
    def atom(self) -> Atom:
        """The matrix instruction."""
        raise NotImplementedError

    @property
    def vector(self) -> int:
        """Column tiles whose weight words a lane loads together."""
        raise NotImplementedError

    @property
    def tiles_together(self) -> int:
        """Column tiles whose weights share a word: two where weights of 4 bits meet activations of 8."""
        return 2 if self.bytes_in and self.workload.precision.weights.bits == 4 else 1

    @property
    def tile_words(self) -> int:
        """Words of an 8-channel tile of the output, of one image."""
        return 8 // self.word_values

    @property
    def filters(self) -> int:
        """Output channels, padded to whole blocks."""
        return self.workload.padded_filters

    @property
    def correction_base(self) -> int:
        """Words of the prepared weights alone: behind them stands, of a zero point, what sums begin with."""
        w = self.workload
        return w.channel_blocks * w.r * w.s * (self.filters // 8 // self.tiles_together) * BLOCK_WORDS

    @property
    def weight_form(self) -> str:
        """Form of the prepared weights: words of one load, and of others than int4 beside int4 what they are, to how
        many filters they are padded, and the zero point with the power of two that sums are scaled by."""
        types = self.workload.precision
        if not self.bytes_in and not self.zero_point and not self.bytes_out:
            return str(self.vector)
        kind = "nibbles" if not self.bytes_in else f"w{types.weights.bits}a8."
        zero = f".z{self.zero_point}s{self.atom.scale_log2}" if self.zero_point else ""
        return f"{kind}{self.vector}k{types.output.block}{zero}"

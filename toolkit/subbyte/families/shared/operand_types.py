"""What the types of its operands mean to a kernel that multiplies codes of 4 or 8 bits whole."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.workload.conv import ConvWorkload
from subbyte.workload.operand import SIGNED, WORD_BITS


@dataclass(frozen=True)
class OperandTypes:
    """The part of a plan that its workload's precision decides, whatever the kernel."""

    workload: ConvWorkload

    @property
    def bytes_in(self) -> bool:
        """Activations have 8 bits: a block has 16 channels of them."""
        return self.workload.precision.activations.bits == 8

    @property
    def bytes_out(self) -> bool:
        """Output values have 8 bits: a block has 16 channels, an 8-channel tile two words of an image."""
        return self.workload.precision.output.bits == 8

    @property
    def signed_codes(self) -> bool:
        """An instruction reads the codes of activations as numbers with a sign."""
        return self.workload.precision.activations.encoding == SIGNED

    @property
    def word_values(self) -> int:
        """Output values of a word."""
        return WORD_BITS // self.workload.precision.output.bits

    @property
    def zero_point(self) -> int:
        """Of the activations: what is subtracted from their codes."""
        return self.workload.precision.activations.zero_point or 0

    @property
    def fill(self) -> int:
        """A word of activations that are 0, which lie beyond the border: codes of the zero point."""
        bits = self.workload.precision.activations.bits
        return (self.zero_point & (1 << bits) - 1) * ((1 << WORD_BITS) - 1) // ((1 << bits) - 1)

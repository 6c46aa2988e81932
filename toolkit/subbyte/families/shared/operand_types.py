"""What a kernel that multiplies whole codes of 4 or 8 bits derives from its operand types."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.workload.conv import ConvWorkload
from subbyte.workload.operand import SIGNED, WORD_BITS


@dataclass(frozen=True)
class OperandTypes:
    """The part of a plan that follows from its workload's precision, for any kernel."""

    workload: ConvWorkload

    @property
    def bytes_in(self) -> bool:
        """Whether activations have 8 bits: a block then has 16 channels."""
        return self.workload.precision.activations.bits == 8

    @property
    def bytes_out(self) -> bool:
        """Whether output values have 8 bits: a block then has 16 channels, and an 8-channel tile two words per
        image."""
        return self.workload.precision.output.bits == 8

    @property
    def signed_codes(self) -> bool:
        """Whether an instruction reads the codes of activations as signed numbers."""
        return self.workload.precision.activations.encoding == SIGNED

    @property
    def word_values(self) -> int:
        """Output values per word."""
        return WORD_BITS // self.workload.precision.output.bits

    @property
    def zero_point(self) -> int:
        """The zero point of the activations, which is subtracted from their codes."""
        return self.workload.precision.activations.zero_point or 0

    @property
    def fill(self) -> int:
        """A word of activations with the value 0, as outside the image: codes of the zero point."""
        bits = self.workload.precision.activations.bits
        return (self.zero_point & (1 << bits) - 1) * ((1 << WORD_BITS) - 1) // ((1 << bits) - 1)

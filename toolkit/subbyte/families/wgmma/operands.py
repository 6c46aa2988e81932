"""What the types of its operands mean to a wgmma kernel: blocks of channels, weights, and what a zero point adds."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.shared.once import once
from subbyte.families.shared.operand_types import OperandTypes
from subbyte.workload.conv import CHANNEL_BLOCK, ConvWorkload, ceil_div

HALF_BYTES = 128
"""Shared memory of half of K: 16 bytes of each of 8 images. Activations of 8 bits lie so in memory, too."""


@dataclass(frozen=True)
class WgmmaOperands(OperandTypes):
    """The part of a plan that its workload's precision decides.

    An instruction multiplies 32 channels of bytes. Activations of 4 bits become bytes on their way into shared memory,
    times 16; those of 8 bits go there as they are, half of K from each of two blocks of 16 channels.
    """

    @once
    def whole_weights(self) -> bool:
        """Weights of 8 bits: the words of a fragment are an operand, of one block of channels."""
        return self.workload.precision.weights.bits == 8

    @once
    def parts(self) -> int:
        """Blocks of channels in memory that are 32 channels together: two of bytes."""
        return parts_of(self.workload)

    @property
    def odd_part(self) -> bool:
        """Half of the last 32 channels is in no block of memory: the last block is loaded again in its place, and its
        weights are zeros."""
        return self.workload.channel_blocks % self.parts > 0

    @once
    def channel_blocks(self) -> int:
        """Blocks of 32 input channels."""
        return channel_blocks(self.workload)

    @property
    def output_parts(self) -> int:
        """Blocks of the output that 32 of its channels are."""
        return 2 if self.bytes_out else 1

    @property
    def pads_with_code(self) -> bool:
        """What lies beyond the border has codes other than 0, which must be multiplied: no kernel row is left out."""
        return bool(self.zero_point and self.workload.pad)

    @property
    def staged_fill(self) -> int:
        """A word of what lies beyond the border in shared memory: codes of the zero point, those of 4 bits times 16."""
        return self.fill if self.bytes_in else self.fill & LOW_NIBBLES

    @property
    def weight_kind(self) -> str:
        """How the form of the weights names what they are: nothing of int4 weights beside activations of 4 bits."""
        return f"8w{self.workload.precision.weights.bits}" if self.bytes_in else ""


def parts_of(workload: ConvWorkload) -> int:
    """Blocks of channels in memory that are 32 channels together."""
    return CHANNEL_BLOCK // workload.precision.activations.block or 1


def channel_blocks(workload: ConvWorkload) -> int:
    """Blocks of 32 input channels, of any type."""
    return ceil_div(workload.channel_blocks, parts_of(workload))


def output_blocks(workload: ConvWorkload) -> int:
    """Blocks of 32 output channels, of any type."""
    return ceil_div(workload.padded_filters, CHANNEL_BLOCK)

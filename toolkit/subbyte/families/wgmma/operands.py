"""What a wgmma kernel derives from its operand types: blocks of channels, weights, and a zero point's contribution."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.shared.once import once
from subbyte.families.shared.operand_types import OperandTypes
from subbyte.workload.conv import CHANNEL_BLOCK, ConvWorkload, ceil_div

HALF_BYTES = 128
"""Bytes of shared memory for half of K: 16 bytes of each of 8 images. 8-bit activations have this layout in global
memory, too."""


@dataclass(frozen=True)
class WgmmaOperands(OperandTypes):
    """The part of a plan that follows from its workload's precision.

    An instruction multiplies 32 channels of bytes. 4-bit activations become bytes, times 16, on their way into shared
    memory; 8-bit ones are copied unchanged, half of K from each of two blocks of 16 channels.
    """

    @once
    def whole_weights(self) -> bool:
        """Whether weights have 8 bits: the words of a fragment are then an operand, of one block of channels."""
        return self.workload.precision.weights.bits == 8

    @once
    def parts(self) -> int:
        """Blocks of channels in memory that make up 32 channels: two for bytes."""
        return parts_of(self.workload)

    @property
    def odd_part(self) -> bool:
        """Whether half of the last 32 channels does not exist in memory: the last block is loaded again in its place,
        with zero weights."""
        return self.workload.channel_blocks % self.parts > 0

    @once
    def channel_blocks(self) -> int:
        """Blocks of 32 input channels."""
        return channel_blocks(self.workload)

    @property
    def output_parts(self) -> int:
        """Blocks of the output that make up 32 of its channels."""
        return 2 if self.bytes_out else 1

    @property
    def pads_with_code(self) -> bool:
        """Whether padding has nonzero codes, which must be multiplied: no kernel row is then skipped."""
        return bool(self.zero_point and self.workload.pad)

    @property
    def staged_fill(self) -> int:
        """A word of padding in shared memory: codes of the zero point, 4-bit ones times 16."""
        return self.fill if self.bytes_in else self.fill & LOW_NIBBLES

    @property
    def weight_kind(self) -> str:
        """The part of the weights' layout name that says what they are: empty for int4 weights with 4-bit
        activations."""
        return f"8w{self.workload.precision.weights.bits}" if self.bytes_in else ""


def parts_of(workload: ConvWorkload) -> int:
    """Blocks of channels in memory that make up 32 channels."""
    return CHANNEL_BLOCK // workload.precision.activations.block or 1


def channel_blocks(workload: ConvWorkload) -> int:
    """Blocks of 32 input channels, of any type."""
    return ceil_div(workload.channel_blocks, parts_of(workload))


def output_blocks(workload: ConvWorkload) -> int:
    """Blocks of 32 output channels, of any type."""
    return ceil_div(workload.padded_filters, CHANNEL_BLOCK)

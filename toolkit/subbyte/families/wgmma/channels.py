"""Input channels of a wgmma kernel: the steps in which they are multiplied, and the weights fetched for them."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.families.shared.once import once
from subbyte.families.wgmma.geometry import WgmmaGeometry
from subbyte.workload.conv import ceil_div

WRITTEN_OUT = (64, 20)
"""Most wgmma instructions for which every kernel row is unrolled: with one consumer warpgroup, and with more, whose
threads have fewer registers."""


@dataclass(frozen=True)
class WgmmaChannels(WgmmaGeometry):
    """The part of a :class:`~subbyte.families.wgmma.plan.WgmmaPlan` about input channels and their weights."""

    @once
    def channels(self) -> int:
        """32-channel blocks of one stage (staged row and channel group)."""
        return self.channel_blocks // (self.knobs.cluster_split_k * self.knobs.channel_groups)

    @once
    def loaded_blocks(self) -> int:
        """The same in blocks of global memory: 16 bytes per image."""
        return self.channels * self.parts

    @once
    def kept_channels(self) -> int:
        """The same including the block of zeros after an odd number of them if an instruction takes two."""
        return self.channels + (self.channels % 2 if self.knobs.sparse else 0)

    @once
    def halves(self) -> int:
        """Channel blocks per weight fragment: low and high nibbles of a byte, or only the low ones; one for bytes."""
        if self.knobs.listed:
            return 2
        if self.whole_weights:
            return 1
        return 2 if self.kept_channels % 2 == 0 else 1

    @once
    def operands(self) -> int:
        """Instructions per weight fragment and fragment row: a 2:4 instruction takes all of the fragment's channel
        blocks."""
        return 1 if self.knobs.sparse else self.halves

    @once
    def steps(self) -> int:
        """Fragments along the channels of one stage, per tap."""
        return ceil_div(self.kept_channels, self.halves)

    @once
    def unroll(self) -> int:
        """Channel steps per loop body; for a lowered image as many as in a body with all taps of a row."""
        if self.knobs.resident:
            return self.steps
        if self.knobs.listed:
            return self.knobs.live_pairs
        if not self.lowered:
            return min(self.knobs.unroll, self.steps)
        most = self.knobs.unroll * self.workload.s
        return max(n for n in range(1, min(most, self.steps) + 1) if self.steps % n == 0)

    @property
    def groups_together(self) -> int:
        """Groups of a lowered image that are unrolled one after the other: the taps of a row with few channels."""
        return self.workload.s if self.lowered and self.unroll == self.steps else 1

    @property
    def in_flight(self) -> int:
        """Instruction groups that may be unfinished when the next operand is unpacked: fewer than the operands of a
        loop body, whose registers the next body overwrites."""
        parts = self.operands if self.knobs.operands_apart else 1
        return min(self.knobs.in_flight, self.body_fragments * self.knobs.tiles_m * parts - 1)

    @property
    def body_fragments(self) -> int:
        """Weight fragments per loop body and tile of output channels."""
        return self.unroll * (1 if self.knobs.listed else self.tap_cols)

    @property
    def ahead(self) -> int:
        """Weight fragments fetched ahead: those of one loop body, or of one per kernel row."""
        return self.body_fragments * self.groups_together * (self.tap_rows if self.knobs.rows_ahead else 1)

    @property
    def multicast_blocks(self) -> int:
        """Blocks of a cluster that multicast weights to one another: the multicast width."""
        return max(self.knobs.multicast, 1)

    @property
    def weight_chunks(self) -> int:
        """A block's weights by loop bodies: the chunks whose bulk copies a barrier counts together."""
        return self.steps // self.unroll * self.tap_rows if self.knobs.multicast else 0

    @property
    def held_fragments(self) -> int:
        """Weight fragments in a thread's registers before they are unpacked."""
        return self.ahead * self.knobs.tiles_m * (self.tap_rows if self.knobs.resident else 1)

    @property
    def run(self) -> int:
        """Weight fragments of one kernel row, or of one channel group if every tile iteration loads its own rows."""
        return self.steps * self.tap_cols * self.groups

    @once
    def multiplications(self) -> int:
        """wgmma instructions in the loop over kernel rows if every kernel row were unrolled."""
        per_row = self.unroll * self.tap_cols * self.operands * self.knobs.tiles_m
        return sum((high - low) * per_row for tap in range(self.tap_rows) for low, high in self.tap_variants([tap])[0])

    @property
    def taps_unrolled(self) -> bool:
        """Whether every kernel row has its own code."""
        return bool(self.knobs.resident) or self.multiplications <= WRITTEN_OUT[self.knobs.consumers > 1]

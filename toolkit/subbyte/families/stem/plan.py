"""The plan of a kernel for few input channels: sizes, layout of shared memory, index maps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from subbyte.device.arch import Arch
from subbyte.device.atoms import Atom
from subbyte.device.launch import Argument, Launch
from subbyte.families.stem.config import StemConfig
from subbyte.families.stem.strings import SCALE_LOG2, Strings, strings
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div
from subbyte.workload.precision import SUMS

STEP_BYTES = 32
"""Bytes of an output channel's weights in a step: K of an instruction."""
FORM = "stem"
"""Prefix of the weights' layouts."""
EXCHANGED = 512
"""Bytes of a warp's results of a tile: 64 pixels of 16 output channels."""
HELD = " held"
"""How the form of weights ends that stay in registers."""
LINES = 3
"""Rows of parameters."""


class StemAtom(Atom):
    """The matrix instruction, whose weights are used as bytes directly."""

    @property
    def scale_log2(self) -> int:
        """Activations are the values times 16."""
        return SCALE_LOG2


@dataclass(frozen=True)
class StemPlan:
    """Everything about one kernel that is known before its code is generated."""

    workload: ConvWorkload
    config: StemConfig
    arch: Arch
    output: str = "int4"
    clip: tuple[int, int] = (-8, 7)
    requant: str = "fixed"

    @cached_property
    def strings(self) -> Strings:
        """How windows are written."""
        return strings(self.workload)

    @property
    def atom(self) -> StemAtom:
        """The matrix instruction."""
        n = BATCH_GROUP * self.config.pixels if self.config.wide else self.config.filters
        ptx = f"wgmma.mma_async.sync.aligned.m64n{n}k32.s32.s8.s8"
        return StemAtom(f"s8.wgmma.m64n{n}k32", ptx, 8, 1, True, 90)

    @property
    def layout(self) -> str:
        """Layout of outputs in memory."""
        return "nhwcnc"

    @property
    def columns(self) -> int:
        """Output channels per block."""
        return self.config.filters

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of output pixels per turn."""
        return self.config.turn_rows, self.segment_units * self.strings.unit_pixels

    # ---- turns ------------------------------------------------------------------------------------------------------

    @cached_property
    def segment_units(self) -> int:
        """Units of an output row per turn."""
        return ceil_div(self.strings.units, self.config.segments)

    @property
    def tiles(self) -> int:
        """Tiles per turn and output row."""
        return self.segment_units * self.strings.phases // (1 + self.config.wide)

    @property
    def row_groups(self) -> int:
        """Groups of ``turn_rows`` output rows per image."""
        return ceil_div(self.workload.p, self.config.turn_rows)

    @cached_property
    def all_turns(self) -> int:
        """Turns of the layer for one slice of output channels."""
        return self.workload.batch_groups * self.config.segments * self.row_groups

    @cached_property
    def slices(self) -> int:
        """Blocks that divide the output channels of a pixel among them."""
        return self.workload.padded_filters // self.config.filters

    @property
    def row_sums(self) -> int:
        """Sums of a thread per tile."""
        return self.config.filters // 2 * (1 + self.config.wide)

    # ---- input ------------------------------------------------------------------------------------------------------

    @property
    def input_rows(self) -> int:
        """Input rows per turn."""
        return (self.config.turn_rows - 1) * self.workload.stride + self.workload.r

    @cached_property
    def turn_strings(self) -> int:
        """Strings of one kind per output row and turn."""
        return self.strings.count(self.segment_units)

    @property
    def passes(self) -> int:
        """Passes in which a warpgroup writes the strings of a turn; in each, a thread writes one in every row."""
        return ceil_div(self.turn_strings * BATCH_GROUP, 128)

    @property
    def rest(self) -> int:
        """Threads that have a string in the last pass."""
        return self.turn_strings * BATCH_GROUP - (self.passes - 1) * 128

    @cached_property
    def last_rows(self) -> int:
        """Output rows of a string that a thread writes in the last pass, for a few strings: all of them, or fewer where
        the warps share it."""
        rows = self.config.turn_rows
        if self.passes == 1 or not self.config.wide:
            return rows
        return next(one for one in (1, 2, 4, 8) if one == rows or self.rest * rows <= 128 * one)

    @property
    def last_shared(self) -> bool:
        """Whether the warps share the last pass."""
        return self.last_rows < self.config.turn_rows

    @property
    def last_input_rows(self) -> int:
        """Input rows that a thread reads for it."""
        return (self.last_rows - 1) * self.workload.stride + self.workload.r

    @property
    def whole_passes(self) -> int:
        """Passes in which a thread writes all output rows."""
        return self.passes - self.last_shared

    @property
    def words_read(self) -> int:
        """Words that a thread reads for a turn."""
        return (self.whole_passes * self.input_rows + self.last_shared * self.last_input_rows) * self.strings.span

    # ---- shared memory, in bytes ------------------------------------------------------------------------------------

    @property
    def step_bytes(self) -> int:
        """Weights of a step."""
        return self.config.filters * STEP_BYTES

    @property
    def phase_bytes(self) -> int:
        """Weights of a phase."""
        return self.strings.steps * self.step_bytes

    @property
    def weight_bytes(self) -> int:
        """Weights of a block."""
        return self.strings.phases * self.phase_bytes

    @property
    def parameter_base(self) -> int:
        """Requantization parameters: three rows of ``filters`` words."""
        return self.weight_bytes

    @property
    def parameter_bytes(self) -> int:
        """Their bytes."""
        return 0 if self.output == SUMS else LINES * 4 * self.config.filters

    @property
    def begun(self) -> bool:
        """Whether sums start from the offset that the floating-point form of requantization adds."""
        return self.output != SUMS and self.requant == "fixed"

    @property
    def behind(self) -> bool:
        """Whether there are two sets of sums: products of one run while the other is requantized."""
        return bool(self.config.behind) and self.begun

    @property
    def groups(self) -> int:
        """Tiles per turn, where those accumulated together count as one."""
        return self.tiles * self.config.turn_rows // self.config.together

    @property
    def strings_base(self) -> int:
        """Start of the first buffer of strings."""
        return ceil_div(self.parameter_base + self.parameter_bytes, 128) * 128

    @property
    def kind_bytes(self) -> int:
        """Bytes of the strings of one kind in an output row."""
        return self.turn_strings * self.strings.string_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of the strings of an output row."""
        return self.strings.kinds * self.kind_bytes

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the strings of a turn."""
        return self.config.turn_rows * self.row_bytes

    @property
    def buffers(self) -> int:
        """Buffers per warpgroup."""
        return min(self.config.buffers, self.config.turns)

    @property
    def exchange_base(self) -> int:
        """Where results change places between the lanes of a warp, if they do."""
        return self.strings_base + self.config.consumers * self.buffers * self.buffer_bytes

    @property
    def halves_together(self) -> bool:
        """Whether both halves of an instruction's 16 pixels are exchanged at once; one after the other is 6 % faster
        for VGG's first layer, which has two phases."""
        return bool(self.config.wide) and self.strings.phases == 1

    @property
    def exchange_bytes(self) -> int:
        """Of a warp: those of 8 pixels of each of the output rows that are summed up together, or of 16."""
        return self.config.held_weights * self.config.together * (1 + self.halves_together) * EXCHANGED

    @property
    def barrier_base(self) -> int:
        """Place of the barrier that counts the bytes of weights and parameters."""
        return self.exchange_base + 4 * self.config.consumers * self.exchange_bytes

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
        return self.barrier_base + 8

    # ---- global memory ----------------------------------------------------------------------------------------------

    @property
    def slice_words(self) -> int:
        """Words of a block's weights."""
        return self.weight_bytes // 4

    def output_word(self, group: Any, row: Any, col: Any, block: Any, image: Any) -> Any:
        """First of the four words of 32 output channels of one pixel of one image."""
        w = self.workload
        return (((group * w.p + row) * w.q + col) * w.filter_blocks + block) * (BATCH_GROUP * 4) + image * 4

    # ---- launch -----------------------------------------------------------------------------------------------------

    @property
    def parameter_form(self) -> str:
        """Layout of the requantization parameters."""
        return f"begun{SCALE_LOG2}most{self.strings.begins_with}" if self.requant == "fixed" else "general"

    @property
    def weight_form(self) -> str:
        """Everything that determines the words of the weights: the layer, and the output channels of a block."""
        return f"{FORM} {self.workload.spec} {self.config.filters}{self.config.held_weights * HELD}"

    @property
    def blocks(self) -> int:
        """Total number of blocks of the launch."""
        return ceil_div(self.all_turns, self.config.turns * self.config.consumers) * self.slices

    @cached_property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        w, form = self.workload, self.strings.form
        packed = w.batch_groups * BATCH_GROUP * w.p * w.q * w.filter_blocks * 4
        words = w.batch_groups * form.rows * form.words * BATCH_GROUP
        arguments = [Argument("A", "uint32", (words,), "in", form.text)]
        if self.output == SUMS:
            arguments.append(Argument("Out", "int32", (packed * 8,), "out", self.layout))
        else:
            arguments.append(Argument("Out", "uint32", (packed,), "out", self.layout))
            arguments.append(Argument("Prm", "int32", (LINES * w.padded_filters,), "in", self.parameter_form))
        arguments.append(Argument("Wt", "uint32", (self.slices * self.slice_words,), "in", self.weight_form))
        return Launch(
            "conv_kernel", (self.blocks, 1, 1), (self.config.threads, 1, 1), self.shared_bytes, tuple(arguments), 1,
            bool(self.config.dependent_launch),
        )  # fmt: skip

"""The plan of a kernel for few input channels: sizes, places in shared memory, index maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from subbyte.device.arch import Arch
from subbyte.device.atoms import Atom
from subbyte.device.launch import Argument, Launch
from subbyte.families.stem.config import StemConfig
from subbyte.families.stem.strips import LANES, WORD_BYTES, Strips, strips
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div
from subbyte.workload.precision import SUMS

STEP_BYTES = 32
"""Of an output channel's weights in a step, as bytes: K of an instruction."""
FORM = "stem"
"""How the form of the weights begins."""


@dataclass(frozen=True)
class Fragment:
    """An operand of a tile's pixels: the words of ``place`` (a step within the period) from input row ``row`` on, and
    the tiles (output row of the block's, step) that it is multiplied for."""

    place: int
    row: int
    users: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class StemPlan:
    """Everything about one kernel that can be known before generating it."""

    workload: ConvWorkload
    config: StemConfig
    arch: Arch
    output: str = "int4"
    clip: tuple[int, int] = (-8, 7)
    requant: str = "fixed"

    @property
    def strips(self) -> Strips:
        """How taps share K."""
        return strips(self.workload)

    @property
    def atom(self) -> Atom:
        """The matrix instruction."""
        n = self.config.filters
        return Atom(f"s8.wgmma.m64n{n}k32", f"wgmma.mma_async.sync.aligned.m64n{n}k32.s32.s8.s8", 8, 1, True, 90)

    @property
    def layout(self) -> str:
        """Of outputs in memory."""
        return "nhwcnc"

    @property
    def columns(self) -> int:
        """Output channels of a block."""
        return self.config.filters

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of output pixels of a block."""
        return self.config.tile_rows * self.config.turns, self.segment_units * self.strips.unit_pixels

    # ---- tiles --------------------------------------------------------------------------------------------------

    @property
    def segment_units(self) -> int:
        """Units of an output row that a block computes."""
        return ceil_div(self.strips.units, self.config.segments)

    @property
    def tiles(self) -> int:
        """Tiles of a block in an output row."""
        return self.segment_units * self.strips.phases

    @property
    def row_groups(self) -> int:
        """Groups of ``tile_rows`` output rows of an image."""
        return ceil_div(self.workload.p, self.config.tile_rows)

    @property
    def row_blocks(self) -> int:
        """Blocks that share the rows of an image."""
        return ceil_div(self.row_groups, self.config.turns)

    @property
    def slices(self) -> int:
        """Blocks that share the output channels of a pixel."""
        return self.workload.padded_filters // self.config.filters

    @property
    def row_sums(self) -> int:
        """Sums of a thread for a tile."""
        return self.config.filters // 2

    @property
    def fragments(self) -> Sequence[Fragment]:
        """The operands of the tiles of a turn, each once, in the order of their rows."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        lay = self.strips
        for tile in range(self.config.tile_rows):
            for step in range(lay.steps):
                row = tile * self.workload.stride + step // lay.period * lay.period_rows
                found.setdefault((row, step % lay.period), []).append((tile, step))
        return [Fragment(place, row, tuple(users)) for (row, place), users in sorted(found.items())]

    # ---- shared memory, in bytes --------------------------------------------------------------------------------

    @property
    def step_bytes(self) -> int:
        """Weights of a step."""
        return self.config.filters * STEP_BYTES

    @property
    def phase_bytes(self) -> int:
        """Weights of a phase."""
        return self.strips.steps * self.step_bytes

    @property
    def weight_bytes(self) -> int:
        """Weights of a block."""
        return self.strips.phases * self.phase_bytes

    @property
    def parameter_base(self) -> int:
        """Requantization parameters: three rows of ``filters`` words."""
        return self.weight_bytes

    @property
    def parameter_bytes(self) -> int:
        """Their bytes."""
        return 0 if self.output == SUMS else 3 * 4 * self.config.filters

    @property
    def begun(self) -> bool:
        """Sums begin with what the floating-point form of requantization adds to them."""
        return self.output != SUMS and self.requant == "fixed"

    @property
    def begun_base(self) -> int:
        """What sums begin with: of channels 2 j and 2 j + 1 of lane q of a quad twice two words, [tile row][j][q]. Each
        tile row has its own, or the compiler would read the first one's and copy registers: an instruction for each."""
        return self.parameter_base + self.parameter_bytes

    @property
    def begun_bytes(self) -> int:
        """Of a tile row."""
        return 8 * self.config.filters if self.begun else 0

    @property
    def rows_base(self) -> int:
        """The first buffer of input rows."""
        return ceil_div(self.begun_base + self.config.tile_rows * self.begun_bytes, 128) * 128

    @property
    def staged_rows(self) -> int:
        """Input rows of a turn."""
        return (self.config.tile_rows - 1) * self.workload.stride + self.strips.window_rows

    @property
    def row_words(self) -> int:
        """Words of an input row that a block reads."""
        return self.strips.words(self.segment_units)

    @property
    def pitch(self) -> int:
        """Words from one staged row to the next: the lanes of a quad then read different banks."""
        return self.row_words + (self.strips.row_words - self.row_words) % LANES

    @property
    def buffer_bytes(self) -> int:
        """A buffer of input rows."""
        return ceil_div(self.staged_rows * self.pitch * WORD_BYTES, 128) * 128

    @property
    def buffers(self) -> int:
        """Of input rows."""
        return min(2, self.config.turns)

    @property
    def barrier_base(self) -> int:
        """A barrier for each buffer."""
        return self.rows_base + self.buffers * self.buffer_bytes

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
        return self.barrier_base + 8 * self.buffers

    # ---- global memory ------------------------------------------------------------------------------------------

    @property
    def slice_words(self) -> int:
        """Words of a block's weights."""
        return self.weight_bytes // 4

    def output_word(self, group: Any, row: Any, col: Any, block: Any, image: Any) -> Any:
        """First of the four words of 32 output channels of one image's pixel."""
        w = self.workload
        return (((group * w.p + row) * w.q + col) * w.filter_blocks + block) * (BATCH_GROUP * 4) + image * 4

    # ---- launch -------------------------------------------------------------------------------------------------

    @property
    def parameter_form(self) -> str:
        """Form of the requantization parameters."""
        return f"float{self.atom.scale_log2}" if self.requant == "fixed" else "general"

    @property
    def weight_form(self) -> str:
        """What decides the words of the weights: the layer, and the output channels of a block."""
        return f"{FORM} {self.workload.spec} {self.config.filters}"

    @property
    def blocks(self) -> int:
        """All blocks of the launch."""
        return self.workload.batch_groups * self.row_blocks * self.config.segments * self.slices

    @cached_property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        w, form = self.workload, self.strips.form
        packed = w.batch_groups * BATCH_GROUP * w.p * w.q * w.filter_blocks * 4
        words = w.batch_groups * form.rows * form.words * BATCH_GROUP
        arguments = [Argument("A", "uint32", (words,), "in", form.text)]
        if self.output == SUMS:
            arguments.append(Argument("Out", "int32", (packed * 8,), "out", self.layout))
        else:
            arguments.append(Argument("Out", "uint32", (packed,), "out", self.layout))
            arguments.append(Argument("Prm", "int32", (3 * w.padded_filters,), "in", self.parameter_form))
        arguments.append(Argument("Wt", "uint32", (self.slices * self.slice_words,), "in", self.weight_form))
        return Launch(
            "conv_kernel", (self.blocks, 1, 1), (self.config.threads, 1, 1), self.shared_bytes, tuple(arguments), 1,
            bool(self.config.dependent_launch),
        )  # fmt: skip

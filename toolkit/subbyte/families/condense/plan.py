"""The plan of a kernel that skips zeros: sizes, layout of shared memory, index maps.

Terms: a *block* is 32 positions of K; a *panel* is 32 rows or 32 columns, stored as 16 bytes of shared memory for each
position; a *class* is the positions of one lane, one in each block, or of two lanes that share them, two in each block.
A panel of rows begins with zeros, read by lanes without remaining positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from subbyte.device.arch import Arch
from subbyte.device.atoms import ATOMS, Atom
from subbyte.device.launch import Argument, Launch
from subbyte.families.condense.config import PANEL, ROW_PIXELS, CondenseConfig
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div
from subbyte.workload.precision import SUMS

BLOCK_WORDS = 128
"""Words of 32 positions of a panel, 16 bytes each; also of a block of 32 rows of activations."""
PIXEL_WORDS = 32
"""Words of a pixel of 8 images in a block of channels."""
FORM = "condense"
"""The layout of the weights' words."""


@dataclass(frozen=True)
class CondensePlan:
    """Everything about one kernel that is known before its code is generated."""

    workload: ConvWorkload
    config: CondenseConfig
    arch: Arch
    output: str = "int4"
    clip: tuple[int, int] = (-8, 7)
    requant: str = "fixed"

    @property
    def atom(self) -> Atom:
        """The matrix instruction."""
        return ATOMS["s8.m16n8k32"]

    @property
    def layout(self) -> str:
        """Layout of activations and outputs."""
        return "nhwcnc"

    # ---- lanes ------------------------------------------------------------------------------------------------------

    @property
    def classes(self) -> int:
        """Sets of positions that one lane, or two lanes that share them, process."""
        return 32 // self.config.sharing

    @property
    def run_bytes(self) -> int:
        """Bytes per bit of a mask: a position of each class."""
        return 16 * self.classes

    # ---- sizes ------------------------------------------------------------------------------------------------------

    @property
    def pixels(self) -> int:
        """Pixels of 8 images, over all groups of images."""
        return self.workload.batch_groups * self.workload.p * self.workload.q

    @property
    def block_pixels(self) -> int:
        """Pixels per block."""
        return ROW_PIXELS * self.config.row_warps

    @property
    def block_panels(self) -> int:
        """Panels of columns per block."""
        return self.config.col_warps * self.config.panels

    @property
    def columns(self) -> int:
        """Output channels per block."""
        return PANEL * self.block_panels

    @property
    def tile(self) -> tuple[int, int]:
        """Pixels per block, in one row."""
        return 1, self.block_pixels

    @property
    def panel_tiles(self) -> int:
        """Tiles of columns per panel."""
        return PANEL // self.config.tile_columns

    @property
    def chunks(self) -> int:
        """Stages of K."""
        return ceil_div(self.workload.channel_blocks, self.config.chunk)

    @property
    def buffers(self) -> int:
        """Number of buffers for staged weights."""
        return 2 if self.config.ahead and self.chunks > 1 else 1

    @property
    def accumulators(self) -> int:
        """Accumulators per thread."""
        return 32 * self.config.panels

    # ---- shared memory, in words ------------------------------------------------------------------------------------

    @property
    def raw_words(self) -> int:
        """Words of a chunk of activations as in global memory: [pixel][block][8 images][4 words]."""
        return self.block_pixels * self.config.chunk * PIXEL_WORDS

    @property
    def row_panel_words(self) -> int:
        """Words of a panel of rows: zeros, then [block][32 positions][4 words]."""
        return (self.config.chunk + 1) * BLOCK_WORDS

    @property
    def rows_base(self) -> int:
        """Start of the first panel of rows."""
        return self.raw_words

    @property
    def panel_words(self) -> int:
        """Words of a panel of columns."""
        return self.config.chunk * BLOCK_WORDS

    @property
    def buffer_words(self) -> int:
        """Words of a chunk of weights: a block for lanes without remaining positions, then the panels."""
        return BLOCK_WORDS + self.block_panels * self.panel_words

    @property
    def weights_base(self) -> int:
        """Start of the first buffer of weights."""
        return self.rows_base + self.config.row_warps * self.row_panel_words

    @property
    def row_masks(self) -> int:
        """Start of the live positions of the panels of rows: a word for each lane."""
        return self.weights_base + self.buffers * self.buffer_words

    @property
    def column_masks(self) -> int:
        """The same for the tiles of columns."""
        return self.row_masks + 32 * self.config.row_warps

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
        return 4 * (self.column_masks + 32 * self.block_panels * self.panel_tiles)

    # ---- global memory ----------------------------------------------------------------------------------------------

    def activation_word(self, pixel: Any, block: Any) -> Any:
        """First word of a pixel (over all groups) in a block of channels."""
        return (pixel * self.workload.channel_blocks + block) * PIXEL_WORDS

    def weight_word(self, panel: Any, block: Any) -> Any:
        """First word of a block in a panel."""
        return (panel * self.workload.channel_blocks + block) * BLOCK_WORDS

    def output_word(self, pixel: Any, panel: Any, image: Any, word: Any) -> Any:
        """Index of a word of 8 output channels."""
        return (pixel * self.workload.filter_blocks + panel) * PIXEL_WORDS + image * 4 + word

    # ---- launch -----------------------------------------------------------------------------------------------------

    @property
    def parameter_form(self) -> str:
        """Layout of the requantization parameters."""
        return f"fixed{self.atom.scale_log2}" if self.requant == "fixed" else "general"

    @cached_property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        w = self.workload
        out = self.pixels * BATCH_GROUP * w.filter_blocks * 4
        words = w.batch_groups * w.h * w.w * w.channel_blocks * PIXEL_WORDS
        arguments = [Argument("A", "uint32", (words,), "in", self.layout)]
        if self.output == SUMS:
            arguments.append(Argument("Out", "int32", (out * 8,), "out", self.layout))
        else:
            arguments.append(Argument("Out", "uint32", (out,), "out", self.layout))
            arguments.append(Argument("Prm", "int32", (3 * w.filter_blocks * PANEL,), "in", self.parameter_form))
        words = w.filter_blocks * w.channel_blocks * BLOCK_WORDS
        arguments.append(Argument("Wt", "uint32", (words,), "in", FORM))
        grid = (ceil_div(self.pixels, self.block_pixels), ceil_div(w.filter_blocks, self.block_panels), 1)
        return Launch("conv_kernel", grid, (self.config.threads, 1, 1), self.shared_bytes, tuple(arguments))

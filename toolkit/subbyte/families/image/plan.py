"""The plan of a kernel whose columns are pixels of one image: sizes, places in shared memory, index maps.

*Places* are padded input pixels of one image in the order of rows of ``pitch``: an instruction's columns are ``pixels``
places that follow one another, across rows too, and a tap is another start. With a stride every phase (rows and columns
of the same remainder) has places of its own. A place is 16 bytes for 16 channels, so that 8 of them are a core matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from subbyte.device.arch import Arch
from subbyte.device.atoms import Atom
from subbyte.device.launch import Argument, Launch
from subbyte.families.image.config import ImageConfig
from subbyte.families.shared.operand_types import OperandTypes
from subbyte.workload.conv import BATCH_GROUP, ceil_div
from subbyte.workload.precision import SUMS

CORE = 8
"""Columns of a core matrix."""
PIECE = 16
"""Bytes of a place: 16 channels."""
TILE_FILTERS = 64
FRAGMENT_WORDS = 512
"""Of 128 threads: 64 output channels times one or two blocks of 32 input channels of a tap."""
GROUP_BYTES = 512
"""Of a warp's packed results: 8 columns of up to 8 core matrices."""
EXCHANGED_BYTES = 2048
"""Sums of 64 output channels and 8 pixels."""


@dataclass(frozen=True)
class ImagePlan(OperandTypes):
    """Everything about one kernel that can be known before generating it."""

    config: ImageConfig
    arch: Arch
    output: str = "int4"
    clip: tuple[int, int] = (-8, 7)
    requant: str = "fixed"

    @property
    def atom(self) -> Atom:
        """The matrix instruction."""
        n = self.config.pixels
        ptx = f"wgmma.mma_async.sync.aligned.m64n{n}k32.s32.s8.s8"
        one = Atom(f"s8.wgmma.m64n{n}k32", ptx, n // 8, 1, True, 90)
        return one.with_activations(self.workload.precision.activations.least < 0, first=False)

    @property
    def by_line(self) -> bool:
        """Sums are rounded in floating point, by one line for each channel."""
        return self.requant == "fixed"

    @property
    def parameter_rows(self) -> int:
        """Parameters of an output channel."""
        return 3

    @property
    def kept_rows(self) -> int:
        """Words that a block keeps of each: these."""
        return self.parameter_rows

    @property
    def layout(self) -> str:
        """Of activations and outputs in memory."""
        return self.config.layout

    @property
    def columns(self) -> int:
        """Output channels of a block."""
        return TILE_FILTERS * self.config.filter_warpgroups

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of output pixels of a block."""
        return ceil_div(self.config.pixels, self.pitch), min(self.config.pixels, self.workload.q)

    # ---- places -------------------------------------------------------------------------------------------------

    @property
    def pitch(self) -> int:
        """Places from one row to the next. With stride 1 the zeros behind a row are those in front of the next."""
        w = self.workload
        if w.stride > 1:
            return w.q + (w.s - 1) // w.stride
        width = w.q + w.s - 1
        return width - min(w.pad, max(0, width - w.pad - w.w), w.s - 1)

    @property
    def phases(self) -> tuple[int, int]:
        """Remainders of rows and of columns that some tap has."""
        return min(self.workload.stride, self.workload.r), min(self.workload.stride, self.workload.s)

    @property
    def tap_rows(self) -> int:
        """Rows of places that an output row reads."""
        return (self.workload.r - 1) // self.workload.stride + 1

    @property
    def span(self) -> int:
        """Places that a tile reads of one row of taps."""
        return self.config.pixels + (self.workload.s - 1) // self.workload.stride

    @property
    def row_step(self) -> int:
        """Staged places from one row of taps to the next: the pitch, or less where nobody reads what is between."""
        return min(self.pitch, self.span)

    @property
    def staged(self) -> int:
        """Places that a block stages, of each phase and block of 32 channels."""
        return (self.tap_rows - 1) * self.row_step + self.span

    def place_of(self, staged: Any) -> Any:
        """Place, counted from the tile's first, of a staged one."""
        if self.row_step == self.pitch:
            return staged
        return staged // self.span * self.pitch + staged % self.span

    def tap_place(self, row: int, column: int) -> tuple[int, int]:
        """Phase, and staged place from which on a tap reads."""
        stride = self.workload.stride
        phase = row % stride * self.phases[1] + column % stride
        return phase, row // stride * self.row_step + column // stride

    @property
    def tiles(self) -> int:
        """Tiles of an image."""
        return ceil_div((self.workload.p - 1) * self.pitch + self.workload.q, self.config.pixels)

    @property
    def groups(self) -> int:
        """Core matrices of a tile's pixels."""
        return self.config.pixels // CORE

    @property
    def slots(self) -> int:
        """Those that a warpgroup finishes, at most."""
        return ceil_div(self.groups, self.config.ways)

    # ---- channels -----------------------------------------------------------------------------------------------

    @property
    def block_channels(self) -> int:
        """Blocks of 32 input channels that a block of the launch loads."""
        return self.workload.channel_blocks // self.config.cluster_split_k

    @property
    def part_channels(self) -> int:
        """Those that a warpgroup multiplies."""
        return self.block_channels // self.config.channel_warpgroups

    @property
    def halves(self) -> int:
        """Channel blocks of one weight fragment."""
        return 2 if self.part_channels % 2 == 0 else 1

    @property
    def steps(self) -> int:
        """Fragments along a warpgroup's channels, for each tap."""
        return self.part_channels // self.halves

    @property
    def fragments(self) -> int:
        """Of a warpgroup; a thread holds 16 bytes of each in registers from the beginning."""
        return self.workload.r * self.workload.s * self.steps

    @property
    def filter_tiles(self) -> int:
        """Tiles of 64 output channels, with those that only fill up the last block."""
        return ceil_div(self.workload.k, self.columns) * self.config.filter_warpgroups

    @property
    def sums_begun(self) -> bool:
        """Sums begin with nothing: what requantization adds is added at the end."""
        return False

    # ---- shared memory, in bytes --------------------------------------------------------------------------------

    @property
    def plane_bytes(self) -> int:
        """16 channels of all staged places of a phase."""
        return self.staged * PIECE

    @property
    def pieces(self) -> int:
        """16-byte loads of a block: 32 channels of a place."""
        return self.phases[0] * self.phases[1] * self.block_channels * self.staged

    @property
    def loads(self) -> int:
        """Those of a thread."""
        return ceil_div(self.pieces, self.config.threads)

    @property
    def packing_base(self) -> int:
        """Packed results of each warp."""
        return ceil_div(self.pieces * 2 * PIECE, 128) * 128

    @property
    def packing_bytes(self) -> int:
        """Their bytes."""
        return self.config.warpgroups * 4 * ceil_div(self.slots, CORE) * GROUP_BYTES

    @property
    def exchange_base(self) -> int:
        """Partial sums: [core matrix of a warpgroup][warpgroup][way that they come from][128 threads][16 bytes]."""
        return self.packing_base + self.packing_bytes

    @property
    def exchange_bytes(self) -> int:
        """Their bytes."""
        return self.slots * self.config.warpgroups * self.config.ways * EXCHANGED_BYTES if self.config.ways > 1 else 0

    @property
    def barrier_base(self) -> int:
        """A barrier that counts the partial sums."""
        return self.exchange_base + self.exchange_bytes

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
        return self.barrier_base + 16

    @property
    def descriptor_low(self) -> int:
        """Lower word of a descriptor without the address: bytes/16 from one half of K to the other."""
        return self.staged << 16

    @property
    def descriptor_high(self) -> int:
        """Upper word: bytes/16 from one core matrix to the next; no swizzle."""
        return CORE

    # ---- global memory ------------------------------------------------------------------------------------------

    def word(self, sizes: tuple[int, int, int], image: Any, row: Any, col: Any, block: Any) -> Any:
        """First of the four words of a pixel's 32 channels; ``sizes``: rows, columns, blocks of the tensor."""
        rows, cols, blocks = sizes
        if self.layout == "nhwc":
            return (((image * rows + row) * cols + col) * blocks + block) * 4
        pixel = ((image // BATCH_GROUP * rows + row) * cols + col) * blocks + block
        return pixel * (4 * BATCH_GROUP) + image % BATCH_GROUP * 4

    # ---- launch -------------------------------------------------------------------------------------------------

    @property
    def parameter_form(self) -> str:
        """Form of the requantization parameters."""
        return f"float{self.atom.scale_log2}" if self.requant == "fixed" else "general"

    @property
    def weight_form(self) -> str:
        """That of the wgmma family, divided among the ways."""
        return f"warpgroup-{self.config.ways}-1-rows-{self.filter_tiles}"

    @property
    def grid(self) -> tuple[int, int]:
        """Blocks: ranks of a cluster within blocks of output channels; tiles within images."""
        filter_blocks = self.filter_tiles // self.config.filter_warpgroups
        return filter_blocks * self.config.cluster_split_k, self.tiles * self.workload.n

    @property
    def blocks(self) -> int:
        """All of them."""
        return self.grid[0] * self.grid[1]

    @cached_property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        w = self.workload
        images = w.batch_groups * BATCH_GROUP
        packed = images * w.p * w.q * w.filter_blocks * 4
        arguments = [Argument("A", "uint32", (images * w.h * w.w * w.channel_blocks * 4,), "in", self.layout)]
        if self.output == SUMS:
            arguments.append(Argument("Out", "int32", (packed * 8,), "out", self.layout))
        else:
            arguments.append(Argument("Out", "uint32", (packed,), "out", self.layout))
            arguments.append(Argument("Prm", "int32", (3 * w.padded_filters,), "in", self.parameter_form))
        words = self.filter_tiles * self.config.ways * self.fragments * FRAGMENT_WORDS
        arguments.append(Argument("Wt", "uint32", (words,), "in", self.weight_form))
        return Launch(
            "conv_kernel", (*self.grid, 1), (self.config.threads, 1, 1), self.shared_bytes, tuple(arguments),
            self.config.cluster_split_k, bool(self.config.dependent_launch),
        )  # fmt: skip

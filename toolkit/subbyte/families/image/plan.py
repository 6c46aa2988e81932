"""The plan of a kernel whose columns are pixels of one image: sizes, layout of shared memory, index maps.

*Places* are padded input pixels of one image in rows of ``pitch``: an instruction's columns are ``pixels``
consecutive places, also across rows, and each tap only has another start. With a stride every phase (rows and columns
with the same remainder) has its own places. A place is 16 bytes for 16 channels, so that 8 of them are a core matrix.
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
"""Words of a fragment for 128 threads: 64 output channels times one or two blocks of 32 input channels of a tap."""
GROUP_BYTES = 512
"""Bytes of a warp's packed results: 8 columns of up to 8 core matrices."""
EXCHANGED_BYTES = 2048
"""Bytes of the sums of 64 output channels and 8 pixels."""


@dataclass(frozen=True)
class ImagePlan(OperandTypes):
    """Everything about one kernel that is known before its code is generated."""

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
        """Whether sums are rounded in floating point, with one line per channel."""
        return self.requant == "fixed"

    @property
    def parameter_rows(self) -> int:
        """Parameters per output channel."""
        return 3

    @property
    def kept_rows(self) -> int:
        """The parameter rows that a block keeps."""
        return self.parameter_rows

    @property
    def layout(self) -> str:
        """Layout of activations and outputs in memory."""
        return self.config.layout

    @property
    def columns(self) -> int:
        """Output channels per block."""
        return TILE_FILTERS * self.config.filter_warpgroups

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of output pixels per block."""
        return ceil_div(self.config.pixels, self.pitch), min(self.config.pixels, self.workload.q)

    # ---- places -------------------------------------------------------------------------------------------------

    @property
    def pitch(self) -> int:
        """Places from one row to the next. With stride 1 the zeros after a row are those before the next one."""
        w = self.workload
        if w.stride > 1:
            return w.q + (w.s - 1) // w.stride
        width = w.q + w.s - 1
        return width - min(w.pad, max(0, width - w.pad - w.w), w.s - 1)

    @property
    def phases(self) -> tuple[int, int]:
        """Remainders of rows and of columns that occur among the taps."""
        return min(self.workload.stride, self.workload.r), min(self.workload.stride, self.workload.s)

    @property
    def tap_rows(self) -> int:
        """Rows of places that an output row reads."""
        return (self.workload.r - 1) // self.workload.stride + 1

    @property
    def span(self) -> int:
        """Places that a tile reads for one row of taps."""
        return self.config.pixels + (self.workload.s - 1) // self.workload.stride

    @property
    def row_step(self) -> int:
        """Staged places from one row of taps to the next: the pitch, or less if the places in between are not read."""
        return min(self.pitch, self.span)

    @property
    def staged(self) -> int:
        """Places that a block stages, per phase and block of 32 channels."""
        return (self.tap_rows - 1) * self.row_step + self.span

    def place_of(self, staged: Any) -> Any:
        """The place of a staged one, counted from the tile's first."""
        if self.row_step == self.pitch:
            return staged
        return staged // self.span * self.pitch + staged % self.span

    def tap_place(self, row: int, column: int) -> tuple[int, int]:
        """Phase, and the staged place where a tap starts reading."""
        stride = self.workload.stride
        phase = row % stride * self.phases[1] + column % stride
        return phase, row // stride * self.row_step + column // stride

    @property
    def tiles(self) -> int:
        """Tiles per image."""
        return ceil_div((self.workload.p - 1) * self.pitch + self.workload.q, self.config.pixels)

    @property
    def groups(self) -> int:
        """Core matrices of pixels per tile."""
        return self.config.pixels // CORE

    @property
    def slots(self) -> int:
        """The most of these that a warpgroup finishes."""
        return ceil_div(self.groups, self.config.ways)

    # ---- channels -----------------------------------------------------------------------------------------------

    @property
    def block_channels(self) -> int:
        """Blocks of 32 input channels that a thread block loads."""
        return self.workload.channel_blocks // self.config.cluster_split_k

    @property
    def part_channels(self) -> int:
        """Those that a warpgroup multiplies."""
        return self.block_channels // self.config.channel_warpgroups

    @property
    def halves(self) -> int:
        """Channel blocks per weight fragment."""
        return 2 if self.part_channels % 2 == 0 else 1

    @property
    def steps(self) -> int:
        """Fragments along a warpgroup's channels, per tap."""
        return self.part_channels // self.halves

    @property
    def fragments(self) -> int:
        """Fragments of a warpgroup; a thread holds 16 bytes of each in registers from the start."""
        return self.workload.r * self.workload.s * self.steps

    @property
    def filter_tiles(self) -> int:
        """Tiles of 64 output channels, including those that pad the last block."""
        return ceil_div(self.workload.k, self.columns) * self.config.filter_warpgroups

    @property
    def sums_begun(self) -> bool:
        """Sums start from zero: requantization offsets are added at the end."""
        return False

    # ---- shared memory, in bytes --------------------------------------------------------------------------------

    @property
    def plane_bytes(self) -> int:
        """Bytes of 16 channels of all staged places of a phase."""
        return self.staged * PIECE

    @property
    def pieces(self) -> int:
        """16-byte loads per block: 32 channels of a place."""
        return self.phases[0] * self.phases[1] * self.block_channels * self.staged

    @property
    def loads(self) -> int:
        """16-byte loads per thread."""
        return ceil_div(self.pieces, self.config.threads)

    @property
    def packing_base(self) -> int:
        """Start of each warp's packed results."""
        return ceil_div(self.pieces * 2 * PIECE, 128) * 128

    @property
    def packing_bytes(self) -> int:
        """Their bytes."""
        return self.config.warpgroups * 4 * ceil_div(self.slots, CORE) * GROUP_BYTES

    @property
    def exchange_base(self) -> int:
        """Start of the partial sums: [core matrix of a warpgroup][warpgroup][way they come from][128 threads][16
        bytes]."""
        return self.packing_base + self.packing_bytes

    @property
    def exchange_bytes(self) -> int:
        """Their bytes."""
        return self.slots * self.config.warpgroups * self.config.ways * EXCHANGED_BYTES if self.config.ways > 1 else 0

    @property
    def barrier_base(self) -> int:
        """Place of the barrier that counts the partial sums."""
        return self.exchange_base + self.exchange_bytes

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
        return self.barrier_base + 16

    @property
    def descriptor_low(self) -> int:
        """Lower word of a descriptor without the address: distance in units of 16 bytes between the halves of K."""
        return self.staged << 16

    @property
    def descriptor_high(self) -> int:
        """Upper word: distance in units of 16 bytes between core matrices; no swizzle."""
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
        """Layout of the requantization parameters."""
        return f"float{self.atom.scale_log2}" if self.requant == "fixed" else "general"

    @property
    def weight_form(self) -> str:
        """The layout of the wgmma family, divided among the ways."""
        return f"warpgroup-{self.config.ways}-1-rows-{self.filter_tiles}"

    @property
    def grid(self) -> tuple[int, int]:
        """Blocks: ranks of a cluster within blocks of output channels; tiles within images."""
        filter_blocks = self.filter_tiles // self.config.filter_warpgroups
        return filter_blocks * self.config.cluster_split_k, self.tiles * self.workload.n

    @property
    def blocks(self) -> int:
        """Total number of blocks."""
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

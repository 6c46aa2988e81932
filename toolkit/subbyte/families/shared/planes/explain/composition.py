"""Where a lane of a kernel on fragments of bit planes holds the counts of an output, and how they are added up.

A warp multiplies fragments of 8 images x 128 channels of a plane by fragments of 8 output channels. Lane ``4 i + t``
gets image i and, of every 32 output channels, those from 8 t to 8 t + 7, in every pair of planes: it combines them in
registers. Pairs with the same factor share a register; with ``combine=shared`` (bmma) a warp has one pair of planes,
and the warps add up in shared memory, as APNN-TC does (arXiv 2106.12169). Counts are those of the first block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.families.shared.one_window import OneWindow, batch_and_pixel
from subbyte.families.shared.planes.explain.built import require_built
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.numerics.bit_products import count_constants, written_sum
from subbyte.workload import ConvWorkload
from subbyte.workload.conv import BATCH_GROUP
from subbyte.workload.operand import BLOCK_BITS
from subbyte.workload.precision import SUMS

LANE_CHANNELS = 8
"""Channels of a lane in a word of 32."""
ONES = -1
"""Stands for a plane of the weights when the activations' own bits are counted."""


@dataclass(frozen=True)
class PairCount:
    """The count for a plane of the weights (-1: none, the activations' own bits) and one of the activations.

    ``split``: which of the warps that compute the same outputs holds it; ``register``: its index among the counts, or
    among those of ones; ``factor``: its factor in the sum.
    """

    split: int
    register: int
    weight_plane: int
    plane: int
    count: int
    factor: int


@dataclass(frozen=True)
class FragmentOutput:
    """An output channel of the block, the ``lane`` of its warp that holds it, and its sum:
    ``scale * total = sum of factor * count + constant``."""

    channel: int
    lane: int
    terms: tuple[PairCount, ...]
    constant: int
    total: int


@dataclass(frozen=True)
class FragmentComposition(InfoRecord):
    """The outputs of one pixel of a kernel's first block: 32 output channels of one image.

    ``operation`` is the bit product, ``equal`` whether equal bits are counted instead of differing ones. ``pixel`` is
    its index in the block's tile, ``warp`` the warp along the pixels that holds it, ``at`` the output pixel and
    ``batch`` the image of the workload. ``splits`` warps compute the same outputs.
    """

    workload: ConvWorkload
    config: str
    arch: str
    instruction: str
    operation: str
    equal: bool
    planes: int
    weight_planes: int
    splits: int
    scale: int
    image: int
    pixel: int
    batch: int
    at: tuple[int, int]
    warp: int
    outputs: tuple[FragmentOutput, ...]

    def title(self) -> str:
        """The outputs that are shown."""
        return (
            f"{self.workload.label}, {self.config} on {self.arch}: planes in {self.instruction}, image {self.batch}, "
            f"output pixel {self.at}"
        )

    def table(self) -> Table:
        """One row per count of each output."""
        rows = (
            (one.channel, one.lane, term.split, "ones" if term.weight_plane == ONES else term.weight_plane, term.plane,
             term.register, term.count, term.factor)
            for one in self.outputs
            for term in one.terms
        )  # fmt: skip
        names = ("channel", "lane", "group of warps", "plane of w", "plane of x", "register", "count", "factor")
        return Table(names, tuple(rows))

    def text(self) -> str:
        """What is counted, then the first output."""
        first = self.outputs[0]
        own = tuple(row for row in self.table().rows if row[0] == first.channel)
        terms = written_sum([(term.factor, f"({term.count})") for term in first.terms])
        counted = "equal bits" if self.equal else {"and": "common bits", "xor": "differing bits"}[self.operation]
        place = f"the tile's pixel {self.pixel} is of warp {self.warp} along the pixels"
        whole = f"{'-' if first.constant < 0 else '+'} {abs(first.constant)} = {self.scale * first.total}"
        scaled = "Y" if self.scale == 1 else f"{self.scale} Y"
        return "\n".join([
            self.title(), "",
            f"counted: {counted}; {self.weight_planes} x {self.planes} pairs of planes; {place}",
            f"groups of warps that compute the same outputs: {self.splits}", "",
            f"channel {first.channel}, lane {first.lane} of the warp:", columns_text(Table(self.table().columns, own)),
            "",
            f"{scaled} = {terms} {whole}",
        ])  # fmt: skip


def fragment_composition(
    plan: PlanePlan, image: int = 0, pixel: int = 0, seed: int = 0, x: NDArray[Any] | None = None,
    w: NDArray[Any] | None = None,
) -> FragmentComposition:  # fmt: skip
    """The counts of one pixel of a kernel's first block, for values x [N,H,W,C] and w [K,R,S,C], or random ones by
    default. Raises InvalidInput for a rejected configuration and for a pixel that does not exist."""
    plan = replace(plan, output=SUMS)
    require_built(plan)
    batch, at = _place(plan, image, pixel)
    return FragmentComposition(
        workload=plan.workload,
        config=plan.config.key,
        arch=plan.arch.name,
        instruction=plan.atom.name,
        operation=plan.operation,
        equal=plan.equal_bits,
        planes=plan.planes,
        weight_planes=plan.weight_planes,
        splits=plan.splits,
        scale=plan.counts.scale,
        image=image,
        pixel=pixel,
        batch=batch,
        at=at,
        warp=pixel // plan.config.warp_row_tiles,
        outputs=_outputs(plan, image, pixel, OneWindow.of(plan.workload, batch, at, seed, x, w)),
    )


def _place(plan: PlanePlan, image: int, pixel: int) -> tuple[int, tuple[int, int]]:
    """The workload's image and output pixel for a pixel of the first block."""
    w, (rows, columns) = plan.view, plan.tile
    if image not in range(BATCH_GROUP):
        raise InvalidInput(f"image={image}: a group has images 0 to {BATCH_GROUP - 1}")
    if pixel not in range(rows * columns):
        raise InvalidInput(f"pixel={pixel}: a tile of {rows} x {columns} has pixels 0 to {rows * columns - 1}")
    row, column = _in_tile(plan, pixel)
    batch, at = batch_and_pixel(plan.workload, w, image, row, column)
    if batch >= plan.workload.n or row >= w.p or column >= w.q:
        raise InvalidInput(
            f"image={image}, pixel={pixel}: row {row}, column {column} of the first tile is not in "
            f"{plan.workload.label}, which has {plan.workload.n} images of {w.p} x {w.q} outputs"
        )
    return batch, at


def _in_tile(plan: PlanePlan, pixel: int) -> tuple[int, int]:
    """Row and column of a pixel, counted warp by warp."""
    warp, own = divmod(pixel, plan.config.warp_row_tiles)
    width, wide = plan.tile[1], plan.warp_tile[1]
    first = warp * plan.config.warp_row_tiles
    return first // width + own // wide, first % width + own % wide


def _outputs(plan: PlanePlan, image: int, pixel: int, window: OneWindow) -> tuple[FragmentOutput, ...]:
    counts, own_bits = window.counts(plan.counts.operation)
    own = pixel % plan.config.warp_row_tiles
    wl, scale = window.workload, plan.counts.scale
    every_bit = wl.r * wl.s * plan.channel_blocks * BLOCK_BITS
    constants = count_constants(wl, window.w, plan.counts.operation)[window.border_class] + plan.shift
    found = []
    for channel in range(counts.shape[2]):
        part, k = divmod(channel, LANE_CHANNELS)
        terms = []
        for s in range(plan.weight_planes):
            for t in range(plan.planes):
                split, index, factor = plan.pair_term(s, t)
                count = int(counts[t, s, channel])
                register = plan.count(index, own, k // 2, k % 2)
                terms.append(PairCount(split, register, s, t, every_bit - count if plan.equal_bits else count, factor))
        for t in range(plan.planes if plan.counts.pixel else 0):
            split, register, factor = plan.ones_term(t, own)
            terms.append(PairCount(split, register, ONES, t, int(own_bits[t]), factor))
        whole = sum(term.factor * term.count for term in terms) + int(constants[channel])
        assert whole % scale == 0, "doubled sums are even"
        found.append(FragmentOutput(channel, 4 * image + part, tuple(terms), int(constants[channel]), whole // scale))
    return tuple(found)

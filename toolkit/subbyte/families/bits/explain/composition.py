"""How a kernel on bit planes arranges its planes, and how a thread composes an output from their counts.

An instruction multiplies 64 rows (8 pixels of 8 images, one plane of the activations) by N columns: the block's output
channels once for each plane of the weights, then 8 columns of ones, which count the activations' own bits. Each plane
of the activations is a separate instruction with its own set of accumulators; with ``doubled`` they share one,
multiplied by two from plane to plane. Rows and columns are assigned to threads so that a thread holds every count of
its outputs: it adds them up in registers, and no partial result is stored anywhere.

Counts are those of the first tile of the first block. APNN-TC (arXiv 2106.12169) combines planes in shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.device.fragments import LANES, fragments
from subbyte.errors import InvalidInput
from subbyte.families.bits.geometry import ONES, WORD_CHANNELS
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.rules import why_not
from subbyte.families.bits.weights import channel_of_column
from subbyte.families.shared.one_window import OneWindow, batch_and_pixel
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.numerics.bit_products import AND, channel_constants, written_sum
from subbyte.workload import ConvWorkload
from subbyte.workload.conv import BATCH_GROUP
from subbyte.workload.precision import SUMS

NO_COLUMN = -1
"""The column of a count that no instruction gives: activation bits that a thread counts in registers."""
ROWS, DEPTH = 64, 256
"""M and K of the instruction."""


@dataclass(frozen=True)
class Band:
    """Neighbouring columns of the instruction: ``what`` is ``weights`` (of ``plane``), ``ones`` or ``filling``."""

    what: str
    plane: int
    first: int
    columns: int


@dataclass(frozen=True)
class Term:
    """A count in a register of the thread, and its factor.

    ``set`` is the set of accumulators; ``plane`` the counted plane of the activations (-1: all, doubled one
    after the other); ``weight_plane`` that of the weights (-1: the columns of ones or, without them, what the
    thread has counted itself: ``column`` and ``register`` are then -1).
    """

    set: int
    plane: int
    weight_plane: int
    column: int
    register: int
    count: int
    factor: int


@dataclass(frozen=True)
class Composed:
    """An output: its ``channel`` within the block, the ``lane`` that holds all of its counts, and their sum including
    the ``constant`` of the channel at this border."""

    channel: int
    lane: int
    terms: tuple[Term, ...]
    constant: int
    total: int


@dataclass(frozen=True)
class PlaneComposition(InfoRecord):
    """The planes of a kernel's first tile, and the outputs of one pixel: 32 output channels of one image.

    ``image`` and ``pixel`` are positions in the tile, ``at`` is the output pixel and ``batch`` the image of the
    workload; ``row`` is their row in the instruction and ``warp`` the warp of the warpgroup that holds it. ``planes``
    and ``weight_planes`` are numbers of bits; ``steps`` is the number of instructions per plane, each with K = 256.
    """

    workload: ConvWorkload
    config: str
    instruction: str
    steps: int
    planes: int
    weight_planes: int
    doubled: bool
    bands: tuple[Band, ...]
    image: int
    pixel: int
    batch: int
    at: tuple[int, int]
    row: int
    warp: int
    outputs: tuple[Composed, ...]

    @property
    def columns(self) -> int:
        """N of the instruction."""
        return self.bands[-1].first + self.bands[-1].columns

    @property
    def sets(self) -> int:
        """Sets of accumulators."""
        return 1 if self.doubled else self.planes

    def title(self) -> str:
        """The outputs that are shown."""
        return (
            f"{self.workload.label}, {self.config}: planes in {self.instruction}, image {self.batch}, "
            f"output pixel {self.at}"
        )

    def table(self) -> Table:
        """One row per count of each output."""
        rows = (
            (one.channel, one.lane, term.set, _or_counted(term.register), "all" if term.plane < 0 else term.plane,
             "ones" if term.weight_plane < 0 else term.weight_plane, _or_counted(term.column), term.count, term.factor)
            for one in self.outputs
            for term in one.terms
        )  # fmt: skip
        names = ("channel", "lane", "set", "register", "plane of x", "plane of w", "column", "count", "factor")
        return Table(names, tuple(rows))

    def text(self) -> str:
        """The instruction, then the first output."""
        bands = ", ".join(
            f"{one.first} to {one.first + one.columns - 1}: {_named(one)}" for one in self.bands if one.columns
        )
        first = self.outputs[0]
        own = tuple(row for row in self.table().rows if row[0] == first.channel)
        terms = written_sum([(term.factor, f"({term.count})") for term in first.terms])
        return "\n".join([
            self.title(), "",
            f"rows: 8 pixels of 8 images, one plane of {self.planes}; row {self.row} is of warp {self.warp}",
            f"columns: {bands}",
            f"instructions: {self.steps} for each plane of x; sets of accumulators: {self.sets}", "",
            f"channel {first.channel}, lane {first.lane} of the warp:", columns_text(Table(self.table().columns, own)),
            "",
            f"Y = {terms} {'-' if first.constant < 0 else '+'} {abs(first.constant)} = {first.total}",
        ])  # fmt: skip


def _or_counted(place: int) -> int | str:
    return "counted" if place == NO_COLUMN else place


def _named(band: Band) -> str:
    return f"channels, plane {band.plane} of w" if band.what == "weights" else band.what


def plane_composition(
    plan: BitsPlan, image: int = 0, pixel: int = 0, seed: int = 0, x: NDArray[Any] | None = None,
    w: NDArray[Any] | None = None,
) -> PlaneComposition:  # fmt: skip
    """The planes of a kernel and the outputs of one pixel of its first tile: for values x [N,H,W,C] and w [K,R,S,C],
    or random ones by default. Raises InvalidInput for a rejected configuration and for a pixel that does not exist."""
    plan = replace(plan, output=SUMS)
    if reason := why_not(plan):
        raise InvalidInput(f"{plan.workload.label} with {plan.config.key} cannot be built: {reason}")
    if plan.whole_values:
        raise InvalidInput(
            f"{plan.workload.label} with {plan.config.key} multiplies whole values, which have no planes; use "
            "whole_values=0"
        )
    batch, at = _place(plan, image, pixel)
    window = OneWindow.of(plan.workload, batch, at, seed, x, w)
    row = BATCH_GROUP * pixel + image
    return PlaneComposition(
        workload=plan.workload,
        config=plan.config.key,
        instruction=f"wgmma.m{ROWS}n{plan.n}k{DEPTH}.b1",
        steps=plan.steps,
        planes=plan.planes,
        weight_planes=plan.weight_planes,
        doubled=bool(plan.config.doubled),
        bands=_bands(plan),
        image=image,
        pixel=pixel,
        batch=batch,
        at=at,
        row=row,
        warp=row // 16,
        outputs=_outputs(plan, row, window.counts(AND), _constants(window)),
    )


def _place(plan: BitsPlan, image: int, pixel: int) -> tuple[int, tuple[int, int]]:
    """The workload's image and output pixel for a row of the first tile."""
    w = plan.workload
    for name, value in (("image", image), ("pixel", pixel)):
        if value not in range(BATCH_GROUP):
            raise InvalidInput(f"{name}={value}: a tile has {name}s 0 to 7")
    batch, at = batch_and_pixel(w, plan.view, image, 0, pixel)
    if batch >= w.n or pixel >= plan.view.q:
        raise InvalidInput(
            f"image={image}, pixel={pixel}: not in the first tile of {w.label}, whose rows have {plan.view.q} pixels; "
            f"it has {w.n} images"
        )
    return batch, at


def _bands(plan: BitsPlan) -> tuple[Band, ...]:
    channels = plan.config.channels
    found = [Band("weights", s, s * channels, channels) for s in range(plan.weight_planes)]
    if plan.ones:
        found.append(Band("ones", -1, plan.filter_columns, ONES))
    end = found[-1].first + found[-1].columns
    return (*found, *([Band("filling", -1, end, plan.n - end)] if end < plan.n else []))


def _constants(window: OneWindow) -> list[int]:
    """The constant added to the counts of each channel at this pixel's border."""
    constants = channel_constants(window.workload, window.w)[window.border_class, :WORD_CHANNELS]
    return [int(one) for one in constants]


def _outputs(
    plan: BitsPlan, row: int, counts: tuple[NDArray[np.int64], NDArray[np.int64]], constants: list[int]
) -> tuple[Composed, ...]:
    """The outputs of a row of the instruction, for the first 32 channels of the block."""
    shared, own = counts
    pattern = fragments(f"wgmma.m{ROWS}n{plan.n}k{DEPTH}.b1")
    held = {
        place: (lane, register)
        for lane in range(row // 16 * LANES, (row // 16 + 1) * LANES)
        for register, elements in enumerate(pattern.c[lane])
        for place in elements
    }
    sets = [range(plan.planes)] if plan.config.doubled else [[t] for t in range(plan.planes)]
    weights = plan.form.activations.weights
    columns = channel_of_column().argsort()
    ones = {held[row, column][0]: column for column in range(plan.filter_columns, plan.n)[: plan.ones : 2]}
    found = []
    for channel, constant in enumerate(constants):
        lane = held[row, int(columns[channel])][0]
        terms = []
        for number, of in enumerate(sets):
            plane = -1 if plan.config.doubled else number
            scales = np.array([weights[t] // weights[of[0]] for t in of], np.int64)
            wanted = [
                (s, s * plan.config.channels + int(columns[channel]), shared[of, s, channel], plan.factor(s, number))
                for s in range(plan.weight_planes)
            ]
            if plan.form.per_pixel:
                wanted.append((-1, ones.get(lane, NO_COLUMN), own[of], plan.ones_factor(number)))
            for s, column, values, factor in wanted:
                owner, register = (lane, NO_COLUMN) if column == NO_COLUMN else held[row, column]
                assert owner == lane, "a thread has all counts of its outputs"
                terms.append(Term(number, plane, s, column, register, int((scales * values).sum()), factor))
        total = sum(term.factor * term.count for term in terms) + constant
        found.append(Composed(channel, lane % LANES, tuple(terms), constant, total))
    return tuple(found)

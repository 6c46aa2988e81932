"""What a wgmma kernel computes where: rows, columns, taps and channels of the image, and the work of one block.

Terms: *staged row* k and *staged column* c count input rows and columns that some output needs (see ``Axis``); a
*stage* is one staged row (with ``stage_per_iteration`` those of a tile iteration) and channel group, and occupies a
*stage buffer*, of which the pipeline has ``stages``; a *fragment* is 64 output channels times one or two blocks of 32
input channels of one tap: 16 bytes of weights for each of 128 threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from subbyte.device.arch import Arch
from subbyte.families.shared.axis import Axis, Index
from subbyte.families.shared.once import once
from subbyte.families.wgmma import halves
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.operands import WgmmaOperands
from subbyte.families.wgmma.schedule import Schedule
from subbyte.numerics.fusion import Fusion
from subbyte.workload.conv import ceil_div
from subbyte.workload.operand import Operand

MMA_FILTERS = 64
"""Output channels of one wgmma."""
Bounds = tuple[int, int, int, int, int]
"""First and last staged row, staged rows from one output row and from one kernel row to the next, kernel rows."""


@dataclass(frozen=True)
class WgmmaGeometry(WgmmaOperands):
    """The part of a :class:`~subbyte.families.wgmma.plan.WgmmaPlan` that does not depend on memory."""

    config: WgmmaConfig
    arch: Arch
    output: str = "int4"
    clip: tuple[int, int] = (-8, 7)
    requant: str = "fixed"

    @once
    def added(self) -> Operand | None:
        """The type of a tensor of values that is added before rounding."""
        return Fusion.of(self.output).added

    @property
    def by_line(self) -> bool:
        """Whether sums are rounded in floating point, with one line per channel: for 4-bit outputs of 4-bit
        activations without a residual."""
        return self.requant == "fixed" and self.added is None and not (self.bytes_in or self.bytes_out)

    @property
    def parameter_rows(self) -> int:
        """Parameters per output channel."""
        return 3 if self.added is None else 4

    @once
    def knobs(self) -> Schedule:
        """All choices of the schedule, including those that this kernel's configuration does not name."""
        return self.config.schedule

    # ---- techniques ---------------------------------------------------------------------------------------------

    @once
    def lowered(self) -> bool:
        """Whether the pipeline holds columns of the lowered matrix (im2col): the pixels of every tap, loaded anew for
        it."""
        return self.knobs.duplicate_aware == "none"

    @once
    def keep_rows(self) -> bool:
        """Whether a row stays in its stage buffer for later tile iterations."""
        return bool(self.knobs.keep_rows) and not self.lowered

    @once
    def tap_rows(self) -> int:
        """Kernel rows that read the same staged rows."""
        return 1 if self.lowered else self.workload.r

    @once
    def tap_cols(self) -> int:
        """Kernel columns that read the same staged columns."""
        return 1 if self.lowered else self.workload.s

    @property
    def groups(self) -> int:
        """Stages per staged row: its channel groups; for a lowered image those of every tap, tap after tap."""
        return self.knobs.channel_groups * (self.workload.r * self.workload.s if self.lowered else 1)

    def tap_of(self, group: Index) -> tuple[Index, Index, Index]:
        """Channel group, kernel row and kernel column of a stage's group (both 0 if taps are addresses)."""
        if not self.lowered:
            return group, 0, 0
        taps = self.workload.r * self.workload.s
        return group // taps, group % taps // self.workload.s, group % self.workload.s

    # ---- image geometry -----------------------------------------------------------------------------------------

    @once
    def flat(self) -> bool:
        """Whether rows do not matter (1x1, no padding, stride 1 or ``flatten``): the output's pixels are then divided
        into rows of the tile's width."""
        w = self.workload
        return w.r == w.s == 1 and w.pad == 0 and (w.stride == 1 or bool(self.knobs.flatten or self.knobs.flat_batch))

    @property
    def flat_strided(self) -> bool:
        """Whether such pixels are farther apart in the input than in the output."""
        return self.flat and self.workload.stride > 1

    @once
    def row_pixels(self) -> int:
        """Pixels of a fragment row: those of every group of images, pixel by pixel, group by group."""
        return self.knobs.tile_width * self.knobs.image_groups

    @once
    def image_groups(self) -> int:
        """Groups of 8 images, or sets of several groups, with tiles of their own."""
        return 1 if self.knobs.flat_batch else ceil_div(self.workload.batch_groups, self.knobs.image_groups)

    @property
    def groups_overlap(self) -> bool:
        """Whether the last place along the images shares groups with the one before, because its own would extend
        beyond the batch."""
        return not self.knobs.flat_batch and self.workload.batch_groups % self.knobs.image_groups > 0

    @once
    def flat_pixels(self) -> int:
        """Pixels that are divided into rows of the tile's width if rows do not matter."""
        return self.workload.p * self.workload.q * (self.workload.batch_groups // self.image_groups)

    @once
    def width_covered(self) -> int:
        """Output columns per block."""
        return self.knobs.tile_width * self.knobs.consumers_n

    @once
    def input_size(self) -> tuple[int, int]:
        """Height and width of the input as the kernel sees it; if rows do not matter, of the pixels it reads."""
        w = self.workload
        return (ceil_div(self.flat_pixels, self.width_covered), self.width_covered) if self.flat else (w.h, w.w)

    @once
    def output_size(self) -> tuple[int, int]:
        """Height and width of the output as the kernel sees it."""
        w = self.workload
        return self.input_size if self.flat else (w.p, w.q)

    @property
    def stride(self) -> int:
        """Distance between output pixels, in pixels of the input as the kernel sees it."""
        return 1 if self.flat else self.workload.stride

    @once
    def rows(self) -> Axis:
        """Output rows and vertical taps in staged rows."""
        return Axis.of(2, self.tap_rows, self.stride, self.workload.dilation)

    @once
    def cols(self) -> Axis:
        """Output columns and horizontal taps in staged columns."""
        return Axis.of(2, self.tap_cols, self.stride, self.workload.dilation)

    @once
    def row_range(self) -> tuple[int, int]:
        """First and last staged row inside the image; for a lowered image all, with zeros for its padding, and all
        if padding is multiplied."""
        if self.pads_with_code and not self.lowered:
            return 0, (self.output_size[0] - 1) * self.rows.pixel_step + (self.tap_rows - 1) * self.rows.tap_step
        return (0, self.output_size[0] - 1) if self.lowered else self._inside(self.rows, self.input_size[0])

    @once
    def col_range(self) -> tuple[int, int]:
        """First and last staged column (of the whole row) inside the image; for a lowered image all."""
        whole = (0, self.x_tiles * self.width_covered - 1)
        return whole if self.lowered else self._inside(self.cols, self.input_size[1])

    def _inside(self, axis: Axis, size: int) -> tuple[int, int]:
        pad = self.workload.pad
        return ceil_div(pad, axis.unit), (size - 1 + pad) // axis.unit

    @property
    def row_division(self) -> tuple[int, int]:
        """Factor and shift such that ``pixel * factor >> shift`` is a pixel's output row, in 32-bit arithmetic, for all
        pixels if rows do not matter (dividing by a constant would take a 64-bit product, which is slow while wgmma
        runs); a factor of 0 if 32 bits are too few."""
        most, width = self.input_size[0] * self.input_size[1], self.workload.q
        shift = (most * width).bit_length()
        factor = (1 << shift) // width + 1  # too large by less than 1: the error stays below 1 / width
        return (factor, shift) if most * factor < 1 << 32 and shift < 32 else (0, 0)

    # ---- division of the work -----------------------------------------------------------------------------------

    @once
    def x_tiles(self) -> int:
        """Blocks along an output row."""
        return ceil_div(self.output_size[1], self.width_covered)

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of output pixels that a block's warpgroups compute in one tile iteration each."""
        return self.knobs.tile_rows * self.knobs.consumers_rows, self.width_covered

    @property
    def filters(self) -> int:
        """Output channels that a block computes in one tile iteration."""
        return MMA_FILTERS * self.knobs.consumers_m * self.knobs.tiles_m

    @property
    def layout(self) -> str:
        """Layout of activations and outputs in memory."""
        return self.knobs.layout

    @property
    def columns(self) -> int:
        """The same, under the name that every kind of plan uses."""
        return self.filters

    @once
    def filter_tiles(self) -> int:
        """Tiles of 64 output channels; the last one may be half empty."""
        return ceil_div(self.workload.padded_filters, MMA_FILTERS)

    @once
    def filter_blocks(self) -> int:
        """Blocks along the output channels."""
        return ceil_div(self.filter_tiles, self.knobs.consumers_m * self.consumer_tiles)

    @property
    def tile_sums(self) -> int:
        """Sums of a thread per tile of 64 output channels."""
        return self.knobs.tile_rows * self.row_pixels * 4

    @property
    def consumer_tiles(self) -> int:
        """Tiles of 64 output channels that a consumer computes, one after the other or in one tile iteration."""
        return self.knobs.m_iterations * self.knobs.tiles_m

    def segment_start(self, segment: Index) -> Index:
        """First output row of a segment."""
        rows, segments = self.output_size[0], self.knobs.segments
        if self.knobs.half_rows:
            return halves.start(segment, rows, segments)
        return segment * (rows // segments) if rows % segments == 0 else segment * rows // segments

    def segment_end(self, segment: Index) -> Index:
        """The row after the last one of a segment; with half rows it is shared with the next segment's first."""
        if self.knobs.half_rows:
            return self.segment_start(segment) + halves.rows_of(self.output_size[0], self.knobs.segments)
        return self.segment_start(segment + 1)

    @once
    def iterations(self) -> tuple[tuple[int, int], ...]:
        """First output row and number of rows of every tile iteration, over all segments."""
        found = []
        for segment in range(self.knobs.segments):
            first, end = self.segment_start(segment), self.segment_end(segment)
            found += [(row, min(self.knobs.tile_rows, end - row)) for row in range(first, end, self.knobs.tile_rows)]
        return tuple(found)

    @once
    def rows_together(self) -> int:
        """Output rows for which a tile iteration loads rows: its own, or those of all consumers."""
        return self.knobs.tile_rows * (1 if self.keep_rows else self.knobs.consumers_rows)

    @once
    def window(self) -> int:
        """Staged rows per tile iteration."""
        return (self.rows_together - 1) * self.rows.pixel_step + (self.tap_rows - 1) * self.rows.tap_step + 1

    def staged_rows(self, segment: int) -> int:
        """Staged rows of a segment that exist in the image."""
        first, last = self.row_range
        low = max(self.segment_start(segment) * self.rows.pixel_step, first)
        taps = (self.tap_rows - 1) * self.rows.tap_step
        return min((self.segment_end(segment) - 1) * self.rows.pixel_step + taps, last) - low + 1

    @once
    def stages(self) -> int:
        """Stages of the pipeline; if a block makes a single tile iteration, one for each of its rows."""
        return self.knobs.stages or self.window

    @once
    def group_stages(self) -> int:
        """Stages of one channel group that a tile iteration reads."""
        return 1 if self.knobs.stage_per_iteration else self.window

    @property
    def next_iteration(self) -> int:
        """Staged rows from one tile iteration to the next."""
        return self.knobs.tile_rows * self.rows.pixel_step

    @property
    def meets_unread_rows(self) -> bool:
        """Whether a warpgroup meets staged rows that it does not read: those of others' iterations, or between two."""
        return self.knobs.consumers_rows > 1 or self.next_iteration > self.window

    @property
    def held_stages(self) -> int:
        """Stages that the pipeline must hold at least if rows are kept: from the first that a warpgroup has not
        released to the last that it waits for. Warpgroups that wait for one another may be an iteration apart."""
        config, groups = self.knobs, self.knobs.channel_groups
        others = (config.consumers_rows - 1) * self.next_iteration
        unread = max(self.next_iteration - self.window, 0)
        spread = self.next_iteration - self.rows.pixel_step  # from the first to the last fragment row
        if not config.early_release or config.stagger or config.m_iterations > 1:
            return (self.window + unread + others) * groups
        # Stages are released while the multiplications of the next one run; then another one is waited for.
        # With one stage per row, it is waited for before that.
        gap, stages = (2 * self.rows.tap_step, 1) if groups == 1 else (max(self.rows.tap_step - 1, 0), 2)
        entered = (spread + max(gap, unread)) * groups + stages
        kept = self.window - self.next_iteration * config.consumers_rows
        return max(entered, kept * groups) + others * groups

    @once
    def most_staged(self) -> int:
        """Most staged rows of a segment."""
        rows, segments = self.output_size[0], min(self.knobs.segments, self.output_size[0])
        if self.flat:
            return ceil_div(rows, segments)
        return max(self.staged_rows(segment) for segment in range(segments))

    def tap_rows_at(
        self, row: Index, count: Index, tap: Index, most: Any = max, least: Any = min
    ) -> tuple[Index, Index]:
        """For an iteration that begins at output row ``row``: the fragment rows whose input row for this tap is inside
        the image (the others would multiply padding). ``most`` and ``least`` are max and min for the kind of index."""
        if self.lowered:
            return 0, count
        if self.tap_rows == 1:
            return 0, count
        return _rows_inside(row, count, tap, self._row_bounds, most, least)

    def tap_range(self, row: Index, count: Index, most: Any = max, least: Any = min) -> tuple[Index, Index]:
        """For a tile iteration of ``count`` rows from ``row``: the range of kernel rows that meet any input row."""
        (first, last), step, tap_step = self.row_range, self.rows.pixel_step, max(self.rows.tap_step, 1)
        low = (most(first - (row + count - 1) * step, 0) + tap_step - 1) // tap_step
        return low, least(most(last - row * step, 0) // tap_step + 1, self.tap_rows)

    @once
    def taps_skipped(self) -> bool:
        """Whether some tile iteration skips a kernel row, with its weights, because it meets only padding. If no rows
        are kept, the weights of a kernel row are not contiguous, and are skipped one by one."""
        return self.keep_rows and self.tap_variants(range(self.tap_rows))[1]

    @once
    def meets_edges(self) -> bool:
        """Whether some kernel row of some output row meets only padding."""
        iterations = self.iterations if self.tap_rows > 1 else ()
        taps = range(self.tap_rows)
        return any(self.tap_rows_at(row, n, tap) != (0, n) for row, n in iterations for tap in taps)

    def tap_variants(self, taps: Iterable[int]) -> tuple[tuple[tuple[int, int], ...], bool]:
        """All distinct non-empty results of :meth:`tap_rows_at` for these kernel rows, most frequent first, and
        whether any result is empty."""
        if self.tap_rows == 1:  # every iteration meets the only row
            return self._rows_of_iterations, False
        return _variants(self._row_bounds, tuple(taps), self.iterations)

    @once
    def _rows_of_iterations(self) -> tuple[tuple[int, int], ...]:
        counts = Counter(count for _, count in self.iterations)
        return tuple((0, count) for count in sorted(counts, key=lambda count: -counts[count]))

    @property
    def _row_bounds(self) -> Bounds:
        return (*self.row_range, self.rows.pixel_step, self.rows.tap_step, self.tap_rows)


def _rows_inside(row: Index, count: Index, tap: Index, bounds: Bounds, most: Any, least: Any) -> tuple[Index, Index]:
    """The result of :meth:`WgmmaGeometry.tap_rows_at`."""
    first, last, step, tap_step, taps = bounds
    far = taps * tap_step  # keeps the numerators positive
    low = (most(first - tap * tap_step, 0) + step - 1) // step - row
    high = (last - tap * tap_step + far * step) // step - far + 1 - row
    # The end stays negative if it is: ptxas 13.0 merges max(min(end, count), 0) == count into a VIMNMX.RELU whose
    # predicate is wrong.
    return least(most(low, 0), count), least(high, count)


@lru_cache(1024)  # many configurations of a layer divide its rows alike
def _variants(
    bounds: Bounds, taps: tuple[int, ...], iterations: tuple[tuple[int, int], ...]
) -> tuple[tuple[tuple[int, int], ...], bool]:
    """The result of :meth:`WgmmaGeometry.tap_variants` for more than one kernel row."""
    found = Counter(_rows_inside(row, count, tap, bounds, max, min) for tap in taps for row, count in iterations)
    seen = [rows for rows in found if rows[0] < rows[1]]
    return tuple(sorted(seen, key=lambda rows: -found[rows])), len(seen) < len(found)

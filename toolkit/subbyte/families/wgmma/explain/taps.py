"""Where the taps of a convolution start in shared memory: the duplicate-aware load of the wgmma family.

An input pixel of 8 images and 32 channels is stored in shared memory once, as 256 bytes: two core matrices of wgmma.
All taps of a kernel row read the same stage buffer, each starting at another pixel; a tap of another kernel row reads
another buffer. So a tap only changes an address, the start address of a descriptor; no data moves. Without the
technique every tap has its own stage buffer, with columns of the lowered matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.errors import InvalidInput
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.former import FormerFields
from subbyte.info_record import InfoRecord, Table

PIXEL_BYTES = 256
"""Bytes of shared memory per pixel: 8 images of 32 signed bytes."""


@dataclass(frozen=True)
class Tap(FormerFields, former={"slot": "buffer"}):
    """One kernel position: the input row it reads, its stage buffer (``buffer``) and its first pixel there.

    ``pixels`` are the input columns of the output columns, in order (-1: outside the image, zeros or never stored);
    ``start`` is the first byte in shared memory; ``descriptor`` is the one passed to wgmma.
    """

    r: int
    s: int
    input_row: int
    buffer: int
    column: int
    start: int
    descriptor: int
    pixels: tuple[int, ...]


@dataclass(frozen=True)
class StoredRow(FormerFields, former={"slot": "buffer"}):
    """The contents that the producer writes to a stage buffer (``buffer``): pixels of an input row, by column (-1:
    zeros)."""

    buffer: int
    input_row: int
    columns: tuple[int, ...]


@dataclass(frozen=True)
class TapAddresses(FormerFields, InfoRecord, former={"slot_bytes": "buffer_bytes"}):
    """The taps of one fragment row: ``width`` output pixels of ``output_row``, for the first block of channels.

    ``stored`` are the rows of shared memory that the taps read, in the order in which they are stored; each has
    ``pitch`` pixels for every block of 32 channels. ``pixel_bytes`` is 256 for each group of 8 images that an
    instruction takes; for 2:4 weights it covers all blocks of the stage, which are adjacent.
    """

    workload: str
    config: str
    shared: bool
    output_row: int
    width: int
    pitch: int
    buffer_bytes: int
    pixel_bytes: int
    stored: tuple[StoredRow, ...]
    taps: tuple[Tap, ...]

    @property
    def loads(self) -> int:
        """Pixels of the image that are loaded and unpacked for these taps."""
        return sum(column >= 0 for row in self.stored for column in row.columns)

    def title(self) -> str:
        """One line that names what the record shows."""
        how = "each pixel stored once" if self.shared else "each tap stored anew"
        return f"Taps of output row {self.output_row} of {self.workload} ({self.config}): {how}, {self.loads} pixels"

    def table(self) -> Table:
        """One row per tap."""
        rows = ((t.r, t.s, t.input_row, t.buffer, t.column, t.start, f"{t.descriptor:#018x}") for t in self.taps)
        names = ("kernel row", "column", "input row", "stage buffer", "from pixel", "start, bytes", "descriptor")
        return Table(names, tuple(rows))


def tap_addresses(plan: WgmmaPlan, row: int = 0) -> TapAddresses:
    """The taps of an output row of the first block, first channels.

    Raises InvalidInput for a plan that cannot be built, or a row that its first block does not compute.
    """
    found, output_row = plan.workload, row
    if reason := why_not(plan):
        raise InvalidInput(f"{found.label} with {plan.config.key} cannot be built: {reason}")
    rows = plan.segment_start(1)
    if not 0 <= output_row < rows:
        raise InvalidInput(f"output_row {output_row}: the first block computes rows 0 to {rows - 1}")
    if plan.flat or not (plan.keep_rows or plan.lowered):
        raise InvalidInput("taps are shown only for kernels that see rows and keep them (keep_rows=1)")
    if plan.pads_with_code:
        raise InvalidInput(
            "taps are shown only for kernels that skip rows beyond the border, and a zero point is multiplied "
            "there: use operands without one"
        )
    every = [_tap(plan, output_row, r, s) for r in range(found.r) for s in range(found.s)]
    taps = tuple(tap for tap in every if 0 <= tap.input_row < found.h)
    stored = tuple(map(_of_tap, taps)) if plan.lowered else tuple(dict.fromkeys(_stored(plan, tap) for tap in taps))
    return TapAddresses(
        found.label, plan.config.key, not plan.lowered, output_row, plan.knobs.tile_width, plan.pitch,
        plan.buffer_bytes, plan.column_step, stored, taps,
    )  # fmt: skip


def _tap(plan: WgmmaPlan, row: int, r: int, s: int) -> Tap:
    w = plan.workload
    first_row = row // plan.knobs.tile_rows * plan.knobs.tile_rows
    if plan.lowered:
        group = r * w.s + s
        stage = (row // plan.knobs.tile_rows * plan.groups + group) * plan.window + row - first_row
        column = 0
    else:
        staged = row * plan.rows.pixel_step + r * plan.rows.tap_step
        stage = max(staged - plan.row_range[0], 0) * plan.knobs.channel_groups
        column = s * plan.cols.tap_step
    buffer = stage % plan.stages
    start = buffer * plan.buffer_bytes + column * plan.column_step
    low = ((start & 0x3FFFF) >> 4) + plan.descriptor_low
    inputs = (q * w.stride + s * w.dilation - w.pad if q < w.q else -1 for q in range(plan.knobs.tile_width))
    pixels = tuple(x if 0 <= x < w.w else -1 for x in inputs)
    input_row = row * w.stride + r * w.dilation - w.pad
    return Tap(r, s, input_row, buffer, column, start, plan.descriptor_high << 32 | low, pixels)


def _of_tap(tap: Tap) -> StoredRow:
    return StoredRow(tap.buffer, tap.input_row, tap.pixels)


def _stored(plan: WgmmaPlan, tap: Tap) -> StoredRow:
    inputs = (column * plan.cols.unit - plan.workload.pad for column in range(plan.pitch))
    return StoredRow(tap.buffer, tap.input_row, tuple(x if 0 <= x < plan.workload.w else -1 for x in inputs))

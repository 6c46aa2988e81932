"""How sparse im2col builds columns of the lowered matrix from one image row: the data of the stepper for ``rows``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.sparse.bitmap import Words, checked_values
from subbyte.sparse.patterns import density_of, random_matrix
from subbyte.sparse.rows import encode_rows, shifted
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse_workload

WIDEST = 32
"""Most pixels of a padded row that fit into one picture."""
MOST_OFFSETS = 49


@dataclass(frozen=True)
class LoweredColumn:
    """One offset (r, s) of one output row: where its bits and values come from. Bits are strings of 0 and 1."""

    r: int
    s: int
    row: int
    """Image row that it reads; outside the image where ``inside`` is False."""
    inside: bool
    phase: int
    """Which pixels: those whose index modulo the stride is this."""
    shift: int
    """Number of bits by which the phase's word is shifted right; left if negative."""
    pixels: tuple[int, ...]
    """Values of the image row, with zeros."""
    word: str
    """Bitmap of the phase, before the shift."""
    bits: str
    """One bit for each output pixel: shifted, and cut to the outputs."""
    packed: tuple[int, ...]
    """Values of the row without zeros, phase by phase."""
    phase_start: int
    """Index in ``packed`` where the phase starts."""
    first: int
    """Index in ``packed`` where the run of this column starts."""
    count: int
    """Length of the run: the POPC of ``bits``."""

    @property
    def below(self) -> int:
        """Set bits of the phase before the first one taken: popcount(word & (2^shift - 1))."""
        return self.first - self.phase_start

    @property
    def values(self) -> tuple[int, ...]:
        """The column with its zeros, by output pixel, reconstructed from bits and run."""
        run = iter(self.packed[self.first : self.first + self.count])
        return tuple(next(run) if bit == "1" else 0 for bit in self.bits)


@dataclass(frozen=True)
class RowLowering(InfoRecord):
    """All columns of the lowered matrix for one channel and one output row of one image."""

    workload: ConvWorkload
    image: int
    channel: int
    output_row: int
    source: str
    """Where the values come from."""
    columns: tuple[LoweredColumn, ...]
    """By (r, s)."""

    def title(self) -> str:
        """One line: which row of what."""
        wl = self.workload
        return (
            f"{wl.label}, stride {wl.stride}, padding {wl.pad}: output row {self.output_row} of image {self.image}, "
            f"channel {self.channel}, as {len(self.columns)} lowered columns of {wl.q} pixels"
        )

    def table(self) -> Table:
        """One row for each offset."""
        rows = tuple(
            (one.r, one.s, one.row if one.inside else "outside", one.phase, one.shift, one.bits, one.first, one.count)
            for one in self.columns
        )
        return Table(("r", "s", "image row", "phase", "shift", "bits", "first value", "values"), rows)

    def text(self) -> str:
        """The table, and the source."""
        return "\n\n".join([self.title(), columns_text(self.table()), self.source])


def row_lowering(
    workload: ConvWorkload | str = "n1h6w16c4k8r3s3p1", x: NDArray[Any] | None = None, *, image: int = 0,
    channel: int = 0, output_row: int | None = None, density: float = 0.5, seed: int = 0,
) -> RowLowering:  # fmt: skip
    """The lowered columns of one output row: every offset (r, s) as mask, shift and popcount.

    By default ``output_row`` is the second row, or the only one. ``x``: the input [N, H, W, C], int4; by default random
    values -3 to 3 with this density. Raises InvalidInput for an image, channel or row that does not exist, values of
    another shape or type, and padded rows wider than 32 pixels or more than 49 offsets, which would not fit into a
    picture.
    """
    wl = parse_workload(workload)
    if wl.w + 2 * wl.pad > WIDEST or wl.r * wl.s > MOST_OFFSETS:
        raise InvalidInput(
            f"{wl.label}: a picture holds rows of {WIDEST} pixels with their padding and {MOST_OFFSETS} offsets, these "
            f"have {wl.w + 2 * wl.pad} and {wl.r * wl.s}; sparse.im2col takes any"
        )
    output_row = min(1, wl.p - 1) if output_row is None else output_row
    for name, value, end in (("image", image, wl.n), ("channel", channel, wl.c), ("output_row", output_row, wl.p)):
        if isinstance(value, bool) or value not in range(end):
            raise InvalidInput(f"{name} {value!r}: {wl.label} has 0 to {end - 1}")
    if x is None:
        density_of(density, "density")
        flat = random_matrix((wl.h, wl.w), density, "int4", seed)
        rows = np.sign(flat) * (1 + np.abs(flat.astype(np.int64)) % 3)
        source = f"random values, density {density:g}, i.i.d. (synthetic), seed {seed}"
    else:
        given, _ = checked_values(x, "int4")
        if given.shape != (wl.n, wl.h, wl.w, wl.c):
            raise InvalidInput(f"x has shape {list(given.shape)}: {wl} needs {[wl.n, wl.h, wl.w, wl.c]}")
        rows, source = given[image, :, :, channel].astype(np.int64), "given values"
    columns = tuple(_column(wl, rows, output_row, r, s) for r in range(wl.r) for s in range(wl.s))
    return RowLowering(wl, image, channel, output_row, source, columns)


def _column(wl: ConvWorkload, rows: NDArray[Any], output_row: int, r: int, s: int) -> LoweredColumn:
    at = output_row * wl.stride - wl.pad + r * wl.dilation
    inside = 0 <= at < wl.h
    pixels = rows[at] if inside else np.zeros(wl.w, np.int64)
    encoded = encode_rows(pixels[None], wl.stride)
    offset = s * wl.dilation - wl.pad
    one = shifted(encoded, offset, wl.q)
    phase = offset % wl.stride
    length = -(-(wl.w - phase) // wl.stride) if phase < wl.w else 0
    return LoweredColumn(
        r, s, at, inside, phase, (offset - phase) // wl.stride, tuple(pixels.tolist()),
        _text(encoded.words[0, phase], length), _text(one.words[0], wl.q), tuple(encoded.values.tolist()),
        int(encoded.starts[0, phase]), int(one.first[0]), int(one.count[0]),
    )  # fmt: skip


def _text(words: Words, bits: int) -> str:
    """The lowest bits of a row of words, lowest bit first."""
    octets = np.ascontiguousarray(words).astype("<u4").view(np.uint8)
    return "".join(map(str, np.unpackbits(octets, bitorder="little")[:bits].tolist()))

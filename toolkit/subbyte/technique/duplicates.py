"""Duplicate-aware load as data: which entries of the lowered (im2col) tile are the same input pixel.

Source: Choi et al. 2022 (arXiv 2202.06819), section 3.1, Figure 4 and Algorithm 1. For an output tile of Th x Tw
pixels and an R x S kernel the lowered tile has one entry per (output pixel, kernel offset), with the flat index
``k(ph, pw, r, s) = ((ph*Tw + pw)*R + r)*S + s``. Entries that read the same input pixel are copies of one *datum*;
the copy with the lowest index is *genuine*, any other is a duplicate index. A datum is one tile of 8 images x 32
channels of one pixel, 128 bytes of int4, which is exactly one operand of a matrix instruction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.technique.record import InfoRecord, Table, columns_text, grid_text
from subbyte.workload import ConvWorkload

DATUM_BYTES = 128
"""Bytes of one datum: 8 images x 32 channels x 4 bits."""

MOST_ENTRIES = 200_000
_TEXT_PIXELS = 16
_TEXT_OFFSETS = 25


@dataclass(frozen=True)
class Loads:
    """How much a tile loads, in data or bytes: without sharing, sharing inside each kernel row, sharing along both
    axes.

    A kernel that stages one kernel row at a time (``reorder_inner=1``) can share along the width only.
    """

    none: int
    width: int
    full: int


@dataclass(frozen=True)
class Duplicates(InfoRecord):
    """The lowered index map of one tile. Sequences ending in "per entry" are indexed by the flat lowered index.

    ``loads`` and ``bytes_loaded`` are per 32-channel block and group of 8 images. Positions are (row, column).
    """

    workload: ConvWorkload
    tile: tuple[int, int]
    """Rows and columns of the block's output tile."""
    entries: int
    genuine: int
    """Number of distinct data."""
    loads: Loads
    bytes_loaded: Loads
    ratio_width: float
    """Loads without sharing divided by loads with sharing inside each kernel row."""
    ratio_full: float
    """Loads without sharing divided by the number of distinct data."""
    halo: tuple[int, int]
    """Distinct input rows and columns of the whole tile: the shape of its duplicate-free shared memory."""
    pixels: tuple[tuple[int, int], ...]
    """Output pixels relative to the tile, in order; all of the tile, or those of one warp."""
    index: tuple[tuple[int, int, int, int], ...]
    """(ph, pw, r, s) per entry."""
    datum: tuple[tuple[int, int], ...]
    """Input pixel per entry, relative to the first one the tile reads."""
    genuine_of: tuple[int, ...]
    """Flat index of the genuine entry, per entry (its own index when it is genuine)."""
    fragment: tuple[int, ...]
    """Row-major index of the datum among those of ``pixels``, per entry: the register fragment that holds it."""
    slot: tuple[int, ...]
    """Row-major index of the datum in the block's halo, per entry: its slot in shared memory."""
    copies: tuple[tuple[int, ...], ...]
    """All flat indices of each datum, in order of first use; the first index of each is genuine."""
    at: tuple[int, int] | None = None
    """Output coordinates of the tile's first pixel, if a position was given."""
    padding: tuple[bool, ...] = ()
    """Whether the datum lies outside the image and is zero, per entry; empty without a position."""
    masked: tuple[bool, ...] = ()
    """Whether an output pixel lies outside the output, per pixel; empty without a position."""

    @property
    def most_used(self) -> int:
        """Genuine index of the datum with the most copies (the first such), ignoring padding if it is known."""
        real = [group for group in self.copies if not (self.padding and self.padding[group[0]])]
        return max(real or self.copies, key=len)[0]

    def warp(self, index: int, pixels: int) -> Duplicates:
        """The map of one warp that owns ``pixels`` consecutive pixels of this tile, starting at ``index * pixels``.

        Flat indices and ``fragment`` are relative to the warp; ``slot`` still refers to the block's shared memory.
        Raises InvalidInput when the tile has no such warp.
        """
        whole = len(self.pixels)
        if pixels < 1 or whole % pixels:
            raise InvalidInput(f"warp {index} with {pixels} pixels: they do not divide the {whole} pixels of the tile")
        if not 0 <= index < whole // pixels:
            raise InvalidInput(f"warp {index}: {whole // pixels} of them share the tile, counted from 0")
        part = self.pixels[index * pixels : (index + 1) * pixels]
        mapped = _map(self.workload, self.tile, part)
        return mapped if self.at is None else _place(mapped, self.at)

    def title(self) -> str:
        """One line that names the workload and the tile."""
        w = self.workload
        where = f" at output pixel {self.at[0]},{self.at[1]}" if self.at is not None else ""
        part = f", {len(self.pixels)} pixels of it" if len(self.pixels) != self.tile[0] * self.tile[1] else ""
        return (
            f"duplicates of {w.label}: output tile {self.tile[0]}x{self.tile[1]}{part}{where}, kernel {w.r}x{w.s}, "
            f"stride {w.stride}, dilation {w.dilation}"
        )

    def table(self) -> Table:
        """One row per entry of the lowered tile."""
        columns = ("index", "output pixel", "kernel offset", "input pixel", "genuine index", "fragment", "slot")
        rows = [
            (k, (ph, pw), (r, s), self.datum[k], self.genuine_of[k], self.fragment[k], self.slot[k])
            for k, (ph, pw, r, s) in enumerate(self.index)
        ]
        if self.padding:
            return Table((*columns, "padding"), tuple((*row, pad) for row, pad in zip(rows, self.padding, strict=True)))
        return Table(columns, tuple(rows))

    def text(self) -> str:
        """The index map, the halo with its genuine indices, and the loads, for a terminal."""
        return "\n\n".join([self.title(), self._map_text(), self._halo_text(), columns_text(self.load_table())])

    def load_table(self) -> Table:
        """Loads, bytes and ratio for the three ways of sharing."""
        ways = (
            ("none: every entry", self.loads.none, self.bytes_loaded.none, 1.0),
            ("width: each kernel row apart", self.loads.width, self.bytes_loaded.width, self.ratio_width),
            ("full: each datum once", self.loads.full, self.bytes_loaded.full, self.ratio_full),
        )
        return Table(("sharing", "loads", "bytes per 32 channels", "fewer by"), ways)

    def _map_text(self) -> str:
        w, offsets = self.workload, self.workload.r * self.workload.s
        if offsets > _TEXT_OFFSETS:
            return f"index map: {self.entries} entries, too wide for a terminal (use --json or .to_frame())"
        shown = self.pixels[:_TEXT_PIXELS]
        cells = [[self._mark(i * offsets + j) for j in range(offsets)] for i in range(len(shown))]
        grid = grid_text(
            [f"{r},{s}" for r in range(w.r) for s in range(w.s)],
            [f"{ph},{pw}" for ph, pw in shown],
            cells,
            "pixel",
        )
        more = f"\n... and {len(self.pixels) - len(shown)} more pixels" if len(shown) < len(self.pixels) else ""
        zero = ", 0 after it: zero padding" if any(self.padding) else ""
        legend = f"lowered index per pixel and kernel offset: [k] is genuine, =g is a copy of genuine index g{zero}"
        return f"{legend}\n{grid}{more}"

    def _mark(self, k: int) -> str:
        text = f"[{k}]" if self.genuine_of[k] == k else f"={self.genuine_of[k]} "
        return text + ("0" if self.padding and self.padding[k] else "")

    def _halo_text(self) -> str:
        first = {self.datum[group[0]]: group for group in self.copies}
        rows = sorted({row for row, _ in first})
        columns = sorted({column for _, column in first})
        if len(columns) > _TEXT_OFFSETS:
            return f"input halo: {self.halo[0]} rows x {self.halo[1]} columns"
        cells = [[f"{first[r, c][0]}*{len(first[r, c])}" if (r, c) in first else "." for c in columns] for r in rows]
        grid = grid_text([f"col {c}" for c in columns], [f"row {r}" for r in rows], cells)
        return f"input pixels of the tile: genuine index * number of uses\n{grid}"


@checked
def duplicates(
    workload: ConvWorkload | str, tile: Sequence[int] = (1, 4), *, at: Sequence[int] | None = None
) -> Duplicates:
    """The lowered index map of an output tile, and how much sharing saves.

    ``tile``: rows and columns of output pixels. ``at``: output coordinates (row, column) of the tile's first pixel;
    with it, data outside the image and pixels outside the output are flagged. Raises InvalidInput for a tile that is
    not two positive integers or is too large to list, and for a position outside the output.
    """
    from subbyte.workload import workload as parse

    workload = parse(workload)
    th, tw = _pair("tile", tile, 1)
    if th * tw * workload.r * workload.s > MOST_ENTRIES:
        raise InvalidInput(f"tile {th}x{tw}: more than {MOST_ENTRIES} lowered entries; give a smaller tile")
    mapped = _map(workload, (th, tw), tuple((ph, pw) for ph in range(th) for pw in range(tw)))
    if at is None:
        return mapped
    p, q = _pair("at", at, 0)
    if p >= workload.p or q >= workload.q:
        raise InvalidInput(f"at={p},{q}: the output of {workload.label} has {workload.p}x{workload.q} pixels")
    return _place(mapped, (p, q))


def _map(workload: ConvWorkload, tile: tuple[int, int], pixels: tuple[tuple[int, int], ...]) -> Duplicates:
    """Algorithm 1's map for some pixels of a tile."""
    stride, dilation = workload.stride, workload.dilation
    index = tuple((ph, pw, r, s) for ph, pw in pixels for r in range(workload.r) for s in range(workload.s))
    datum = tuple((ph * stride + r * dilation, pw * stride + s * dilation) for ph, pw, r, s in index)
    uses: dict[tuple[int, int], list[int]] = defaultdict(list)
    for k, key in enumerate(datum):
        uses[key].append(k)
    number = {key: i for i, key in enumerate(sorted(uses))}
    rows, columns = (
        {position: i for i, position in enumerate(sorted(distinct))}
        for distinct in (
            {ph * stride + r * dilation for ph in range(tile[0]) for r in range(workload.r)},
            {pw * stride + s * dilation for pw in range(tile[1]) for s in range(workload.s)},
        )
    )
    by_row = {(ph, r, column) for (ph, _, r, _), (_, column) in zip(index, datum, strict=True)}
    loads = Loads(len(index), len(by_row), len(uses))
    return Duplicates(
        workload=workload,
        tile=tile,
        entries=len(index),
        genuine=len(uses),
        loads=loads,
        bytes_loaded=Loads(loads.none * DATUM_BYTES, loads.width * DATUM_BYTES, loads.full * DATUM_BYTES),
        ratio_width=loads.none / loads.width,
        ratio_full=loads.none / loads.full,
        halo=(len(rows), len(columns)),
        pixels=pixels,
        index=index,
        datum=datum,
        genuine_of=tuple(uses[key][0] for key in datum),
        fragment=tuple(number[key] for key in datum),
        slot=tuple(rows[row] * len(columns) + columns[column] for row, column in datum),
        copies=tuple(tuple(group) for group in uses.values()),
    )


def _place(mapped: Duplicates, at: tuple[int, int]) -> Duplicates:
    """The same map with a position in the image: which data are padding, and which pixels are outside the output."""
    w, (p, q) = mapped.workload, at
    top, left = p * w.stride - w.pad, q * w.stride - w.pad
    padding = tuple(not (0 <= top + row < w.h and 0 <= left + column < w.w) for row, column in mapped.datum)
    masked = tuple(p + ph >= w.p or q + pw >= w.q for ph, pw in mapped.pixels)
    return replace(mapped, at=at, padding=padding, masked=masked)


def _pair(name: str, value: Any, least: int) -> tuple[int, int]:
    try:
        first, second = value
    except (TypeError, ValueError):
        raise InvalidInput(f"{name}={value!r}: must be two integers (rows, columns)") from None
    for number in (first, second):
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise InvalidInput(f"{name}={value!r}: must be two integers >= {least} (rows, columns)")
    return first, second

"""Exercises on the duplicate-aware load: the genuine map, the number of loads, the choice of a tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from numbers import Integral
from typing import Any

from subbyte.exercises.feedback import Feedback, call, mistake, short
from subbyte.technique.duplicates import duplicates
from subbyte.workload import ConvWorkload

CASES = (
    ("n8h56w56c64k64r3s3p1", (2, 3)),
    ("n8h56w56c64k64r3s3p1", (1, 4)),
    ("n8h56w56c64k64r3s3p1u2", (2, 4)),
    ("n8h56w56c64k64r3s3p2d2", (2, 4)),
    ("n8h56w56c64k64r2s5p1", (3, 2)),
    ("n8h56w56c64k64r1s1p0u2", (2, 4)),
)
"""Workloads and tiles on which answers are tried: two rows, one row, stride, dilation, a kernel that is not square."""
TILE_PIXELS = 16


def check_genuine_map(genuine: Callable[[ConvWorkload, tuple[int, int]], Sequence[int]]) -> Feedback:
    """Check ``genuine(workload, tile)``: for each entry of the lowered tile, in order, its genuine index.

    Entry ``((ph*tw + pw)*R + r)*S + s`` is output pixel (ph, pw) of the tile at kernel position (r, s); its genuine
    index is the smallest entry that reads the same input pixel.
    """
    for spec, tile in CASES:
        record = duplicates(spec, tile)
        case = f"{spec} and tile {tile[0]}x{tile[1]}"
        given, problem = call(genuine, record.workload, tile, case=case)
        if problem is not None:
            return problem
        try:
            answer = [int(k) for k in given]
        except (TypeError, ValueError):
            return Feedback(False, f"For {case}: return a list of integers, one for each lowered entry.")
        right = list(record.genuine_of)
        if answer != right:
            return Feedback(False, f"For {case}: " + _about_map(answer, right, record.workload, tile))
    return Feedback(
        True, f"All {len(CASES)} shapes agree, with stride, with dilation and with kernels that are not square."
    )


def _about_map(answer: list[int], right: list[int], workload: ConvWorkload, tile: tuple[int, int]) -> str:
    if len(answer) != len(right):
        return (
            f"{len(answer)} numbers, but the lowered tile has {len(right)} entries: one for each output pixel of the "
            "tile and each kernel position."
        )
    w = workload
    known: dict[str, Callable[[], Any]] = {
        "every entry is its own genuine index, so nothing is shared: entries that read the same input pixel must get "
        "the same number.": lambda: list(range(len(right))),
        "the stride is missing: output pixel ph reads input row ph * stride + r * dilation.": lambda: _map(
            w, tile, lambda ph, pw, r, s: (ph + r * w.dilation, pw + s * w.dilation)
        ),
        "the dilation is missing: kernel row r reads input row ph * stride + r * dilation.": lambda: _map(
            w, tile, lambda ph, pw, r, s: (ph * w.stride + r, pw * w.stride + s)
        ),
        "stride and dilation are missing: output pixel ph reads input row ph * stride + r * dilation.": lambda: _map(
            w, tile, lambda ph, pw, r, s: (ph + r, pw + s)
        ),
        "this shares along the width only: a pixel read by two kernel rows is the same pixel, whichever row of the "
        "kernel meets it.": lambda: _map(w, tile, lambda ph, pw, r, s: (ph, r, pw * w.stride + s * w.dilation)),
        "this shares along the height only: the same pixel is also read by the neighbour in a row.": lambda: _map(
            w, tile, lambda ph, pw, r, s: (ph * w.stride + r * w.dilation, pw, s)
        ),
        "rows and columns are mixed up: ph belongs to r, pw to s.": lambda: _map(
            w, tile, lambda ph, pw, r, s: (ph * w.stride + s * w.dilation, pw * w.stride + r * w.dilation)
        ),
        "these are the last uses; the genuine entry is the first one that reads a pixel.": lambda: _last(right),
        "you number the distinct pixels 0, 1, 2, ...; the genuine index is the number of the entry that reads the "
        "pixel first.": lambda: _numbered(right),
        "you number the input pixels by their place; the genuine index is the number of the entry that reads the "
        "pixel first.": lambda: list(duplicates(w, tile).slot),
    }
    first = next(k for k, (a, b) in enumerate(zip(answer, right, strict=True)) if a != b)
    return mistake(answer, known) or (
        f"entry {first} has genuine index {right[first]}, not {answer[first]}. Which input pixel does it read, and "
        "which entry reads that pixel first?"
    )


def _map(w: ConvWorkload, tile: tuple[int, int], key: Callable[[int, int, int, int], Any]) -> list[int]:
    """The map in which two entries are the same if their ``key(ph, pw, r, s)`` is."""
    first: dict[Any, int] = {}
    places = product(range(tile[0]), range(tile[1]), range(w.r), range(w.s))
    return [first.setdefault(key(*place), k) for k, place in enumerate(places)]


def _last(right: list[int]) -> list[int]:
    last = {g: k for k, g in enumerate(right)}
    return [last[g] for g in right]


def _numbered(right: list[int]) -> list[int]:
    number = {g: i for i, g in enumerate(dict.fromkeys(right))}
    return [number[g] for g in right]


def check_loads(loads: Callable[[ConvWorkload, tuple[int, int]], int]) -> Feedback:
    """Check ``loads(workload, tile)``: how many input pixels a tile of outputs reads if each is loaded once."""
    for spec, tile in CASES:
        record = duplicates(spec, tile)
        case = f"{spec} and tile {tile[0]}x{tile[1]}"
        answer, problem = call(loads, record.workload, tile, case=case)
        if problem is not None:
            return problem
        if answer != record.loads.full:
            about = about_loads(answer, record.workload, tile)
            return Feedback(False, f"For {case} the answer is {record.loads.full}, not {answer!r}. {about}".rstrip())
    return Feedback(True, f"All {len(CASES)} shapes agree.")


def about_loads(answer: Any, w: ConvWorkload, tile: tuple[int, int]) -> str:
    """Explains a wrong number of loads; empty if it looks like no known mistake."""
    record = duplicates(w, tile)
    no_stride, no_dilation = replace(w, stride=1, name=""), replace(w, dilation=1, name="")
    plain = replace(no_stride, dilation=1)
    height, width = ((t - 1) * w.stride + (k - 1) * w.dilation + 1 for t, k in zip(tile, (w.r, w.s), strict=True))
    beyond = (tile[0] * w.stride + (w.r - 1) * w.dilation) * (tile[1] * w.stride + (w.s - 1) * w.dilation)
    known: dict[str, Callable[[], Any]] = {
        "You counted every entry of the lowered tile; duplicates are loaded only once.": lambda: record.loads.none,
        "You shared along the width only; neighbouring rows of the tile read the same pixels too.": lambda: (
            record.loads.width
        ),
        "That is the count without the stride: neighbouring outputs lie `stride` input pixels apart.": lambda: (
            duplicates(no_stride, tile).loads.full if w.stride > 1 else None
        ),
        "That is the count without the dilation: neighbouring taps lie `dilation` input pixels apart.": lambda: (
            duplicates(no_dilation, tile).loads.full if w.dilation > 1 else None
        ),
        "That is the count without stride and dilation.": lambda: duplicates(plain, tile).loads.full,
        "That is tile x stride + kernel - 1 on each side, which is too many: only tile - 1 outputs are a stride away "
        "from the one before.": lambda: beyond if w.stride > 1 else None,
        "That is the whole rectangle of input; with this stride or dilation some of its rows or columns are never "
        "read.": lambda: height * width,
        "That is the number of output pixels.": lambda: tile[0] * tile[1],
    }
    return mistake(answer, known)


def check_tile(tile: Sequence[int], workload: ConvWorkload | str = CASES[0][0]) -> Feedback:
    """Check the choice of a tile of 16 output pixels, (rows, columns), that loads the fewest input pixels."""
    try:
        sides: list[Any] = list(tile)
    except TypeError:
        sides = []
    if len(sides) != 2 or not all(isinstance(one, Integral) and not isinstance(one, bool) for one in sides):
        return Feedback(False, f"Give two whole numbers, (rows, columns), not {short(tile)}.")
    height, width = map(int, sides)
    if height < 1 or width < 1 or height * width != TILE_PIXELS:
        return Feedback(False, f"{height} x {width} is {height * width} pixels; the tile must have {TILE_PIXELS}.")
    counts = {
        h: duplicates(workload, (h, TILE_PIXELS // h)).loads.full
        for h in range(1, TILE_PIXELS + 1)
        if TILE_PIXELS % h == 0
    }
    mine, best = counts[height], min(counts.values())
    if mine > best:
        shape = "A long, thin tile has a long edge" if min(height, width) == 1 else "There is a squarer tile"
        return Feedback(False, f"{height} x {width} loads {mine} input pixels; the best tile loads {best}. {shape}.")
    return Feedback(True, f"{height} x {width} loads {mine} input pixels; the worst tile loads {max(counts.values())}.")

"""Where segments of an image's output rows end in the middle of a row (``half_rows``).

If ``segments`` divides the half rows into an odd number each, all segments are whole rows and a half. Otherwise only
the row in the middle of the image is cut. The segments next to the cut have half a row less than the others, which have
fewer multiplications because they are at the edge of the image: 7 rows in 4 segments are 2, 1 and a half, a half and 1,
2.
"""

from __future__ import annotations

from typing import Any

Index = Any
"""An ``int``, or a TIRx expression."""


def middle_alone(rows: int, segments: int) -> bool:
    """Whether the row in the middle of the image is the only one that is cut."""
    return 2 * rows % segments != 0


def divided(rows: int, segments: int) -> bool:
    """Whether such segments exist: of two neighbours one ends with a half and the other begins with one."""
    if middle_alone(rows, segments):
        return segments % 2 == 0 and (rows + 1) % segments == 0
    return 2 * rows // segments % 2 == 1


def rows_of(rows: int, segments: int) -> int:
    """Rows of a segment, counting those of which it has a half."""
    return (rows + 1) // segments if middle_alone(rows, segments) else (2 * rows // segments + 1) // 2


def start(segment: Index, rows: int, segments: int) -> Index:
    """First row of a segment: if it begins with a half, the row with which the preceding segment ends."""
    if middle_alone(rows, segments):
        return segment * rows_of(rows, segments) - segment // (segments // 2)
    return segment * (2 * rows // segments) // 2


def cut(segment: Index, rows: int, segments: int) -> Index:
    """Which half a segment has: 0 = the left one, at its end; 1 = the right one, at its beginning; other values:
    none."""
    return segment - (segments // 2 - 1) if middle_alone(rows, segments) else segment % 2

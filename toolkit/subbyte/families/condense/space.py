"""The knobs and values that the space of a product varies."""

from __future__ import annotations

KIND = "condense"
VALUES: dict[str, tuple[int, ...]] = {
    "row_warps": (1, 2, 4), "col_warps": (1, 2, 4), "panels": (1, 2), "chunk": (2, 4, 8, 16, 24),
    "column_tiles": (1, 2, 4), "ahead": (0, 1), "sharing": (1, 2),
}  # fmt: skip

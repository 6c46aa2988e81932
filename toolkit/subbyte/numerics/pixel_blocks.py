"""Blocks of pixels as single pixels with more channels, stored with the border (space to depth)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class BlockForm:
    """``rows`` x ``columns`` blocks of ``size`` x ``size`` pixels; the first block starts ``pad`` pixels above and to
    the left of the image. ``text`` is the form of an argument in this layout."""

    size: int
    pad: int
    rows: int
    columns: int

    @property
    def text(self) -> str:
        """``blocks4p3h57w57``."""
        return f"blocks{self.size}p{self.pad}h{self.rows}w{self.columns}"

    @classmethod
    def of(cls, form: str) -> BlockForm | None:
        """The form that a text denotes; None for another kind of form."""
        found = re.fullmatch(r"blocks(\d+)p(\d+)h(\d+)w(\d+)", form)
        return cls(*map(int, found.groups())) if found else None

    def apply(self, x: NDArray[Any]) -> NDArray[Any]:
        """Values [N,H,W,C] -> [N,rows,columns,size*size*C]: channel ``(dy * size + dx) * C + c``, 0 outside the
        image."""
        n, height, width, channels = x.shape
        size, pad = self.size, self.pad
        full = np.zeros((n, self.rows * size, self.columns * size, channels), x.dtype)
        rows, columns = min(height, self.rows * size - pad), min(width, self.columns * size - pad)
        full[:, pad : pad + rows, pad : pad + columns] = x[:, :rows, :columns]
        split = full.reshape(n, self.rows, size, self.columns, size, channels).transpose(0, 1, 3, 2, 4, 5)
        return np.ascontiguousarray(split).reshape(n, self.rows, self.columns, -1)

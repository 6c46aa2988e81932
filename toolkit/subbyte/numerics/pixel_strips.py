"""Pixels of few channels, several to a 32-bit word, stored with the border: rows are strips of words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.numerics.arrays import Words
from subbyte.numerics.int4 import pack_words
from subbyte.numerics.layout import pad_axis
from subbyte.workload.conv import BATCH_GROUP

WORD_VALUES = 8
"""int4 values per word."""


@dataclass(frozen=True)
class StripForm:
    """``rows`` rows of ``words`` words; a pixel is ``channels`` int4 values (1, 2, 4 or 8), and word (0, 0) starts
    ``pad`` pixels above and to the left of the image. ``text`` is the form of an argument in this layout."""

    channels: int
    pad: int
    rows: int
    words: int

    @property
    def text(self) -> str:
        """``strips4p3h229w115``."""
        return f"strips{self.channels}p{self.pad}h{self.rows}w{self.words}"

    @classmethod
    def of(cls, form: str) -> StripForm | None:
        """The form that a text denotes; None for another kind of form."""
        found = re.fullmatch(r"strips(\d+)p(\d+)h(\d+)w(\d+)", form)
        return cls(*map(int, found.groups())) if found else None

    def apply(self, x: NDArray[Any]) -> Words:
        """int4 values int8 [N,H,W,C] -> uint32 [NB][rows][words][8 images]: one word of each image of a group, then the
        next word. 0 outside the image, its channels and the batch; pixels beyond the last word are dropped. Raises
        InvalidInput."""
        given = pad_axis(x, 0, BATCH_GROUP)
        images, height, width, channels = given.shape
        full = np.zeros((images, self.rows, self.words * WORD_VALUES // self.channels, self.channels), np.int8)
        rows, columns = (max(0, min(there, held - self.pad)) for there, held in
                         ((height, full.shape[1]), (width, full.shape[2])))  # fmt: skip
        full[:, self.pad : self.pad + rows, self.pad : self.pad + columns, :channels] = given[:, :rows, :columns]
        packed = pack_words(full.reshape(images, self.rows, self.words * WORD_VALUES))
        groups = packed.reshape(images // BATCH_GROUP, BATCH_GROUP, self.rows, self.words)
        return np.ascontiguousarray(groups.transpose(0, 2, 3, 1))

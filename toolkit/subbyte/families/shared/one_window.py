"""The counts of one output pixel, as records show them: its position, the values of a few images, bits of its
window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.numerics.bit_products import CLASSES, XOR, bit_products, border_classes, pixel_words, tap_words
from subbyte.numerics.values import random_values
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload
from subbyte.workload.operand import WORD_BITS


@dataclass(frozen=True, eq=False)
class OneWindow:
    """An output pixel ``at`` of image ``batch``, and values x [batch + 1,H,W,C] and w [K,R,S,C] of ``workload``, which
    contains only the images up to it."""

    workload: ConvWorkload
    batch: int
    at: tuple[int, int]
    x: NDArray[Any]
    w: NDArray[Any]

    @classmethod
    def of(
        cls, whole: ConvWorkload, batch: int, at: tuple[int, int], seed: int, x: NDArray[Any] | None,
        w: NDArray[Any] | None,
    ) -> OneWindow:  # fmt: skip
        """For given values, which may cover all images, or random ones by default."""
        images = batch + 1 if x is None else whole.n
        wl = ConvWorkload(
            images, whole.h, whole.w, whole.c, whole.k, whole.r, whole.s, whole.pad, whole.stride, whole.dilation,
            precision=whole.precision,
        )  # fmt: skip
        rng, types = np.random.default_rng(seed), wl.precision
        values = random_values(types.activations, (wl.n, wl.h, wl.w, wl.c), rng) if x is None else x
        filters = random_values(types.weights, (wl.k, wl.r, wl.s, wl.c), rng) if w is None else w
        return cls(wl, batch, at, values, filters)

    @property
    def border_class(self) -> int:
        """The border class of the pixel."""
        wl = self.workload
        return int(border_classes(wl).of[self.at]) if bit_products(wl.precision).border == CLASSES else 0

    def counts(self, operation: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number of bits that the window and the weights of each of 32 channels have in common, or (``xor``) that
        differ, [q][p][32], and the window's own [q]."""
        wl = self.workload
        top, left = self.at[0] * wl.stride, self.at[1] * wl.stride
        rows, columns = (
            slice(first, first + (size - 1) * wl.dilation + 1, wl.dilation)
            for first, size in ((top, wl.r), (left, wl.s))
        )
        planes, weight_planes = wl.precision.activations.bits, wl.precision.weights.bits
        window = pixel_words(wl, self.x)[:, self.batch, rows, columns].reshape(planes, -1)
        taps = tap_words(wl, self.w)[:, :WORD_BITS].reshape(weight_planes, min(wl.k, WORD_BITS), -1)
        sides = window[:, None, None], taps[None]
        both = np.bitwise_xor(*sides) if operation == XOR else np.bitwise_and(*sides)
        return np.bitwise_count(both).sum(-1, dtype=np.int64), np.bitwise_count(window).sum(-1, dtype=np.int64)


def batch_and_pixel(
    workload: ConvWorkload, view: ConvWorkload, image: int, row: int, column: int
) -> tuple[int, tuple[int, int]]:
    """The workload's image and output pixel for a pixel of the first group of images as a kernel sees it: in
    a flat view (:func:`~subbyte.families.shared.flat_view.flat_view`) pixels of all groups are consecutive."""
    if (view.h, view.w) == (workload.h, workload.w):
        return image, (row, column)
    group, rest = divmod(row * view.q + column, workload.p * workload.q)
    return BATCH_GROUP * group + image, divmod(rest, workload.q)

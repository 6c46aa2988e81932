"""Sparse im2col on bitmaps: a column of the lowered matrix is a shifted copy of image rows, and a shift moves bits.

Outer products use the lowered matrix column by column: kernel offset (r, s) and channel c, over all output pixels. For
one image row that is ``(bits >> (s - pad)) & mask(Q)``, a left shift where s < pad; its values are a run of the packed
values that starts at ``popcount(bits below s - pad)`` and whose length is the ``popcount`` of the result (Wang et al.
2021). Padding adds zero bits and no values. With a stride, the pixels of each phase (x modulo stride) are encoded
separately, so that a stride is a shift too. Rows wider than a word take several words with carry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.sparse.bitmap import (
    LARGEST_MATRIX,
    POSITIONS,
    SIDES,
    SLICE,
    TwoLevelBitmap,
    Words,
    assemble,
    checked_values,
    packed_words,
)
from subbyte.workload import ConvWorkload

WORD = 32
"""Bits of a word."""


@dataclass(frozen=True, eq=False)
class RowBitmaps:
    """Rows of pixels as bitmaps with packed values; the pixels x, x + stride, x + 2 stride, ... are stored together."""

    width: int
    stride: int
    words: Words
    """uint32 [rows, stride, words]: in phase f, bit i is pixel f + i * stride."""
    values: NDArray[Any]
    starts: NDArray[np.int64]
    """[rows, stride]: index in ``values`` where each phase of each row starts."""


@dataclass(frozen=True, eq=False)
class Shifted:
    """One kernel column of rows: bit x stands for output pixel x; its values are a run of the rows' packed values."""

    words: Words
    """uint32 [rows, words]."""
    first: NDArray[np.int64]
    """[rows]: index in ``values`` where the run starts."""
    count: NDArray[np.int64]
    """[rows]: its length."""


def encode_rows(pixels: NDArray[Any], stride: int = 1) -> RowBitmaps:
    """Rows [rows, width] as bitmaps, each phase of the stride separately."""
    rows, width = pixels.shape
    wide = -(-width // (stride * WORD)) * WORD
    phases = np.pad(pixels, ((0, 0), (0, wide * stride - width))).reshape(rows, wide, stride).transpose(0, 2, 1)
    mask = phases != 0
    words = packed_words(mask)
    counts = mask.sum(-1, dtype=np.int64)
    starts = (np.cumsum(counts) - counts.ravel()).reshape(counts.shape)
    return RowBitmaps(width, stride, words, phases[mask], starts)


def shifted(rows: RowBitmaps, offset: int, outputs: int) -> Shifted:
    """The entries x * stride + offset of every row for x = 0 to outputs - 1; outside the row they are zero."""
    phase = offset % rows.stride
    shift = (offset - phase) // rows.stride
    words = rows.words[:, phase]
    moved = _keep(_shift(words, shift, -(-outputs // WORD)), outputs)
    below = np.bitwise_count(_keep(words, max(shift, 0))).sum(-1, dtype=np.int64)
    return Shifted(moved, rows.starts[:, phase] + below, np.bitwise_count(moved).sum(-1, dtype=np.int64))


def im2col(workload: ConvWorkload, x: NDArray[Any], side: str = "columns", kind: str | None = None) -> TwoLevelBitmap:
    """The lowered matrix of an input [N, H, W, C] as a two-level bitmap, made from bitmaps of the image rows.

    It is [N*P*Q, R*S*C] along ``columns``; along ``rows`` its transpose, for weights on the left. Rows run over (image,
    output row, output column), columns over (kernel row, kernel column, channel). It is never expanded. Any stride,
    padding, dilation. Raises InvalidInput for a wrong shape, dtype or value, and if it has more than 2^26 elements.
    """
    if not isinstance(workload, ConvWorkload):
        raise InvalidInput(f"workload {workload!r}: expected a ConvWorkload, as subbyte.workload(NAME) gives")
    if side not in SIDES:
        raise InvalidInput(f"side {side!r}: expected columns (activations left) or rows (activations right)")
    wl = workload
    x, kind = checked_values(x, kind)
    if x.shape != (wl.n, wl.h, wl.w, wl.c):
        raise InvalidInput(f"x has shape {list(x.shape)}: {wl} needs {[wl.n, wl.h, wl.w, wl.c]}")
    pixels, depth = wl.n * wl.p * wl.q, wl.r * wl.s * wl.c
    if pixels * depth > LARGEST_MATRIX:
        raise InvalidInput(
            f"{wl}: its lowered matrix has {pixels:,} x {depth:,} elements, at most {LARGEST_MATRIX:,} are computed "
            "here; use fewer images or pixels. sparse.simulate counts larger ones without computing them"
        )
    rows = encode_rows(np.ascontiguousarray(x.transpose(0, 1, 3, 2)).reshape(-1, wl.w), wl.stride)
    words, first, count = _lowered_rows(wl, rows)
    columns = _joined(words, wl.q)
    padded = np.zeros((-(-depth // SLICE) * SLICE, columns.shape[1]), np.uint32)
    padded[:depth] = columns
    # The values of a column are in the order of its bits; the values of each tile are a run of them.
    stream = _runs(first.ravel(), count.ravel())
    lengths = np.bitwise_count(padded).astype(np.int64)
    begins = (np.cumsum(lengths) - lengths.ravel()).reshape(lengths.shape)
    values = rows.values[stream[_runs(begins.T.ravel(), lengths.T.ravel())]]
    shape = (pixels, depth) if side == "columns" else (depth, pixels)
    return assemble(shape, side, kind, np.ascontiguousarray(padded.T), values)


def _lowered_rows(wl: ConvWorkload, rows: RowBitmaps) -> tuple[Words, NDArray[np.int64], NDArray[np.int64]]:
    """For each lowered column and output row: words [R*S*C, N*P, words], first and count of values [R*S*C, N*P]."""
    high = np.arange(wl.p) * wl.stride - wl.pad
    found: tuple[list[Any], ...] = ([], [], [])
    for r in range(wl.r):
        row = high + r * wl.dilation
        inside = (row >= 0) & (row < wl.h)
        at = np.clip(row, 0, wl.h - 1)
        for s in range(wl.s):
            one = shifted(rows, s * wl.dilation - wl.pad, wl.q)
            arrays: tuple[NDArray[Any], ...] = (one.words, one.first, one.count)
            for place, array in zip(found, arrays, strict=True):
                image: NDArray[Any] = array.reshape(wl.n, wl.h, wl.c, -1)[:, at]
                image = image * inside[None, :, None, None].astype(image.dtype)
                place.append(image.transpose(2, 0, 1, 3).reshape(wl.c, wl.n * wl.p, -1))
    words, first, count = (np.concatenate(place) for place in found)
    return words, first[..., 0], count[..., 0]


def _joined(words: Words, bits: int) -> Words:
    """Strings of ``bits`` bits concatenated: [K, strings, words] to [K, words of all]."""
    depth, strings, wide = words.shape
    total = -(-strings * bits // POSITIONS)
    out = np.zeros((depth, total + wide + 1), np.uint32)
    for number in range(strings):
        word, bit = divmod(number * bits, WORD)
        out[:, word : word + wide] |= words[:, number] << np.uint32(bit)
        if bit:
            out[:, word + 1 : word + wide + 1] |= words[:, number] >> np.uint32(WORD - bit)
    return out[:, :total]


def _shift(words: Words, shift: int, wide: int) -> Words:
    """[rows, words] shifted right by ``shift`` bits (left if negative), with carry, as ``wide`` words."""
    far, bit = divmod(shift, WORD)
    source = np.arange(wide + 1) + far
    valid = (source >= 0) & (source < words.shape[1])
    taken = np.where(valid, words[:, np.clip(source, 0, words.shape[1] - 1)], np.uint32(0)).astype(np.uint32)
    if bit == 0:
        return np.ascontiguousarray(taken[:, :wide])
    return (taken[:, :wide] >> np.uint32(bit)) | (taken[:, 1:] << np.uint32(WORD - bit))


def _keep(words: Words, bits: int) -> Words:
    """The lowest ``bits`` bits of each row of words."""
    left = np.clip(bits - WORD * np.arange(words.shape[1]), 0, WORD)
    mask = ((np.uint64(1) << left.astype(np.uint64)) - np.uint64(1)).astype(np.uint32)
    return words & mask


def _runs(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers starts[i], starts[i] + 1, ... of every run, concatenated."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)

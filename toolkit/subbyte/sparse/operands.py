"""Non-zeros of whole layers: masks from their sources, lowered and counted by 32, as bytes; no array of size M x K is
built."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.sparse.bitmap import POSITIONS, packed_words
from subbyte.sparse.cost import LEVELS, Counts8, histogram
from subbyte.sparse.patterns import ACTIVATION_GROUPS, Source, grouped_mask, seed_of, source, weight_mask
from subbyte.sparse.photographs import relu_mask
from subbyte.sparse.shapes import Shape, is_product, sizes
from subbyte.workload import ConvWorkload

LARGEST_COUNTS = 1 << 28
"""Most bytes of counts, and elements of a tensor, for one layer."""


@dataclass(frozen=True, eq=False)
class Operand:
    """One side of a (lowered) matrix product as the unit sees it."""

    depth: int
    tiles: int
    counts: Counts8 | None
    """uint8 [k, tiles]; None if there are no zeros: every count is 32, and tiles at the edge are padded as in dense
    mode."""
    nonzeros: int
    """Non-zeros of the tensor as it is in memory."""
    elements: int
    lowered_nonzeros: int
    """Non-zeros of the matrix that is multiplied; the same for weights."""
    lowered_elements: int
    label: str
    fits_24: bool = False
    """For weights: whether at most two of four neighbouring channels are set."""
    misfit: str = ""
    """If not, where the first violation is."""

    @property
    def density(self) -> float:
        """Non-zeros over elements of the tensor."""
        return self.nonzeros / self.elements

    @cached_property
    def histogram(self) -> NDArray[np.int64]:
        """How often each count occurs in each k: [k, 33]."""
        if self.counts is not None:
            return histogram(self.counts)
        found = np.zeros((self.depth, LEVELS), np.int64)
        found[:, POSITIONS] = self.tiles
        return found

    def dense(self) -> Operand:
        """The same operand processed as dense: zeros, padding and the edge of the last tile are multiplied like
        values."""
        return Operand(
            self.depth, self.tiles, None, self.elements, self.elements, self.lowered_elements, self.lowered_elements,
            "dense", False, "dense weights",
        )  # fmt: skip


def activations_of(shape: Shape, given: Any, seed: int = 0) -> Operand:
    """The activations of a layer: a source (see :mod:`subbyte.sparse.patterns`), or an array of masks or values.

    An array has the tensor's shape: [N, H, W, C], or [M, K] for a matrix product. Raises InvalidInput for a wrong
    source or shape and for a layer that is too large.
    """
    seed = seed_of(seed)
    m, _, k = sizes(shape)
    view = _as_convolution(shape)
    elements = view.n * view.h * view.w * view.c
    _check_size(shape, -(-m // POSITIONS) * k, elements)
    if isinstance(given, np.ndarray):
        wanted = (m, k) if is_product(shape) else (view.n, view.h, view.w, view.c)
        if given.shape != wanted:
            raise InvalidInput(f"activations of shape {list(given.shape)}: {shape.label} needs {list(wanted)}")
        full = _nonzero(given, "activations").reshape(view.n, view.h, view.w, view.c)
        mask = np.ascontiguousarray(full.transpose(3, 0, 1, 2))
        label = "the user's activations"
    else:
        found = source(given, "activations")
        label = found.label
        mask = np.zeros(0, bool) if found.kind == "dense" else _activation_mask(view, found, seed)
    lowered = m * k
    nonzeros = int(np.count_nonzero(mask)) if mask.size else elements
    if nonzeros == elements:  # nothing to skip: not encoded, and padding is multiplied as in a dense unit
        tiles = -(-m // POSITIONS)
        return Operand(k, tiles, None, elements, elements, lowered, lowered, label)
    counts = lowered_counts(view, mask)
    kept = int(counts.sum(dtype=np.int64))
    return Operand(k, counts.shape[1], counts, nonzeros, elements, kept, lowered, label)


def weights_of(shape: Shape, given: Any, seed: int = 0) -> Operand:
    """The weights of a layer, from a source or from an array [K, R, S, C] ([K, N] for a matrix product)."""
    seed = seed_of(seed)
    _, n, k = sizes(shape)
    offsets, channels = shape.r * shape.s, shape.c
    _check_size(shape, -(-n // POSITIONS) * k, n * k)
    if isinstance(given, np.ndarray):
        product = is_product(shape)
        wanted = (k, n) if product else (n, shape.r, shape.s, channels)
        if given.shape != wanted:
            raise InvalidInput(f"weights of shape {list(given.shape)}: {shape.label} needs {list(wanted)}")
        mask = _nonzero(given, "weights")
        by_filter = mask if product else mask.reshape(n, k).T
        mask = np.ascontiguousarray(by_filter).reshape(offsets, channels, n)
        label = "the user's weights"
    else:
        found = source(given, "weights")
        if found.kind == "dense":
            return Operand(k, -(-n // POSITIONS), None, n * k, n * k, n * k, n * k, found.label, False, "dense weights")
        mask = weight_mask(n, offsets, channels, found, seed)
        label = found.label
    nonzeros = int(np.count_nonzero(mask))
    misfit = _misfit(mask)
    if nonzeros == mask.size:
        return Operand(k, -(-n // POSITIONS), None, n * k, n * k, n * k, n * k, label, False, misfit)
    counts = _counted(mask.reshape(k, n))
    return Operand(k, counts.shape[1], counts, nonzeros, n * k, nonzeros, n * k, label, not misfit, misfit)


def lowered_counts(view: ConvWorkload, mask: NDArray[np.bool_]) -> Counts8:
    """Non-zeros of each lowered column per 32 output pixels, uint8 [R*S*C, tiles], from a mask [C, N, H, W].

    Images are processed in groups whose pixels fill whole tiles; padding has no bits.
    """
    pixels = view.p * view.q
    together = POSITIONS // math.gcd(pixels, POSITIONS)
    together *= max(1, (1 << 23) // max(1, together * pixels * view.c))
    tiles = -(-view.n * pixels // POSITIONS)
    out = np.zeros((view.r * view.s, view.c, tiles), np.uint8)
    for first in range(0, view.n, together):
        part = mask[:, first : first + together]
        begin = first * pixels // POSITIONS
        if view.pad:
            part = np.pad(part, ((0, 0), (0, 0), (view.pad, view.pad), (view.pad, view.pad)))
        for offset in range(view.r * view.s):
            top, left = (view.dilation * place for place in divmod(offset, view.s))
            rows = slice(top, top + (view.p - 1) * view.stride + 1, view.stride)
            columns = slice(left, left + (view.q - 1) * view.stride + 1, view.stride)
            counts = _counted(part[:, :, rows, columns].reshape(view.c, -1))
            out[offset, :, begin : begin + counts.shape[1]] = counts
    return out.reshape(view.r * view.s * view.c, tiles)


def _counted(mask: NDArray[np.bool_]) -> Counts8:
    """[k, positions] to non-zeros per 32 positions, uint8 [k, tiles]."""
    short = -mask.shape[1] % POSITIONS
    padded = np.pad(mask, ((0, 0), (0, short))) if short else mask
    return np.asarray(np.bitwise_count(packed_words(np.ascontiguousarray(padded))), np.uint8)


def _activation_mask(view: ConvWorkload, found: Source, seed: int) -> NDArray[np.bool_]:
    """[C, N, H, W], image by image; only dead channels are the same in every image."""
    mask = np.empty((view.c, view.n, view.h, view.w), bool)
    for image in range(view.n):
        if found.kind == "photos":
            mask[:, image] = relu_mask(image, view.c, view.h, view.w, seed)
            continue
        assert found.density is not None
        rng = np.random.default_rng((seed, 0) if found.kind == "dead" else (seed, 0, image))
        shape = (view.c, 1, view.h, view.w)
        mask[:, image] = grouped_mask(shape, ACTIVATION_GROUPS[found.kind], found.density, rng)[:, 0]
    return mask


def _as_convolution(shape: Shape) -> ConvWorkload:
    """A matrix product [M, K] as a 1x1 convolution of one image of one row of M pixels with K channels."""
    if not is_product(shape):
        return shape
    m, n, k = sizes(shape)
    return ConvWorkload(1, 1, m, k, n, 1, 1)


def _nonzero(values: NDArray[Any], name: str) -> NDArray[np.bool_]:
    if values.dtype.kind not in "biuf":
        raise InvalidInput(f"{name} of dtype {values.dtype}: expected a mask (bool) or numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InvalidInput(f"{name} must be finite")
    return np.asarray(values != 0)


def _misfit(mask: NDArray[np.bool_]) -> str:
    """Why weights [R*S, C, K] do not fit 2:4; "" if they do. Channels beyond the last whole group count as zeros."""
    offsets, channels, filters = mask.shape
    filled = np.pad(mask, ((0, 0), (0, -channels % 4), (0, 0))) if channels % 4 else mask
    kept = filled.view(np.uint8).reshape(offsets, -1, 4, filters).sum(2, dtype=np.uint8)
    if kept.max() <= 2:
        return ""
    offset, group, column = (int(i) for i in np.unravel_index(int(np.argmax(kept > 2)), kept.shape))
    last = min(4 * group + 3, channels - 1)
    return f"filter {column}, offset {offset}, channels {4 * group} to {last} keep {kept[offset, group, column]} of 4"


def _check_size(shape: Shape, counts: int, elements: int) -> None:
    if max(counts, elements) > LARGEST_COUNTS:
        factor = max(counts, elements) / LARGEST_COUNTS
        what = (
            f"{max(1, int(shape.n / factor))} images" if not is_product(shape) and shape.n > factor
            else f"sides {factor**0.5:.1f} times smaller"
        )  # fmt: skip
        raise InvalidInput(
            f"{shape.label}: {max(counts, elements):,} elements of one operand, at most {LARGEST_COUNTS:,} are counted "
            f"(16384 x 16384); {what} would fit"
        )

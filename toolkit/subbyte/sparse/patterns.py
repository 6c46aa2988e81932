"""Where zeros come from: seeded generators, pruning, and the names that select them.

A source is written as text: a density (``0.45``, independent zeros), ``kind:density`` such as ``runs:0.45``, ``2:4`` or
any N:M and ``magnitude80`` (the smallest 80 % of the weights pruned) for weights, ``photos`` for activations,
``dense``. A numpy array is the user's mask or tensor. Generated masks with the same seed are nested: a lower density
keeps a subset.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput, did_you_mean
from subbyte.numerics.weight_blocks import block_sums, check_blocks, spread_out, strongest
from subbyte.sparse.bitmap import BITS, LARGEST_MATRIX, RANGES
from subbyte.workload.operand import BLOCKS, Operand

ACTIVATION_GROUPS: dict[str, tuple[int, ...]] = {
    "iid": (1, 1, 1, 1), "runs": (1, 1, 1, 8), "rows": (1, 1, 1, 0), "channels": (8, 1, 1, 1), "blocks": (8, 1, 4, 4),
    "dead": (1, 0, 0, 0),
}  # fmt: skip
"""Kind -> elements of [C, N, H, W] that become zero together; 0 is the whole axis (``dead``: channels, the same in
every image)."""
WEIGHT_GROUPS: dict[str, tuple[int, ...]] = {
    "iid": (1, 1, 1), "runs": (1, 1, 8), "channels": (1, 8, 1), "blocks": (1, 32, 32), "dead": (0, 1, 0),
    "filters": (0, 0, 1),
}  # fmt: skip
"""Kind -> elements of [R*S, C, K] that become zero together; ``dead``: input channels, ``filters``: output channels."""
_DRAWS = 1 << 16
_TOGETHER = 1 << 20
"""Elements that are drawn at a time."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,3})?", re.IGNORECASE)
_N_OF_M = re.compile(r"(\d{1,3}):(\d{1,3})")
_MAGNITUDE = re.compile(r"magnitude(\d{1,2}(?:\.\d+)?)")


@dataclass(frozen=True)
class Source:
    """Where the zeros of one operand come from."""

    kind: str
    """A generator, ``n:m``, ``magnitude``, ``photos``, ``dense`` or ``given``."""
    density: float | None
    """Wanted density of non-zeros; None if the data determine it."""
    label: str
    """What it is, and whether it is synthetic, real or the user's; shown beside every number."""
    group: tuple[int, int] = (0, 0)
    """N and M of N:M."""


DENSE = Source("dense", 1.0, "dense")


def density_of(value: object, name: str = "density") -> float:
    """A density as a number. Raises InvalidInput outside 0 to 1."""
    number = None
    if (isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)) or (
        isinstance(value, str) and _NUMBER.fullmatch(value.strip())
    ):
        number = float(value)
    if number is None or not 0 <= number <= 1:
        raise InvalidInput(f"{name} {value!r}: expected a number from 0 (all zeros) to 1 (no zeros)")
    return number


def seed_of(value: object) -> int:
    """A seed. Raises InvalidInput unless it is an integer of at least 0."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InvalidInput(f"seed {value!r}: expected a whole number, 0 or more")
    return int(value)


def source(given: object, role: str) -> Source:
    """The source that a number or text selects, for ``activations`` or ``weights``. Raises InvalidInput."""
    groups = ACTIVATION_GROUPS if role == "activations" else WEIGHT_GROUPS
    if isinstance(given, Source):
        return given
    if not isinstance(given, str):
        return _iid(density_of(given, role))
    text = given.strip().lower()
    if text == "dense":
        return DENSE
    if text in ("photos", "relu-photos") and role == "activations":
        label = "photographs of scikit-learn through random 3x3 filters and ReLU (real pixels, random filters)"
        return Source("photos", None, label)
    if role == "weights" and (found := _N_OF_M.fullmatch(text)):
        n, m = n_of_m(text)
        return Source("n:m", n / m, f"{n}:{m} at random places (synthetic)", (n, m))
    if role == "weights" and (found := _MAGNITUDE.fullmatch(text)):
        share = 1 - float(found[1]) / 100
        return Source("magnitude", share, f"{found[1]} % of random normal weights pruned by magnitude (synthetic)")
    kind, colon, number = text.partition(":")
    if colon and kind in groups:
        wanted = density_of(number, f"{role} {kind}:")
        if kind == "iid":
            return _iid(wanted)
        return DENSE if wanted == 1 else Source(kind, wanted, f"{kind}, density {wanted:g} (synthetic)")
    if re.fullmatch(r"[-+.\d].*|nan|inf|infinity", text):
        return _iid(density_of(text, role))
    if role == "weights" and text.startswith("magnitude"):
        raise InvalidInput(f"weights {given!r}: expected magnitude0 to magnitude99.9, in per cent, such as magnitude80")
    more = ["photos"] if role == "activations" else ["2:4", "magnitude80"]
    names = ["dense", "0.45", *[f"{name}:0.45" for name in groups], *more]
    raise InvalidInput(f"{role} {given!r}: {did_you_mean(text, names)}")


def _iid(density: float) -> Source:
    return DENSE if density == 1 else Source("iid", density, f"i.i.d., density {density:g} (synthetic)")


def n_of_m(text: str) -> tuple[int, int]:
    """N and M of ``N:M``. Raises InvalidInput unless 1 <= N <= M <= 64."""
    found = _N_OF_M.fullmatch(str(text).strip())
    n, m = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= n <= m <= 64:
        raise InvalidInput(f"pruning {text!r}: expected N:M with 1 <= N <= M <= 64, such as 2:4")
    return n, m


def grouped_mask(
    shape: Sequence[int], group: Sequence[int], density: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """A mask in which groups of elements become zero together, with one uniform 16-bit draw per group."""
    sizes = [size if part == 0 else part for size, part in zip(shape, group, strict=True)]
    few = [math.ceil(size / part) for size, part in zip(shape, sizes, strict=True)]
    draws = rng.integers(0, _DRAWS, few, dtype=np.uint16)
    limit = round(density * _DRAWS)
    mask = draws <= np.uint16(limit - 1) if limit else np.zeros(few, bool)
    for axis, part in enumerate(sizes):
        if part > 1:
            mask = np.repeat(mask, part, axis=axis)
    return np.asarray(mask[tuple(slice(size) for size in shape)])


def random_matrix(shape: Sequence[int], density: float, kind: str = "int4", seed: int = 0) -> NDArray[Any]:
    """Random values of a kind (int4, int8: int8 array; fp16: float16), zero except with probability ``density``.

    Raises InvalidInput for a density outside 0 to 1, an unknown kind, a size below 1, or more elements than an encoded
    matrix may have.
    """
    wanted = density_of(density)
    if kind not in BITS:
        raise InvalidInput(f"kind {kind!r}: {did_you_mean(kind, BITS)}")
    if not shape or any(type(size) is not int or size < 1 for size in shape):
        raise InvalidInput(f"shape {tuple(shape)!r}: expected whole numbers of at least 1")
    if math.prod(shape) > LARGEST_MATRIX:
        raise InvalidInput(
            f"shape {tuple(shape)!r}: {math.prod(shape):,} elements, at most {LARGEST_MATRIX:,} are made"
        )
    rng, shape = np.random.default_rng(seed_of(seed)), tuple(shape)
    mask = np.empty(math.prod(shape), bool)
    for part in _parts(mask.size):
        mask[part] = rng.random(part.stop - part.start) < wanted
    if kind == "fp16":
        mask = mask.reshape(shape)
        return np.where(mask, 1 + rng.random(shape), 0).astype(np.float16) * rng.choice((-1, 1), shape).astype(
            np.float16
        )
    low, high = RANGES[kind]
    found = np.empty(mask.size, np.int8)
    for part in _parts(mask.size):  # one value fewer than the range has: non-negative values move up by one
        values = rng.integers(low, high, part.stop - part.start)
        found[part] = np.where(mask[part], values + (values >= 0), 0)
    return found.reshape(shape)


def _parts(size: int) -> Iterator[slice]:
    """Parts of this many elements: allocating the eight-byte numbers for all at once would take longer than drawing
    them."""
    return (slice(first, min(first + _TOGETHER, size)) for first in range(0, size, _TOGETHER))


def weight_mask(filters: int, offsets: int, channels: int, given: Source, seed: int) -> NDArray[np.bool_]:
    """The mask [R*S, C, K] of generated weights. The groups of N:M are neighbouring channels."""
    rng = np.random.default_rng((seed, 1))
    shape = (offsets, channels, filters)
    if given.kind == "n:m":
        n, m = given.group
        draws = rng.random((offsets, -(-channels // m), m, filters), np.float32)
        mask = draws.argsort(2).argsort(2) < n
        return mask.reshape(offsets, -1, filters)[:, :channels]
    assert given.density is not None
    if given.kind == "magnitude":
        return prune_mask(rng.standard_normal(shape, np.float32), given.density)
    return grouped_mask(shape, WEIGHT_GROUPS[given.kind], given.density, rng)


def prune_mask(weights: NDArray[Any], density: float) -> NDArray[np.bool_]:
    """True for the largest magnitudes, round(density * size) of them; ties go to the first."""
    keep = round(density * weights.size)
    size = np.abs(weights.astype(np.float64)).ravel()
    if keep == 0:
        return np.zeros(weights.shape, bool)
    least = np.partition(size, -keep)[-keep]
    mask = size > least
    ties = np.flatnonzero(size == least)
    mask[ties[: keep - int(np.count_nonzero(mask))]] = True
    return mask.reshape(weights.shape)


def prune(weights: NDArray[Any], how: str, order: Sequence[int] | None = None) -> NDArray[Any]:
    """The weights with the smallest magnitudes set to zero.

    ``how``: ``magnitude80`` (80 % of the whole array); ``2:4`` or any N:M (of M neighbours along the last axis, the N
    largest stay); or ``blocks:0.25``: that share (in whole hundredths) of the blocks of 64 filters x 32 channels of one
    tap of [K, ..., C] stays, those with the largest sums of squares, where the numbers kept differ by at most one
    between groups of 64 filters. ``order``, for N:M, lists the channels in the order in which they are adjacent along a
    kernel's K; by default as they are. Raises InvalidInput for another pruning, a last axis that M does not divide, or
    an order that is not a permutation.
    """
    _check_weights(weights)
    text = str(how).strip().lower()
    if found := _MAGNITUDE.fullmatch(text):
        return np.where(prune_mask(weights, 1 - float(found[1]) / 100), weights, 0).astype(weights.dtype)
    if text.startswith(BLOCKS):
        percent = Operand(8, sparsity=text).live_percent
        assert percent is not None
        mask = strongest(block_sums(np.square(weights.astype(np.float64))), percent)
        return np.where(spread_out(mask, weights.shape), weights, 0).astype(weights.dtype)
    if not _N_OF_M.fullmatch(text):
        raise InvalidInput(f"pruning {how!r}: expected magnitude80 (80 % pruned), N:M such as 2:4, or blocks:0.25")
    n, m = n_of_m(text)
    grouped, places = _grouped(weights, m, order)
    ranks = np.argsort(np.argsort(-np.abs(grouped.astype(np.float64)), axis=-1, kind="stable"), axis=-1)
    out = np.empty_like(weights)
    out[..., places] = np.where(ranks < n, grouped, 0).reshape(weights.shape)
    return out


def check_nm(weights: NDArray[Any], how: str = "2:4", order: Sequence[int] | None = None) -> None:
    """Raise InvalidInput with the index of the first group that keeps more than N of its M weights."""
    _check_weights(weights)
    n, m = n_of_m(how)
    grouped, places = _grouped(weights, m, order)
    kept = np.count_nonzero(grouped, axis=-1)
    if (kept > n).any():
        index = tuple(int(i) for i in np.argwhere(kept > n)[0])
        channels = places[index[-1] * m : (index[-1] + 1) * m].tolist()
        raise InvalidInput(
            f"weights {list(index[:-1])} channels {channels}: {kept[index]} of {m} are not zero, {how} keeps at most "
            f"{n}; prune them with sparse.prune(w, {how!r})"
        )


def check_live_blocks(weights: NDArray[Any], how: str) -> None:
    """Raise InvalidInput unless at most the share in ``how``, such as ``blocks:0.25``, of the blocks of 64 filters x 32
    channels of one tap of ``weights`` [K, ..., C] has values other than 0; the message names the first block too
    many."""
    _check_weights(weights)
    text = str(how).strip().lower()
    if not text.startswith(BLOCKS):
        raise InvalidInput(f"pruning {how!r}: expected '{BLOCKS}:' and the share of live blocks, such as blocks:0.25")
    check_blocks(weights, "weights", Operand(8, sparsity=text))


def _check_weights(weights: object) -> None:
    fits = isinstance(weights, np.ndarray) and weights.dtype.kind in "iufb" and weights.ndim and weights.size
    if not fits or not isinstance(weights, np.ndarray):
        raise InvalidInput("weights: expected a numpy array of real numbers with at least one axis")
    if weights.dtype.kind == "f" and not np.isfinite(weights).all():
        raise InvalidInput("weights must be finite")


def _grouped(weights: NDArray[Any], m: int, order: Sequence[int] | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The weights as [..., groups, m], and the channels in that order."""
    channels = weights.shape[-1]
    if channels % m:
        raise InvalidInput(f"{channels} channels: groups of {m} do not fit; pad them with zeros or choose another M")
    places = np.arange(channels) if order is None else np.asarray(order)
    if places.dtype.kind not in "iu" or sorted(places.tolist()) != list(range(channels)):
        raise InvalidInput(f"order: expected each of the {channels} channels once")
    return weights[..., places].reshape(*weights.shape[:-1], channels // m, m), places

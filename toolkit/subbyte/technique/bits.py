"""One sum of a bit network computed from its bits, and the bit planes of its operands in memory, as info records."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, whole
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.numerics.bit_products import (
    CLASSES,
    NOTHING,
    bit_code,
    bit_products,
    pixel_sum_dtype,
    range_reason,
    written_sum,
)
from subbyte.numerics.planes import NB8R, PAIR_CHANNELS, plane_words, words_shape
from subbyte.numerics.values import check_values, encode, random_values
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named
from subbyte.workload.operand import WORD_BITS, Operand

_BORDERS = {
    NOTHING: "pixels beyond the border are bits 0, which count nowhere",
    CLASSES: "no code has the value of a pixel beyond the border: P and n are over the taps inside the image",
}


@dataclass(frozen=True)
class BitTap:
    """A tap (r, s) of a sum: whether it is ``inside`` the image, ``popcounts`` of w and x for each weight plane and,
    within it, each activation plane, its contributions to S and P, and the words of both, [plane][32 channels]."""

    r: int
    s: int
    inside: bool
    popcounts: tuple[int, ...]
    pixel_sum: int
    channel_sum: int
    weights: tuple[tuple[int, ...], ...]
    activations: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class BitSum(InfoRecord):
    """How the bits of one window and of one output channel's weights become their sum: the closed form of
    :mod:`subbyte.numerics.bit_products`, worked out.

    ``at`` is the output pixel of ``image`` and output ``channel``. ``parts`` are U, S, P and n over
    all taps or, if ``border`` is ``classes``, P and n over only those inside the image; ``factors`` are in the same
    order. ``pair_factors`` multiply the ``popcounts`` of a tap in U. ``total`` is the sum of the products of parts and
    factors, ``reference`` that of the values. ``range`` says why the sums of the workload do not fit 32 bits,
    ``pixel_type`` which integers hold S.
    """

    workload: ConvWorkload
    image: int
    at: tuple[int, int]
    channel: int
    formula: str
    xor_formula: str | None
    border: str
    fill: int
    range: str | None
    pixel_type: str
    taps: tuple[BitTap, ...]
    parts: tuple[int, int, int, int]
    factors: tuple[int, int, int, int]
    pair_factors: tuple[int, ...]
    total: int
    reference: int

    def codes(self, tap: BitTap) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Codes of the weights and of the activations of a tap, for all input channels."""
        return _codes(tap.weights, self.workload.c), _codes(tap.activations, self.workload.c)

    def values(self, tap: BitTap) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Values of the weights and of the activations of a tap; outside the image, the value that padding means, which
        may not be the value of any code."""
        types = self.workload.precision
        w, x = self.codes(tap)
        pixel = tuple(types.activations.values[code] if tap.inside else types.pad_value for code in x)
        return tuple(types.weights.values[code] for code in w), pixel

    def title(self) -> str:
        """What is summed."""
        return f"{self.workload.label}: image {self.image}, output pixel {self.at}, output channel {self.channel}"

    def table(self) -> Table:
        """One row per tap."""
        p, q = self.workload.precision.weights.bits, self.workload.precision.activations.bits
        pairs = tuple(f"popc w{s}&x{t}" for s in range(p) for t in range(q))
        rows = ((tap.r, tap.s, tap.inside, *tap.popcounts, tap.pixel_sum, tap.channel_sum) for tap in self.taps)
        return Table(("r", "s", "inside", *pairs, "S", "P"), tuple(rows))

    def text(self) -> str:
        """The formula, the taps and the sum."""
        filled = f"pixels beyond the border are filled with code {self.fill}"
        parts = ", ".join(f"{name} = {part}" for name, part in zip("USPn", self.parts, strict=True))
        lines = [self.title(), f"Y = {self.formula}", _BORDERS.get(self.border, filled), "", columns_text(self.table())]
        terms = written_sum([(factor, f"({part})") for factor, part in zip(self.factors, self.parts, strict=True)])
        lines += ["", parts, f"Y = {terms} = {self.total}; by the values: {self.reference}"]
        if self.xor_formula:
            lines.append(f"without a border also {self.xor_formula}, X the count of w xor x")
        return "\n".join([*lines, *([self.range] if self.range else [])])


@checked
def bit_sum(
    workload: ConvWorkload | str, at: tuple[int, int] = (0, 0), image: int = 0, channel: int = 0, seed: int = 0,
    x: NDArray[Any] | None = None, w: NDArray[Any] | None = None,
) -> BitSum:  # fmt: skip
    """One output of a workload computed from its bits: for values x [N,H,W,C] and w [K,R,S,C], or random ones by
    default.

    Raises InvalidInput for an output that does not exist, Unsupported for types without bit products.
    """
    wl = workload_named(workload)
    form, types = bit_products(wl.precision), wl.precision
    limits = (
        ("output row", at[0], wl.p),
        ("output column", at[1], wl.q),
        ("image", image, wl.n),
        ("output channel", channel, wl.k),
    )
    for name, value, count in limits:
        whole(value, name, 0, count - 1)
    rng = np.random.default_rng(seed)
    inside = np.zeros((wl.r, wl.s), np.bool_)
    window = np.full((wl.r, wl.s, wl.c), types.pad_value, np.int64)
    codes = np.full((wl.r, wl.s, wl.c), form.fill, np.uint8)
    drawn = random_values(types.activations, (wl.r, wl.s, wl.c), rng)
    if x is not None:
        check_values(x, "x", types.activations, (wl.n, wl.h, wl.w, wl.c))
    for r, s in np.ndindex(wl.r, wl.s):
        row, column = (at[i] * wl.stride + tap * wl.dilation - wl.pad for i, tap in enumerate((r, s)))
        if 0 <= row < wl.h and 0 <= column < wl.w:
            pixel = drawn[r, s] if x is None else x[image, row, column]
            inside[r, s], window[r, s], codes[r, s] = True, pixel, encode(pixel, types.activations)
    if w is None:
        taken = random_values(types.weights, (wl.r, wl.s, wl.c), rng)
    else:
        taken = check_values(w, "w", types.weights, (wl.k, wl.r, wl.s, wl.c))[channel]
    pixels = plane_words(codes, types.activations.bits)
    taps = plane_words(encode(taken, types.weights), types.weights.bits)
    pairs = np.bitwise_count(taps[:, None] & pixels[None]).sum(-1, dtype=np.int64)  # [p][q][R][S]
    s_of = np.tensordot(form.activations.weights, np.bitwise_count(pixels).sum(-1, dtype=np.int64), 1)
    p_of = np.tensordot(form.weights.weights, np.bitwise_count(taps).sum(-1, dtype=np.int64), 1)
    counted = inside if form.border == CLASSES else np.ones_like(inside)
    weighted = np.einsum("p,q,pqrs->", form.weights.weights, form.activations.weights, pairs)
    parts = tuple(map(int, (weighted, s_of.sum(), p_of[counted].sum(), wl.c * counted.sum())))
    factors = (form.product, form.pixel, form.channel, form.count)
    return BitSum(
        workload=wl,
        image=image,
        at=(int(at[0]), int(at[1])),
        channel=channel,
        formula=form.formula,
        xor_formula=form.xor_formula,
        border=form.border,
        fill=form.fill,
        range=range_reason(wl),
        pixel_type=pixel_sum_dtype(wl),
        taps=tuple(_tap(r, s, inside, pairs, s_of, p_of, taps, pixels) for r, s in np.ndindex(wl.r, wl.s)),
        parts=(parts[0], parts[1], parts[2], parts[3]),
        factors=factors,
        pair_factors=tuple(a * b for a in form.weights.weights for b in form.activations.weights),
        total=sum(factor * part for factor, part in zip(factors, parts, strict=True)),
        reference=int((window * taken).sum()),
    )


def _codes(planes: tuple[tuple[int, ...], ...], channels: int) -> tuple[int, ...]:
    """The codes of channels, from the words of their planes."""
    return tuple(
        sum((words[c // WORD_BITS] >> c % WORD_BITS & 1) << t for t, words in enumerate(planes))
        for c in range(channels)
    )


def _tap(r: int, s: int, inside: Any, pairs: Any, s_of: Any, p_of: Any, taps: Any, pixels: Any) -> BitTap:
    words = (tuple(tuple(map(int, plane)) for plane in planes[:, r, s]) for planes in (taps, pixels))
    popcounts = tuple(map(int, pairs[:, :, r, s].ravel()))
    return BitTap(r, s, bool(inside[r, s]), popcounts, int(s_of[r, s]), int(p_of[r, s]), *words)


@dataclass(frozen=True)
class PlaneSet:
    """The planes of an operand: its type, and the value as ``alpha * (sum of weights[t] * bit t) - zeta``."""

    what: str
    type: str
    alpha: int
    weights: tuple[int, ...]
    zeta: int

    @property
    def written(self) -> str:
        """A value as a function of the bits of its code: ``2 b0 - 1``."""
        bits = written_sum([(weight, f"b{t}") for t, weight in enumerate(self.weights)])
        scaled = bits if self.alpha == 1 else f"{self.alpha} {bits if len(self.weights) == 1 else f'({bits})'}"
        return scaled + (f" {'-' if self.zeta > 0 else '+'} {abs(self.zeta)}" if self.zeta else "")


@dataclass(frozen=True)
class PlanesInMemory:
    """An operand in a layout: the shape of its uint32 words, their bytes, and which fraction of the bits holds
    values."""

    what: str
    layout: str
    shape: tuple[int, ...]
    bytes: int
    used: float


@dataclass(frozen=True)
class Planes(InfoRecord):
    """The bit planes of a workload's operands, and how each layout arranges their words."""

    workload: ConvWorkload
    planes: tuple[PlaneSet, ...]
    layouts: tuple[PlanesInMemory, ...]

    def title(self) -> str:
        """Whose planes."""
        return f"{self.workload.label}: bit planes of its operands"

    def table(self) -> Table:
        """One row per operand and layout."""
        rows = ((one.what, one.layout, list(one.shape), one.bytes, 100 * one.used) for one in self.layouts)
        return Table(("operand", "layout", "words", "bytes", "used %"), tuple(rows))

    def text(self) -> str:
        """The planes, then the layouts."""
        lines = [f"{one.what} ({one.type}): value = {one.written}" for one in self.planes]
        return "\n".join([self.title(), "", *lines, "", columns_text(self.table())])


@checked
def planes(workload: ConvWorkload | str) -> Planes:
    """The planes of a workload's operands in every layout that can hold them. Raises InvalidInput for an unknown
    workload, Unsupported for types whose values are not weighted sums of bits."""
    wl = workload_named(workload)
    types = wl.precision
    operands: tuple[tuple[str, Operand, tuple[int, ...]], ...] = (
        ("activations", types.activations, (wl.n, wl.h, wl.w, wl.c)),
        ("weights", types.weights, (wl.k, wl.r, wl.s, wl.c)),
        ("output", types.output, (wl.n, wl.p, wl.q, wl.k)),
    )
    sets, places = [], []
    for what, operand, shape in operands:
        form = bit_code(operand)
        sets.append(PlaneSet(what, operand.name, form.alpha, form.weights, form.zeta))
        names = ("nhwc", "fsb") if what == "weights" else ("nhwc", "nb8", "nb8r", "fsb")
        for layout in names:
            if layout != NB8R or shape[3] <= PAIR_CHANNELS:
                words = words_shape(layout, operand, shape)
                bits = WORD_BITS * prod(words)
                share = operand.bits * prod(shape) / bits
                places.append(PlanesInMemory(what, layout, words, bits // 8, share))
    return Planes(wl, tuple(sets), tuple(places))

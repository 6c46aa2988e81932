"""Sums of products from counts of bits: what kernels on bit planes compute, as a closed form.

A value is a sum of its code's bits: ``value = alpha * (sum over planes of d_t * bit_t) - zeta`` with d_t = 2^t, or
-2^(bits-1) for the top plane in two's complement. With U = sum over plane pairs of d_s d_t popc(w_s and x_t) over a
window, S its sum of activation bits (d_t popc(x_t)), P that of the weights and n its number of products (APNN-TC,
section 3, arXiv 2106.12169, extended to every encoding):

    Y = alpha_w alpha_x U - alpha_x zeta_w S - alpha_w zeta_x P + zeta_w zeta_x n

S depends on the pixel, P and n on the output channel and, where padding means a value that no code has, on which
taps lie inside the image: a border class. Bits of padding channels are 0 on both sides and contribute nothing.
This is the closed form; the correct result is defined by :func:`subbyte.numerics.reference`, which multiplies values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, one_of
from subbyte.errors import Unsupported
from subbyte.numerics.arrays import Int32Array
from subbyte.numerics.planes import plane_words
from subbyte.numerics.values import check_values, encode
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.operand import Operand
from subbyte.workload.precision import Precision

AND, XOR = "and", "xor"
OPERATIONS = (AND, XOR)
"""Bit operations of matrix instructions: sm_75 has xor, sm_80 to sm_89 have both, sm_90 has and (it emulates xor)."""
NOTHING, CONSTANT, CLASSES = "nothing", "constant", "classes"
SUM_LIMIT = 1 << 31
_POPCOUNTS = 1 << 20
"""Words that are compared at a time."""


@dataclass(frozen=True)
class BitCode:
    """How the values of a type are sums of bits: ``alpha * (sum of weights[t] * bit t) - zeta``."""

    alpha: int
    weights: tuple[int, ...]
    zeta: int


def bit_code(operand: Operand) -> BitCode:
    """A type's values as sums of bits. Raises Unsupported for a type whose values are not."""
    values = operand.values
    steps = [values[1 << plane] - values[0] for plane in range(operand.bits)]
    sums = [values[0] + sum(step for t, step in enumerate(steps) if code >> t & 1) for code in range(len(values))]
    if sums != list(values):
        raise Unsupported(f"{operand.name} values are no sums of bits: bit products take signed, unsigned, offset and "
                          "bipolar types")  # fmt: skip
    alpha = max(1, gcd(*steps))
    return BitCode(alpha, tuple(step // alpha for step in steps), -values[0])


def written_sum(terms: Sequence[tuple[int, str]]) -> str:
    """Factors and what they multiply as text, ``4 U - 2 S + n``; terms with factor 0 are left out."""
    said = [
        f"{'-' if factor < 0 else '+'} {'' if abs(factor) == 1 else f'{abs(factor)} '}{name}"
        for factor, name in terms
        if factor
    ]
    return " ".join(said).removeprefix("+ ")


@dataclass(frozen=True)
class BitProducts:
    """The closed form of a precision: the factors of U, S, P and n, and the treatment of the border.

    ``fill`` is the code of a pixel outside the image in its true channels. ``border`` says what that costs: ``nothing``
    (0 bits contribute nothing), ``constant`` (P and n over the whole window, one constant per channel), or ``classes``
    (no code has the padding's value: 0 bits are stored, P and n are over the taps inside the image).
    """

    precision: Precision
    weights: BitCode
    activations: BitCode
    product: int
    pixel: int
    channel: int
    count: int
    fill: int
    border: str

    @property
    def per_pixel(self) -> bool:
        """Whether S, the sum of activation bits of each window, is needed."""
        return self.pixel != 0

    @property
    def per_channel(self) -> bool:
        """Whether P, the sum of the weights' bits of each output channel, is needed."""
        return self.channel != 0

    @property
    def plane_pairs(self) -> int:
        """Number of one-bit products per product."""
        return len(self.weights.weights) * len(self.activations.weights)

    @property
    def formula(self) -> str:
        """The form in one line: ``4 U - 2 S - 2 P + n``."""
        return written_sum([(self.product, "U"), (self.pixel, "S"), (self.channel, "P"), (self.count, "n")])

    @property
    def xor_formula(self) -> str | None:
        """The form with popc(w xor x), if it needs no correction inside the image: n - 2 X if both are -1 and 1."""
        plain = (self.product, self.pixel, self.channel, self.count) == (4, -2, -2, 1) and self.plane_pairs == 1
        return "n - 2 X" if plain else None


@checked
def bit_products(precision: Precision | str) -> BitProducts:
    """The closed form of a precision, such as ``w1a2``. Raises InvalidInput for one that does not exist, Unsupported
    for types whose values are not sums of bits."""
    return _form(Precision.of(precision))


@cache
def _form(types: Precision) -> BitProducts:
    w, x = bit_code(types.weights), bit_code(types.activations)
    codes = [code for code, value in enumerate(types.activations.values) if value == types.pad_value]
    fill = codes[0] if codes else 0
    border = CLASSES if not codes else NOTHING if fill == x.zeta == 0 else CONSTANT
    return BitProducts(
        types, w, x, w.alpha * x.alpha, -x.alpha * w.zeta, -w.alpha * x.zeta, w.zeta * x.zeta, fill, border
    )


@checked
def range_reason(workload: ConvWorkload) -> str | None:
    """Why sums of bit products do not fit: n (2^p - 1)(2^q - 1) of U must stay below 2^31. None if they fit.

    Everything else is computed modulo 2^32: intermediate multiples of U, S, P and n may overflow if the final sum does
    not.
    """
    p, q = workload.precision.weights.bits, workload.precision.activations.bits
    terms = workload.r * workload.s * workload.c
    most = terms * ((1 << p) - 1) * ((1 << q) - 1)
    if most < SUM_LIMIT:
        return None
    return f"range: {terms} products of {p} and {q} bits count up to {most}, beyond 2^31 - 1; use fewer channels"


@checked
def pixel_sum_dtype(workload: ConvWorkload) -> str:
    """The dtype that holds a window's S: ``int16`` if R*S*C*(2^q - 1) is at most 32,767, else ``int32``."""
    largest = workload.r * workload.s * workload.c * ((1 << workload.precision.activations.bits) - 1)
    return "int16" if largest <= np.iinfo(np.int16).max else "int32"


@dataclass(frozen=True, eq=False)
class BorderClasses:
    """Which taps of an output pixel lie inside the image: ``of`` int64 [P,Q] is its class, ``taps`` bool [classes,R,S]
    the taps inside for each class. A padded 3x3 kernel has 9 classes, numbered row by row from the top left corner."""

    of: NDArray[np.int64]
    taps: NDArray[np.bool_]


@checked
def border_classes(workload: ConvWorkload) -> BorderClasses:
    """The border classes of a workload's output pixels."""
    wl = workload
    (rows, row_taps), (columns, column_taps) = _axes(wl)
    taps = np.array(row_taps)[:, None, :, None] & np.array(column_taps)[None, :, None, :]
    of = np.array(rows)[:, None] * len(column_taps) + np.array(columns)
    return BorderClasses(of, taps.reshape(-1, wl.r, wl.s))


def border_axes(workload: ConvWorkload) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The class of each output row and of each output column, numbered separately along each axis."""
    (rows, _), (columns, _) = _axes(workload)
    return rows, columns


def border_taps(workload: ConvWorkload) -> tuple[tuple[tuple[bool, ...], ...], tuple[tuple[bool, ...], ...]]:
    """The taps that lie inside the image: kernel rows for each class of output rows, and the same for columns."""
    (_, rows), (_, columns) = _axes(workload)
    return rows, columns


_Axis = tuple[tuple[int, ...], tuple[tuple[bool, ...], ...]]


def _axes(wl: ConvWorkload) -> tuple[_Axis, _Axis]:
    step = wl.pad, wl.stride, wl.dilation
    return _axis_classes(wl.p, wl.r, wl.h, *step), _axis_classes(wl.q, wl.s, wl.w, *step)


@cache
def _axis_classes(outputs: int, kernel: int, size: int, pad: int, stride: int, dilation: int) -> _Axis:
    """The class of each output along an axis, and the taps of each class, in order of appearance. Cached, because every
    plan of a layer asks for it."""
    places = np.arange(outputs)[:, None] * stride + np.arange(kernel) * dilation - pad
    inside = [tuple(row) for row in ((places >= 0) & (places < size)).tolist()]
    taps = tuple(dict.fromkeys(inside))
    number = {one: index for index, one in enumerate(taps)}
    return tuple(number[one] for one in inside), taps


@checked
def channel_constants(workload: ConvWorkload, w: NDArray[Any]) -> Int32Array:
    """The constant added for each border class and output channel: weights values [K,R,S,C] -> int32 [classes, K].

    There is one class unless the border needs several (:class:`BitProducts`). Modulo 2^32. Raises InvalidInput.
    """
    form = bit_products(workload.precision)
    _, inside, counted = _weight_sums(workload, w)
    return _modulo(form.channel * inside + form.count * counted)


def _weight_sums(wl: ConvWorkload, w: NDArray[Any]) -> tuple[NDArray[np.int64], ...]:
    """P of each channel over the whole window [K]; P [classes,K] and n [classes,1] over the taps of each class."""
    form = bit_products(wl.precision)
    taps = border_classes(wl).taps if form.border == CLASSES else np.ones((1, wl.r, wl.s), np.bool_)
    counts = np.bitwise_count(tap_words(wl, w)).sum(axis=-1, dtype=np.int64)  # [p][K][R][S]
    sums = np.tensordot(form.weights.weights, counts, axes=1)
    return sums.sum(axis=(1, 2)), np.einsum("krs,brs->bk", sums, taps), wl.c * taps.sum(axis=(1, 2))[:, None]


@dataclass(frozen=True)
class CountForm:
    """A sum as a function of bit counts with one operation, in integers:

    ``scale Y = product (sum over plane pairs of d_s d_t count) + pixel S + constant of class and channel``.

    For ``and`` that is the form of :class:`BitProducts`. For ``xor``, whose counts over a window are P + S -
    2 popc(w and x) for each pair, S and P get other factors; both vanish for -1 and 1 inside the image. ``window`` is
    the factor of P over the whole window, including taps outside the image, in the constant. ``scale`` is 2 where a
    half remains.
    """

    form: BitProducts
    operation: str
    scale: int
    product: int
    pixel: int
    window: int

    def factor(self, weight_plane: int, plane: int) -> int:
        """The factor of a count for one plane of weights and one plane of activations."""
        return self.product * self.form.weights.weights[weight_plane] * self.form.activations.weights[plane]

    def pixel_factor(self, plane: int) -> int:
        """The factor of the bits of one plane in a window's activations."""
        return self.pixel * self.form.activations.weights[plane]

    def span(self, workload: ConvWorkload) -> tuple[int, int]:
        """Minimum and maximum of the part that depends on the pixel: everything but the constant."""
        least, largest = _span_of_pair(self)
        depth = workload.r * workload.s * workload.c
        return depth * least, depth * largest


@cache
def _span_of_pair(form: CountForm) -> tuple[int, int]:
    """Minimum and maximum contribution of one weight and one activation; padding bits contribute 0."""
    sides = form.form.weights.weights, form.form.activations.weights
    w, x = (np.arange(1 << len(side)) for side in sides)
    total = np.zeros((w.size, x.size), np.int64)
    for t in range(len(sides[1])):
        bit = x >> t & 1
        total += form.pixel_factor(t) * bit
        for s in range(len(sides[0])):
            other = (w >> s & 1)[:, None]
            total += form.factor(s, t) * (other & bit if form.operation == AND else other ^ bit)
    return min(0, int(total.min())), max(0, int(total.max()))


@checked
def count_form(precision: Precision | str, operation: str = AND) -> CountForm:
    """The form of a precision with an operation. Raises InvalidInput, Unsupported like :func:`bit_products`."""
    form = bit_products(precision)
    if one_of(operation, "operation", OPERATIONS) == AND:
        return CountForm(form, AND, 1, form.product, form.pixel, 0)
    w, x = sum(form.weights.weights), sum(form.activations.weights)
    scale = 1 if form.product % 2 == 0 else 2
    half = form.product * scale // 2
    return CountForm(form, XOR, scale, -half, scale * form.pixel + half * w, half * x)


@checked
def plain_operation(precision: Precision | str) -> str:
    """``xor`` if its counts need no sum of activation bits and those of ``and`` do (all bipolar weights: 2 U - S is P -
    popc(w xor x)); else ``and``. Raises InvalidInput, Unsupported."""
    return XOR if count_form(precision, AND).pixel and not count_form(precision, XOR).pixel else AND


@checked
def count_constants(workload: ConvWorkload, w: NDArray[Any], operation: str = AND) -> NDArray[np.int64]:
    """The constants of :class:`CountForm`, exact: weights values [K,R,S,C] -> int64 [classes, K]. Raises
    InvalidInput."""
    made, form = count_form(workload.precision, operation), bit_products(workload.precision)
    window, inside, counted = _weight_sums(workload, w)
    constants: NDArray[np.int64] = made.scale * (form.channel * inside + form.count * counted) + made.window * window
    return constants


@checked
def pixel_sums(workload: ConvWorkload, x: NDArray[Any]) -> Int32Array:
    """S of each window: activations [N,H,W,C] -> int32 [N,P,Q]; pixels outside the image have the fill code.

    Raises InvalidInput.
    """
    weights = bit_products(workload.precision).activations.weights
    words = pixel_words(workload, x)
    counts = np.tensordot(weights, np.bitwise_count(words).sum(axis=-1, dtype=np.int64), axes=1)
    windows = [counts[:, rows, columns] for rows, columns in _windows(workload)]
    return _modulo(np.sum(windows, axis=0))


@checked
def sums_by_popcounts(workload: ConvWorkload, x: NDArray[Any], w: NDArray[Any], operation: str = AND) -> Int32Array:
    """The convolution in closed form: values x [N,H,W,C] and w [K,R,S,C] -> int32 [N,P,Q,K].

    Words of bit planes are combined with ``operation`` and counted; with xor, popc(w and x) is (popc w + popc x -
    popc(w xor x)) / 2. It agrees with the reference; it is slow, for tests and views. Raises InvalidInput, Unsupported
    for sums beyond 2^31.
    """
    one_of(operation, "operation", OPERATIONS)
    wl, form = workload, bit_products(workload.precision)
    if reason := range_reason(wl):
        raise Unsupported(f"{wl}: {reason}")
    pixels, taps = pixel_words(wl, x), tap_words(wl, w)
    windows = np.stack([pixels[:, :, rows, columns] for rows, columns in _windows(wl)], axis=-2)
    lowered = windows.reshape(*windows.shape[:4], -1)  # [q][N][P][Q][words of a window]
    filters = taps.reshape(*taps.shape[:2], -1)  # [p][K][words of a window]
    total = np.zeros((wl.n, wl.p, wl.q, wl.k), np.int64)
    for d_x, one in zip(form.activations.weights, lowered, strict=True):
        for d_w, other in zip(form.weights.weights, filters, strict=True):
            total += d_x * d_w * _counts(one, other, operation)
    of = border_classes(wl).of if form.border == CLASSES else np.zeros((wl.p, wl.q), np.int64)
    total = form.product * total + channel_constants(wl, w)[of]
    return _modulo(total + form.pixel * pixel_sums(wl, x).astype(np.int64)[..., None])


def _counts(one: NDArray[np.uint32], other: NDArray[np.uint32], operation: str) -> NDArray[np.int64]:
    """popc(one and other) of all pairs: words [..., m] and [K, m] -> [..., K]."""
    rows = one.reshape(-1, one.shape[-1])
    found = np.empty((len(rows), len(other)), np.int64)
    step = max(1, _POPCOUNTS // other.size)
    compare = np.bitwise_and if operation == AND else np.bitwise_xor
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        found[part] = np.bitwise_count(compare(rows[part, None], other)).sum(axis=-1, dtype=np.int64)
    if operation == XOR:
        ones, others = (np.bitwise_count(words).sum(axis=-1, dtype=np.int64) for words in (rows, other))
        found = (ones[:, None] + others - found) // 2
    return found.reshape(*one.shape[:-1], len(other))


def pixel_words(wl: ConvWorkload, x: NDArray[Any]) -> NDArray[np.uint32]:
    """Plane words of the padded image: values [N,H,W,C] -> uint32 [q][N][H + 2 pad][W + 2 pad][words]; pixels outside
    the image have the fill code. Raises InvalidInput."""
    operand = wl.precision.activations
    check_values(x, "x", operand, (wl.n, wl.h, wl.w, wl.c))
    border = ((0, 0), (wl.pad, wl.pad), (wl.pad, wl.pad), (0, 0))
    codes = np.pad(encode(x, operand), border, constant_values=bit_products(wl.precision).fill)
    return plane_words(codes, operand.bits)


def tap_words(wl: ConvWorkload, w: NDArray[Any]) -> NDArray[np.uint32]:
    """Plane words of the weights: values [K,R,S,C] -> uint32 [p][K][R][S][words]. Raises InvalidInput."""
    check_values(w, "w", wl.precision.weights, (wl.k, wl.r, wl.s, wl.c))
    return plane_words(encode(w, wl.precision.weights), wl.precision.weights.bits)


def _windows(wl: ConvWorkload) -> list[tuple[slice, slice]]:
    """For each tap, the padded input rows and columns that the output pixels read."""
    height, width = (wl.p - 1) * wl.stride + 1, (wl.q - 1) * wl.stride + 1
    tops, lefts = ([tap * wl.dilation for tap in range(size)] for size in (wl.r, wl.s))
    return [
        (slice(top, top + height, wl.stride), slice(left, left + width, wl.stride)) for top in tops for left in lefts
    ]


def _modulo(total: NDArray[np.int64]) -> Int32Array:
    """The value modulo 2^32, as 32-bit registers hold it."""
    return (np.asarray(total, np.int64) & 0xFFFFFFFF).astype(np.uint32).view(np.int32)

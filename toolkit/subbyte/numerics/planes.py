"""Bit planes of values, their memory layouts, and conversions between them.

Plane t of an operand is bit t of every code; its words hold 32 channels each, channel c at bit c % 32 (TCBNN's networks
start with the highest bit instead; any order works if both operands use it). NB = ceil(N/8), CB = ceil(C/128),
q planes. The word for n, h, w, c and plane t, with i = n % 8 and j = c % 128 / 32:

======  ==========================================  ================================================
name    shape (uint32 words)                        word index
======  ==========================================  ================================================
nhwc    [q][N][H][W][CB*4]                          ``(((t*N + n)*H + h)*W + w)*CB*4 + c/32``
nb8     [NB][H][W][CB][q][8 n][4]                   ``(((((n/8*H + h)*W + w)*CB + c/128)*q + t)*8 + i)*4 + j``
nb8r    [NB][ceil(H/2)][W][q][8 n][2 rows][2]       ``((((n/8*ceil(H/2) + h/2)*W + w)*q + t)*8 + i)*4 + h%2*2 + j``
fsb     [q][H][W][NB][CB][8 n][4]                   ``(((((t*H + h)*W + w)*NB + n/8)*CB + c/128)*8 + i)*4 + j``
======  ==========================================  ================================================

``nb8`` is the layout of kernels on bits: 8 images x 128 channels of one plane are 128 contiguous bytes, a core
matrix. In ``nb8r`` two rows of at most 64 channels share them. ``fsb`` is TCBNN's fixed stride bit format (arXiv
2006.16578): the same blocks of 8 x 128 bits in the order H W N C, one plane after another. ``nhwc`` is the plain order
of APNN-TC (arXiv 2106.12169), whose planes are outermost. Weights [K,R,S,C] are stored by the same formulas, with K in
place of N, R of H and S of W: their ``nhwc`` is [p][K][R][S][CB*4], their ``fsb`` TCBNN's order R S K C, with K padded
to a multiple of 8 (in TCBNN 32). A matrix [M,K] has M rows of one pixel: its ``fsb`` index is
``((m/8*CB + k/128)*8 + m%8)*4 + k%128/32``.

Padding bits, those of padding channels, images and rows, are 0 when stored. Reading ignores them;
:meth:`PlaneWords.check_filling` rejects words in which one is set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, is_several, is_whole
from subbyte.errors import InvalidInput, did_you_mean, shown
from subbyte.numerics.arrays import Words, check_array
from subbyte.numerics.layout import BLOCK_WORDS, pad_axis
from subbyte.numerics.values import Codes, check_values, decode, encode
from subbyte.workload.conv import BATCH_GROUP, ceil_div
from subbyte.workload.operand import BLOCK_BITS, WORD_BITS, Operand

Bits = NDArray[np.uint8]
"""Zeros and ones."""
NHWC, NB8, NB8R, FSB = "nhwc", "nb8", "nb8r", "fsb"
BIT_LAYOUTS = (NHWC, NB8, NB8R, FSB)
PAIR_CHANNELS = BLOCK_BITS // 2
"""Most channels of a row in ``nb8r``."""
PAIR_WORDS = BLOCK_WORDS // 2


@checked
def planes_of(values: NDArray[Any], operand: Operand) -> Bits:
    """Values of the type [...] in its dtype -> its bit planes, uint8 zeros and ones [bits, ...], least bit first.

    Raises InvalidInput for another dtype and for numbers that are not values of the type.
    """
    codes = encode(check_values(values, "values", operand), operand)
    return np.stack([codes >> np.uint8(plane) & np.uint8(1) for plane in range(operand.bits)])


@checked
def values_of(planes: Bits, operand: Operand) -> NDArray[Any]:
    """Bit planes uint8 [bits, ...] -> values [...] in the type's dtype; the inverse of :func:`planes_of`.

    Raises InvalidInput for another dtype, another number of planes, and elements other than 0 and 1.
    """
    bits = check_array(planes, "planes", np.uint8)
    if bits.ndim == 0 or len(bits) != operand.bits:
        count = len(bits) if bits.ndim else 0
        raise InvalidInput(f"planes holds {count} of them: {operand.name} has {operand.bits}, least bit first")
    if bits.size and bits.max() > 1:
        raise InvalidInput(f"planes holds the number {bits.max()}: expected zeros and ones")
    codes: Codes = np.zeros(bits.shape[1:], np.uint8)
    for plane, one in enumerate(bits):
        codes |= one << np.uint8(plane)
    return decode(codes, operand)


@dataclass(frozen=True, eq=False)
class PlaneWords:
    """Values as bit planes in memory: uint32 ``words`` in a ``layout``, with their type and shape.

    ``shape`` is [N,H,W,C] for activations, [K,R,S,C] for weights or [M,K] for a matrix, without padding. The shape of
    ``words`` follows from it (:func:`words_shape`). Raises InvalidInput for words of another shape, and for a shape
    that the layout cannot hold.
    """

    words: Words
    layout: str
    operand: Operand
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        wanted = words_shape(self.layout, self.operand, self.shape)
        check_array(self.words, f"words of {self._said}", np.uint32, wanted)
        object.__setattr__(self, "shape", tuple(map(int, self.shape)))

    @property
    def _said(self) -> str:
        return f"{self.operand.name} {list(self.shape)} in layout {self.layout}"

    def values(self) -> NDArray[Any]:
        """The values, in ``shape`` and the type's dtype. Padding bits are ignored."""
        return values_of(_bits(_plain(self), self.shape[-1]), self.operand).reshape(self.shape)

    def relayout(self, layout: str) -> PlaneWords:
        """The same values in another layout, all padding bits 0. Raises InvalidInput if that layout cannot hold
        them."""
        words_shape(layout, self.operand, self.shape)
        return PlaneWords(_placed(_cleared(_plain(self), self.shape[-1]), layout), layout, self.operand, self.shape)

    def words_for(self, layout: str, operand: Operand, shape: tuple[int, ...]) -> Words:
        """The words, for a reader of this layout, type and shape. Raises InvalidInput if they have another one."""
        given, wanted = (self.operand, self.shape), (operand, tuple(shape))
        if given != wanted:
            raise InvalidInput(f"packed words are {self._said}: expected {operand.name} {list(shape)}")
        if self.layout != layout:
            raise InvalidInput(
                f"packed words are in layout {self.layout}, expected {layout}: relayout({layout!r}) moves them"
            )
        return self.words

    def check_filling(self) -> PlaneWords:
        """Returns itself. Raises InvalidInput if a bit of a padding channel, image or row is set."""
        clean = self.relayout(self.layout).words
        wrong = np.flatnonzero(clean.ravel() != self.words.ravel())
        if wrong.size:
            raise InvalidInput(
                f"words of {self._said}: {wrong.size} have bits set beyond the true sizes, the first is word "
                f"{wrong[0]}; such bits must be 0"
            )
        return self

    def word_index(self, plane: Any, n: Any, h: Any, w: Any, c: Any) -> Any:
        """Index, in the flat words, of the word that holds an element, at its bit ``c % 32``: the formula of the
        layout. Arguments are integers or integer arrays."""
        images, height, width, channels = _four(self.shape)
        q, groups, blocks = self.operand.bits, ceil_div(images, BATCH_GROUP), ceil_div(channels, BLOCK_BITS)
        group, image, word = n // BATCH_GROUP, n % BATCH_GROUP, c % BLOCK_BITS // WORD_BITS
        if self.layout == NHWC:
            return (((plane * images + n) * height + h) * width + w) * blocks * BLOCK_WORDS + c // WORD_BITS
        if self.layout == NB8:
            block = ((group * height + h) * width + w) * blocks + c // BLOCK_BITS
            return ((block * q + plane) * BATCH_GROUP + image) * BLOCK_WORDS + word
        if self.layout == NB8R:
            block = ((group * ceil_div(height, 2) + h // 2) * width + w) * q + plane
            return (block * BATCH_GROUP + image) * BLOCK_WORDS + h % 2 * PAIR_WORDS + word
        block = (((plane * height + h) * width + w) * groups + group) * blocks + c // BLOCK_BITS
        return (block * BATCH_GROUP + image) * BLOCK_WORDS + word


@checked
def pack_planes(values: NDArray[Any], operand: Operand, layout: str = NB8) -> PlaneWords:
    """Values of the type, [N,H,W,C], weights [K,R,S,C] or a matrix [M,K], as bit planes in a layout.

    ``layout`` is ``nhwc``, ``nb8``, ``nb8r`` (at most 64 channels) or ``fsb``. Padding bits are 0. Raises InvalidInput
    for another dtype, number of axes, value or layout.
    """
    codes = encode(check_values(values, "values", operand), operand)
    shape = words_shape(layout, operand, codes.shape)
    plain = plane_words(codes.reshape(_four(codes.shape)), operand.bits)
    return PlaneWords(_placed(plain, layout).reshape(shape), layout, operand, codes.shape)


def plane_words(codes: Codes, bits: int) -> Words:
    """Codes uint8 [..., C], unchecked, as words of each plane, uint32 [bits, ..., CB*4]; bits beyond C are 0."""
    padded = pad_axis(codes, codes.ndim - 1, BLOCK_BITS)
    return np.stack([_words(padded >> np.uint8(plane) & np.uint8(1)) for plane in range(bits)])


@checked
def words_shape(layout: str, operand: Operand, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the words for values of a type and shape. Raises InvalidInput for an unknown layout, for a shape
    without 2 or 4 axes, and for more channels than ``nb8r`` holds."""
    if layout not in BIT_LAYOUTS:
        raise InvalidInput(f"layout {shown(layout)} of bit planes: {did_you_mean(layout, BIT_LAYOUTS)}")
    n, h, w, c = _four(shape)
    if layout == NB8R and c > PAIR_CHANNELS:
        raise InvalidInput(f"layout {NB8R}: pairs of rows hold at most {PAIR_CHANNELS} channels, not {c}; {NB8} any")
    q, groups, blocks = operand.bits, ceil_div(n, BATCH_GROUP), ceil_div(c, BLOCK_BITS)
    block = (BATCH_GROUP, BLOCK_WORDS)
    return {
        NHWC: (q, n, h, w, blocks * BLOCK_WORDS),
        NB8: (groups, h, w, blocks, q, *block),
        NB8R: (groups, ceil_div(h, 2), w, q, BATCH_GROUP, 2, PAIR_WORDS),
        FSB: (q, h, w, groups, blocks, *block),
    }[layout]


def _four(shape: Any) -> tuple[int, int, int, int]:
    """The shape as [N,H,W,C]; rows of a matrix are images of one pixel."""
    sizes = tuple(shape) if is_several(shape) else ()
    if len(sizes) not in (2, 4) or not all(is_whole(size) and size > 0 for size in sizes):
        raise InvalidInput(f"shape {shown(shape)}: expected [N,H,W,C], [K,R,S,C] or [M,K], each at least 1")
    return (sizes[0], *(sizes[1:-1] or (1, 1)), sizes[-1])


def _words(bits: Bits) -> Words:
    """Zeros and ones [..., 32 m] -> uint32 [..., m]."""
    return np.ascontiguousarray(np.packbits(bits, axis=-1, bitorder="little")).view("<u4").astype(np.uint32, copy=False)


def _bits(plain: Words, channels: int) -> Bits:
    """uint32 [..., m] -> zeros and ones of the true channels [..., C]."""
    bytes_ = np.ascontiguousarray(plain).astype("<u4", copy=False).view(np.uint8)
    return np.unpackbits(bytes_, axis=-1, count=channels, bitorder="little")


def _cleared(plain: Words, channels: int) -> Words:
    """The words with all bits beyond the true channels set to 0."""
    mask = _words(pad_axis(np.ones((1, channels), np.uint8), 1, BLOCK_BITS))[0]
    return plain & mask


def _placed(plain: Words, layout: str) -> Words:
    """Words uint32 [q][N][H][W][CB*4] in a layout."""
    if layout == NHWC:
        return np.ascontiguousarray(plain)
    q, _, height, width, length = plain.shape
    padded = pad_axis(plain, 1, BATCH_GROUP)
    if layout == NB8R:
        rows = pad_axis(padded, 2, 2)[..., :PAIR_WORDS].reshape(q, -1, BATCH_GROUP, ceil_div(height, 2), 2, width, 2)
        return np.ascontiguousarray(rows.transpose(1, 3, 5, 0, 2, 4, 6))
    blocks = padded.reshape(q, -1, BATCH_GROUP, height, width, length // BLOCK_WORDS, BLOCK_WORDS)
    order = (1, 3, 4, 5, 0, 2, 6) if layout == NB8 else (0, 3, 4, 1, 5, 2, 6)
    return np.ascontiguousarray(blocks.transpose(order))


def _plain(packed: PlaneWords) -> Words:
    """The words as [q][N][H][W][CB*4], without padding images and rows."""
    words, layout = packed.words, packed.layout
    if layout == NHWC:
        return words
    images, height, width, channels = _four(packed.shape)
    q, length = packed.operand.bits, ceil_div(channels, BLOCK_BITS) * BLOCK_WORDS
    if layout == NB8R:
        rows = words.transpose(3, 0, 4, 1, 5, 2, 6).reshape(q, -1, 2 * words.shape[1], width, PAIR_WORDS)
        return np.pad(rows[:, :images, :height], [(0, 0)] * 4 + [(0, length - PAIR_WORDS)])
    order = (4, 0, 5, 1, 2, 3, 6) if layout == NB8 else (0, 3, 5, 1, 2, 4, 6)
    return words.transpose(order).reshape(q, -1, height, width, length)[:, :images]

"""Memory layouts of packed activations, NHWC, HWNC and NHWCnc words, and conversions between them.

Sizes: ``NB = ceil(N/8)`` groups of 8 images, ``CB`` blocks of channels, four 32-bit words each: ``ceil(C/32)`` for
int4 values, ``ceil(C/(128/b))`` for packed b-bit ones, ``ceil(C/128)*b`` for bit planes, where a block's planes are
adjacent. Images and channels that pad a group or block have all bits 0 (the value 0, if the type's code 0 means it);
they are cropped when converting back.

========  ============================  ==========================================================
name      shape (uint32 words)          one warp access
========  ============================  ==========================================================
nhwc      [NB*8][H][W][CB*4]            8 images: 8 separate runs of 16 bytes, one image apart
hwnc      [H][W][NB*8][CB*4]            8 images: 8 runs of 16 bytes, one pixel's channels apart
nhwcnc    [NB][H][W][CB][8 n][4 words]  8 images: one run of 128 bytes
========  ============================  ==========================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.numerics.arrays import Words, check_array, describe
from subbyte.numerics.values import check_values, encode
from subbyte.numerics.words import channel_unit, pack_codes, storage_of, unpack
from subbyte.workload.conv import BATCH_GROUP, ceil_div
from subbyte.workload.operand import BLOCK_BITS, WORD_BITS, Operand
from subbyte.workload.precision import INT4

BLOCK_WORDS = BLOCK_BITS // WORD_BITS
"""32-bit words in one channel block."""

LAYOUT_NAMES = ("nhwc", "hwnc", "nhwcnc")


def pad_axis(array: NDArray[Any], axis: int, multiple: int) -> NDArray[Any]:
    """``array`` with zeros appended along ``axis`` up to a multiple; the array itself if none are needed."""
    missing = -array.shape[axis] % multiple
    if not missing:
        return array
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, missing)
    return np.pad(array, widths)


@checked
def to_nhwc_words(x: NDArray[Any], operand: Operand = INT4.activations, storage: str | None = None) -> Words:
    """Values of a type (int4: int8) [N,H,W,C] -> uint32 [NB*8][H][W][CB*4], bits 0 beyond N and C.

    ``storage`` is ``packed`` or ``planes``; the default depends on the type's bits. Raises InvalidInput.
    """
    codes = encode(check_values(x, "x", operand, (None, None, None, None)), operand)
    return pack_codes(pad_axis(pad_axis(codes, 3, channel_unit(operand, storage)), 0, BATCH_GROUP), operand, storage)


@checked
def from_nhwc_words(
    words: Words, n: int, c: int, operand: Operand = INT4.activations, storage: str | None = None
) -> NDArray[Any]:
    """uint32 [NB*8][H][W][CB*4] -> values [n,H,W,c] in the type's dtype, padding cropped.

    Raises InvalidInput when n or c do not fit.
    """
    checked, how, unit = _check_words(words, "nhwc"), storage_of(operand, storage), channel_unit(operand, storage)
    images, channels = checked.shape[0], checked.shape[3] * how.unit(operand.bits) // how.words(operand.bits)
    wanted = (ceil_div(n, BATCH_GROUP) * BATCH_GROUP, ceil_div(c, unit) * unit)
    if n < 1 or c < 1 or wanted != (images, channels):
        raise InvalidInput(f"words hold {images} images of {channels} channels: n={n}, c={c} would need {wanted}")
    return np.ascontiguousarray(unpack(checked, operand, storage)[:n, :, :, :c])


@checked
def to_hwnc_words(x: NDArray[Any], operand: Operand = INT4.activations, storage: str | None = None) -> Words:
    """Values [N,H,W,C] -> uint32 [H][W][NB*8][CB*4], otherwise as :func:`to_nhwc_words`. Raises InvalidInput."""
    return relayout(to_nhwc_words(x, operand, storage), "nhwc", "hwnc")


@checked
def from_hwnc_words(
    words: Words, n: int, c: int, operand: Operand = INT4.activations, storage: str | None = None
) -> NDArray[Any]:
    """uint32 [H][W][NB*8][CB*4] -> values [n,H,W,c], padding cropped. Raises InvalidInput."""
    return from_nhwc_words(relayout(words, "hwnc", "nhwc"), n, c, operand, storage)


@checked
def to_nhwcnc(x: NDArray[Any], operand: Operand = INT4.activations, storage: str | None = None) -> Words:
    """Values [N,H,W,C] -> uint32 [NB][H][W][CB][8][4], otherwise as :func:`to_nhwc_words`. Raises InvalidInput."""
    return relayout(to_nhwc_words(x, operand, storage), "nhwc", "nhwcnc")


@checked
def from_nhwcnc(
    words: Words, n: int, c: int, operand: Operand = INT4.activations, storage: str | None = None
) -> NDArray[Any]:
    """uint32 [NB][H][W][CB][8][4] -> values [n,H,W,c], padding cropped. Raises InvalidInput."""
    return from_nhwc_words(relayout(words, "nhwcnc", "nhwc"), n, c, operand, storage)


@checked
def relayout(words: Words, source: str, target: str) -> Words:
    """Packed words of one layout as packed words of another; padding is kept, values are not unpacked.

    ``source`` and ``target`` are ``nhwc``, ``hwnc`` or ``nhwcnc``. Raises InvalidInput for another name or shape.
    """
    names = [_layout_name(source), _layout_name(target)]
    checked = _check_words(words, names[0])
    if names[0] == names[1]:
        return checked
    return np.ascontiguousarray(_from_nhwc(_to_nhwc(checked, names[0]), names[1]))


def _layout_name(name: str) -> str:
    folded = str(name).lower()
    if folded not in LAYOUT_NAMES:
        raise InvalidInput(f"unknown layout {name!r}: {did_you_mean(folded, LAYOUT_NAMES)}")
    return folded


def _check_words(words: Words, layout: str) -> Words:
    if layout == "nhwcnc":
        return check_array(words, "words", np.uint32, (None, None, None, None, BATCH_GROUP, BLOCK_WORDS))
    checked = check_array(words, "words", np.uint32, (None, None, None, None))
    batch = checked.shape[0 if layout == "nhwc" else 2]
    if batch % BATCH_GROUP or checked.shape[3] % BLOCK_WORDS:
        raise InvalidInput(
            f"words is {describe(words)}: expected layout {layout} with a multiple of {BATCH_GROUP} images and of "
            f"{BLOCK_WORDS} words a pixel"
        )
    return checked


def _to_nhwc(words: Words, layout: str) -> Words:
    if layout == "hwnc":
        return words.transpose(2, 0, 1, 3)
    if layout == "nhwcnc":
        groups, height, width, blocks = words.shape[:4]
        shape = (groups * BATCH_GROUP, height, width, blocks * BLOCK_WORDS)
        return words.transpose(0, 4, 1, 2, 3, 5).reshape(shape)
    return words


def _from_nhwc(words: Words, layout: str) -> Words:
    if layout == "hwnc":
        return words.transpose(1, 2, 0, 3)
    if layout == "nhwcnc":
        images, height, width, length = words.shape
        split = (images // BATCH_GROUP, BATCH_GROUP, height, width, length // BLOCK_WORDS, BLOCK_WORDS)
        return words.reshape(split).transpose(0, 2, 3, 4, 1, 5)
    return words

"""Weights and thresholds (or addends) as a block of the kernel reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.families.bits.geometry import LINE_WORDS, WORD_CHANNELS
from subbyte.families.bits.pixel_blocks import block_weights
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.tiles import PIECE_BYTES
from subbyte.numerics.arrays import Words
from subbyte.numerics.bit_products import count_constants
from subbyte.numerics.float_requant import LINE_SCALE_LOG2
from subbyte.numerics.float_requant import threshold_words as line_words
from subbyte.numerics.layout import pad_axis
from subbyte.numerics.planes import plane_words
from subbyte.numerics.reference import accumulator_bound
from subbyte.numerics.thresholds import Thresholds
from subbyte.numerics.values import encode
from subbyte.workload.precision import SUMS

HALF = 1 << 15
"""Offset that raises the smallest sum to 0 if two sums share a register."""


def channel_of_column() -> NDArray[np.int64]:
    """The channel, of 32, for each of 32 columns.

    A thread of a wgmma holds columns 8 j + 2 q + e (q = lane % 4). They are assigned channels 8 q + 2 j + e, so that
    each byte of an output word comes from a single thread.
    """
    column = np.arange(WORD_CHANNELS)
    j, q, e = column // 8, column % 8 // 2, column % 2
    return 8 * q + 2 * j + e


def weight_words(plan: BitsPlan, w: NDArray[np.int8]) -> Words:
    """Values [K,R,S,C] -> uint32 [slices][words]: [variants][steps][2 pieces][N][4 words], then the table if sums are
    the output. Raises InvalidInput."""
    wl, oc = plan.workload, plan.config.channels
    variants = _byte_pieces(plan, w) if plan.whole_values else _bit_pieces(plan, w)
    order = np.arange(oc).reshape(-1, WORD_CHANNELS)[:, channel_of_column()].reshape(-1)
    found = np.zeros((plan.slices, len(variants), 2 * plan.steps, plan.n, 4), np.uint32)
    pieces = len(plan.pieces)
    for index, (weights, ones) in enumerate(variants):
        full = np.zeros((plan.weight_planes, plan.slices * oc, pieces, 4), np.uint32)
        full[:, : wl.k] = weights
        ordered = by_slice(plan, full, 1).reshape(plan.weight_planes, plan.slices, oc, pieces, 4)[:, :, order]
        columns = ordered.transpose(1, 3, 0, 2, 4).reshape(plan.slices, pieces, plan.filter_columns, 4)
        found[:, index, :pieces, : plan.filter_columns] = columns
        if plan.ones:
            found[:, index, :pieces, plan.filter_columns : plan.filter_columns + plan.ones] = ones[:, None]
    flat = found.reshape(plan.slices, -1)
    if plan.output == SUMS:
        table = _arranged(plan, constants_of(plan, w)[:, None])
        flat = np.concatenate([flat, table.view(np.uint32)], axis=1)
    return np.ascontiguousarray(flat)


def word_order(plan: BitsPlan) -> NDArray[np.int64]:
    """The output words in the order in which blocks hold them."""
    slices, words = np.arange(plan.slices)[:, None], np.arange(plan.words)
    found: NDArray[np.int64] = np.asarray(plan.output_word(slices, words)).reshape(-1)
    return found


def by_slice(plan: BitsPlan, array: NDArray[Any], axis: int) -> NDArray[Any]:
    """Reorder an axis of all channels so that those of a block are contiguous."""
    channels = word_order(plan)[:, None] * WORD_CHANNELS + np.arange(WORD_CHANNELS)
    return array.take(channels.reshape(-1), axis) if plan.spread else array


def _bit_pieces(plan: BitsPlan, w: NDArray[np.int8]) -> list[tuple[Words, Words]]:
    """For each variant the weights' bits [p][K][pieces][4 words], and ones [pieces][4 words]."""
    planes = plane_words(encode(w, plan.workload.precision.weights), plan.weight_planes)  # [p][K][R][S][words]
    return [_pieces(plan, planes, parity) for parity in plan.parities]


def _byte_pieces(plan: BitsPlan, w: NDArray[np.int8]) -> list[tuple[Words, Words]]:
    """Whole values as bytes, [1][K][pieces][4 words], without ones: a piece is 16 channels of a tap."""
    padded = pad_axis(block_weights(plan.workload, w), 3, PIECE_BYTES).astype(np.int8)
    words = np.ascontiguousarray(padded).reshape(1, len(w), -1, PIECE_BYTES).view(np.uint32)
    return [(words, np.zeros((0, 4), np.uint32))]


def constants_of(plan: BitsPlan, w: NDArray[np.int8]) -> NDArray[np.int64]:
    """The constants that turn counts into sums, int64 [classes][K]: 0 for whole values."""
    if plan.whole_values:
        return np.zeros((1, plan.workload.k), np.int64)
    return count_constants(plan.workload, w)


def _pieces(plan: BitsPlan, planes: Words, parity: int) -> tuple[Words, Words]:
    """Plane words [p][K][R][S][words] as pieces of 128 bits [p][K][pieces][4], and ones [pieces][4] at the valid bits.

    With paired rows a piece is two rows of the kernel, starting ``parity`` rows above the window: 0 outside the kernel.
    Padding channels have bits 0 in the activations, so their ones count nothing.
    """
    wl = plan.workload
    p, k = planes.shape[:2]
    if not plan.paired_rows:
        found = planes.reshape(p, k, -1, 4)
        return found, np.full((found.shape[2], 4), 0xFFFFFFFF, np.uint32)
    rows = np.zeros((p, k, 2 * plan.window_rows, wl.s, 2), np.uint32)
    ones = np.zeros((2 * plan.window_rows, wl.s, 2), np.uint32)
    rows[:, :, parity : parity + wl.r] = planes[..., :2]
    ones[parity : parity + wl.r] = 0xFFFFFFFF
    pairs = rows.reshape(p, k, plan.window_rows, 2, wl.s, 2).transpose(0, 1, 2, 4, 3, 5)
    return (
        np.ascontiguousarray(pairs).reshape(p, k, -1, 4),
        np.ascontiguousarray(ones.reshape(plan.window_rows, 2, wl.s, 2).transpose(0, 2, 1, 3)).reshape(-1, 4),
    )


def threshold_words(plan: BitsPlan, w: NDArray[np.int8], thresholds: Thresholds) -> NDArray[np.int32]:
    """The thresholds of a block: int32 [slices][table]. Raises InvalidInput."""
    constants = constants_of(plan, w)  # [classes][K], exact: a level may be out of the sums' reach
    levels = thresholds.levels.astype(np.int64)  # [thresholds][K]
    if plan.by_line:
        table = _lines(plan, constants, thresholds)
    elif plan.fusion.sums:
        table = _arranged(plan, _beside_sums(plan, constants, levels))
    else:
        needed = -((constants[:, None] - levels[None]) // plan.divisor)  # of what varies with the pixel, rounded up
        least, largest = plan.span
        table = _arranged(plan, np.clip(needed, least, largest + 1))
    flips = np.zeros((plan.slices, plan.flip_words), np.uint32)
    of_all = thresholds.flip_words(plan.slices * plan.config.channels)
    flips[:, : plan.words] = of_all[word_order(plan)].reshape(plan.slices, plan.words)
    return np.ascontiguousarray(np.concatenate([table, flips.view(np.int32)], axis=1))


def _lines(plan: BitsPlan, constants: NDArray[np.int64], thresholds: Thresholds) -> NDArray[np.int32]:
    """A line for each channel, int32 [slices][classes][words][8][4 lanes][4]: a class's constant is added to the line's
    own addend. Raises InvalidInput for thresholds that are not on a line."""
    oc, limit = plan.config.channels, accumulator_bound(plan.workload)
    found = line_words(thresholds, plan.slices * oc, LINE_SCALE_LOG2, limit)
    if found is None:
        raise InvalidInput("thresholds lie on no line: take a kernel that compares (requant='general')")
    table = np.zeros((len(constants), plan.slices * oc, LINE_WORDS), np.int64)
    table[..., :3] = found.T
    table[:, : plan.workload.k, 0] += constants << LINE_SCALE_LOG2
    split = table.reshape(len(constants), plan.slices, plan.words, 4, 8, LINE_WORDS).transpose(1, 0, 2, 4, 3, 5)
    return (split & 0xFFFFFFFF).astype(np.uint32).view(np.int32).reshape(plan.slices, -1)


def _beside_sums(plan: BitsPlan, constants: NDArray[np.int64], levels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Entries [classes][entries][K] for sums with a residual: complete sums are compared if they are kept."""
    far = 1 << 30
    if not plan.fusion.keep:
        return np.clip(levels[None] - constants[:, None], -far, far)
    of_class = np.broadcast_to(np.clip(levels, -far, far)[None], (len(constants), *levels.shape))
    # the constant is stored like the thresholds, minus 1
    return np.concatenate([constants[:, None] + 1, of_class], axis=1)


def _arranged(plan: BitsPlan, values: NDArray[np.int64]) -> NDArray[np.int32]:
    """A value per class, entry and channel [classes][entries][K] -> int32 [slices][words], arranged as
    [classes][entries][slots][2][4 lanes][4]."""
    oc = plan.config.channels
    never = 1 << 30 if plan.fusion.sums else plan.span[1] + 1
    fill = 0 if plan.output == SUMS else never
    full = np.full((*values.shape[:2], plan.slices * oc), fill, np.int64)
    full[:, :, : plan.workload.k] = values
    if plan.output != SUMS:
        full = HALF - full if plan.paired else full - 1
    # channel 32 word + 8 q + k of a slice -> [slices][classes][thresholds][words][8 k][4 q]
    ordered = by_slice(plan, full, 2)
    split = ordered.reshape(*values.shape[:2], plan.slices, plan.words, 4, 8).transpose(2, 0, 1, 3, 5, 4)
    if plan.paired:
        pairs = [plan.slot_words(slot) for slot in range(plan.slots)]
        low = split[:, :, :, [pair[0] for pair in pairs]]
        high = split[:, :, :, [pair[1] for pair in pairs]]
        split = (low & 0xFFFF) | (high & 0xFFFF) << 16
    split = split.reshape(*split.shape[:-2], 2, 4, 4).swapaxes(-1, -2)  # a lane's entries in groups of four
    return (split & 0xFFFFFFFF).astype(np.uint32).view(np.int32).reshape(plan.slices, -1)

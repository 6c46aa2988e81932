"""Weights and thresholds (or addends) as a block of the kernel reads them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subbyte.families.shared.planes.geometry import GROUP_TILES, IMAGE_WORDS
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.numerics.arrays import Words
from subbyte.numerics.bit_products import count_constants
from subbyte.numerics.planes import plane_words
from subbyte.numerics.thresholds import Thresholds
from subbyte.numerics.values import encode
from subbyte.workload.operand import WORD_BITS
from subbyte.workload.precision import SUMS

TILE_CHANNELS = WORD_BITS // GROUP_TILES


def channel_of_column() -> NDArray[np.int64]:
    """The channel, of 32, for each of 32 columns.

    A thread holds columns 8 j + 2 t + e (t = lane % 4) of four tiles. They are assigned channels 8 t + 2 j + e, so that
    each byte of an output word comes from a single thread.
    """
    column = np.arange(WORD_BITS)
    j, t, e = column // TILE_CHANNELS, column % TILE_CHANNELS // 2, column % 2
    return TILE_CHANNELS * t + 2 * j + e


def weight_words(plan: PlanePlan, w: NDArray[np.int8], lanes: bool) -> Words:
    """Values [K,R,S,C] -> uint32 [slices][words]: stage after stage [kernel row][kernel column][channel block][plane]
    [32 channels' words], then the table if sums are the output. Raises InvalidInput.

    The 128 words of 32 channels are [32 lanes][4 tiles], where lane ``4 o + j`` has word j of column o of each tile, or
    (without ``lanes``) [32 columns][4 words].
    """
    wl = plan.view
    planes = plane_words(encode(w, wl.precision.weights), plan.weight_planes)  # [p][K][R][S][words]
    full = np.zeros((planes.shape[0], plan.column_blocks * plan.columns, *planes.shape[2:]), np.uint32)
    full[:, : wl.k] = planes
    shape = (plan.weight_planes, plan.column_blocks, plan.words, WORD_BITS, wl.r, wl.s, plan.channel_blocks)
    columns = full.reshape(*shape, IMAGE_WORDS)[:, :, :, channel_of_column()]
    if lanes:
        tiles = columns.reshape(*shape[:3], GROUP_TILES, TILE_CHANNELS, *shape[4:], IMAGE_WORDS)
        groups = tiles.transpose(1, 5, 6, 7, 0, 2, 4, 8, 3)  # slice, r, s, block, plane, group, column, word, tile
    else:
        groups = columns.transpose(1, 4, 5, 6, 0, 2, 3, 7)
    ordered = groups.reshape(plan.column_blocks, wl.r, wl.s, plan.chunks, plan.config.chunk, -1)
    steps = (0, 1, 3, 2, 4, 5) if plan.config.reorder_inner else (0, 3, 1, 2, 4, 5)
    flat = ordered.transpose(steps).reshape(plan.column_blocks, -1)
    if plan.output == SUMS:
        table = _arranged(plan, _constants(plan, w)[:, None], 0)
        flat = np.concatenate([flat, table.view(np.uint32)], axis=1)
    return np.ascontiguousarray(flat)


def threshold_words(plan: PlanePlan, w: NDArray[np.int8], thresholds: Thresholds) -> NDArray[np.int32]:
    """The thresholds of a block: int32 [slices][table]. A sum passes if the word minus the part that varies with the
    pixel is negative. Raises InvalidInput."""
    constants = _constants(plan, w)
    levels = plan.counts.scale * thresholds.levels.astype(np.int64)  # [thresholds][K]
    needed = -((constants[:, None] - levels[None]) // plan.divisor)  # rounded up
    least, largest = plan.span
    table = _arranged(plan, np.clip(needed, least, largest + 1) - 1, largest)
    flips = np.zeros((plan.column_blocks, plan.flip_words), np.uint32)
    of_all = thresholds.flip_words(plan.column_blocks * plan.columns)
    flips[:, : plan.words] = of_all.reshape(plan.column_blocks, plan.words)
    return np.ascontiguousarray(np.concatenate([table, flips.view(np.int32)], axis=1))


def _constants(plan: PlanePlan, w: NDArray[np.int8]) -> NDArray[np.int64]:
    """The constants added to the part that varies with the pixel, [classes][K]."""
    return count_constants(plan.view, w, plan.counts.operation) + plan.shift


def _arranged(plan: PlanePlan, values: NDArray[np.int64], fill: int) -> NDArray[np.int32]:
    """A value per class, threshold and channel [classes][thresholds][K] -> int32 [slices][entries], arranged as
    [classes][thresholds][words][2][4 lanes][4]: channel 8 t + 4 h + i of a word at [h][t][i]."""
    full = np.full((*values.shape[:2], plan.column_blocks * plan.columns), fill, np.int64)
    full[:, :, : plan.view.k] = values
    split = full.reshape(*values.shape[:2], plan.column_blocks, plan.words, 4, 2, 4).transpose(2, 0, 1, 3, 5, 4, 6)
    return (split & 0xFFFFFFFF).astype(np.uint32).view(np.int32).reshape(plan.column_blocks, -1)

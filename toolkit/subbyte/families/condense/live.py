"""Live positions of given operands, and the number of steps a kernel takes on them: counted as the kernel would."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subbyte.families.condense.config import ROW_PIXELS
from subbyte.families.condense.plan import CondensePlan
from subbyte.numerics.layout import pad_axis
from subbyte.workload.conv import BATCH_GROUP, CHANNEL_BLOCK, ceil_div

Live = NDArray[np.bool_]
POSITION = np.array([8 * (k % 4) + k // 4 for k in range(CHANNEL_BLOCK)])
"""The position of a channel in a block: that of its lane, if lanes share none."""


def live_rows(plan: CondensePlan, x: NDArray[np.int8]) -> Live:
    """For activations int8 [N,H,W,C]: whether any of the 32 rows of a panel is nonzero, [panels, C]. Rows are pixels of
    8 images, four adjacent ones per panel."""
    some = pad_axis((x != 0).astype(np.int8), 0, BATCH_GROUP)
    pixels = some.reshape(-1, BATCH_GROUP, *some.shape[1:]).any(axis=1).reshape(-1, x.shape[3])
    return _any_of(pixels, ROW_PIXELS)


def live_columns(plan: CondensePlan, w: NDArray[np.int8]) -> Live:
    """For weights int8 [K,1,1,C]: whether any column of a tile is nonzero, [tiles, C]. A tile of fewer than 32 columns
    has the pairs of channels from each eight of a panel that one or two instructions take."""
    padded = pad_axis((w[:, 0, 0] != 0).astype(np.int8), 0, 32)
    split = padded.reshape(-1, 4, 4, 2, padded.shape[1])  # panel, eight channels, pair, channel
    each = split.any(axis=(1, 3)).reshape(-1, padded.shape[1])  # an 8-column tile of the matrix instruction
    return _any_of(each, plan.config.column_tiles)


def _any_of(found: NDArray[np.bool_], count: int) -> Live:
    rows = ceil_div(len(found), count) * count
    padded = np.zeros((rows, found.shape[1]), np.bool_)
    padded[: len(found)] = found
    some: Live = np.any(padded.reshape(-1, count, found.shape[1]), axis=1)
    return some


def kept_of(rows: Live, columns: Live) -> float:
    """The average fraction of K that tiles keep: neither all rows nor all columns of a tile are 0 there."""
    return float((rows.mean(axis=0) * columns.mean(axis=0)).mean())


def steps_of(plan: CondensePlan, rows: Live, columns: Live) -> float:
    """Average steps of 32 positions per tile: in every chunk as many as the lane with the most."""
    chunk = plan.config.chunk
    left, right = (_by_lane(plan, side, chunk) for side in (rows, columns))  # [chunks, classes, tiles, positions]
    total = 0.0
    for one, other in zip(left, right, strict=True):
        for first in range(0, one.shape[1], 512):
            counts = one[:, first : first + 512] @ other.transpose(0, 2, 1)
            total += float(np.ceil(counts.max(axis=0) / plan.config.sharing).sum())
    return total / (len(rows) * len(columns))


def _by_lane(plan: CondensePlan, live: Live, chunk: int) -> NDArray[np.float32]:
    blocks = plan.chunks * chunk
    padded = np.zeros((len(live), blocks * CHANNEL_BLOCK), np.float32)
    padded[:, : live.shape[1]] = live
    lanes = np.empty((plan.chunks, CHANNEL_BLOCK, len(live), chunk), np.float32)
    shaped = padded.reshape(len(live), plan.chunks, chunk, CHANNEL_BLOCK)
    lanes[:, POSITION] = shaped.transpose(1, 3, 0, 2)
    split = lanes.reshape(plan.chunks, plan.config.sharing, plan.classes, len(live), chunk)
    return np.concatenate([split[:, half] for half in range(plan.config.sharing)], axis=-1)

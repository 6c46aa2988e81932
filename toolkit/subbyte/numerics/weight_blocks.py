"""Blocks of weights: 64 filters x 32 input channels of one tap, either all zero or kept.

Weights are [K, ..., C]: filters first, input channels last, taps between; blocks are [tiles, ..., C/32], where the last
one along either axis may be incomplete. The number of blocks kept differs by at most one between *tiles* of 64 filters,
so that every warpgroup has the same work. Kernels accept any weights with few enough live blocks, however they are
distributed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.workload.operand import BLOCK_CHANNELS, BLOCK_FILTERS, Operand


def block_sums(values: NDArray[Any]) -> NDArray[Any]:
    """Sum over each block, [tiles, ..., C/32]. Raises InvalidInput for fewer than two axes."""
    if values.ndim < 2:
        raise InvalidInput(
            f"weights of shape {values.shape}: blocks need filters as the first axis and channels as the last"
        )
    by_tile = np.add.reduceat(values, np.arange(0, values.shape[0], BLOCK_FILTERS), axis=0)
    found: NDArray[Any] = np.add.reduceat(by_tile, np.arange(0, values.shape[-1], BLOCK_CHANNELS), axis=-1)
    return found


def live_blocks(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which blocks have a value other than 0, bool [tiles, ..., C/32]."""
    return block_sums((values != 0).astype(np.int32)) > 0


def allowed_blocks(count: int, percent: int) -> int:
    """Most live blocks among ``count`` for a percentage: rounded up."""
    return -(-count * percent // 100)


def strongest(strength: NDArray[Any], percent: int) -> NDArray[np.bool_]:
    """The blocks to keep, bool in the shape of ``strength`` [tiles, ..., C/32]: the strongest of each tile, where the
    numbers kept differ by at most one between tiles."""
    tiles = strength.shape[0]
    kept, more = divmod(allowed_blocks(strength.size, percent), tiles)
    order = np.argsort(-strength.reshape(tiles, -1), axis=1, kind="stable")
    ranks = np.argsort(order, axis=1, kind="stable")
    wanted = kept + (np.arange(tiles) < more)
    found: NDArray[np.bool_] = (ranks < wanted[:, None]).reshape(strength.shape)
    return found


def spread_out(mask: NDArray[np.bool_], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """A mask of blocks expanded to values of this shape [K, ..., C]."""
    rows = np.repeat(mask, BLOCK_FILTERS, axis=0)[: shape[0]]
    return np.repeat(rows, BLOCK_CHANNELS, axis=-1)[..., : shape[-1]]


def check_blocks(values: NDArray[Any], name: str, operand: Operand) -> None:
    """Raise InvalidInput if more blocks are live than the type allows, naming the first one too many."""
    assert operand.live_percent is not None
    live = live_blocks(values)
    allowed = allowed_blocks(live.size, operand.live_percent)
    count = int(np.count_nonzero(live))
    if count > allowed:
        first = np.argwhere(live)[allowed].tolist()
        filters, channels = first[0] * BLOCK_FILTERS, first[-1] * BLOCK_CHANNELS
        ends = min(filters + BLOCK_FILTERS, values.shape[0]), min(channels + BLOCK_CHANNELS, values.shape[-1])
        where = ", ".join([f"{filters}:{ends[0]}", *map(str, first[1:-1]), f"{channels}:{ends[1]}"])
        raise InvalidInput(
            f"{name} has {count} live blocks of {live.size}, {operand.sparsity} allows {allowed}: {name}[{where}] is "
            f"one too many; subbyte.sparse.prune(w, {operand.sparsity!r}) keeps the strongest"
        )

"""The value lists of the spaces of wgmma kernels.

They depend on the workload: tile widths that leave few columns unused, segments into which its rows divide, and for 1x1
kernels iterations over the output channels instead of tiles of rows. ``wgmma-small`` is a part of the whole space that
can be measured completely.
"""

from __future__ import annotations

from collections.abc import Mapping

from subbyte.families.wgmma.memory import PIXEL_BYTES
from subbyte.families.wgmma.operands import channel_blocks, output_blocks
from subbyte.families.wgmma.pipeline.config import FLAT, FLAT_BATCH, HALF_ROWS, ROWS, TWO_GROUPS, TWO_GROUPS_HALF_ROWS
from subbyte.families.wgmma.rules import WIDTHS
from subbyte.workload import ConvWorkload, ceil_div

Values = tuple[int, ...]
FEW_GROUPS = 2
"""Up to this many groups of 8 images, the time before the first and after the last multiplication dominates."""
LARGE_ROWS = 1 << 17
"""From this many bytes of the input rows of one output row, unpacked, they are loaded in channel groups."""
SOME_WORK = 10**8
"""From this many multiplications of a layer, it matters when a block reads its weights."""
LARGE_WORK = 3 * 10**9
"""From this many multiplications of a layer, the time of its blocks' multiplications dominates."""
MANY_BLOCKS = 16
"""With this many blocks of 32 channels, wide rows do not fit into the pipeline as a whole."""
SEGMENTS = (1, 2, 4, 5, 7, 8, 14, 16, 28, 33, 56, 66, 132, 264)
"""Segments of 1x1 layers, whose pixels need not be divided by rows: includes numbers that distribute them evenly over
132 multiprocessors."""
LOW = 28
"""Up to this many output rows, a block computes a single row at a time, a single tile of its columns, and few rows in
total: larger blocks would be too few."""


def searched_values(workload: ConvWorkload) -> dict[str, Values]:
    """The values of every knob, in the order of a configuration's index: those among which the estimate chooses, and
    those that were never measured, which only a search tries."""
    w, lists = workload, value_lists(workload)
    reuse = lists.get("row_reuse", ())
    if w.r > 1 and 0 in reuse:
        lists["row_reuse"] = (*reuse, 3)
    elif w.r > 1 and w.stride > 1 and _large_rows(w):
        groups = lists["channel_groups"]
        lists |= {"channel_groups": (*groups, *(n for n in (8,) if channel_blocks(w) % (2 * n) == 0)),
                  "row_reuse": (*reuse, 0, 3)}  # fmt: skip
    elif w.r == w.s == 1 and w.pad == 0 and w.macs >= SOME_WORK and w.batch_groups > FEW_GROUPS:
        lists |= {"operands_apart": (0, 1), "copies_ahead": (0, 4)}
    if _copied(w):
        lists |= {"copies_ahead": (1, 2, 3, 0)}
    if w.r > 1 and w.macs >= LARGE_WORK:
        lists["start"] = (*lists.get("start", (0,)), *(n + 2 for n in lists.get("start", (0,))))
    return lists


def value_lists(workload: ConvWorkload) -> dict[str, Values]:
    """The values of every knob for the estimate."""
    w = workload
    pointwise = w.r == w.s == 1 and w.pad == 0
    height, width = (ceil_div(w.p * w.q, 28), 28) if pointwise else (w.p, w.q)
    lists: dict[str, Values] = {
        "tile_width": _widths(width, 2),
        "tile_rows": (1, 2) if pointwise else tuple(n for n in (1, 2, 4) if n <= height),
        "consumers_m": (1, 2),
        "consumers_n": (1,) if pointwise else (1, 2),
        "consumers_rows": (1, 2),
        "segments": tuple(n for n in (1, 2, 4, 7, 8, 14, 28, 56) if n <= height),
        "cluster_split_k": (1, 2, 4),
        "stages": (3, 4, 5, 6, 7, 9),
        "unroll": (1, 2, 4),
        "in_flight": (1, 2),
        "stagger": (0, 1, 2),
    }
    if pointwise:
        lists |= _pointwise_values(w)
    else:
        lists |= {"load_ahead": (2, 1)}
    if w.r == 1 and not pointwise:
        lists |= {"channel_groups": (1, 2, 4)}
    if pointwise and w.stride > 1:
        rows = _widths(w.q, 1)
        lists |= {"tile_width": tuple(dict.fromkeys((*lists["tile_width"], *rows))),
                  "pixels": (FLAT, ROWS, *lists["pixels"][1:])}  # fmt: skip
    if w.batch_groups <= FEW_GROUPS and w.r > 1 and w.macs < LARGE_WORK:
        # blocks with an iteration or two: the pipeline is short, and the start matters
        lists |= {"stages": (3, 4, 6, 9) if w.r <= 3 else (7, 9, 11), "stagger": (0,), "in_flight": (1, 2, 3),
                  "multicast": (0, 1, 2, 4), "dependent_launch": (1, 0)}  # fmt: skip
        if w.macs >= SOME_WORK:
            lists |= {"weights_ahead": (0, 3, 6), "parameters": (0, 1, 2), "early_start": (0, 1, 2)}
    if _large_rows(w):
        groups = tuple(n for n in (1, 2, 4) if channel_blocks(w) % (2 * n) == 0) or (1,)  # none for an odd number
        lists |= {"channel_groups": groups, "stages": (3, 4, 5, 6, 7, 9, 13), "row_reuse": (1, 2)}
    if w.r > 1 and w.stride == 1 and w.macs >= LARGE_WORK:
        lists |= _large_values(w, lists)
    if _copied(w):  # a single producer, with stages in flight in their buffers instead of registers
        lists |= {"load_ahead": (1,), "producers": (1,), "start": (0,), "producer_registers": (0,)}
    return lists


def small_values(workload: ConvWorkload) -> dict[str, Values]:
    """The value lists of ``wgmma-small``: written out, except for the tile widths, so that a landscape keeps its
    meaning when the whole space grows. Meant for layers with few images, where many small blocks fill the GPU."""
    w = workload
    return {
        "tile_width": value_lists(w)["tile_width"],
        "tile_rows": (1, 2) if w.p > LOW else (1,),
        "consumers_m": (1, 2),
        "consumers_n": (1, 2) if w.p > LOW else (1,),
        "consumers_rows": (1, 2),
        "segments": tuple(n for n in (1, 2, 4, 7, 8, 14, 28, 56) if n <= w.p)[-(4 if w.p > LOW else 2) :],
        "cluster_split_k": (1, 2, 4),
        "stages": (w.r, w.r + 1),
        "load_ahead": (2, 1),
        "unroll": (1, 2, 4),
        "in_flight": (1, 2, 3),
        "multicast": (0, 1, 2, 4),
        "stagger": (0,),
    }


def _large_values(w: ConvWorkload, lists: Mapping[str, Values]) -> dict[str, Values]:
    """The values that differ if a block has much to multiply: dividing the work evenly matters, and so does
    letting a block have many channels."""
    more: dict[str, Values] = {"start": (0, 1)}
    if w.p > 56:
        more |= {"segments": (*lists["segments"], 16), "tile_width": tuple(dict.fromkeys((*lists["tile_width"], 14)))}
    if w.p % 2 == 0 and w.q % 14 == 0 and w.p <= 28:
        more["pixels"] = (ROWS, HALF_ROWS)
    if w.q == 7 and w.batch_groups % 2 == 0:  # 7 pixels of two groups of images are one width
        more |= {"tile_width": (8, 7), "pixels": (ROWS, TWO_GROUPS, HALF_ROWS, TWO_GROUPS_HALF_ROWS)}
    if channel_blocks(w) >= MANY_BLOCKS and (w.q > 14 or TWO_GROUPS in more.get("pixels", ())):
        more |= {"channel_groups": (1, 4, 8), "stages": (3, 4, 5, 6, 7, 8, 9, 12, 13),
                 "row_reuse": (*lists.get("row_reuse", (1,)), 0)}  # fmt: skip
    if channel_blocks(w) >= MANY_BLOCKS // 2 and w.q > 14:
        more["producer_registers"] = (0, 80, 104)
    return more


def _pointwise_values(w: ConvWorkload) -> dict[str, Values]:
    """The values that differ if rows do not matter: any width, pipelines of channel groups, and ways to
    share the same pixels among several blocks."""
    pixels, tiles = w.p * w.q, ceil_div(output_blocks(w), 2)
    groups = tuple(n for n in (1, 2, 4, 8, 16) if channel_blocks(w) % n == 0 and n <= max(1, channel_blocks(w) // 2))
    return {
        "tile_width": _widths(pixels, len(WIDTHS)),
        "segments": tuple(n for n in SEGMENTS if n <= ceil_div(pixels * w.batch_groups, 6)),
        "stages": (2, 3, 4, 5, 6, 8, 11),
        "stagger": (0, 2),
        "channel_groups": groups,
        "row_reuse": (1, 0),
        "m_iterations": tuple(n for n in (1, 2, 4) if n <= tiles),
        "load_ahead": (2, 1),
        "producers": (1, 2),
        "pixels": (ROWS, FLAT_BATCH) if w.batch_groups > 1 else (ROWS,),
        "tiles_m": tuple(n for n in (1, 2) if n <= tiles),
    }


def _large_rows(w: ConvWorkload) -> bool:
    """Whether the input rows of one output row fill much of the shared memory: their channels are then loaded in groups
    and released early."""
    width = (w.w + 2 * w.pad) * channel_blocks(w) * PIXEL_BYTES
    return w.r > 1 and channel_blocks(w) > 2 and w.r * width > LARGE_ROWS


def _copied(w: ConvWorkload) -> bool:
    """Whether activations are bytes, which are copied to shared memory unchanged by asynchronous copies."""
    return w.precision.activations.bits == 8


def _widths(pixels: int, count: int) -> Values:
    """The ``count`` instruction widths, of those with at least 6 pixels, that leave the fewest of ``pixels`` unused;
    wide ones first among equals. For one or two pixels narrow ones: the others are too wide for every output."""
    least, spare = (6, 6) if pixels > 2 else (2, 4)
    fitting = [n for n in WIDTHS if n >= least and (n - pixels) < spare] or [WIDTHS[0]]
    best = sorted(fitting, key=lambda n: (ceil_div(pixels, n) * n, -n))[:count]
    return tuple(sorted(best, reverse=True))

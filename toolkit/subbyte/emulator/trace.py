"""The trace of a run: one row per memory access, copy, shuffle, matrix instruction and barrier of each thread.

Rows are a numpy structured array (``TRACE_DTYPE``). ``offset`` is the byte in the argument's array for global accesses
and copies, and the byte in the shared window for shared accesses; ``shared`` is the byte in the shared window (-1:
none). ``valid`` is the number of bytes that a copy really reads (the rest is filled with zeros). ``value`` holds up to
eight bytes.

A wgmma has one row for each of its 128 threads: ``value`` is the descriptor of B, ``shared`` its first byte, ``size``
its columns, ``mode`` is 1 if A is in shared memory too. Rows of mbarriers have a ``mode`` in ``MBARRIER_MODES``, and
the count, the bytes or the phase in ``value``. ``rank`` is the block of the cluster whose shared memory is accessed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput, did_you_mean

TRACE_DTYPE = np.dtype(
    [
        ("value", "u8"),
        ("offset", "i8"),
        ("sequence", "u4"),
        ("block", "u4"),
        ("line", "u4"),
        ("phase", "u4"),
        ("shared", "i4"),
        ("size", "u4"),
        ("valid", "u4"),
        ("buffer", "i2"),
        ("warp", "u2"),
        ("instruction", "u2"),
        ("lane", "u1"),
        ("kind", "u1"),
        ("mode", "u1"),
        ("source_lane", "i1"),
        ("rank", "u1"),
        ("padding", "V1"),
    ]
)
KINDS = (
    "global_load", "global_store", "shared_load", "shared_store", "copy", "shuffle", "mma", "barrier",
    "wgmma", "bulk_copy", "bulk_store", "mbarrier", "fence",
)  # fmt: skip
SHUFFLE_MODES = ("bfly", "idx", "down", "up")
MBARRIER_MODES = ("init", "arrive", "expect_tx", "wait", "inval")

Rows = NDArray[np.void]


def of_kind(trace: Rows, *kinds: str) -> Rows:
    """The rows of the given kinds (names in ``KINDS``), in order of execution."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise InvalidInput(f"unknown trace kind {unknown[0]!r}; {did_you_mean(unknown[0], KINDS)}")
    return trace[np.isin(trace["kind"], [KINDS.index(kind) for kind in kinds])]


def counts(trace: Rows) -> dict[str, int]:
    """Number of rows of each kind (one row per lane)."""
    numbers = np.bincount(trace["kind"], minlength=len(KINDS))
    return {kind: int(number) for kind, number in zip(KINDS, numbers, strict=True)}


def global_bytes_read(trace: Rows, buffer: int | None = None) -> dict[int, int]:
    """Bytes that each block reads from global memory, repeats included, by loads and copies of one argument or of
    all."""
    rows = _global_reads(trace, buffer)
    return {int(block): int(rows["valid"][rows["block"] == block].sum()) for block in np.unique(trace["block"])}


def unique_global_bytes(trace: Rows, buffer: int | None = None) -> dict[int, int]:
    """Distinct bytes of global memory that each block reads, by loads and copies of one argument or of all."""
    rows = _global_reads(trace, buffer)
    result = {}
    for block in np.unique(trace["block"]):
        mine = rows[rows["block"] == block]
        spans = np.unique(np.stack([mine[name].astype(np.int64) for name in ("buffer", "offset", "valid")]), axis=1)
        array, start, size = (np.repeat(row, spans[2]) for row in spans)
        within = np.arange(len(size)) - np.repeat(np.cumsum(spans[2]) - spans[2], spans[2])
        result[int(block)] = len(np.unique(array << 48 | (start + within)))
    return result


def _global_reads(trace: Rows, buffer: int | None) -> Rows:
    rows = of_kind(trace, "global_load", "copy", "bulk_copy")
    rows = rows[(rows["valid"] > 0) & (rows["buffer"] >= 0)]
    return rows if buffer is None else rows[rows["buffer"] == buffer]


def without_repeated_loads(trace: Rows) -> Rows:
    """Drop each load that repeats the access its thread made just before.

    The generated text may load the same word twice in neighbouring expressions; the CUDA compiler loads it once.
    """
    order = np.lexsort((trace["sequence"], trace["lane"], trace["warp"], trace["block"]))
    rows = trace[order]
    same = np.ones(len(rows), bool)
    for name in ("block", "warp", "lane", "kind", "buffer", "offset", "size"):
        same[1:] &= rows[name][1:] == rows[name][:-1]
    same[:1] = False
    is_load = np.isin(rows["kind"], [KINDS.index("global_load"), KINDS.index("shared_load")])
    kept = order[~(same & is_load)]
    return trace[np.sort(kept)]


def warp_groups(trace: Rows, kind: str) -> NDArray[np.intp]:
    """The accesses that the lanes of a warp make together: row indices into ``trace``, int [groups, 32], -1 = no lane.

    Lanes belong together if they are at the same line of the CUDA text, have passed the same number of collectives, and
    have been at that line equally often since. Groups are in order of their first row.
    """
    number = KINDS.index(kind) if kind in KINDS else -1
    if number < 0:
        raise InvalidInput(f"unknown trace kind {kind!r}; {did_you_mean(kind, KINDS)}")
    index = np.flatnonzero(trace["kind"] == number)
    if not len(index):
        return np.empty((0, 32), np.intp)
    rows = trace[index]
    place = np.stack([rows[name].astype(np.int64) for name in ("block", "warp", "phase", "line")])
    ordinal = _ordinal(np.vstack([place, rows["lane"][None]]))
    _, group = np.unique(np.vstack([place, ordinal[None]]), axis=1, return_inverse=True)
    table = np.full((int(group.max()) + 1, 32), -1, np.intp)
    table[group.reshape(-1), rows["lane"]] = index
    first = np.where(table < 0, len(trace), table).min(axis=1)
    return table[np.argsort(first, kind="stable")]


def _ordinal(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each column of ``keys``, the number of earlier columns that are equal to it."""
    order = np.lexsort(keys[::-1])
    ordered = keys[:, order]
    new = np.ones(len(order), bool)
    new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    position = np.arange(len(order))
    start = np.maximum.accumulate(np.where(new, position, 0))
    result = np.empty(len(order), np.int64)
    result[order] = position - start
    return result

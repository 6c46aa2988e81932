"""Products of two sparse matrices as the dual-side sparse Tensor Core computes them: exact, counted, step by step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.sparse.bitmap import POSITIONS, SLICE, TwoLevelBitmap, positions_of
from subbyte.sparse.trace import OHMMA_COLUMNS, OHMMA_DENSE, OHMMA_ROWS, REASONS, Counts, Step

LARGEST_TRACE = 1 << 15
"""Most k of pairs of tiles in a trace; at density 1 each gives 19 steps."""
LARGEST_WORK = 1 << 32
"""Most products of two non-zeros that are computed one by one."""
SUMS = {
    "int4": "exact int32 sums",
    "int8": "exact int32 sums",
    "fp16": "float32 sums of exact products, k ascending, rounded after each addition",
}


class SparseProduct(NamedTuple):
    """The product, and the instructions issued for it."""

    c: NDArray[Any]
    """[M, N], int32 for int4 and int8, float32 for fp16."""
    counts: Counts


def spgemm(a: TwoLevelBitmap, b: TwoLevelBitmap, trace: bool = False) -> SparseProduct:
    """The product of A, encoded along columns, and B, encoded along rows, with the instructions counted.

    int4 and int8 give exact int32 sums. fp16 gives float32 sums: each product is exact, and the products of an
    accumulator are added in the order of k with one rounding each; existing Tensor Cores add several at once and round
    differently. ``trace`` records every instruction, and every skipped one with the reason; tracing a 32 x 32 x 64
    product takes milliseconds. Raises InvalidInput when the operands do not fit, an int32 sum could overflow, or the
    product or the trace is too large, with the size that fits.
    """
    for name, one, side in (("a", a, "columns"), ("b", b, "rows")):
        if not isinstance(one, TwoLevelBitmap):
            raise InvalidInput(f"{name} is a {type(one).__name__}: expected sparse.encode(matrix, {side!r})")
        if one.side != side:
            raise InvalidInput(f"{name} is encoded along {one.side}: encode it with sparse.encode(matrix, {side!r})")
    if a.depth != b.depth:
        raise InvalidInput(f"a is {a.shape[0]} x {a.shape[1]}, b is {b.shape[0]} x {b.shape[1]}: their k differ")
    if (a.kind == "fp16") != (b.kind == "fp16"):
        raise InvalidInput(f"a holds {a.kind}, b holds {b.kind}: both integers or both fp16")
    _check_size(a, b, trace)
    if trace:
        steps: list[Step] = []
        c = _traced(a, b, steps)
        return SparseProduct(c, count(a, b, tuple(steps)))
    return SparseProduct(_product(a, b), count(a, b))


def count(a: TwoLevelBitmap, b: TwoLevelBitmap, trace: tuple[Step, ...] | None = None) -> Counts:
    """The instructions that the product of the two issues, in closed form: nothing is multiplied."""
    live_a, live_b = (np.repeat(one.level1, SLICE, axis=1)[:, : one.depth] for one in (a, b))
    set_a, set_b = a.counts > 0, b.counts > 0
    groups_a = -(-a.counts.astype(np.int64) // OHMMA_ROWS)
    groups_b = -(-b.counts.astype(np.int64) // OHMMA_COLUMNS)
    most_a, most_b = POSITIONS // OHMMA_ROWS, POSITIONS // OHMMA_COLUMNS

    def pairs(left: NDArray[Any], right: NDArray[Any]) -> int:
        """Sum over k of (sum of left) * (sum of right)."""
        return int(left.sum(0, dtype=np.int64) @ right.sum(0, dtype=np.int64))

    every = np.ones_like(set_b)
    skipped = (
        OHMMA_DENSE * pairs(~live_a, every),
        OHMMA_DENSE * pairs(live_a, ~live_b),
        OHMMA_DENSE * pairs(live_a & ~set_a, live_b),
        OHMMA_DENSE * pairs(set_a, live_b & ~set_b),
        most_b * pairs((most_a - groups_a) * set_a, set_b),
        pairs(groups_a, (most_b - groups_b) * set_b),
    )
    issued = pairs(groups_a, groups_b)
    m, n, k = a.length, b.length, a.depth
    narrow = [one.level1.sum(0, dtype=np.int64) for one in (a, b)]
    return Counts(
        shape=(m, n, k), kind=a.kind if a.kind == b.kind else "int8",
        tile_products=a.tiles * b.tiles * a.level1.shape[1], live_tile_products=int(narrow[0] @ narrow[1]),
        ohmma=issued, bohmma=pairs(set_a, set_b), popc=2 * pairs(live_a, live_b), merges=issued,
        merged_words=pairs(a.counts, b.counts), ohmma_dense=OHMMA_DENSE * a.tiles * b.tiles * k,
        reasons=dict(zip(REASONS, skipped, strict=True)), sums=SUMS[a.kind], trace=trace,
    )  # fmt: skip


def check_work(sizes: tuple[int, int, int], work: float) -> None:
    """Raise InvalidInput when a product M x N x K has more products of non-zeros than are computed one by one."""
    if work > LARGEST_WORK:
        raise InvalidInput(
            f"{' x '.join(map(str, sizes))} has {work:,.0f} products of non-zeros: at most {LARGEST_WORK:,}, such as a "
            "dense 1024 x 1024 x 4096; sparse.simulate counts larger ones without computing them"
        )


def _check_size(a: TwoLevelBitmap, b: TwoLevelBitmap, trace: bool) -> None:
    steps = a.tiles * b.tiles * a.depth
    if trace and steps > LARGEST_TRACE:
        raise InvalidInput(
            f"a trace of {a.length} x {b.length} x {a.depth} has {steps:,} outer products: at most {LARGEST_TRACE:,}, "
            f"such as 256 x 256 x 512; take a part, or leave out the trace"
        )
    check_work((a.length, b.length, a.depth), int(a.counts.sum(0, dtype=np.int64) @ b.counts.sum(0, dtype=np.int64)))
    if a.kind != "fp16":
        largest = [int(np.abs(one.values.astype(np.int32)).max(initial=0)) for one in (a, b)]
        if a.depth * largest[0] * largest[1] >= 1 << 31:
            raise InvalidInput(
                f"k = {a.depth} products of up to {largest[0]} x {largest[1]} overflow an int32 sum; use a smaller k"
            )


def _product(a: TwoLevelBitmap, b: TwoLevelBitmap) -> NDArray[Any]:
    """Condense, multiply, gather, add, scatter: each k of a row of tiles for all column tiles at once."""
    dtype = np.float32 if a.kind == "fp16" else np.int32
    sums = np.zeros((a.tiles * POSITIONS, b.tiles * POSITIONS), dtype)
    left, right = a.values.astype(dtype), b.values.astype(dtype)
    rows_of_b = []
    for k in range(b.depth):
        found = [(tile, b.vector(tile, k).positions) for tile in np.flatnonzero(b.counts[:, k]).tolist()]
        spread = [POSITIONS * tile + positions for tile, positions in found]
        places = [b.starts[tile, k] + np.arange(len(positions)) for tile, positions in found]
        empty = np.zeros(0, np.int64)
        rows_of_b.append((np.concatenate(spread or [empty]), right[np.concatenate(places or [empty])]))
    for tile, k in np.argwhere(a.counts).tolist():
        columns, values = rows_of_b[k]
        if len(columns):
            positions = positions_of(a.words[tile, k])
            first = a.starts[tile, k]
            outer = np.multiply.outer(left[first : first + len(positions)], values)
            sums[(POSITIONS * tile + positions)[:, None], columns] += outer
    return sums[: a.length, : b.length]


def _traced(a: TwoLevelBitmap, b: TwoLevelBitmap, steps: list[Step]) -> NDArray[Any]:
    """The same product instruction by instruction."""
    dtype = np.float32 if a.kind == "fp16" else np.int32
    sums = np.zeros((a.tiles * POSITIONS, b.tiles * POSITIONS), dtype)
    for i in range(a.tiles):
        for j in range(b.tiles):
            tile = sums[POSITIONS * i : POSITIONS * (i + 1), POSITIONS * j : POSITIONS * (j + 1)]
            for part in range(a.level1.shape[1]):
                ks = range(SLICE * part, min(SLICE * (part + 1), a.depth))
                if a.level1[i, part] and b.level1[j, part]:
                    for k in ks:
                        _outer(a, b, (i, j), k, tile, steps)
                else:
                    why = "b_tile_empty" if a.level1[i, part] else "a_tile_empty"
                    for name, times in (("POPC", 2), ("BOHMMA", 1), ("OHMMA", OHMMA_DENSE)):
                        steps.append(Step(name, (i, j), ks[0], times * len(ks), skipped=why))
    return sums[: a.length, : b.length]


def _outer(
    a: TwoLevelBitmap, b: TwoLevelBitmap, tile: tuple[int, int], k: int, sums: NDArray[Any], steps: list[Step]
) -> None:
    """One outer product 32 x 32 x 1 of a pair of live tiles, added to ``sums`` [32, 32]."""
    left, right = a.vector(tile[0], k), b.vector(tile[1], k)
    rows, columns = tuple(left.positions.tolist()), tuple(right.positions.tolist())
    steps.append(Step("POPC", tile, k, 2, rows=rows, columns=columns))
    if not (rows and columns):
        why = "b_vector_empty" if rows else "a_vector_empty"
        steps.append(Step("BOHMMA", tile, k, skipped=why))
        steps.append(Step("OHMMA", tile, k, OHMMA_DENSE, skipped=why))
        return
    steps.append(Step("BOHMMA", tile, k, rows=rows, columns=columns))
    values_a, values_b = left.values.astype(sums.dtype), right.values.astype(sums.dtype)
    for g in range(POSITIONS // OHMMA_ROWS):
        for h in range(POSITIONS // OHMMA_COLUMNS):
            mine = slice(OHMMA_ROWS * g, OHMMA_ROWS * (g + 1))
            theirs = slice(OHMMA_COLUMNS * h, OHMMA_COLUMNS * (h + 1))
            if not rows[mine] or not columns[theirs]:
                why = "b_condensed" if rows[mine] else "a_condensed"
                steps.append(Step("OHMMA", tile, k, group=(g, h), skipped=why))
                continue
            part = np.multiply.outer(values_a[mine], values_b[theirs])
            one = Step(
                "OHMMA", tile, k, 1, (g, h), rows[mine], columns[theirs],
                tuple(left.values[mine].tolist()), tuple(right.values[theirs].tolist()),
            )  # fmt: skip
            steps.append(one)
            sums[left.positions[mine][:, None], right.positions[theirs]] += part
            steps.append(Step("MERGE", tile, k, 1, one.group, one.rows, one.columns, one.a, one.b))

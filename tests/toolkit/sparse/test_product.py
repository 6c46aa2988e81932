"""Products of sparse matrices: exact against int64 matrix products, counts against the trace and the closed form."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subbyte import sparse
from subbyte.errors import InvalidInput
from subbyte.sparse.trace import REASONS

DENSITIES = st.sampled_from([0.0, 0.02, 0.1, 0.4, 1.0])


def operands(seed: int, m: int, n: int, k: int, da: float, db: float) -> tuple[np.ndarray, np.ndarray]:
    """int8 matrices with zeros, some of them in whole rows, columns and warp tiles; full range."""
    rng = np.random.default_rng(seed)
    a = rng.integers(-128, 128, (m, k)) * (rng.random((m, k)) < da)
    b = rng.integers(-128, 128, (k, n)) * (rng.random((k, n)) < db)
    a[rng.random(m) < 0.1] = 0
    a[:, rng.random(k) < 0.1] = 0
    b[:, rng.random(n) < 0.1] = 0
    if k > 16:
        a[:32, :16] = 0
        b[16:32, :32] = 0
    return a, b


@settings(max_examples=50)
@given(
    m=st.integers(1, 130), n=st.integers(1, 130), k=st.integers(1, 60), da=DENSITIES, db=DENSITIES,
    seed=st.integers(0, 99),
)  # fmt: skip
def test_products_are_exact(m: int, n: int, k: int, da: float, db: float, seed: int) -> None:
    a, b = operands(seed, m, n, k, da, db)
    c, counts = sparse.spgemm(sparse.encode(a, "columns"), sparse.encode(b, "rows"))
    assert c.dtype == np.int32
    assert np.array_equal(c, a.astype(np.int64) @ b.astype(np.int64))
    assert counts.ohmma + sum(counts.reasons.values()) == counts.ohmma_dense


@settings(max_examples=20)
@given(
    m=st.integers(1, 70), n=st.integers(1, 70), k=st.integers(1, 40), da=DENSITIES, db=DENSITIES,
    seed=st.integers(0, 99),
)  # fmt: skip
def test_the_trace_is_the_closed_form_and_computes_the_product(
    m: int, n: int, k: int, da: float, db: float, seed: int
) -> None:
    a, b = operands(seed, m, n, k, da, db)
    c, counts = sparse.spgemm(sparse.encode(a, "columns"), sparse.encode(b, "rows"), trace=True)
    assert counts.trace is not None
    assert np.array_equal(c, a @ b)
    assert np.array_equal(counts.accumulators(len(counts.trace)), c)
    issued: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for step in counts.trace:
        if step.skipped is None:
            issued[step.instruction] += step.count
        elif step.instruction == "OHMMA":
            skipped[step.skipped] += step.count
    assert (issued["OHMMA"], issued["BOHMMA"], issued["POPC"], issued["MERGE"]) == (
        counts.ohmma, counts.bohmma, counts.popc, counts.merges,
    )  # fmt: skip
    assert {reason: skipped[reason] for reason in REASONS} == dict(counts.reasons)
    merged = sum(len(step.rows) * len(step.columns) for step in counts.trace if step.instruction == "MERGE")
    assert merged == counts.merged_words == np.count_nonzero(a, axis=0) @ np.count_nonzero(b, axis=1)


def test_a_dense_warp_operation_is_eight_ohmma_for_each_k() -> None:
    ones = np.ones((32, 16), np.int8)
    counts = sparse.spgemm(sparse.encode(ones, "columns"), sparse.encode(ones.T, "rows"), trace=True).counts
    assert (counts.ohmma, counts.bohmma, counts.popc, counts.merges, counts.skipped) == (128, 16, 32, 128, 0)


def test_the_worked_example_skips_five_of_eight() -> None:
    a, b = np.zeros((32, 1), np.int8), np.zeros((1, 32), np.int8)
    a[::2][:, 0] = np.arange(1, 17)
    a[1::4, 0] = 3  # 24 of 32 rows: three groups of 8
    b[0, 1::2] = 2  # 16 of 32 columns: one group of 16
    c, counts = sparse.spgemm(sparse.encode(a, "columns"), sparse.encode(b, "rows"), trace=True)
    assert np.array_equal(c, a.astype(int) @ b)
    assert (counts.ohmma, counts.skipped) == (3, 5)
    assert counts.reasons["a_condensed"] == 2
    assert counts.reasons["b_condensed"] == 3
    assert counts.trace is not None
    outer = next(step for step in counts.trace if step.instruction == "BOHMMA").bitmap()
    wanted = (a != 0) & (b != 0)
    assert [[bool(int(word) >> bit & 1) for bit in range(32)] for word in outer] == wanted.tolist()
    assert "too few values of A" in counts.text()


def test_the_order_of_k_does_not_matter() -> None:
    a, b = operands(3, 45, 37, 50, 0.3, 0.3)
    order = np.random.default_rng(0).permutation(50)
    plain = sparse.spgemm(sparse.encode(a, "columns"), sparse.encode(b, "rows"))
    mixed = sparse.spgemm(sparse.encode(a[:, order], "columns"), sparse.encode(b[order], "rows"))
    assert np.array_equal(plain.c, mixed.c)
    assert plain.counts.merged_words == mixed.counts.merged_words


def test_an_asymmetric_pattern_lands_where_it_belongs() -> None:
    a, b = np.zeros((40, 3), np.int8), np.zeros((3, 50), np.int8)
    a[[1, 35], 1] = 2, 3
    b[1, [4, 33, 49]] = 5, 7, 11
    c = sparse.spgemm(sparse.encode(a, "columns"), sparse.encode(b, "rows")).c
    assert np.argwhere(c).tolist() == [[1, 4], [1, 33], [1, 49], [35, 4], [35, 33], [35, 49]]
    assert c[35, 33] == 21


def test_fp16_sums_are_float32_in_the_order_of_k() -> None:
    rng = np.random.default_rng(5)
    a = (rng.normal(0, 1, (40, 70)) * (rng.random((40, 70)) < 0.5)).astype(np.float16)
    b = (rng.normal(0, 1, (70, 33)) * (rng.random((70, 33)) < 0.5)).astype(np.float16)
    wanted = np.zeros((40, 33), np.float32)
    for k in range(70):
        wanted += np.outer(a[:, k].astype(np.float32), b[k].astype(np.float32))
    for trace in (False, True):
        c, counts = sparse.spgemm(sparse.encode(a, "columns"), sparse.encode(b, "rows"), trace=trace)
        assert c.dtype == np.float32
        assert np.array_equal(c, wanted)
    assert "float32" in counts.sums


def test_a_trace_is_quick_enough_to_step_through() -> None:
    full = np.full((32, 64), 3, np.int8)
    a, b = sparse.encode(full, "columns"), sparse.encode(np.ascontiguousarray(full.T), "rows")
    seconds = []
    for _ in range(5):
        start = time.process_time()
        sparse.spgemm(a, b, trace=True)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.05, seconds


def test_what_does_not_fit_is_refused() -> None:
    a = sparse.encode(np.ones((32, 16), np.int8), "columns")
    b = sparse.encode(np.ones((16, 32), np.int8), "rows")
    half = sparse.encode(np.ones((16, 32), np.float16), "rows")
    with pytest.raises(InvalidInput, match="encode it with"):
        sparse.spgemm(b, a)
    with pytest.raises(InvalidInput, match="k differ"):
        sparse.spgemm(a, sparse.encode(np.ones((17, 32), np.int8), "rows"))
    with pytest.raises(InvalidInput, match="both integers"):
        sparse.spgemm(a, half)
    with pytest.raises(InvalidInput, match="ndarray"):
        sparse.spgemm(a, np.ones((16, 32)))  # type: ignore[arg-type]
    wide = np.zeros((1024, 1024), np.int8)
    left, right = sparse.encode(wide, "columns"), sparse.encode(wide, "rows")
    with pytest.raises(InvalidInput, match="at most 32,768"):
        sparse.spgemm(left, right, trace=True)
    long = np.full((1, 1 << 18), -128, np.int8)
    left, right = sparse.encode(long, "columns"), sparse.encode(long.reshape(-1, 1), "rows")
    with pytest.raises(InvalidInput, match="overflow"):
        sparse.spgemm(left, right)
    with pytest.raises(InvalidInput, match="no trace"):
        sparse.spgemm(a, b).counts.accumulators(0)

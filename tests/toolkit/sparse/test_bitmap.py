"""Two-level bitmaps: what is stored, what comes back, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subbyte import sparse
from subbyte.errors import InvalidInput


def some_matrix(rng: np.random.Generator, shape: tuple[int, int], density: float, kind: str) -> np.ndarray:
    """Random values of a kind, each non-zero with probability ``density``."""
    mask = rng.random(shape) < density
    if kind == "fp16":
        return np.where(mask, rng.normal(0, 1, shape), 0).astype(np.float16)
    low, high = (-8, 8) if kind == "int4" else (-128, 128)
    values = rng.integers(low, high, shape)
    return (np.where(values == 0, 1, values) * mask).astype(np.int8)


@settings(max_examples=60)
@given(
    rows=st.integers(1, 130),
    columns=st.integers(1, 130),
    density=st.sampled_from([0.0, 0.02, 0.3, 0.7, 1.0]),
    kind=st.sampled_from(["int4", "int8", "fp16"]),
    side=st.sampled_from(["columns", "rows"]),
    seed=st.integers(0, 99),
)
def test_what_is_encoded_comes_back(rows: int, columns: int, density: float, kind: str, side: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = some_matrix(rng, (rows, columns), density, kind)
    matrix[rng.random(rows) < 0.2] = 0  # dead rows
    found = sparse.encode(matrix, side, kind)
    assert np.array_equal(found.decode(), matrix)
    assert found.decode().dtype == matrix.dtype
    assert len(found.values) == np.count_nonzero(matrix)
    assert len(found.level2) == found.level1.sum()
    along = matrix if side == "columns" else matrix.T
    for tile in range(found.tiles):
        assert np.array_equal(found.counts[tile], np.count_nonzero(along[32 * tile : 32 * tile + 32], axis=0))


def test_bits_stand_where_the_paper_has_them() -> None:
    matrix = np.zeros((40, 20), np.int8)
    matrix[3, 17], matrix[31, 17], matrix[33, 0] = 5, -2, 7
    found = sparse.encode(matrix, "columns", "int4")
    assert found.level1.tolist() == [[False, True], [True, False]]
    assert found.level2.shape == (2, 16)
    assert found.words[0, 17] == (1 << 3) | (1 << 31)
    assert found.words[1, 0] == 1 << 1
    assert found.values.tolist() == [5, -2, 7]
    positions, values = found.vector(0, 17)
    assert positions.tolist() == [3, 31]
    assert values.tolist() == [5, -2]
    assert found.bytes_stored == 1 + 2 * 64 + 2
    assert found.bytes_dense == 400


def test_rows_are_the_columns_of_the_transpose() -> None:
    matrix = some_matrix(np.random.default_rng(1), (50, 70), 0.3, "int4")
    left, right = sparse.encode(matrix, "columns"), sparse.encode(np.ascontiguousarray(matrix.T), "rows")
    assert np.array_equal(left.words, right.words)
    assert np.array_equal(left.values, right.values)
    assert left != right
    assert left == sparse.encode(matrix, "columns")


def test_the_record_shows_itself() -> None:
    found = sparse.encode(np.eye(64, dtype=np.int8), "columns")
    assert "density 0.016" in found.title()
    assert "." in found.text()
    assert len(found.table().rows) == 8
    assert found.to_dict()["level1"] == found.level1.tolist()
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize(
    ("matrix", "side", "kind", "words"),
    [
        (np.zeros((2, 2), np.int8), "diagonal", None, "columns"),
        (np.zeros(4, np.int8), "rows", None, "two dimensions"),
        (np.zeros((0, 4), np.int8), "rows", None, "at least 1"),
        (np.zeros((2, 2)), "rows", None, "float64"),
        (np.zeros((2, 2), bool), "rows", None, "bool"),
        (np.full((2, 2), 9, np.int8), "rows", "int4", "-8 to 7"),
        (np.full((2, 2), 300), "rows", None, "-128 to 127"),
        (np.full((2, 2), np.inf, np.float16), "rows", None, "finite"),
        (np.zeros((2, 2), np.int8), "rows", "fp16", "float16"),
        (np.zeros((2, 2), np.int8), "rows", "int5", "int4"),
        ([[1, 2]], "rows", None, "list"),
    ],
)
def test_what_cannot_be_encoded_is_refused(matrix: object, side: str, kind: str | None, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        sparse.encode(matrix, side, kind)  # type: ignore[arg-type]


def test_a_place_outside_is_refused() -> None:
    with pytest.raises(InvalidInput, match="k is 0 to 4"):
        sparse.encode(np.zeros((3, 5), np.int8), "columns").vector(0, 5)

"""Where zeros come from: generators keep their density and nest, pruning keeps the largest, files are read."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import subbyte
from subbyte import sparse
from subbyte.errors import InvalidInput, MissingDependency
from subbyte.networks import trained
from subbyte.sparse import photographs
from subbyte.sparse.operands import activations_of, weights_of
from subbyte.sparse.patterns import ACTIVATION_GROUPS, WEIGHT_GROUPS, grouped_mask, source, weight_mask
from subbyte.sparse.shapes import shape_of

PHOTOS = pytest.mark.skipif(
    find_spec("sklearn") is None or find_spec("PIL") is None, reason="scikit-learn and Pillow are not installed"
)


@pytest.mark.parametrize("kind", sorted(ACTIVATION_GROUPS))
def test_generated_activations_have_their_density_and_nest(kind: str) -> None:
    shape = (256, 1, 64, 64)
    masks = [
        grouped_mask(shape, ACTIVATION_GROUPS[kind], density, np.random.default_rng(0)) for density in (0.2, 0.5, 1.0)
    ]
    assert masks[0].shape == shape
    assert masks[0].mean() == pytest.approx(0.2, abs=0.06)
    assert not (masks[0] & ~masks[1]).any()
    assert masks[2].all()
    assert not grouped_mask(shape, ACTIVATION_GROUPS[kind], 0.0, np.random.default_rng(0)).any()


@pytest.mark.parametrize("kind", sorted(WEIGHT_GROUPS))
def test_generated_weights_have_their_density(kind: str) -> None:
    mask = weight_mask(256, 9, 256, source(f"{kind}:0.3", "weights"), 0)
    assert mask.shape == (9, 256, 256)
    assert mask.mean() == pytest.approx(0.3, abs=0.1)


def test_dead_channels_are_dead_in_every_image() -> None:
    shape = shape_of("n3h8w8c64k32r1s1")
    dead = activations_of(shape, "dead:0.5")
    assert dead.counts is not None
    assert set(np.unique(dead.counts)) == {0, 32}
    assert (dead.counts == dead.counts[:, :1]).all()


def test_correlated_zeros_need_fewer_instructions_than_independent_ones() -> None:
    totals = {
        kind: sparse.simulate("n4h28w32c64k64r3s3p1", activations=f"{kind}:0.4", weights=0.3).cycles.compute
        for kind in ("iid", "runs", "rows", "dead")
    }
    assert totals["iid"] > totals["runs"] > totals["rows"] > totals["dead"]


@pytest.mark.parametrize(("text", "n", "m"), [("2:4", 2, 4), ("1:4", 1, 4), ("3:8", 3, 8), ("5:7", 5, 7)])
def test_n_of_m_weights_keep_n_of_every_m(text: str, n: int, m: int) -> None:
    mask = weight_mask(33, 4, 7 * m, source(text, "weights"), 1)
    assert (mask.reshape(4, 7, m, 33).sum(2) == n).all()
    values = np.random.default_rng(0).normal(0, 1, (33, 4, 7 * m))
    pruned = sparse.prune(values, text)
    sparse.check_nm(pruned, text)
    kept = np.abs(pruned.reshape(33, 4, 7, m))
    assert ((kept > 0).sum(-1) == n).all()
    assert np.array_equal(np.sort(kept, -1)[..., -n:], np.sort(np.abs(values.reshape(33, 4, 7, m)), -1)[..., -n:])


def test_two_of_four_weights_are_seen_to_fit() -> None:
    shape = shape_of("n1h4w4c30k40r3s3p1")
    assert weights_of(shape, "2:4").fits_24
    assert not weights_of(shape, 0.9).fits_24
    mask = np.zeros((40, 3, 3, 30), bool)
    mask[7, 1, 2, 4:7] = True
    assert weights_of(shape, mask).misfit == "filter 7, offset 5, channels 4 to 7 keep 3 of 4"


def test_three_of_four_are_refused_with_their_index_in_any_order() -> None:
    weights = np.zeros((2, 3, 8), np.int8)
    weights[1, 2, [4, 5, 7]] = 1
    with pytest.raises(InvalidInput, match=r"weights \[1, 2\] channels \[4, 5, 6, 7\]: 3 of 4"):
        sparse.check_nm(weights)
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    sparse.check_nm(weights, "2:4", order)
    pruned = sparse.prune(np.arange(1, 17).reshape(2, 8), "2:4", order)
    assert pruned.tolist() == [[0, 0, 0, 0, 5, 6, 7, 8], [0, 0, 0, 0, 13, 14, 15, 16]]


def test_magnitude_pruning_keeps_the_largest() -> None:
    weights = np.array([[3, -9, 1], [0, 5, -2]])
    assert sparse.prune(weights, "magnitude50").tolist() == [[3, -9, 0], [0, 5, 0]]
    found = weights_of(shape_of("gemm64x100x200"), "magnitude80")
    assert found.nonzeros == round(0.2 * 100 * 200)
    assert "synthetic" in found.label


@pytest.mark.parametrize(
    ("weights", "how", "order", "words"),
    [
        (np.ones((2, 6)), "2:4", None, "groups of 4 do not fit"),
        (np.ones((2, 8)), "4:2", None, "N <= M"),
        (np.ones((2, 8)), "half", None, "magnitude80"),
        (np.ones((2, 8)), "2:4", [0, 1], "each of the 8"),
        (np.ones((2, 8)), "2:4", [0] * 8, "each of the 8"),
        (np.full((2, 8), np.nan), "2:4", None, "finite"),
        ([1, 2], "2:4", None, "numpy array"),
    ],
)
def test_prunings_that_do_not_fit_are_refused(weights: object, how: str, order: object, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        sparse.prune(weights, how, order)  # type: ignore[arg-type]


@PHOTOS
def test_photographs_give_runs_that_independent_zeros_do_not() -> None:
    found = sparse.profile("photos")
    assert len(found.arrays) == 6
    assert all(0.2 < one.density < 0.45 for one in found.arrays)
    assert all(one.empty_runs > 0.05 > one.empty_runs_iid for one in found.arrays)
    assert all(one.empty_tiles == 0 for one in found.arrays)  # a step of a dense kernel's activations: never
    layer = sparse.simulate("resnet50.stage5@2", activations="photos", weights=0.2)
    assert "real pixels, random filters" in layer.activations.source
    assert 0.1 < layer.activations.density < 0.6


def test_without_photographs_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(photographs, "find_spec", lambda name: None)
    photographs._pictures.cache_clear()
    photographs.feature_maps.cache_clear()
    with pytest.raises(MissingDependency, match="pip install scikit-learn pillow"):
        sparse.simulate("resnet50.stage5@1", activations="photos")
    photographs._pictures.cache_clear()


def test_maps_of_a_trained_network_are_real() -> None:
    found = sparse.profile("digits")
    assert "trained network digits.w1a2 (real" in found.source
    network = subbyte.networks.network("digits.w1a2")
    images, _ = trained.test_images(network)
    layers = {one.name: one.values for one in network.reference(images).layers if one.values is not None}
    assert [one.name for one in found.arrays] == [f"digits.w1a2 {name}" for name in layers]
    for one, codes in zip(found.arrays, layers.values(), strict=True):
        assert one.shape == (len(images), codes.shape[-1])
        assert one.density == pytest.approx(np.count_nonzero(codes) / codes.size)
        assert 0.5 < one.density < 0.9


def test_a_users_file_is_profiled_and_simulated(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    file = str(tmp_path / "mine.npz")
    masks = {"bert.qkv.activations": rng.random((128, 768)) < 0.5, "bert.ffn1.weights": rng.random((768, 3072)) < 0.1}
    np.savez(file, **masks)
    found = sparse.profile(file)
    assert [one.name for one in found.arrays] == list(masks)
    assert "mine.npz" in found.source
    dead = np.ones((20, 30, 70))
    dead[..., 32:64] = 0
    np.savez(file, dead=dead, small=np.zeros((3, 4, 5)))
    assert [one.empty_tiles for one in sparse.profile(file).arrays] == [0.5, 1.0]
    np.savez(file, **masks)
    cycles = sparse.network("bert@1", profile=file)
    by_name = {layer.name: layer for layer in cycles.layers}
    assert by_name["bert.qkv@1"].activations.source == "the user's activations"
    assert by_name["bert.ffn1@1"].weights.density == pytest.approx(0.1, abs=0.01)
    assert by_name["bert.ffn2@1"].weights.density == pytest.approx(0.2, abs=0.01)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("no zip")
    np.savez(tmp_path / "words.npz", a=np.array(["x"]))
    np.savez(tmp_path / "none.npz")
    np.savez(tmp_path / "other.npz", conv1=np.ones(4))
    for name, words in (
        ("text.npz", "cannot be read"), ("words.npz", "numbers or bool"), ("none.npz", "no array"),
        ("missing.npz", "no such file"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=words):
            sparse.profile(str(tmp_path / name))
    with pytest.raises(InvalidInput, match="of no layer"):
        sparse.network("bert", profile=str(tmp_path / "other.npz"))
    with pytest.raises(InvalidInput, match=r"FILE\.npz"):
        sparse.profile("letters")


def test_random_matrices_have_no_zero_where_they_are_dense() -> None:
    for kind in ("int4", "int8", "fp16"):
        assert np.count_nonzero(sparse.random_matrix((64, 64), 1.0, kind)) == 4096
    assert set(np.unique(sparse.random_matrix((64, 64), 1.0))) == set(range(-8, 8)) - {0}
    with pytest.raises(InvalidInput, match="at least 1"):
        sparse.random_matrix((0, 4), 0.5)
    with pytest.raises(InvalidInput, match="at most 67,108,864 are made"):
        sparse.random_matrix((10**6, 10**6), 0.5)


def test_large_matrices_are_drawn_in_parts_that_make_no_difference() -> None:
    rng = np.random.default_rng(3)
    mask, values = rng.random((1100, 1001)) < 0.3, rng.integers(-8, 7, (1100, 1001))
    found = sparse.random_matrix((1100, 1001), 0.3, "int4", 3)
    assert np.array_equal(found, np.where(mask, values + (values >= 0), 0))
    for side in ("columns", "rows"):
        assert np.array_equal(sparse.encode(found, side).decode(), found)

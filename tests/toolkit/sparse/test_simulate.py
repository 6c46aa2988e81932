"""The cycle model: costs against sums over k, speed-ups at the ends, monotone, sides, bounds, speed, refusals."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import subbyte
from subbyte import sparse
from subbyte.errors import InvalidInput
from subbyte.sparse.cost import expected_speedup, histogram, joint, rank, tile_cycles
from subbyte.sparse.machines import MACHINES, SOURCES, cost_tables
from subbyte.sparse.operands import activations_of, weights_of
from subbyte.sparse.shapes import shape_of, sizes

DSTC = MACHINES["dstc"]


def test_the_parameters_are_those_of_the_paper_and_name_their_sources() -> None:
    assert DSTC.dense_k == pytest.approx(1024 / 116 + 0.25)
    assert DSTC.inner_k == 8
    assert rank(DSTC) == 5
    assert all(row[3] for row in DSTC.table().rows)
    changed = DSTC.but(accumulator_words=128.0)
    sources = {row[0]: row[3] for row in changed.table().rows}
    assert sources["accumulator_words"] == "set by the user"
    assert sources["per_k"] == SOURCES["per_k"]
    assert changed.dense_k == 8.25
    assert MACHINES["sparse24"].dense_k == 8
    assert cost_tables(MACHINES["sparse24"]).cost.max() == 4
    assert cost_tables(MACHINES["ideal"]).cost[16, 32] == 4


@settings(max_examples=25)
@given(
    left=st.integers(1, 9), right=st.integers(1, 7), depth=st.integers(1, 40), swapped=st.booleans(),
    machine=st.sampled_from(sorted(MACHINES)), seed=st.integers(0, 99),
)  # fmt: skip
def test_tiles_cost_what_a_loop_over_k_finds(
    left: int, right: int, depth: int, swapped: bool, machine: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(0, 33, (depth, tiles), dtype=np.uint8) for tiles in (left, right))
    unit = MACHINES[machine]
    table = cost_tables(unit).cost
    wanted = np.zeros((left, right))
    for k in range(depth):
        for i in range(left):
            for j in range(right):
                wanted[i, j] += table[b[k, j], a[k, i]] if swapped else table[a[k, i], b[k, j]]
    assert np.allclose(tile_cycles(a, b, unit, swapped), wanted, atol=1e-5)
    pairs = joint(histogram(a), histogram(b))
    assert pairs.sum() == left * right * depth
    assert (pairs * (table.T if swapped else table)).sum() == pytest.approx(wanted.sum())


@pytest.mark.parametrize("workload", ["n2h9w7c5k40r3s3p1", "n3h11w11c4k8r3s3p1u2", "n1h6w50c3k33r1s5p2d2"])
def test_counts_are_those_of_the_encoded_operands(workload: str) -> None:
    wl = subbyte.workload(workload)
    rng = np.random.default_rng(2)
    x = rng.integers(-8, 8, (wl.n, wl.h, wl.w, wl.c)) * (rng.random((wl.n, wl.h, wl.w, wl.c)) < 0.4)
    w = rng.integers(-8, 8, (wl.k, wl.r, wl.s, wl.c)) * (rng.random((wl.k, wl.r, wl.s, wl.c)) < 0.3)
    left = activations_of(wl, x)
    right = weights_of(wl, w)
    assert left.counts is not None
    assert right.counts is not None
    assert np.array_equal(left.counts.T, sparse.im2col(wl, x).counts)
    assert np.array_equal(right.counts.T, sparse.encode(w.reshape(wl.k, -1).T, "rows").counts)
    counted = sparse.convolve(wl, x.astype(np.int8), w.astype(np.int8)).counts
    found = sparse.simulate(wl, activations=x, weights=w, weights_side="b")
    assert found.cycles.issue * DSTC.units == pytest.approx(counted.ohmma)
    assert found.cycles.merge * DSTC.units * 116 == pytest.approx(counted.merged_words)


@pytest.mark.parametrize("workload", ["resnet50.stage5@8", "gemm512", "bert.qkv@1", "n1h7w7c40k50r3s3p1u2"])
@pytest.mark.parametrize("im2col", ["implicit", "explicit"])
def test_density_one_is_one_and_seven_eighths(workload: str, im2col: str) -> None:
    found = sparse.simulate(workload, im2col=im2col)
    assert found.speedup.same_unit == 1
    assert found.compute_speedup.same_unit == pytest.approx(1)
    assert found.compute_speedup.dense_core == pytest.approx(0.8813, abs=1e-4)
    assert found.compute_speedup.sparse24 == pytest.approx(0.4406, abs=1e-4)
    text = found.text()
    assert "1.000" in text
    assert "0.881" in text


@pytest.mark.sample(3)
@pytest.mark.parametrize("machine", ["dstc", "ideal"])
@pytest.mark.parametrize("workload", ["n3h9w9c32k40r3s3p1u2", "n1h14w14c16k64r3s3p1", "gemm128", "gemm8x512x64"])
def test_more_zeros_never_take_more_cycles(machine: str, workload: str) -> None:
    densities = (0.0, 0.001, 0.05, 0.3, 0.31, 0.6, 0.95, 0.999, 1.0)
    for im2col in ("implicit", "explicit"):
        grid = np.array(
            [
                [
                    sparse.simulate(workload, activations=a, weights=b, machine=machine, im2col=im2col).cycles.total
                    for b in densities[::2]
                ]
                for a in densities
            ]
        )
        assert (np.diff(grid, axis=0) >= 0).all()
        assert (np.diff(grid, axis=1) >= 0).all()


def test_single_sided_modes_lie_between() -> None:
    given_ = {"activations": 0.4, "weights": 0.3}
    total = {
        (mode, way): sparse.simulate("resnet50.stage4@4", mode=mode, im2col=way, **given_).cycles.total
        for mode in ("dense", "weight", "activation", "dual")
        for way in ("implicit", "explicit")
    }
    for way in ("implicit", "explicit"):
        assert total["dual", way] < min(total["weight", way], total["activation", way])
        assert max(total["weight", way], total["activation", way]) < total["dense", way]
    for mode in ("dense", "weight", "activation", "dual"):
        assert total[mode, "implicit"] < total[mode, "explicit"]


def test_weight_mode_on_dense_activations_equals_dual() -> None:
    both = [sparse.simulate("resnet50.stage3@2", activations=1, weights=0.2, mode=mode) for mode in ("weight", "dual")]
    assert both[0].cycles == both[1].cycles
    assert both[0].bytes == both[1].bytes


def test_it_matters_on_which_side_the_weights_stand() -> None:
    over = {side: expected_speedup(DSTC, *(0.1, 1)[:: 1 if side == "a" else -1]) for side in "ab"}
    assert over["a"] == pytest.approx(4.1, abs=0.05)
    assert over["b"] == pytest.approx(2.2, abs=0.05)
    found = {side: sparse.simulate("gemm1024", weights=0.1, weights_side=side) for side in ("a", "b", "auto")}
    assert found["auto"].weights_side == "a"
    assert found["auto"].cycles == found["a"].cycles
    assert found["a"].compute_speedup.same_unit == pytest.approx(over["a"], rel=0.01)
    assert found["b"].compute_speedup.same_unit == pytest.approx(over["b"], rel=0.01)


def test_the_parts_of_a_record_fit_together() -> None:
    found = sparse.simulate("resnet50.stage2@8", activations=0.45, weights=0.2)
    cycles = found.cycles
    assert max(cycles.issue, cycles.merge) + cycles.overhead <= cycles.compute * (1 + 1e-12) <= cycles.waves
    assert cycles.total >= max(cycles.waves, cycles.memory)
    assert sum(found.utilisation) == pytest.approx(1)
    assert found.imbalance >= 1
    assert found.bound == "memory"
    nonzeros = round(found.activations.density * 8 * 56 * 56 * 64)
    assert found.bytes.activations == pytest.approx(2 * nonzeros + 8 * 56 * 56 * 64 / 8)
    assert found.activations.lowered_density < found.activations.density  # padding
    names = str(found.to_dict()).lower()
    assert "microsecond" not in names
    assert "synthetic" in found.activations.source


def test_memory_is_the_floor_of_very_sparse_products() -> None:
    sparsest = sparse.simulate("gemm4096", activations=0.05, weights=0.05)
    floor = 4096**3 / 128 / 320 / sparsest.cycles.memory
    assert floor == pytest.approx(13.2, abs=0.3)


def test_two_of_four_weights_on_the_core_that_has_them() -> None:
    found = sparse.simulate("resnet50.stage3@8", weights="2:4", machine="sparse24")
    assert found.compute_speedup.dense_core == 2
    assert found.speedup.sparse24 == 1
    with pytest.raises(InvalidInput, match="do not fit: filter 0, offset 0, channels 0 to 3 keep"):
        sparse.simulate("resnet50.stage3@8", weights=0.9, machine="sparse24")
    dense = sparse.simulate("resnet50.stage3@8", weights=0.9, activations=0.5, machine="sparse24", mode="activation")
    assert dense.compute_speedup.dense_core == 1


def test_a_layer_takes_less_than_half_a_second() -> None:
    seconds = []
    for _ in range(3):
        start = time.process_time()
        sparse.simulate("resnet50.stage2@8", activations=0.45, weights=0.2)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.5, seconds


def test_a_surface_is_the_simulation_at_its_points() -> None:
    found = sparse.surface("gemm512", activations=(0.2, 1), weights=(0.3, 0.7, 1))
    assert found.same_unit[1][2] == pytest.approx(1)
    assert found.compute_dense_core[1][2] == pytest.approx(0.8813, abs=1e-4)
    for i, a in enumerate(found.activations):
        for j, b in enumerate(found.weights):
            one = sparse.simulate("gemm512", activations=a, weights=b, weights_side=found.sides[i][j])
            assert found.compute[i][j] == pytest.approx(one.compute_speedup.same_unit)
            assert found.same_unit[i][j] == pytest.approx(one.speedup.same_unit)
    assert "0.88" in found.text()
    assert len(found.table().rows) == 6


@pytest.mark.deep
def test_a_large_surface_takes_seconds() -> None:
    start = time.process_time()
    found = sparse.surface("resnet50.stage3@8")
    assert time.process_time() - start < 5
    grid = np.array(found.same_unit)
    assert grid.shape == (20, 20)
    assert (np.diff(grid, axis=0) <= 1e-9).all()
    assert (np.diff(grid, axis=1) <= 1e-9).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"activations": 1.5}, "from 0"),
        ({"weights": -0.1}, "from 0"),
        ({"weights": float("nan")}, "from 0"),
        ({"weights": True}, "from 0"),
        ({"weights": "4:2"}, "N:M"),
        ({"activations": "2:4"}, "activations"),
        ({"weights": "photos"}, "weights"),
        ({"activations": "blobs:0.3"}, "blocks:0.45"),
        ({"activations": "runs:2"}, "from 0"),
        ({"machine": "dsct"}, "dstc"),
        ({"machine": None}, "unknown machine"),
        ({"weights": "１"}, "weights"),
        ({"weights": "0_5"}, "from 0"),
        ({"seed": -1}, "0 or more"),
        ({"seed": 0.5}, "0 or more"),
        ({"mode": "duel"}, "dual"),
        ({"im2col": "sparse"}, "implicit"),
        ({"weights_side": "left"}, "auto"),
        ({"activations": np.ones((8, 28, 28, 127))}, r"needs \[8, 28, 28, 128\]"),
        ({"weights": np.ones((3, 3))}, r"needs \[128, 3, 3, 128\]"),
        ({"weights": np.full((128, 3, 3, 128), "x")}, "dtype"),
        ({"activations": np.full((8, 28, 28, 128), np.nan)}, "finite"),
    ],
)
def test_wrong_input_is_one_sentence(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        sparse.simulate("resnet50.stage3@8", **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ("gemm100000", "would fit"),
        ("vgg16.conv1_2@512", r"\d+ images would fit"),
        ("gemm0", "must be an integer"),
        ("gemm4096x2", "expected M x N x K"),
        ("gemm4096:w1a2", "leave out the operand types: gemm4096x4096x4096"),
        ("resnet50.stage2@8:w1a2", "only shapes are simulated"),
        ("bert", "is a network"),
        ("bert.ffn3", "bert.ffn1"),
        (17, "int"),
    ],
)
def test_wrong_workloads_are_one_sentence(workload: object, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        sparse.simulate(workload, activations=0.5)  # type: ignore[arg-type]


def test_wrong_machines_and_grids_are_one_sentence() -> None:
    for parameters, words in (
        ({"group_a": 5}, "divide 32"), ({"per_k": -1}, "positive"), ({"words": 3}, "accumulator_words"),
        ({"group_b": 8.0}, "whole"), ({"gigahertz": float("inf")}, "positive"), ({"sub_cores": True}, "positive"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=words):
            DSTC.but(**parameters)  # type: ignore[arg-type]
    for grid, words in (
        ((), "1 to 64"),
        ((0.0, 1), "above 0"),
        ((2.0,), "from 0"),
        ("0.5", "several"),
        (np.ones((2, 2)), "one row"),
    ):
        with pytest.raises(InvalidInput, match=words):
            sparse.surface("gemm64", activations=grid)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="2:4"):
        sparse.surface("gemm64", "sparse24")
    with pytest.raises(InvalidInput, match="iid"):
        sparse.surface("gemm64", kind="rows")


def test_shapes_name_what_they_are() -> None:
    assert sizes(shape_of("gemm1024x512x256")) == (1024, 512, 256)
    assert sizes(shape_of("bert.ffn1@8")) == (1024, 3072, 768)
    assert shape_of("maskrcnn.stage2@1").label == "maskrcnn.stage2@1"
    assert sizes(shape_of("maskrcnn.fpn5@1")) == (25 * 42, 256, 9 * 256)


def test_a_matrix_product_of_the_library_is_one_of_the_model() -> None:
    assert sparse.simulate(subbyte.gemm(64, 128, 256)) == sparse.simulate("gemm64x128x256")
    with pytest.warns(DeprecationWarning, match=r"is now subbyte\.gemm"):
        old = sparse.MatrixProduct(64, 128, 256, "mine")
    assert sparse.simulate(old).workload == "mine"

"""What steppers show is what the unit does: the same instructions, the same columns; refusals in one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from subbyte import sparse
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.sparse.maps import OVER
from subbyte.sparse.stepping import GEOMETRIES, TOY_A, TOY_B
from subbyte.workload import workload


@pytest.mark.parametrize(("densities", "seed"), [((0.5, 0.5), 0), ((0.03, 0.6), 3), ((1.0, 1.0), 1), ((0.3, 0.02), 5)])
def test_the_steps_of_a_tile_are_those_of_the_trace(densities: tuple[float, float], seed: int) -> None:
    record = sparse.tile_steps(density=densities, seed=seed)
    a, b = np.array(record.a, np.int8), np.array(record.b, np.int8)
    c, counts = sparse.spgemm(sparse.encode(a, "columns"), sparse.encode(b, "rows"), trace=True)
    assert (record.issued, record.dense) == (counts.ohmma, counts.ohmma_dense)
    assert record.reasons == dict(counts.reasons)
    assert counts.trace is not None
    for name in ("OHMMA", "MERGE"):
        wanted = [(s.k, s.group, s.rows, s.columns, s.a, s.b) for s in counts.trace
                  if s.instruction == name and s.skipped is None]  # fmt: skip
        assert wanted == [(s.k, s.group, s.rows, s.columns, s.a, s.b) for s in record.slots if s.skipped is None]
    assert c.tolist() == [list(row) for row in record.result]
    assert record.cycles is not None
    found = sparse.simulate("gemm32x32x16", activations=a, weights=b, weights_side="b")
    assert found.cycles.compute * found.machine.units == pytest.approx(record.cycles[0])
    assert f"{record.cycles[1] / record.cycles[0]:.2f} times the same unit dense" in record.title()
    assert f"{record.cycles[2] / record.cycles[0]:.2f} times the dense core" in record.title()


def test_the_toy_is_exact_and_skips_for_every_kind_of_reason() -> None:
    record = sparse.tile_steps(size="toy")
    sums = np.zeros((8, 8), int)
    for slot in record.slots:
        at = np.ix_(slot.rows, slot.columns)
        assert sums[at].tolist() == [list(line) for line in slot.gathered]
        sums[at] = np.array(slot.sums, int).reshape(len(slot.rows), len(slot.columns))
    assert sums.tolist() == (np.array(TOY_A) @ np.array(TOY_B)).tolist()
    assert {reason[2:] for reason, count in record.reasons.items() if count} == {
        "tile_empty", "vector_empty", "condensed",
    }  # fmt: skip
    assert GEOMETRIES["toy"].groups == GEOMETRIES["unit"].groups == (4, 2)
    assert "this group of 4 is empty" in record.text()
    small = sparse.tile_steps([[1, 0], [0, -8]], [[0, 7], [2, 0]], size="toy")
    assert [row[:2] for row in small.result[:2]] == [(0, 7), (-16, 0)]


@pytest.mark.parametrize("spec", ["n1h9w9c24k40r3s3p1", "n1h11w7c5k8r3s3p1u2", "n1h3w3c2k4r1s1"])
def test_a_layers_tile_is_a_part_of_its_lowered_product(spec: str) -> None:
    wl = workload(spec)
    record = sparse.layer_tile(wl, 1.0, 1.0)
    first, k = map(int, re.findall(r"from (\d+)", record.source))
    lowered = sparse.im2col(wl, np.ones((1, wl.h, wl.w, wl.c), np.int8)).decode()
    part = np.zeros((32, 16), np.int64)
    found = lowered[first : first + 32, k : k + 16]
    part[: found.shape[0], : found.shape[1]] = found
    assert (np.array(record.a) != 0).astype(int).tolist() == part.tolist()
    assert np.count_nonzero(record.b) == min(wl.k, 32) * found.shape[1]


@pytest.mark.parametrize(
    "spec",
    ["n1h6w16c2k8r3s3p1", "n2h5w13c2k8r3s3p1u2", "n1h7w20c1k8r5s5p3u2", "n1h6w9c1k8r3s3p2d2", "n1h4w25c1k8r1s7u3"],
)
def test_columns_of_a_row_are_those_of_the_lowered_matrix(spec: str) -> None:
    wl = workload(spec)
    rng = np.random.default_rng(1)
    x = rng.integers(-8, 8, (wl.n, wl.h, wl.w, wl.c)) * (rng.random((wl.n, wl.h, wl.w, wl.c)) < 0.5)
    lowered = sparse.im2col(wl, x).decode().reshape(wl.n, wl.p, wl.q, wl.r, wl.s, wl.c)
    image, channel = wl.n - 1, wl.c - 1
    for row in range(wl.p):
        record = sparse.row_lowering(wl, x, image=image, channel=channel, output_row=row)
        for one in record.columns:
            assert list(one.values) == lowered[image, row, :, one.r, one.s, channel].tolist()
            # The shift and the popcounts are what they are called.
            moved = "".join(one.word[i + one.shift] if 0 <= i + one.shift < len(one.word) else "0" for i in range(wl.q))
            assert (one.bits, one.count) == (moved, one.bits.count("1"))
            assert one.below == one.word[: max(one.shift, 0)].count("1")


def test_contours_lie_where_the_surface_has_their_level() -> None:
    axis = (0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
    record = sparse.speed_map("gemm128", "alexnet@1", activations=axis, weights=axis)
    for over in OVER:
        grid = np.log(np.array(record.grid(over)))
        points = record.contour(over, 1.5)
        assert len(points) > 4
        for a, w in points:
            found = np.interp(w, axis, [np.interp(a, axis, column) for column in grid.T])
            assert found == pytest.approx(np.log(1.5), abs=1e-9)
    assert record.contour("same_unit", 99.0) == ()
    core = record.contour("dense_core", 1.0)
    assert all(max(pair) > 0.5 for pair in core)
    assert [one.name for one in record.layers] == [one.shape.label for one in sparse.network_layers("alexnet@1")]


def test_bars_are_those_of_the_network_and_measurements_those_given() -> None:
    cycles = sparse.network("alexnet@1")
    name = cycles.layers[2].name
    record = sparse.layer_bars(cycles, [sparse.MeasuredLayer(name, "2:4", 1.25, "a record")])
    for layer in cycles.layers:
        dense, core = layer.cycles["dense"]["implicit"], layer.dense_core["implicit"]
        assert record.speedup(layer, "dual") == dense / layer.cycles["dual"]["implicit"]
        assert record.speedup(layer, "2:4", "dense_core") == core / layer.sparse24["implicit"]
        assert record.speedup(layer, "dense") == 1
        assert [one.speedup for one in record.of_layer(layer)] == [1.25] * (layer.name == name)
    assert "2:4 1.25" in record.text()


def test_measured_layers_are_those_of_the_record(repository: Path, tmp_path: Path) -> None:
    newest = max((repository / "benchmarks/results/sparse").glob("stages-*.json"))
    stored = json.loads(newest.read_text())
    found = {one.layer: one for one in sparse.read_measured(newest)}
    assert set(found) == {one["cell"] for one in stored["rounds"]}
    for cell, one in found.items():
        ratios = [each["ratio"] for each in stored["rounds"] if each["cell"] == cell and not each["dense"]]
        assert one.speedup == max(ratios)
        assert newest.name in one.source
    stored["kernels"] = [{**each, "wrong": 1} for each in stored["kernels"]]
    (tmp_path / "wrong.json").write_text(json.dumps(stored))
    assert sparse.read_measured(tmp_path / "wrong.json") == ()
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(BrokenRecord, match="no record of"):
        sparse.read_measured(tmp_path / "other.json")
    with pytest.raises(InvalidInput, match="give a record"):
        sparse.read_measured(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sparse.tile_steps(size="half"), "toy"),
        (lambda: sparse.tile_steps([[1]]), "give both operands"),
        (lambda: sparse.tile_steps([[1] * 17], [[1]] * 17), "up to 32 x 16"),
        (lambda: sparse.tile_steps([[1, 2]], [[1]]), "their k differ"),
        (lambda: sparse.tile_steps([[9]], [[1]]), "int4 holds -8 to 7"),
        (lambda: sparse.tile_steps(density=(0.5, 1.5)), "density of B"),
        (lambda: sparse.tile_steps(density=(0.5, 0.5, 0.5)), "or two"),
        (lambda: sparse.row_lowering("n1h6w40c4k8r3s3p1"), "32 pixels with their padding"),
        (lambda: sparse.row_lowering(output_row=6), "0 to 5"),
        (lambda: sparse.row_lowering(density=2), "density"),
        (lambda: sparse.row_lowering(x=np.zeros((1, 6, 16, 3), np.int8)), "needs \\[1, 6, 16, 4\\]"),
        (lambda: sparse.speed_map("gemm64", breakevens=[0.1]), "BreakEven"),
        (lambda: sparse.BreakEven("condense", ((0.1, 1.2),), "x"), "break-even of condense"),
        (lambda: sparse.BreakEven("condense", (), "x"), "at least one point"),
        (lambda: sparse.layer_bars("alexnet@1", [sparse.MeasuredLayer("conv9", "2:4", 1.1, "x")]), "conv9"),
        (lambda: sparse.MeasuredLayer("conv1", "2:4", 0.0, "x"), "above 0"),
        (lambda: sparse.layer_bars("alexnet@1", ["x"]), "expected sparse.MeasuredLayer"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_refused_in_one_sentence(make: object, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        make()  # type: ignore[operator]
    assert "\n" not in str(refused.value)

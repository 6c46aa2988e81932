"""The experiments come out as specification and paper have them, networks in the order they must."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from subbyte import sparse
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.sparse.banks import bank_cycles
from subbyte.sparse.cost import expected_speedup
from subbyte.sparse.figures import published
from subbyte.sparse.machines import MACHINES

DSTC = MACHINES["dstc"]


def values(name: str) -> dict[str, float]:
    """The numbers of one experiment."""
    return dict(sparse.figures(name).experiments[0].values)


def test_figure_21_is_within_its_bounds() -> None:
    found = values("F1")
    assert found["mean_error"] < 0.04
    assert found["worst_error"] < 0.07
    assert found["leave_one_out_mean_error"] == pytest.approx(0.038, abs=0.002)
    assert found["leave_one_out_worst_error"] == pytest.approx(0.068, abs=0.002)
    assert found["issue_only_mean_error"] == pytest.approx(0.060, abs=0.002)
    assert found["issue_only_worst_error"] == pytest.approx(0.114, abs=0.002)
    assert found["swapped_groups_mean_error"] == pytest.approx(0.163, abs=0.002)
    assert found["swapped_groups_worst_error"] == pytest.approx(0.384, abs=0.002)
    assert found["dense_over_dense_core"] == pytest.approx(0.88, abs=0.005)


def test_the_table_of_the_calibration_stands() -> None:
    rows = {(a, b): model for a, b, model, *_ in sparse.figures("f1").experiments[0].rows}
    wanted = {
        (1.0, 0.4): 0.514, (0.9, 1.0): 0.923, (0.9, 0.4): 0.508, (0.7, 1.0): 0.749, (0.7, 0.4): 0.414,
        (0.5, 1.0): 0.571, (0.5, 0.4): 0.320, (0.3, 1.0): 0.397, (0.3, 0.4): 0.227,
    }  # fmt: skip
    assert {place: rows[place] for place in wanted} == pytest.approx(wanted, abs=0.0015)


def test_a_simulated_product_is_what_the_figure_says() -> None:
    for a, b, time_ in published()["figure21"]["points"]:
        if (a, b) == (1.0, 1.0):
            continue
        found = sparse.simulate("gemm2048", activations=a, weights=b, weights_side="b").compute_speedup.same_unit
        assert found is not None
        assert 1 / found == pytest.approx(time_ / 4600, rel=0.07)


def test_the_independent_check_holds() -> None:
    assert values("F10")["dstc_over_dense_core"] == pytest.approx(1.53, abs=0.05)


def test_levels_and_predictions() -> None:
    found = sparse.figures("F2", "F3")
    levels, crossing = found.experiments
    assert (levels.values["steps_a"], levels.values["steps_b"]) == ([8, 16, 24], [16])
    assert levels.values["skipped_of_8_at_24_by_16"] == 5
    assert crossing.values["speedup_at_10_percent"] == pytest.approx(1.10, abs=0.01)
    assert crossing.values["speedup_at_25_percent"] == pytest.approx(1.28, abs=0.01)
    wanted = {0.75: 1.28, 0.5: 2.43, 0.4: 3.67, 0.3: 4.7, 0.25: 5.5, 0.2: 6.4, 0.1: 7.7, 0.05: 10.1}
    for density, speed in wanted.items():
        assert expected_speedup(DSTC, density, density) == pytest.approx(speed, rel=0.01)
    assert expected_speedup(DSTC, 0.5, 0.25) == pytest.approx(3.4, abs=0.05)
    for density, speed in {0.5: 1.5, 0.25: 2.1, 0.1: 2.2}.items():
        assert expected_speedup(DSTC, 1, density) == pytest.approx(speed, abs=0.06)


def test_conflicts_peak_at_middle_density() -> None:
    found = values("F6")
    assert 0.2 <= found["peak_density_without_collector"] <= 0.7
    assert found["conflicts_at_density_1"] == 0
    assert found["conflicts_at_peak_with_collector"] < found["conflicts_at_peak"] / 5
    assert bank_cycles(DSTC, 0.0, 0.5).cycles == 0
    with pytest.raises(InvalidInput, match="1 to 4096"):
        bank_cycles(DSTC, 0.5, 0.5, window=0)


def test_crossover_densities_fall_with_the_activations() -> None:
    rows = sparse.figures("F7").experiments[0].rows
    assert [row[1] for row in rows] == sorted(row[1] for row in rows)
    assert all(0 < row[2] < row[1] <= 1 for row in rows)


def test_networks_come_in_the_order_they_must() -> None:
    start = time.process_time()
    found = sparse.network("resnet50@1")
    assert time.process_time() - start < 10
    for way in ("implicit", "explicit"):
        order = [found.total(mode, way) for mode in ("dual", "weight", "dense")]
        assert order == sorted(order)
        assert found.total("dual", way) <= found.total("activation", way) <= found.total("dense", way)
    assert found.total("dual") < found.total("dual", "explicit")
    assert found.layers[0].activations.source == "the picture itself: no zeros"
    assert "assumed" in found.note
    assert found.speedup("dense") == 1
    assert found.to_dict()["speedups"]["implicit"]["dual"]["same_unit"] == found.speedup("dual")
    bert = sparse.network("bert@1")
    assert bert.total("dual") == bert.total("weight")
    with pytest.raises(InvalidInput, match="resnet50"):
        sparse.network("resnet51")
    with pytest.raises(InvalidInput, match="positive integer"):
        sparse.network("bert@0")
    with pytest.raises(InvalidInput, match=r"ACTIVATIONS\+WEIGHTS"):
        sparse.network("bert", profile="photos")


def test_a_profile_names_both_sides() -> None:
    found = sparse.network("lstm@2", profile="runs:0.5+magnitude80")
    assert found.note == ""
    assert found.layers[0].activations.source.startswith("runs")
    assert found.layers[0].weights.source.startswith("80 %")


def test_the_committed_record_is_what_comes_out(repository: Path, tmp_path: Path) -> None:
    newest = max((repository / "benchmarks/results/sparse").glob("figures-*.json"))
    stored = {one.name: one for one in sparse.read_figures(newest).experiments}
    assert list(stored) == ["F1", "F2", "F3", "F5", "F6", "F7", "F8", "F10"]
    found = sparse.figures("F1", "F2", "F3", "F7", "F8", "F10")
    for one in found.experiments:
        kept = stored[one.name]
        assert kept.values == pytest.approx(dict(one.values)) if one.name != "F2" else kept.values == one.values
        assert kept.to_dict()["columns"] == list(one.columns)
        assert len(kept.rows) == len(one.rows)
    whole = {(row[0], row[2]): row[3:] for row in stored["F5"].rows if row[1] == "all"}
    for (name, way), (weight, activation, dual, *core, _) in whole.items():
        assert dual >= max(weight, activation) - 1e-9 >= 1 - 1e-9, (name, way)
        assert core[2] >= max(core[:2]) - 1e-9
    assert whole["bert@1", "implicit"][2] == whole["bert@1", "implicit"][0]
    sparse.write_figures(found, tmp_path / "again.json", "here")
    assert sparse.read_figures(tmp_path / "again.json").to_dict() == found.to_dict()
    (tmp_path / "again.json").write_text('{"format": "subbyte sparse figures", "schema": 1}')
    with pytest.raises(BrokenRecord, match="make it again with --out"):
        sparse.read_figures(tmp_path / "again.json")
    with pytest.raises(InvalidInput, match="--out FILE"):
        sparse.read_figures(tmp_path / "none.json")


def test_what_is_not_here_is_said() -> None:
    for name, words in (("F9", "GPU"), ("F4", "GPU"), ("F11", "F1")):
        with pytest.raises(InvalidInput, match=words):
            sparse.figures(name)
    quoted = sparse.figures("F8")
    assert "+1.5 % of the GPU, not modelled" in quoted.text()
    assert quoted.experiments[0].values == {}
    record = sparse.figures("F10").to_dict()
    assert "area" in " ".join(record["quoted"])
    assert record["experiments"]["F10"]["published"]["dstc_over_dense_core"] == pytest.approx(2.89 / 1.89)

"""The speed of light: floors by hand, best times from the records, other sides, what is missing and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import subbyte
from subbyte.analysis import recorded
from subbyte.analysis.recorded import SideBySide, recorded_ablation, side_by_sides
from subbyte.analysis.speed import recorded_workloads, roofline, speed_of_light, studied_workloads
from subbyte.device.peaks import measured_peaks
from subbyte.errors import BrokenRecord, InvalidInput, Unsupported
from subbyte.kernel.choose import recorded_best
from subbyte.records.result import Measured

STAGES = [f"resnet50.stage{stage}@8" for stage in (2, 3, 4, 5)]
H200 = "NVIDIA H200"


def test_the_floors_are_those_computed_by_hand() -> None:
    one = speed_of_light("resnet50.stage2@8")
    values = 8 * 56 * 56 * 64 * 2 + 64 * 3 * 3 * 64  # x, y and w
    assert one.bytes_moved == values / 2
    assert one.floor_of("bytes") == pytest.approx(values / 2 / 4.23e12 * 1e6)
    peak = {"s8.m16n8k32": 1278.9, "s8.wgmma.m64n128k32": 1944.9}[one.atom]  # that of the fastest recorded kernel
    assert one.floor_of("arithmetic") == pytest.approx(1_849_688_064 / peak / 1e6)
    assert one.floor_of("launch") == 0.51
    assert one.floor == pytest.approx(0.51 + 1_849_688_064 / peak / 1e6, abs=1e-3)
    assert one.bound == "arithmetic"
    small = speed_of_light("n8h7w7c32k32r3s3p1")
    assert (small.bound, small.measured, small.others, small.share, small.speed_up) == ("launch", None, (), None, None)
    assert "nothing is recorded" in small.finding


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", STAGES)
def test_the_best_time_is_the_best_that_was_recorded(name: str) -> None:
    one = speed_of_light(name)
    landscape = subbyte.landscape(name)
    times = [result.microseconds for result in landscape.results.values() if isinstance(result, Measured)]
    rows = [row for record in side_by_sides() for row in record.rows if row.spec == one.spec and row.config]
    assert one.measured is not None
    assert one.measured.microseconds <= min([*times, *(row.microseconds for row in rows)])
    assert one.measured.tops == pytest.approx(one.operations / one.measured.microseconds / 1e6)
    assert one.measured.config
    assert [side.microseconds for side in one.others] == sorted(side.microseconds for side in one.others)
    assert not [side for side in one.others if side.side.startswith("subbyte")]
    assert one.speed_up == one.others[0].microseconds / one.measured.microseconds
    assert one.floor < one.measured.microseconds, "nothing is faster than its floor"
    family = "wgmma" if one.measured.config.startswith("wg") else "mma"
    assert one.ablation == recorded_ablation(one.spec, H200, family)


def test_a_time_of_ones_own_takes_the_place_of_the_record() -> None:
    one = speed_of_light("resnet50.stage2@8", microseconds=2.5)
    assert one.measured is not None
    assert (one.measured.microseconds, one.measured.source) == (2.5, "given")
    assert one.share == pytest.approx(one.floor / 2.5)
    alone = speed_of_light("n8h7w7c32k32r3s3p1", microseconds=2.5)  # nobody else measured this one
    assert alone.speed_up is None
    assert "times its floor" in alone.finding
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidInput, match="greater than 0"):
            speed_of_light("resnet50.stage2@8", microseconds=wrong)
    with pytest.raises(InvalidInput, match="did you mean NVIDIA H200"):
        speed_of_light("resnet50.stage2@8", "NVIDIA H20")
    with pytest.raises(InvalidInput, match="no measured peak"):
        measured_peaks().peak("s4.m16n8k32x")
    assert measured_peaks().peak("s8.m64n224k32") == measured_peaks().peak("s8.m64n128k32")


def test_every_recorded_time_stands_under_its_roof() -> None:
    record = roofline()
    assert {w.label for w in recorded_workloads()} >= set(STAGES)
    assert {point.spec for point in record.points} == {w.spec for w in recorded_workloads()}
    for point in record.points:
        assert point.tops < min(point.intensity * record.copy_terabytes_per_second, max(record.roofs.values()))
    ours = next(point for point in record.points if point.ours and point.workload == STAGES[0])
    half = next(p for p in record.points if p.workload == STAGES[0] and p.side == "cuDNN float16, PyTorch")
    mixed = next(p for p in record.points if p.workload == STAGES[0] and p.side == "cuDNN int8 to int32, graph API")
    assert ours.intensity == pytest.approx(1_849_688_064 / 1_624_064)
    assert half.intensity == pytest.approx(ours.intensity / 4)
    x, w = 8 * 56 * 56 * 64, 64 * 9 * 64
    assert mixed.intensity == pytest.approx(1_849_688_064 / (x + w + 4 * x))
    assert record.ridge("s8.m16n8k32") == pytest.approx(1278.9 / 4.23)


def test_a_record_says_what_it_is_and_damage_is_refused(tmp_path: Path) -> None:
    record = side_by_sides()[0]
    assert SideBySide.load(recorded.results_folder() / record.name) == record  # type: ignore[operator]
    assert record.of_workload(record.workloads[0])[0].microseconds == min(
        row.microseconds for row in record.rows if row.spec == record.workloads[0]
    )
    (tmp_path / "a.json").write_text('{"rows": [{}]}')
    (tmp_path / "b.json").write_text("{")
    for name in ("a.json", "b.json"):
        with pytest.raises(BrokenRecord, match=name):
            SideBySide.load(tmp_path / name)
    with pytest.raises(InvalidInput, match="No such file"):
        SideBySide.load(tmp_path / "c.json")


def test_the_opponents_record_counts() -> None:
    """The newest times, of every layer, of both families; where another side is faster that is said."""
    record = side_by_sides()[-1]
    assert len(record.workloads) > 80
    part = record.of_workloads("resnet50.stage3@256", "resnet50.stage5@256")
    assert len(part.workloads) == 2
    with pytest.raises(InvalidInput, match=r"alexnet.conv1@8 is not in side-by-side.*, which holds \d+ layers"):
        record.of_workloads("alexnet.conv1@8")
    one = speed_of_light("resnet50.stage3@256")
    assert one.atom == measured_peaks().warpgroup_atom
    assert one.ablation == recorded_ablation(one.spec, H200, "wgmma")
    slow = replace(one, others=(replace(one.others[0], microseconds=1.0),))
    assert slow.finding.endswith(f"; {one.others[0].side.partition(',')[0]} is faster: it takes 1.00 us.")
    nothing = speed_of_light("n8h7w7c32k32r3s3p1")
    assert nothing.atom == measured_peaks().warpgroup_atom, "any instruction may be used where nothing is recorded"


def test_studied_workloads_are_those_with_landscapes_or_ablations() -> None:
    names = {w.label for w in studied_workloads()}
    assert {*STAGES, "resnet50.stage2@32", "resnet50.stage5@256"} <= names
    assert "resnet50.stage5.reduce1x1@64" not in names


def test_a_record_of_the_opponents_has_rows_too() -> None:
    timing = {"microseconds": 4.0, "samples": [4.0, 4.1], "cold_microseconds": None, "date": "2026-11-20", "clocks": {}}
    ours = {**timing, "key": "wg-x", "tried": 2, "config": {"ring": 3}, "tops": 1.0, "verified": "every element equal"}
    other = {
        **timing,
        "microseconds": 8.0,
        "side": "CUTLASS int8 to int8",
        "epilogue": "scaled",
        "plan": "64",
        "plans": 3,
    }
    cell = {"workload": "w", "spec": "n8", "operations": 8_000_000, "ours": ours, "opponents": [other], "missing": []}
    data = {"format": recorded.OPPONENTS, "cells": [cell], "missing": [], "gpu": {"name": H200}, "our_epilogue": "all"}
    record = SideBySide.of(data)
    assert [(row.side, row.microseconds) for row in record.of_workload("n8")] == [
        ("subbyte int4", 4.0), ("CUTLASS int8 to int8", 8.0)]  # fmt: skip
    assert record.rows[0].config == {"ring": 3}
    assert record.rows[1].tops == 1.0
    with pytest.raises(BrokenRecord):
        SideBySide.of({"format": recorded.OPPONENTS, "cells": [{}]})


def test_a_workload_without_a_whole_ablation_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "FOLDERS", (tmp_path,))
    assert recorded_ablation.__wrapped__.__wrapped__("n8h56w56c64k64r3s3p1", H200) is None
    monkeypatch.setattr(recorded, "FOLDERS", (tmp_path / "none",))
    assert recorded_ablation.__wrapped__.__wrapped__("n8h56w56c64k64r3s3p1", H200) is None
    assert side_by_sides.__wrapped__() == ()


def test_plain_data_and_table_hold_the_same_numbers() -> None:
    one = speed_of_light(STAGES[1])
    data = json.loads(one.to_json())
    assert one.measured is not None
    assert data["measured"]["microseconds"] == one.measured.microseconds
    assert [row[2] for row in one.table().rows[:3]] == [floor.microseconds for floor in one.floors]
    assert one.finding in one.text()
    slower = replace(one, measured=replace(one.measured, microseconds=2 * one.measured.microseconds))
    assert slower.finding != one.finding


@pytest.mark.parametrize(("types", "pairs"), [("w1a1", 1), ("w2a2", 4)])
def test_other_operands_are_multiplied_bit_by_bit(types: str, pairs: int) -> None:
    one, limits = speed_of_light(f"resnet50.stage2@256:{types}"), measured_peaks()
    assert one.atom == "b1.wgmma.m64n128k256"
    assert one.peak_tops == limits.binary_tops[one.atom] > max(limits.tops.values())
    assert one.floor_of("arithmetic") == pytest.approx(one.operations * pairs / one.peak_tops / 1e6)
    assert one.measured is not None
    assert one.measured.microseconds == recorded_best()[one.spec]["microseconds"] > one.floor
    assert one.others == speed_of_light("resnet50.stage2@256").others
    assert ("pairs of planes" in one.text()) == (pairs > 1)
    small = speed_of_light(f"n8h7w7c32k32r3s3p1:{types}")
    assert (small.measured, small.atom) == (None, one.atom)


def test_a_floor_holds_for_weights_with_zeros() -> None:
    """2:4 weights have the rate of sparse instructions, whichever kernel is the fastest so far; live blocks count."""
    limits, sparse = measured_peaks(), "s8.wgmma.sp.m64n64k64"
    for layer in ("resnet50.stage3@256", "resnet50.stage5@8", "n8h6w8c64k64r3s3p1"):
        one = speed_of_light(f"{layer}:w4a4:signed-2of4.signed")
        assert (one.atom, one.peak_tops) == (sparse, limits.sparse_tops[sparse])
        assert one.peak_tops == max(limits.sparse_tops.values())
        assert one.floor_of("arithmetic") == pytest.approx(one.operations / one.peak_tops / 1e6)
    blocks, whole = (speed_of_light(f"resnet50.stage3@256:w4a4:signed-blocks{share}.signed") for share in (25, 100))
    assert blocks.floor_of("arithmetic") == pytest.approx(whole.floor_of("arithmetic") / 4)
    assert blocks.measured is not None
    assert blocks.floor < blocks.measured.microseconds
    assert "25 % of it in live blocks" in blocks.text()
    other = speed_of_light("n8h6w8c64k64r3s3p1:w4a4:signed.unsigned")  # measured by nobody: as bytes, not in 16 planes
    assert other.atom == speed_of_light("resnet50.stage3@256").atom


def test_operands_without_measured_peaks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    older = replace(measured_peaks(), binary_tops={})
    monkeypatch.setattr("subbyte.analysis.speed.measured_peaks", lambda device: older)
    with pytest.raises(Unsupported, match="no peaks of one-bit instructions were measured on NVIDIA H200"):
        speed_of_light("resnet50.stage2@8:w1a2")

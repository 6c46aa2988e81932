"""The measured peaks of the toolkit are those of the committed records, and an outdated file is refused."""

import json
from pathlib import Path

import pytest

from benchmarks.baselines import peaks as program
from subbyte.device.peaks import MeasuredPeaks, measured_peaks, sparse_peak
from subbyte.errors import InvalidInput


def test_the_file_is_what_the_records_say() -> None:
    assert program.document() == program.TARGET.read_text(encoding="utf-8")


def test_every_number_stands_in_a_record() -> None:
    found = measured_peaks()
    first, _, second = found.provenance.partition("; 2:4 weights: ")
    name = first.rpartition("/")[2]
    record = json.loads((program.RECORDS / name).read_text())
    measured = {row["atom"]: row["tops"] for row in record["atoms"]}
    for atom, value in {**found.tops, **found.binary_tops}.items():
        assert value == pytest.approx(measured[atom], abs=0.06)
        assert found.peak(atom) == value
    assert found.copy_terabytes_per_second == pytest.approx(record["copy"]["terabytes_per_second"], abs=0.006)
    assert set(found.binary_tops) == {atom for atom in measured if atom.startswith("b1") and "shared" not in atom}
    assert found.peak("s8.wgmma.m64n224k32") == found.peak("s8.m64n8k32") == found.tops["s8.wgmma.m64n128k32"]
    sparse = json.loads((program.ROOT / second).read_text())
    own = {row["atom"]: row["tops"] for row in sparse["atoms"] if ".sp." in row["atom"]}
    assert set(found.sparse_tops) == {atom for atom in own if atom.endswith("k64")}  # kept in registers alone
    assert all(value == pytest.approx(own[atom], abs=0.06) for atom, value in found.sparse_tops.items())
    assert found.peak("s8.wgmma.sp.m64n224k64") == max(found.sparse_tops.values()) == sparse_peak(found.device)
    assert sparse["device"]["name"] == found.device
    with pytest.raises(InvalidInput, match="no measured peak"):
        found.peak("s8.m8n8k64")


def test_an_outdated_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "peaks.json"
    target.write_text(program.TARGET.read_text().replace("sm_90a", "sm_80"))
    monkeypatch.setattr(program, "TARGET", target)
    assert program.main(["--check"]) == 1
    assert program.main([]) == 0
    assert target.read_text() == program.document()


def test_a_newer_record_replaces_an_older_one_of_the_same_gpu(tmp_path: Path) -> None:
    path = next(program.RECORDS.glob("atoms-*.json"))
    record = json.loads(path.read_text())
    (tmp_path / "atoms-b.json").write_text(path.read_text())
    newer = {**record, "date": "2099-01-01T00:00:00+00:00"}
    (tmp_path / "atoms-a.json").write_text(json.dumps(newer))
    devices = json.loads(program.document(tmp_path))["devices"]
    name = record["device"]["name"]
    assert list(devices) == [name]
    assert devices[name]["date"] == "2099-01-01"
    assert MeasuredPeaks(name, **devices[name]).warpgroup_atom == "s8.wgmma.m64n128k32"

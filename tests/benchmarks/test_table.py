import importlib.util
import json
import sys
from pathlib import Path

import pytest

import subbyte
from subbyte.records.result import Measured
from subbyte.tune import Landscape

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))  # table.py takes a part from opponents_table.py
spec = importlib.util.spec_from_file_location("benchmark_table", ROOT / "benchmarks" / "table.py")
table = importlib.util.module_from_spec(spec)
spec.loader.exec_module(table)

ROW = {
    "workload": "resnet50.stage2@8", "spec": "n8", "operations": 1_850_000_000, "side": "subbyte int4",
    "output": "int4", "epilogue": "bias, clip", "plan": "brw1", "plans": 3, "verified": "every element equal",
    "microseconds": 5.0, "cold_microseconds": 6.25, "samples": [4.9, 5.0, 5.2], "cold_samples": [6.25],
    "tops": 370.0, "share_of_peak": 0.3286, "clocks": {"after": {"sm_mhz": 1980}}, "config": None,
}  # fmt: skip
RECORD = {
    "schema": 1, "benchmark": "side by side with cuDNN", "command": "cudnn_resnet50.py", "date": "2026-11-20T10:00:00",
    "gpu": {"name": "NVIDIA H200", "driver_version": "580.1"}, "versions": {"torch": "2.11", "cudnn": "9"},
    "peak_tops": 1126.0,
    "rows": [ROW, {**ROW, "side": "cuDNN", "cold_microseconds": None, "share_of_peak": None}],
    "missing": [{"workload": "resnet50.stage2@8", "side": "cuDNN int8", "reason": "no plan"}],
}  # fmt: skip


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A README and its records; no landscapes, which take seconds to read."""
    monkeypatch.setattr("subbyte.records.landscape_file.SHIPPED", tmp_path / "landscapes")
    results = tmp_path / "results"
    results.mkdir()
    (results / "h200.json").write_text(json.dumps(RECORD))
    (results / "other.json").write_text(json.dumps({"benchmark": "something else"}))
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{table.START}\nold\n{table.END}\nafter\n")
    return readme, results


def run(place, *extra):
    notes = place[0].with_name("landscapes.md")
    if not notes.exists():
        notes.write_text("\n".join([*table.LANDSCAPES, *table.EVIDENCE]))
    return table.main(["--readme", str(place[0]), "--results", str(place[1]), "--landscapes", str(notes), *extra])


def test_table_is_written_once_and_then_fresh(place, capsys):
    assert run(place, "--check") == 1
    assert "stale" in capsys.readouterr().err
    assert run(place) == 0
    text = place[0].read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "| resnet50.stage2@8 | subbyte int4 | 5.00 (4.90 to 5.20) | 6.25 | 370 | 29% | bias, clip | every" in text
    assert "| cuDNN | 5.00 (4.90 to 5.20) | - | 370 | 29% |" in text
    assert "NVIDIA H200, driver 580.1, SM clock 1980 MHz, 2026-11-20; cudnn 9, torch 2.11" in text
    assert "Not measured: resnet50.stage2@8, cuDNN int8: no plan." in text
    assert "(benchmarks/results/h200.json)" in text
    assert "\nold\n" not in text
    assert run(place, "--check") == 0
    assert run(place) == 0
    assert place[0].read_text() == text


def test_landscapes_are_summed_up(place, tmp_path):
    space = subbyte.space("n8h7w7c64k64r3s3p1")
    times = {index: 10.0 + place for place, index in enumerate(space.valid)}
    results = {index: Measured(time, (time,), verified=True) for index, time in times.items()}
    made = Landscape.from_results(space, results, {"name": "GPU"})
    made = Landscape(made.header, made.results, made.name, same={space.valid[0]: space.valid[1]})
    assert table.landscape_line(made).startswith(f"| {made.name} | {len(made)} | {len(made) - 1} | 10.00 | ")
    assert table.landscape_line(made).endswith(f" | 1 ({100 / len(made):.1f} %) |")
    assert run(place) == 0
    written = place[0].with_name("landscapes.md")
    assert written.read_text().count("|\n") == 2
    (tmp_path / "landscapes").mkdir()
    made.save(tmp_path / "landscapes" / f"{made.name}.json.gz")
    assert run(place, "--check") == 1
    run(place)
    assert made.name in written.read_text()


def test_the_papers_evidence_is_written_from_what_is_recorded(place):
    assert table.evidence(place[1]) == "Nothing has been recorded yet."
    text = table.evidence(ROOT / "benchmarks" / "results")
    assert text.count("| resnet50.stage4@8 | 100 same schedules | ") == 1
    assert text.count("| resnet50.stage4@8 | retuned | ") == 1
    assert "| 196.06 | 50.78 | 50.98 | 3.85 |" in text
    assert "s8: full over shared" in text


def test_a_changed_record_makes_it_stale(place):
    run(place)
    (place[1] / "h200.json").write_text(json.dumps({**RECORD, "date": "2027-01-01"}))
    assert run(place, "--check") == 1


def test_no_record_says_so(place):
    for path in place[1].iterdir():
        path.unlink()
    run(place)
    assert "No measurement has been recorded yet" in place[0].read_text()


@pytest.mark.parametrize("text", ["", "<!-- benchmark:end --><!-- benchmark:start -->", "<!-- benchmark:start -->"])
def test_missing_markers_are_refused(place, text, capsys):
    place[0].write_text(text)
    assert run(place) == 2
    assert "once each" in capsys.readouterr().err
    assert place[0].read_text() == text

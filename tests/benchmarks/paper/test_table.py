"""The tables of the paper's evidence are written between markers, from landscapes and records."""

import shutil
from pathlib import Path

import pytest

import subbyte
from benchmarks.paper import table
from benchmarks.shared.command import FOLDER
from subbyte.records.result import Measured
from subbyte.tune import Landscape

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"
PARTS = (table.LANDSCAPES, table.EVIDENCE, table.RACE)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A README and its records; no landscapes, which take seconds to read."""
    monkeypatch.setattr("subbyte.records.landscape_file.SHIPPED", tmp_path / "landscapes")
    results = tmp_path / "results"
    shutil.copytree(RESULTS / "unpacking", results / "unpacking")
    readme = tmp_path / "README.md"
    readme.write_text("before\n" + "\nbetween\n".join(f"{start}\nold\n{end}" for start, end in PARTS) + "\nafter\n")
    return readme, results


def run(place, *extra):
    return table.main(["--readme", str(place[0]), "--results", str(place[1]), *extra])


def test_tables_are_written_once_and_then_fresh(place, capsys):
    assert run(place, "--check") == 1
    assert "stale" in capsys.readouterr().err
    assert run(place) == 0
    text = place[0].read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert text.count("\nbetween\n") == 2
    assert "\n| resnet50.stage2@8 | 60 | 1.07 (1.03 to 1.10) |" in text
    assert "No race has been recorded yet" in text
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
    assert table.landscapes().count("|\n") == 1
    (tmp_path / "landscapes").mkdir()
    made.save(tmp_path / "landscapes" / f"{made.name}.json.gz")
    assert run(place, "--check") == 1
    run(place)
    assert made.name in place[0].read_text()


def test_the_papers_evidence_is_written_from_what_is_recorded(tmp_path):
    assert table.evidence(tmp_path) == "Nothing has been recorded yet."
    text = (FOLDER / "paper" / "README.md").read_text()  # up to date: tests/test_documents.py
    assert text.count("| resnet50.stage4@8 | 100 same schedules | ") == 1
    assert text.count("| resnet50.stage4@8 | retuned | ") == 1
    assert "| 196.06 | 50.78 | 50.98 | 3.85 |" in text
    assert "s8: full over shared" in text


def test_a_changed_record_makes_it_stale(place):
    run(place)
    (place[1] / "unpacking" / "stage2.json.gz").unlink()
    assert run(place, "--check") == 1


@pytest.mark.parametrize("text", ["", "<!-- landscapes:end --><!-- landscapes:start -->", "<!-- landscapes:start -->"])
def test_missing_markers_are_refused(place, text, capsys):
    place[0].write_text(text)
    assert run(place) == 2
    assert "once each" in capsys.readouterr().err
    assert place[0].read_text() == text

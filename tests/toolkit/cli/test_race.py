"""``subbyte race``, and ``landscape import`` and ``export`` in the formats of others."""

from __future__ import annotations

import errno
import json

import pytest

import subbyte
from subbyte.analysis import write_traces
from subbyte.cli.main import main
from subbyte.measure.fake import FakeRunner
from subbyte.tune import Landscape


@pytest.fixture
def landscape(tmp_path):
    """A file with a made-up landscape."""
    space = subbyte.space("n8h7w7c64k64r3s3p1")
    results = FakeRunner(failures={"timeout": 0.1}).run(space.workload, [space.config(index) for index in space.valid])
    made = Landscape.from_results(space, dict(zip(space.valid, results, strict=True)), {"name": "Some GPU"})
    return made.save(tmp_path / "made-up.json.gz")


RACE = ["--strategies", "random,genetic", "--trials", "20", "--seeds", "5", "--workers", "1"]


def test_race_prints_table_comparison_and_verdict(landscape, capsys):
    assert main(["race", str(landscape), *RACE]) == 0
    out, err = capsys.readouterr()
    assert "random against genetic on made-up, 5 seeds, 20 trials" in out
    assert "95 % interval" in out
    assert "runs 10/10" in err


def test_race_as_json(landscape, capsys):
    assert main(["race", str(landscape), *RACE, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["command"], data["trials"], data["runs"]) == (1, "race", 20, 10)
    assert {standing["participant"] for standing in data["standings"]} == {"random", "genetic"}
    assert len(data["curves"][0]["median"]) == 20
    assert data["comparisons"][0]["interval"]["level"] == 0.95
    assert data["comparisons"][0]["margin"] == 0.01
    assert data["comparisons"][0]["outcome"] in ("better", "worse", "equivalent", "undecided")


@pytest.mark.parametrize("name", ["none/race.json.gz", ".json.gz"])
def test_a_race_that_cannot_be_kept_does_not_begin(landscape, tmp_path, capsys, monkeypatch, name):
    (tmp_path / ".json.gz").mkdir()
    monkeypatch.setattr("subbyte.analysis.racing.run_one", lambda *_: pytest.fail("it began"))
    assert main(["race", str(landscape), *RACE, "-o", str(tmp_path / name)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "cannot write race file" in err


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_disk_that_filled_up_meanwhile_loses_no_statistics(landscape, tmp_path, capsys, monkeypatch, flags):
    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("subbyte.files.replace_file", full)
    assert main(["race", str(landscape), *RACE, "-o", str(tmp_path / "race.json.gz"), *flags]) == 3
    out, err = capsys.readouterr()
    assert err.splitlines()[-1].startswith("subbyte: cannot write race file ")
    assert not (tmp_path / "race.json.gz").exists()
    if flags:
        data = json.loads(out)
        assert (data["error"]["kind"], data["error"]["exit_code"], data["file"]) == ("NotWritten", 3, None)
        assert len(data["standings"]) == 2
    else:
        assert "random against genetic" in out
        assert "every run" not in out


def test_race_is_kept_and_printed_again(landscape, tmp_path, capsys):
    kept = tmp_path / "race.json.gz"
    assert main(["race", str(landscape), *RACE, "-o", str(kept), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(["race", "--from", str(kept), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["standings"] == first["standings"]
    assert again["command_line"].startswith("subbyte race ")
    assert "--strategies random,genetic --trials 20 --seeds 5 --batch 8" in again["command_line"]
    assert "numpy" in again["versions"]
    assert main(["race", "--load", str(kept), str(kept)]) == 2
    assert "each landscape is in one only" in capsys.readouterr().err


def test_race_against_traces(landscape, tmp_path, capsys):
    found = Landscape.load(landscape)
    traces = write_traces(tmp_path / "t.json", "guest", found, {seed: list(found.results)[:30] for seed in range(5)})
    assert main(["race", str(landscape), *RACE, "--traces", str(traces)]) == 0
    assert "random against guest" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "WORKLOAD"),
        (["nowhere.json.gz"], "nowhere.json.gz"),
        (["{landscape}", "--strategies", "randm"], "did you mean random"),
        (["{landscape}", "--trials", "0"], "positive integer"),
        (["{landscape}", "-o", "race.txt"], "json.gz"),
        (["{landscape}", "--load", "x.json.gz"], "--load"),
        (["--load", "x.json.gz"], "x.json.gz"),
        (["{landscape}", "--traces", "x.json"], "x.json"),
    ],
)
def test_race_refuses(landscape, capsys, arguments, message):
    assert main(["race", *(word.format(landscape=landscape) for word in arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize("form", ["kernel-tuner", "t4"])
def test_export_and_import(landscape, tmp_path, capsys, form):
    other, again = tmp_path / "other.json", tmp_path / "again.json.gz"
    assert main(["landscape", "export", str(landscape), "--format", form, "-o", str(other)]) == 0
    assert main(["landscape", "import", str(other), "-o", str(again), "--json"]) == 0
    out = capsys.readouterr().out
    data = json.loads(out.splitlines()[-1])
    assert (data["part"], data["workload"]) == ("import", "n8h7w7c64k64r3s3p1")
    one, two = Landscape.load(landscape), Landscape.load(again)
    assert dict(one.results) == dict(two.results)
    assert one.header == two.header


def test_import_of_a_foreign_kernel_then_tune_and_race(tmp_path, capsys):
    table, made = tmp_path / "stencil.csv", tmp_path / "stencil.json.gz"
    lines = [f"{block},{kind},{10.0 + block if block != 48 else ''}" for block in (16, 48, 80) for kind in ("x", "y")]
    table.write_text("block,kind,microseconds\n" + "\n".join(lines) + "\n")
    arguments = ["landscape", "import", str(table), "--kernel", "stencil", "--device", "My GPU", "-o", str(made)]
    assert main(arguments) == 0
    assert "4 measured, 2 failed, best 26.00 us" in capsys.readouterr().out
    assert main(["landscape", "info", str(made)]) == 0
    assert "My GPU" in capsys.readouterr().out
    assert main(["tune", "stencil", "--landscape", str(made), "--trials", "all"]) == 0
    assert "best    26.00 us" in capsys.readouterr().out
    assert main(["race", str(made), "--strategies", "random,genetic:population=2", "--trials", "6", "--seeds", "5",
                 "--workers", "1"]) == 0  # fmt: skip
    assert "random against genetic" in capsys.readouterr().out


def test_import_of_a_table_like_its_landscape(landscape, tmp_path, capsys):
    table, again = tmp_path / "x.csv", tmp_path / "again.json.gz"
    assert main(["landscape", "export", str(landscape), "-o", str(table)]) == 0
    assert main(["landscape", "import", str(table), "--like", str(landscape), "-o", str(again)]) == 0
    assert Landscape.load(again).space_hash == Landscape.load(landscape).space_hash


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "formats"), ("{}", "neither"), ('{"cache": {}}', "not a Kernel Tuner cache"), ("a,b\n1,2\n", "microseconds")],
)
def test_import_refuses(tmp_path, capsys, content, message):
    path = tmp_path / "odd.json"
    path.write_text(content)
    assert main(["landscape", "import", str(path), "-o", str(tmp_path / "x.json.gz")]) == 2
    assert message in capsys.readouterr().err
    assert main(["landscape", "export", str(path), "--format", "x"]) == 2

"""Programs that cannot begin say so with one sentence and an exit code, and leave nothing behind."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.shared.command import first_sentence, module_of, program

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["paper", "retuned", "out", "--gpus", "64"], 3, ""),
        (["paper", "hwnc-search", "out", "--gpus", "64"], 3, ""),
        (["paper", "ablation", "out"], 2, "out holds no landscapes"),
        (["baselines", "pack", "out", "resnet50.stage9@8"], 2, "unknown workload 'resnet50.stage9@8'"),
    ],
)
def test_one_sentence_and_an_exit_code(words, code, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert program(words[0], "", parts_of(words[0]), words[1:]) == code
    told = capsys.readouterr().err
    assert told.startswith(f"error: {said}")
    assert told.count("\n") == 1
    assert not list(tmp_path.iterdir())


def parts_of(folder):
    return import_module(f"benchmarks.{folder}.__main__").PARTS


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["baselines"], "name what to do: search, "),
        (
            ["network", "tunes"],
            (
                "'tunes' is not a part of benchmarks/network: tune, collect, estimate, chains, first, heldout, parts, "
                "sample, times, taken, train, tries; did you mean tune?"
            ),
        ),
        (["network", "tune"], "the following arguments are required: out; see `python benchmarks/network tune --help`"),
        (["paper", "wgmma-sample"], "name a folder for the bundles, or --choose how many schedules, or what to"),
        (
            ["paper", "ablation", "--steps"],
            "unrecognized arguments: --steps; see `python benchmarks/paper ablation --help`",
        ),
    ],
)
def test_wrong_words_are_one_sentence(words, said, capsys):
    try:
        code = program(words[0], "", parts_of(words[0]), words[1:])
    except SystemExit as ended:
        code = ended.code
    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert told.err.startswith(f"error: {said}")
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("folder", ["baselines", "network", "paper"])
def test_help_names_every_part_and_what_it_is_for(folder, tmp_path):
    command = [sys.executable, str(BENCHMARKS / folder), "--help"]  # as a program: it must find its modules
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines()[4:])) <= 80
    assert len(parts_of(folder)) >= 4
    for part in parts_of(folder):
        assert f"  {part:16} {first_sentence(folder, part)}" in " ".join(done.stdout.split("\n" + " " * 19))
        assert len(first_sentence(folder, part)) > 20
        assert callable(import_module(f"benchmarks.{folder}.{module_of(part)}").main)

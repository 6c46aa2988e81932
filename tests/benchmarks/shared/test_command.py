"""Programs that cannot begin say so with one sentence and an exit code, and leave nothing behind."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.shared.command import first_line, module_of

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["paper", "retuned", "out", "--gpus", "64"], 3, ""),
        (["paper", "hwnc-search", "out", "--gpus", "64"], 3, ""),
        (["paper", "ablation", "out"], 2, "out holds no landscapes"),
        (["baselines", "pack", "out", "resnet50.stage9@8"], 2, "unknown workload 'resnet50.stage9@8'"),
        (["baselines"], 2, "name what to do: search, "),
        (["network", "tunes"], 2, "'tunes' is no part of benchmarks/network: tune, collect, estimate, chains; did you"),
        (["network", "tune"], 2, "the following arguments are required: out; see `python benchmarks/network tune --he"),
        (["paper", "wgmma-sample"], 2, "name a folder for the bundles, or --choose how many schedules, or what to"),
        (["views", "--steps"], 2, "unrecognized arguments: --steps; see `python benchmarks/views --help`"),
    ],
)
def test_one_sentence_and_an_exit_code(words, code, said, tmp_path):
    command = [sys.executable, str(BENCHMARKS / words[0]), *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120,
                          env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})  # fmt: skip
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(f"error: {said}")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", ["baselines", "network", "paper"])
def test_help_names_every_part_and_what_it_is_for(folder, tmp_path):
    command = [sys.executable, str(BENCHMARKS / folder), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    parts = import_module(f"benchmarks.{folder}.__main__").PARTS
    assert len(parts) >= 4
    for part in parts:
        assert f"  {part:14} {first_line(folder, part)}\n" in done.stdout
        assert len(first_line(folder, part)) > 20
        assert callable(import_module(f"benchmarks.{folder}.{module_of(part)}").main)

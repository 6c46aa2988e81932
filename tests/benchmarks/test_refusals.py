"""Programs that cannot begin say so with one sentence and an exit code, and leave nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["tuned_search.py", "out", "--gpus", "64"], 3, ""),
        (["hwnc_search.py", "out", "--gpus", "64"], 3, ""),
        (["ablation.py", "out"], 2, "out holds no landscapes"),
        (["kernel_pack.py", "out", "resnet50.stage9@8"], 2, "unknown workload 'resnet50.stage9@8'"),
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

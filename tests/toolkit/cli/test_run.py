"""``subbyte run`` on a machine without a GPU: exact on the CPU, honest about what is missing."""

import json

import numpy as np
import pytest

from subbyte.cli.main import main
from subbyte.kernel import execute

LAYER = "n3h7w5c40k24r3s3p1"


def test_runs_and_checks_on_the_cpu(capsys):
    assert main(["run", LAYER, "--device", "emulator"]) == 0
    out = capsys.readouterr().out
    assert f"all {3 * 7 * 5 * 24} elements equal the reference" in out
    assert "not fast" in out


def test_saved_operands_let_anyone_recompute_the_output(tmp_path, capsys):
    file = tmp_path / "run.npz"
    assert main(["run", LAYER, "--seed", "5", "--save", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["check"]["ok"] is True
    saved = np.load(file)
    x, w = saved["x"].astype(np.int64), saved["w"].astype(np.int64)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    sums = sum(
        np.einsum("nhwc,kc->nhwk", padded[:, r : r + 7, s : s + 5], w[:, r, s]) for r in range(3) for s in range(3)
    )
    shift = saved["shift"].astype(np.int64)
    scaled = ((sums + saved["bias"]) * saved["multiplier"].astype(np.int64) + (1 << (shift - 1))) >> shift
    np.testing.assert_array_equal(np.clip(scaled, *saved["clip"]), saved["y"])
    assert saved["y"].dtype == np.int8
    assert len(np.unique(saved["y"])) == 16


def test_a_mismatch_exits_1(capsys, monkeypatch):
    honest = execute.run_outputs

    def wrong(kernel, buffers, device):
        outputs = honest(kernel, buffers, device)
        outputs["Out"].flat[4] ^= 1  # image 1, channels 0 to 7
        return outputs

    monkeypatch.setattr(execute, "run_outputs", wrong)
    assert main(["run", LAYER, "--device", "emulator", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["check"]["wrong"] == 1
    assert found["timing"] is None


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([LAYER, "--device", "cuda:0"], 3, "no NVIDIA driver"),
        ([LAYER, "--device", "tpu"], 2, "allowed: auto, cuda:0"),
        ([LAYER, "--seed", "-1"], 2, "a whole number from 0"),
        ([LAYER, "--set", "chunk=7"], 2, "chunk may be 1, 2"),
        ([LAYER, "--device", "emulator", "--save", "/no/such/folder/x.npz"], 2, "cannot write"),
    ],
)
def test_refusals(capsys, arguments, code, message):
    assert main(["run", *arguments]) == code
    assert message in capsys.readouterr().err


def test_kept_sums_are_compared_too(capsys, monkeypatch):
    layer = ["n8h4w4c32k32r3s3p1:w1a1", "--output", "bipolar1+add32+keep", "--device", "emulator", "--json"]
    assert main(["run", *layer]) == 0
    assert json.loads(capsys.readouterr().out)["check"]["elements"] == 8 * 16 * 32
    honest = execute.run_outputs

    def wrong(kernel, buffers, device):
        outputs = honest(kernel, buffers, device)
        outputs["Sum"].flat[3] ^= 1
        return outputs

    monkeypatch.setattr(execute, "run_outputs", wrong)
    assert main(["run", *layer]) == 1

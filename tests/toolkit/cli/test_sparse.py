"""``subbyte sparse``: what it prints, as text and as JSON, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from subbyte.cli.main import main


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    """The object that a part prints with ``--json``."""
    assert main(["sparse", *words, "--json"]) == 0
    found: dict = json.loads(capsys.readouterr().out)
    assert found["command"] == "sparse"
    assert found["part"] == words[0]
    return found


def test_a_dense_warp_operation(capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "spgemm", "--shape", "32x32x16", "--density", "1,1", "--trace")
    assert (found["ohmma"], found["bohmma"], found["skipped"], found["exact"]) == (128, 16, 0, True)
    assert sum(step["instruction"] == "OHMMA" for step in found["trace"]) == 128


def test_products_of_all_kinds_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("int4", "int8", "fp16"):
        found = asked(capsys, "spgemm", "--shape", "50x40x30", "--density", "0.3,0.2", "--kind", kind)
        assert found["exact"] or kind == "fp16"
        assert found["kind"] == kind
    assert main(["sparse", "spgemm", "--shape", "32x32x16", "--density", "0.1,0.1", "--trace"]) == 0
    assert "skipped: too few values of A" in capsys.readouterr().out


def test_encoding_random_and_own_matrices(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert asked(capsys, "encode", "--shape", "64x48", "--density", "0")["level1"] == [[False] * 3] * 2
    np.save(tmp_path / "m.npy", np.eye(40, dtype=np.int8))
    found = asked(capsys, "encode", "--file", str(tmp_path / "m.npy"), "--side", "rows")
    assert len(found["values"]) == 40
    assert main(["sparse", "encode", "--file", str(tmp_path / "m.npy")]) == 0
    assert "40 non-zeros" in capsys.readouterr().out


def test_one_layer(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = asked(capsys, "simulate", "resnet50.stage2@8")
    assert found["speedup"]["same_unit"] == 1
    assert found["compute_speedup"]["dense_core"] == pytest.approx(0.881, abs=0.001)
    weight, dual = (
        asked(capsys, "simulate", "resnet50.stage5@2", "--weights", "0.2", "--mode", m) for m in ("weight", "dual")
    )
    assert weight["cycles"] == dual["cycles"]
    changed = asked(capsys, "simulate", "gemm64", "--set", "accumulator_words=128", "per_k=0")
    assert changed["compute_speedup"]["dense_core"] == 1
    np.save(tmp_path / "mask.npy", np.ones((64, 32), bool))
    assert main(["sparse", "simulate", "gemm64", "--activations", str(tmp_path / "mask.npy")]) == 2
    assert "needs [64, 64]" in capsys.readouterr().err
    assert main(["sparse", "simulate", "gemm256", "--weights", "2:4"]) == 0
    out = capsys.readouterr().out
    assert "the same unit in dense mode" in out
    assert "the dense inner-product core" in out
    assert "(synthetic)" in out


def test_the_other_parts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = asked(capsys, "surface", "gemm128", "--densities", "0.25,1")
    assert found["dense_core"][1][1] == pytest.approx(0.88, abs=0.1)
    found = asked(capsys, "network", "lstm@1", "--weights", "0.1")
    assert found["speedups"]["implicit"]["dual"] == found["speedups"]["implicit"]["weight"]
    found = asked(capsys, "figures", "F1", "F10")
    assert found["experiments"]["F1"]["values"]["worst_error"] < 0.07
    assert found["experiments"]["F10"]["values"]["dstc_over_dense_core"] == pytest.approx(1.53, abs=0.05)
    np.savez(tmp_path / "mine.npz", a=np.eye(64))
    assert asked(capsys, "profile", str(tmp_path / "mine.npz"))["arrays"][0]["density"] == 1 / 64
    assert "Sparseloop" in asked(capsys, "machine")["sources"]["accumulator_words"]
    for words in (
        ["surface", "gemm64", "--densities", "0.5,1"],
        ["network", "bert@1"],
        ["figures", "F2"],
        ["machine", "ideal"],
    ):
        assert main(["sparse", *words]) == 0
        assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["spgemm", "--density", "1.5,0.2"], "from 0"),
        (["spgemm", "--density", "0.3"], "expected two"),
        (["spgemm", "--shape", "32x32"], "MxNxK"),
        (["spgemm", "--shape", "32x32x0"], "1 to 8192"),
        (["spgemm", "--shape", "8192x8192x8192", "--density", "1,1"], "products of non-zeros"),
        (["spgemm", "--shape", "1024x1024x64", "--trace"], "trace"),
        (["spgemm", "--kind", "int5"], "int4"),
        (["spgemm", "--seed", "-1"], "whole number"),
        (["encode", "--density", "x"], "from 0"),
        (["encode", "--side", "top"], "columns"),
        (["encode", "--file", "nowhere.npy"], "no such file"),
        (["encode", "--file", "m.npy", "--shape", "4x4"], "--shape is of random matrices"),
        (["encode", "--file", "m.npy", "--density", "1"], "--density is of random matrices"),
        (["simulate", "gemm64", "--activations", "nan"], "from 0"),
        (["simulate", "gemm64", "--weights", "magnitude100"], "magnitude0 to magnitude99.9"),
        (["simulate", "resnet50.stage9"], "did you mean"),
        (["simulate", "gemm64", "--machine", "tpu"], "dstc"),
        (["simulate", "gemm64", "--set", "speed=3"], "machine parameter"),
        (["simulate", "gemm64", "--set", "per_k=fast"], "expected a number"),
        (["simulate", "gemm64", "--machine", "sparse24", "--weights", "0.9"], "do not fit"),
        (["simulate", "gemm64", "--weights", "magnitude"], "magnitude80"),
        (["simulate", "gemm90000", "--activations", "0.5"], "would fit"),
        (["surface", "gemm64", "--densities", "0,1"], "above 0"),
        (["network", "resnet9"], "did you mean"),
        (["network", "bert", "--weights", "w.npy"], "--profile"),
        (["figures", "F4"], "read_lowering"),
        (["figures", "F9"], "read_software"),
        (["figures", "F11"], "unknown experiment"),
        (["simulate", "gemm64", "--set", "per_k=-1"], "0 or a positive number"),
        (["figures", "F8", "--out", "."], "folder"),
        (["profile", "letters"], "photos, digits, pruned, or a FILE.npz"),
        (["machine", "abacus"], "allowed"),
    ],
)
def test_wrong_input_is_one_sentence(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sparse", *words, "--json"]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert json.loads(shown.out)["error"]["exit_code"] == 2


def test_experiments_are_kept_with_their_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "new" / "figures.json"
    assert main(["sparse", "figures", "F8", "F10", "--out", str(kept), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == str(kept)
    stored = json.loads(kept.read_text())
    assert stored["command"] == "subbyte sparse figures F8 F10 --out figures.json"
    assert stored["date"].count("-") == 2
    assert list(stored["experiments"]) == ["F8", "F10"]


def test_every_part_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for part in ("encode", "spgemm", "simulate", "surface", "network", "figures", "profile", "machine"):
        assert main(["sparse", part, "--help"]) == 0
        assert f"subbyte sparse {part}" in capsys.readouterr().out.rsplit("example:", 1)[1]

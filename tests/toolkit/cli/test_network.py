"""``subbyte network``: what it prints, as text and as JSON, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from subbyte.cli.main import main
from subbyte.networks import CATALOGUE, perceptron
from subbyte.networks.builder import Builder
from subbyte.networks.catalogue import Entry
from subbyte.networks.weights_file import unpacked
from subbyte.numerics.bit_layer import BEFORE


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    """The object that a part prints with ``--json``."""
    assert main(["network", *words, "--json"]) == 0
    found: dict = json.loads(capsys.readouterr().out)
    assert (found["command"], found["part"]) == ("network", words[0])
    return found


def test_the_list_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "list")["networks"]
    assert [one["name"] for one in found] == list(CATALOGUE)
    assert {one["name"] for one in found if one["label"].startswith("trained")} == {
        name for name, entry in CATALOGUE.items() if entry.trained
    }
    assert main(["network", "list"]) == 0
    assert "speed only" in capsys.readouterr().out


def test_the_timeline(capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "show", "digits.w1a1@16")
    floors = [one["launch"] + max(one["move"], one["multiply"]) for one in found["layers"]]
    assert found["floor"] == pytest.approx(sum(floors))
    assert (found["batch"], found["residual_share"]) == (16, 0)
    assert main(["network", "show", "digits.w1a1"]) == 0
    assert "floor of all layers" in capsys.readouterr().out


def _small(made: Builder) -> Builder:
    """The layers of tests/toolkit/networks/test_running.py, whose kernels are compiled there."""
    made.conv(32, 3, stride=2, pool=2, name="stem").conv(32, 3, name="kept")
    return made.conv(64, 3, stride=2, residual="kept", name="added").fc(10)


def test_a_run_is_compared_layer_by_layer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry("made up here", _small, (32, 32, 3), "w1a2", BEFORE)
    monkeypatch.setitem(CATALOGUE, "small", entry)
    found = asked(capsys, "run", "small@3", "--images", "4", "--device", "emulator")
    assert [one["differing"] for one in found["layers"]] == [0, 0, 0, 0]
    assert (found["images"], len(found["predictions"]), found["accuracy"]) == (4, 4, None)
    assert found["label"].startswith("speed only")


def test_training_prints_what_differs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "weights.npz"
    found = asked(capsys, "train", "digits", "--bits", "w1a1", "--epochs", "3", "--save", str(file))
    assert (found["differing"], found["test_images"], found["file"]) == (0, 359, str(file))
    assert found["accuracy"] >= 0.9
    kept = unpacked(file.read_bytes(), "weights.npz")
    assert kept.facts["accuracy"] == found["accuracy"]
    assert len(kept.parameters(perceptron("digits", "w1a1")).weights) == 3


@pytest.mark.parametrize(("words", "said", "code"), [
    (("run", "tcbnn.resnet"), "did you mean tcbnn.resnet18", 2),
    (("run", "digits.w1a1@8", "--device", "tpu"), "device", 2),
    (("run", "digits.w1a1", "--images", "360", "--device", "emulator"), "the test split of digits has 359", 2),
    (("bench", "digits.w1a1"), "needs a GPU, and there is none here", 3),
    (("bench", "digits.w1a1", "--device", "emulator"), "needs a GPU, and there is none here", 3),
    (("train", "cifar"), "allowed: digits, mnist", 2),
    (("train", "digits", "--bits", "w9a1"), "bits", 2),
    (("train", "digits", "--save", "missing/folder.npz"), "cannot write", 2),
    (("show", "tcbnn.mlp", "--arch", "sm_80"), "no GPU of this architecture was measured", 2),
])  # fmt: skip
def test_wrong_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str, code: int
) -> None:
    assert main(["network", *words]) == code
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1

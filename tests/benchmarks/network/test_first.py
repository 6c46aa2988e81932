"""How far off first choices were, and how long compile(tries=) takes: what is recorded, and what is refused."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from benchmarks.network import first, times, tries
from benchmarks.network.heldout import drawn
from subbyte.device.arch import arch
from subbyte.families.wgmma import batches, first_choices

ARCH = arch("sm_90a")


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Two held-out layers whose best takes 1.2 and 0.9 times what is expected, another layer, one that is not built."""
    small = [layer for layer in drawn() if layer.macs < 4e9][:2]
    kernels = [{"cell": "n8h28w28c64k64r3s3p1", "config": "wgs-tw4", "microseconds": 1.0}]
    for layer, ratio in zip(small, (1.2, 0.9), strict=True):
        configs = batches.searched(batches.whole(layer), ARCH)[:3]
        for config in configs[1:]:  # the model's first one was not built
            time = batches.expected(batches.whole(layer), config, ARCH)
            kernels.append({"cell": layer.spec, "config": config.key, "microseconds": ratio * time})
        kernels.append({"cell": layer.spec, "config": configs[0].key, "kind": "build", "reason": "serialized"})
    path = tmp_path_factory.mktemp("first") / "first.json"
    path.write_text(json.dumps({"format": times.FORMAT, "kernels": kernels}))
    return path


@pytest.mark.deep
def test_ratios_of_held_out_layers_are_written_for_the_model_of_today(record, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(first_choices, "FILE", tmp_path / "out.json")
    assert first.main([str(record), "--write"]) == 0
    said = capsys.readouterr().out
    assert "2 layers: 0.90 to 1.20 times what was expected" in said
    assert said.count("nothing measured") == 10
    data = json.loads((tmp_path / "out.json").read_text())
    assert (data["ratios"], data["records"], data["model"]) == ([0.9, 1.2], ["first.json"], first_choices.digest())
    first_choices.ratios.cache_clear()
    assert first_choices.ratios() == (0.9, 1.2)
    (tmp_path / "out.json").write_text(json.dumps({**data, "model": "another"}))
    first_choices.ratios.cache_clear()
    assert first_choices.ratios() == ()
    monkeypatch.undo()
    first_choices.ratios.cache_clear()


def test_what_says_nothing_of_held_out_layers_is_refused(tmp_path, capsys):
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"format": times.FORMAT, "kernels": []}))
    assert first.main([str(path)]) == 2
    assert "no kernel of a layer that is held out" in capsys.readouterr().err
    path.write_text("{}")
    assert first.main([str(path)]) != 0
    assert "no record of `times`" in capsys.readouterr().err


def test_seconds_and_what_was_stored_are_recorded(tmp_path, monkeypatch):
    gpu = SimpleNamespace(name="GPU A", arch="sm_90a", ordinal=0, to_dict=lambda: {"name": "GPU A"})
    monkeypatch.setattr(tries, "detect", lambda: [gpu])
    kernel = SimpleNamespace(config=SimpleNamespace(key="wgs-tw4"), reason="fastest of 3 measured now")
    asked = []
    monkeypatch.setattr(tries.subbyte, "compile", lambda layer, tries: asked.append((layer.spec, tries)) or kernel)
    monkeypatch.setattr(tries.os, "environ", dict(tries.os.environ))
    out = tmp_path / "tries.json"
    assert tries.main([str(out), "n8h14w20c48k40r3s3p1", "--tries", "3"]) == 0
    found = json.loads(out.read_text())
    (layer,) = found["layers"]
    assert asked == [("n8h14w20c48k40r3s3p1", 3)]
    assert (layer["config"], layer["stored"], layer["before"], found["gpu"]) == (
        "wgs-tw4", [], "predicted", {"name": "GPU A"},
    )  # fmt: skip
    assert layer["seconds"] >= 0

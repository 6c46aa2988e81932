"""How far off first choices were, and how long compile(tries=) takes: what is recorded, and what is refused."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

import subbyte
from benchmarks.network import first, parts, times, tries
from benchmarks.network.heldout import drawn, held_out
from benchmarks.shared.command import RESULTS
from subbyte.cache import cache_root
from subbyte.device.arch import arch
from subbyte.families.mma.config import MmaConfig
from subbyte.families.wgmma import batches, first_choices
from subbyte.gpu.telemetry import Snapshot
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.split import SplitKernel

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
    assert said.count("nothing measured") == len(held_out()) - 2
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


BATCH = subbyte.workload("n13h2w3c16k16r1s1p0")


def launches(output):
    """13 images as 8 and 5."""
    sizes = (replace(BATCH, n=8), replace(BATCH, n=5))
    made = [Kernel(make_plan(one, MmaConfig(blk_col_warps=1), ARCH, output, None, "fixed")) for one in sizes]
    return SplitKernel.joining(BATCH, made, "two launches")


@pytest.mark.parametrize("wrong", [False, True])
def test_two_launches_are_compared_and_recorded(tmp_path, monkeypatch, capsys, wrong):
    """Planted: one element of what ``run`` gives is off, which is not what the reference and the device say."""
    run = SplitKernel.run

    def off(self, *args):
        values = run(self, *args)
        values[3, 1, 0, 2] += wrong
        return values

    timing = SimpleNamespace(microseconds=5.0, samples=(5.0,), cold_microseconds=6.0, cold_samples=(6.0,),
                             before=Snapshot(1980), after=Snapshot(1980), date="2026-11-27T00:00:00+00:00")  # fmt: skip
    monkeypatch.setattr(parts, "detect", lambda: [SimpleNamespace(to_dict=lambda: {"name": "GPU A"})])
    monkeypatch.setattr(parts.subbyte, "compile", lambda layer, output: launches(output))
    monkeypatch.setattr(SplitKernel, "run", off)
    monkeypatch.setattr(SplitKernel, "time", lambda self: timing)
    monkeypatch.setattr(parts, "measured", partial(parts.measured, device="emulator"))
    monkeypatch.setattr(parts.os, "environ", dict(parts.os.environ))
    # The cache of all tests in place of an empty one: the emulator's runtime is compiled once, for seconds.
    monkeypatch.setattr(parts.tempfile, "TemporaryDirectory", lambda prefix: nullcontext(str(cache_root())))
    out = tmp_path / "parts.json"
    assert parts.main([str(out), BATCH.spec]) == wrong
    found = json.loads(out.read_text())
    former = json.loads((RESULTS / "warpgroup/parts-h100-2026-11-27.json").read_text())
    assert found.keys() == former.keys()
    for output in ("int32", "int4"):
        one = found["layers"][0][output]
        assert one.keys() == former["layers"][0]["int32"].keys()
        assert (one["equals_reference"], one["run_equals_on_device"]) == (not wrong, not wrong)
        assert [label for label, _ in one["parts"]] == ["n8h2w3c16k16r1s1p0", "n5h2w3c16k16r1s1p0"]
    assert "int4: 2 launches, 5.00 us" in capsys.readouterr().out

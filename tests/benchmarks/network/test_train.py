"""Training the model of default kernels: layers held out, folds, what a record may hold; texts and times beside it."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.network import heldout, layers, sample, times, train
from subbyte.device.arch import arch
from subbyte.errors import InvalidInput
from subbyte.families import family_of
from subbyte.families.wgmma import batches, features, model
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.family import WGMMA
from subbyte.kernel.choose import best_known
from subbyte.records.result import Measured
from subbyte.workload import workload

PUBLISHED = [
    "n9h7w72c24k880r6s6p0",
    "n20h61w9c24k40r1s1p0u2",
    "n12h59w60c16k40r2s2p1u2",
    "n213h8w49c528k128r6s6p0u2",
    "n14h56w107c176k336r4s4p0",
    "n74h218w7c464k456r3s3p1",
    "n188h88w18c328k256r3s3p0u2",
    "n16h14w47c728k256r4s4p2",
    "n66h15w20c24k528r2s2p0",
    "n1h23w61c472k40r4s4p2u2",
    "n290h13w7c120k80r3s3p0",
    "n118h67w58c88k56r2s2p1u2",
]
THIRD = [
    "n38h34w89c408k976r4s4p0u2",
    "n15h15w24c232k120r3s3p0",
    "n2h15w68c88k200r1s1p0u2",
    "n150h13w7c32k72r3s3p0u2",
    "n14h80w46c48k896r3s3p0",
    "n1h129w15c624k16r3s3p0",
    "n31h27w167c648k192r3s3p0u2",
    "n1h8w152c40k432r2s2p1",
    "n1h45w29c800k80r3s3p1",
    "n1h102w158c104k712r6s6p3u2",
    "n1h13w28c208k408r7s7p3u2",
    "n33h100w21c592k272r1s1p0",
]
SECOND = [
    "n2h7w17c56k520r4s4p2",
    "n2h173w110c104k856r2s2p1",
    "n139h11w83c544k16r5s5p2u2",
    "n18h78w43c112k40r4s4p0u2",
    "n3h18w28c24k216r7s7p3",
    "n26h9w11c264k120r1s1p0",
    "n4h121w14c56k208r1s1p0u2",
    "n14h99w37c368k144r6s6p0u2",
    "n1h30w147c40k24r6s6p0u2",
    "n3h54w13c16k160r1s1p0u2",
    "n99h19w8c112k48r3s3p1",
    "n40h27w8c776k104r4s4p0",
]
FIRST = [
    "n103h96w157c240k24r1s1p0u2",
    "n41h90w7c944k24r6s6p0",
    "n75h18w35c56k832r1s1p0u2",
    "n37h13w154c112k24r7s7p3u2",
    "n9h42w222c176k624r1s1p0u2",
    "n90h19w8c264k120r2s2p0u2",
    "n22h111w144c224k128r3s3p0",
    "n37h62w163c96k288r2s2p0u2",
    "n20h10w17c24k928r3s3p1",
    "n21h16w145c64k32r3s3p0",
    "n1h28w8c504k16r3s3p1",
    "n162h35w185c120k248r3s3p1u2",
]
LAYERS = ("n8h28w28c64k64r3s3p1", "n16h28w28c64k64r3s3p1", "n8h14w14c128k128r3s3p1", "n8h28w28c64k128r1s1p0")


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A record of `times`, made up: twice the estimate for rows of one kind, so that trees have something to find."""
    kernels = []
    for spec in LAYERS:
        layer = workload(spec)
        for config in batches.searched(layer, arch("sm_90a"))[:40]:
            plan = WGMMA.plan(layer, config, arch("sm_90a"))
            slow = 2.0 if getattr(config.schedule, "load_ahead", 1) == 2 else 1.0
            kernels.append({"cell": spec, "config": config.key, "microseconds": slow * WGMMA.estimate(plan) / 1755.0})
        kernels[-1] = {**kernels[-1], "kind": "build", "reason": "serialized"}
        del kernels[-1]["microseconds"]
    path = tmp_path_factory.mktemp("times") / "times.json"
    path.write_text(json.dumps({"format": times.FORMAT, "schema": 1, "kernels": kernels}))
    return path


def test_the_layers_are_those_that_were_published():
    assert [one.spec for one in heldout.drawn()] == PUBLISHED
    assert all(one.macs <= heldout.MOST_MACS for one in heldout.drawn())
    assert [[one.spec for one in heldout.drawn(seed)] for seed in heldout.FORMER_SEEDS] == [FIRST, SECOND, THIRD]
    assert all(heldout.is_held_out(replace(workload(spec), n=8)) for spec in (*PUBLISHED, *THIRD, *SECOND, *FIRST))
    assert not heldout.is_held_out(workload("resnet50.stage2@40"))


def test_defaults_are_judged_by_the_mean_and_the_worst(tmp_path, capsys):
    path = tmp_path / "times.json"

    def judged(slower, specs=PUBLISHED):
        kernels = [{"cell": spec, "config": name, "microseconds": us}
                   for _ in range(3)
                   for spec, one in zip(specs, slower, strict=True)
                   for name, us in (("taken", 10.0 * one), ("searched", 10.0))]  # fmt: skip
        kernels[0] = {**kernels[0], "microseconds": 900.0}  # a disturbed round: medians count
        path.write_text(json.dumps({"kernels": kernels}))
        return heldout.main(["--judge", str(path)])

    for slower, code in (([1.02] * 12, 0), ([1.0] * 11 + [1.14], 0), ([1.0] * 11 + [1.16], 1), ([1.06] * 12, 1)):
        assert judged(slower) == code
    assert judged([0.5] * 6 + [1.09] * 6) == 0  # faster than the search counts as equal: 4.5 % in the mean
    assert judged([0.5] * 5 + [1.09] * 7) == 1
    assert judged([1.0], PUBLISHED[:1]) == 2
    path.write_text("{")
    assert heldout.main(["--judge", str(path)]) != 0
    assert "no record of `times`" in capsys.readouterr().err


def test_a_record_with_a_layer_that_is_held_out_is_refused(record, tmp_path, capsys):
    data = json.loads(record.read_text())
    kernels = data["kernels"]
    for spec in (PUBLISHED[9], FIRST[9], SECOND[9]):
        variant = {"cell": replace(workload(spec), n=8).spec, "config": "wgp-tw14-tr1-cm1-sg1-st4", "microseconds": 9.0}
        (tmp_path / "bad.json").write_text(json.dumps({**data, "kernels": [*kernels, variant]}))
        assert train.main([str(tmp_path / "bad.json")]) == 2
        assert "held out" in capsys.readouterr().err
        left = train.load([tmp_path / "bad.json"], leave_heldout=True)
        assert [one.workload for one in left] == [one.workload for one in train.load([record])]
    (tmp_path / "none.json").write_text("[]")
    assert train.main([str(tmp_path / "none.json")]) != 0
    assert "no record of" in capsys.readouterr().err


def test_variants_of_a_layer_share_a_fold(record):
    layers = train.load([record])
    seen = []

    def nothing(some):
        seen.append({one.workload.spec for one in some})
        return lambda rows: rows[:, 0]

    train.left_out(layers, nothing)
    assert len(layers) == 4
    assert len(seen) == 3
    assert all((LAYERS[0] in some) == (LAYERS[1] in some) for some in seen)


@pytest.mark.deep
def test_trees_learn_what_the_estimate_does_not_know_and_ship_as_they_are(record, tmp_path, monkeypatch, capsys):
    xgboost = pytest.importorskip("xgboost")
    monkeypatch.setattr(model, "FILE", tmp_path / "model.json")
    monkeypatch.setattr(train, "ROUNDS", 30)
    monkeypatch.setattr(train, "REFUSAL_ROUNDS", 10)
    monkeypatch.setattr(train, "FOLDS", 2)
    boosters = []
    monkeypatch.setattr(
        xgboost, "train", lambda *given, real=xgboost.train: boosters.append(real(*given)) or boosters[-1]
    )
    assert train.main([str(record), "--write"]) == 0
    assert "4 layers, 156 kernels, 4 refused" in capsys.readouterr().out
    written = model.read(json.loads(model.FILE.read_text()))
    assert written.judged["kernels"] == 156
    rows = np.concatenate([one.rows for one in train.load([record])])
    *forests, refusal_booster = boosters[-1 - train.FORESTS :]
    said = [one.predict(xgboost.DMatrix(rows)) for one in forests]
    assert not np.array_equal(said[0], said[1])  # of another seed
    np.testing.assert_allclose(written.time.predict(rows), np.mean(said, axis=0), rtol=1e-4, atol=1e-5)
    margin = refusal_booster.predict(xgboost.DMatrix(rows), output_margin=True)
    np.testing.assert_allclose(written.refused.predict(rows), margin, rtol=1e-4, atol=1e-4)
    target = train.wanted(train.load([record]))[1]
    assert np.corrcoef(written.time.predict(rows), target)[0, 1] > 0.7
    assert rows.shape[1] == len(features.NAMES)


def test_texts_of_what_compile_takes_are_measured_in_their_order(tmp_path, monkeypatch, capsys):
    out, spec = tmp_path / "texts.jsonl.xz", "n16h7w7c32k64r3s3p1"
    assert sample.main([str(out), "--layers", spec, "--most", "2"]) == 0
    lines = times.lines_of(out)
    assert [one["cell"] for one in lines] == [spec, spec]
    assert lines[0]["config"] == best_known(workload(spec))[0].key
    assert isinstance(times.plan_of(lines[0]).config, WgmmaConfig)

    class Made:
        def __init__(self, device, case, protocol):
            assert case.workload == workload(spec)

        def evaluate(self, cubin, launch):
            assert cubin[:4] == b"\x7fELF"
            return Measured(2.5, (2.5,))

        def close(self):
            pass

    device = SimpleNamespace(lost=False, info=SimpleNamespace(to_dict=dict))
    monkeypatch.setattr(times, "open_device", lambda _: device)
    monkeypatch.setattr(times, "Evaluator", Made)
    monkeypatch.setattr(times.os, "cpu_count", lambda: 1)
    found, again = times.measured([lines[0], {**lines[1], "cuda": "no text"}], time.monotonic() + 100.0, again=1)
    assert [one.get("microseconds") for one in found["kernels"]] == [2.5, None]
    assert found["kernels"][1]["kind"] == "build"
    assert [(one["config"], one["microseconds"]) for one in again] == [(lines[0]["config"], 2.5)]
    monkeypatch.setattr(sample, "top_of", lambda logs, layer: [{"family": "wgmma", "key": lines[1]["config"]}])
    asked = ["--layers", spec, "--taken", "--searched", str(tmp_path), "--rounds", "2"]
    assert sample.main([str(out), *asked]) == 0
    assert [one["config"] for one in times.lines_of(out)] == 2 * [lines[0]["config"], lines[1]["config"]]
    beside = tmp_path / "beside.jsonl.xz"
    of_both = ["--layers", spec, "--most", "1", "--drawn", "1", "--families", "image", "wgmma"]
    assert sample.main([str(beside), *of_both]) == 0
    kinds = [family_of(times.plan_of(one).config).name for one in times.lines_of(beside)]
    assert kinds == ["image", "image", "wgmma", "wgmma"]
    monkeypatch.setattr(sample, "top_of", lambda logs, layer: [])
    assert sample.main([str(out), *asked]) == 2
    (tmp_path / "bad.xz").write_bytes(b"not xz")
    with pytest.raises(InvalidInput, match="no texts of kernels"):
        times.lines_of(tmp_path / "bad.xz")
    assert "best 2.50 us" in capsys.readouterr().out


def test_layers_are_named_or_drawn():
    assert [one.spec for one in layers.layers_of(["heldout"])] == PUBLISHED
    assert len(layers.layers_of(["stages"])) == 44
    at = layers.layers_of(["stages@24", "heldout@8,16", "resnet50.stage2@24"])
    assert len(at) == 4 + 24
    assert {one.n for one in at} == {24, 8, 16}
    drawn = layers.layers_of(["random:7:5"])
    assert len(drawn) == 5
    assert not any(map(heldout.is_held_out, drawn))
    strided = layers.layers_of(["random:7:3:r1u2"])
    assert [(one.r, one.stride) for one in strided] == [(1, 2)] * 3
    assert strided[0] in layers.layers_of(["random:7:200"])
    seeds = (f"random:{seed}:3" for seed in (heldout.SEED, *heldout.FORMER_SEEDS))
    for wrong in ("random:7", "random:x:2", "random:7:2:r9u1", *seeds, "stages@x"):
        with pytest.raises(InvalidInput, match="--layers"):
            layers.layers_of([wrong])

"""What the estimate is worth: regrets, and a fit that finds its way back to the constants that made the times."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

from benchmarks.network import estimate as estimate_regret
from subbyte.device.arch import arch
from subbyte.families import space
from subbyte.families.wgmma.cycles import Constants, estimated_cycles
from subbyte.families.wgmma.estimate import candidates
from subbyte.families.wgmma.family import WGMMA
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.kernel.choose import TRIES
from subbyte.records.describe import describe_space, describe_workload
from subbyte.workload import workloads

OTHER = replace(Constants(), fragment=300.0, load=300.0, setup=1500.0)
WRONG = replace(Constants(), setup=1.0, fragment=1.0, epilogue=0.01, load=0.01, stage=0.01, cluster=1e6)


@pytest.fixture(scope="module")
def data():
    """Times of three layers, as other constants would have them."""

    def times(layer):
        listed = candidates(layer, arch("sm_90a"))[:200:8]
        return {c: estimated_cycles(WgmmaPlan(layer, c, arch("sm_90a")), OTHER) / 1755.0 for c in listed}

    layers = workloads(["resnet50.stage3@256", "resnet50.stage5@8", "resnet50.stage4.reduce1x1@64"])
    return {layer: times(layer) for layer in layers}


def test_the_right_constants_have_no_regret(data):
    assert set(estimate_regret.regrets(data, OTHER).values()) == {(0.0, 0.0)}
    found = estimate_regret.regrets(data, WRONG)
    assert max(first for first, _ in found.values()) > 0.02
    assert all(few <= first for first, few in found.values())
    assert "worst" in estimate_regret.summary(found)


def test_of_equal_estimates_the_fastest_does_not_come_first(monkeypatch):
    layer, configs = (
        workloads("resnet50.stage5@8")[0],
        [PipelineConfig(stages=stages) for stages in range(3, 3 + TRIES)],
    )
    monkeypatch.setattr(estimate_regret, "_cycles", lambda *_: 1.0)
    first, *_, last = sorted(configs, key=lambda config: config.key)
    for fastest, wanted in ((first, 0.0), (last, 1.0)):
        times = {layer: {config: 1.0 if config == fastest else 2.0 for config in configs}}
        assert estimate_regret.regrets(times, OTHER)[layer.label] == (wanted, 0.0)


@pytest.mark.deep
def test_a_fit_finds_them(data):
    pytest.importorskip("scipy")
    found = estimate_regret.fit(data, turns=40)
    assert found.fragment == pytest.approx(OTHER.fragment, rel=0.3)
    assert found.setup == pytest.approx(OTHER.setup, rel=0.3)
    assert sum(a for a, _ in estimate_regret.regrets(data, found).values()) < 0.02
    assert len(estimate_regret.left_out(data, 3)) == 3


def test_records_and_logs_are_read_and_nothing_is_refused(tmp_path, capsys):
    layer = workloads("resnet50.stage5@8")[0]
    listed = space(layer, kind="wgmma-small")
    trials = [*([index, [4.0, 5.0, 4.5]] for index in listed.valid[:12]), [listed.valid[12], "build"]]
    search = {"workload": describe_workload(layer), "space": describe_space(listed), "trials": trials}
    without = {**search, "space": {"kind": "warpgroup"}}
    file = tmp_path / "record.json.gz"
    file.write_bytes(gzip.compress(json.dumps({"searches": {"a": search, "b": without}}).encode()))
    found = estimate_regret.load([file])
    assert set(found[layer].values()) == {4.5}
    assert len(found[layer]) == 12
    assert estimate_regret.main([str(file)]) == 0
    assert "1 layers, 12 configurations" in capsys.readouterr().out
    assert estimate_regret.main([str(tmp_path)]) == 2
    assert "no layer with 10 measured" in capsys.readouterr().err


def test_kernels_with_a_knob_that_is_no_more_are_left_out(tmp_path):
    layer = workloads("resnet50.stage5@8")[0]
    lists = {"tile_width": (8, 6), "segments": (1, 7), "ring": (3, 4, 5), "load_ahead": (1, 2), "unroll": (1, 2)}
    listed = WGMMA.recorded_space(layer, arch("sm_90a"), "warpgroup-small", lists, WGMMA.held({}))
    described = describe_space(listed)
    described["knobs"]["staging"] = [0, 4]
    trials = [[index + half * len(listed), [4.0 + half]] for index in listed.valid[:12] for half in range(2)]
    file = tmp_path / "record.json.gz"
    search = {"workload": describe_workload(layer), "space": described, "trials": trials}
    file.write_bytes(gzip.compress(json.dumps({"searches": {"a": search}}).encode()))
    assert estimate_regret.load([file])[layer] == {listed.config(index): 4.0 for index in listed.valid[:12]}

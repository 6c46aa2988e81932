"""The searches behind Figures 15 and 16, from studies to the record, with made-up times."""

import argparse
import gzip
import json
import time

from benchmarks.paper import collect as collect_searches
from benchmarks.paper import retuned as tuned_search
from subbyte.analysis import read_retuned
from subbyte.measure.fake import FakeRunner


def test_every_combination_is_searched_and_meets_in_the_finals(tmp_path):
    logs, out = tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    args = argparse.Namespace(
        out=logs, gpus=1, strategy="random", seed=0, trials=4, runner="fake", deadline=time.time() + 60, remeasure=2
    )
    for name in tuned_search.SWITCHES:
        line = tuned_search.one_search(args, FakeRunner(), 2, name)
        assert "4 trials" in line
    args.trials = 6
    assert "6 trials" in tuned_search.one_search(args, FakeRunner(), 2, "full-rp-nhwcnc")  # goes on
    assert tuned_search.remeasure(args) == 0
    found = read_retuned(logs / "stage2-finals.json")
    assert len(found.optima) == 12
    assert found.optima["sharing full, packing on, nhwcnc"].trials == 6
    assert found.exhaustive is not None
    assert all(factor.low <= factor.speed_up <= factor.high for factor in found.shapley.values())

    assert collect_searches.main([str(logs), str(out)]) == 0
    packed = json.loads(gzip.decompress((out / "stage2-searches.json.gz").read_bytes()))
    assert len(packed["searches"]) == 12
    trials = packed["searches"]["full-rp-nhwcnc"]["trials"]
    assert len(trials) == 6
    assert all(len(samples) == 5 for _, samples in trials)
    assert (out / "stage2-finals.json").read_text() == (logs / "stage2-finals.json").read_text()


def test_searches_of_a_stage_lie_on_as_few_gpus_as_possible():
    for gpus in (1, 3, 8):
        dealt = [tuned_search.tasks(part, gpus) for part in range(gpus)]
        assert [task for mine in dealt for task in mine] == [
            (stage, name) for stage in tuned_search.STAGES for name in tuned_search.SWITCHES
        ]
    assert [len({stage for stage, _ in mine}) for mine in (tuned_search.tasks(part, 8) for part in range(8))] == [1] * 8

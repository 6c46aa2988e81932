"""Running races: every strategy with every seed, in this process and in workers, guests included."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

import subbyte
from subbyte.analysis import race, read_traces, write_traces
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.records.exchange import from_rows
from subbyte.tune import Landscape

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def shipped(recorded, tmp_path, monkeypatch):
    monkeypatch.setattr("subbyte.records.landscape_file.SHIPPED", tmp_path)
    recorded.save(tmp_path / f"{recorded.name}.json.gz")
    return recorded


@pytest.fixture(scope="module")
def foreign() -> Landscape:
    """Text and odd numbers as knob values; a third of the product missing; some failures."""
    rows = [
        {"block": block, "memory": memory, "pad": pad, "time_limit": 1,
         "microseconds": None if block == 96 and pad else 5.0 + abs(block - 48) / 16 + len(memory) + pad}
        for block in range(16, 128, 16) for memory in ("shared", "texture", "l1") for pad in (0, 1)
        if (block // 16 + len(memory)) % 3
    ]  # fmt: skip
    return from_rows(rows, "stencil", "Some GPU")


def test_runs_follow_their_seeds(recorded):
    found = race(recorded, ["random", "genetic"], trials=30, seeds=3, workers=1)
    assert [(run.participant, run.seed) for run in found.runs] == [
        (name, seed) for seed in range(3) for name in ("random", "genetic")
    ]
    assert race(recorded, ["random", "genetic"], 30, 3, 1).standings[0].area == found.standings[0].area
    alone = race(recorded, "random", trials=30, seeds=[2], workers=1)
    assert alone.runs_of(recorded.name, "random")[0].best_microseconds == found.runs[4].best_microseconds
    assert {run.evaluated for run in found.runs} == {30}
    assert found.landscapes[0].optimum_microseconds == recorded.best[1].microseconds


@pytest.mark.deep
def test_random_is_what_drawing_without_replacement_gives(recorded):
    """The mean fraction of the optimum after t uniform draws, computed from the table."""
    found = race(recorded, "random", trials=20, seeds=150, workers=1).standings[0]
    best = recorded.best[1].microseconds
    worth = sorted((best / r.microseconds if r.ok else 0.0 for r in recorded.results.values()), reverse=True)
    left, expected, size = 1.0, 0.0, len(worth)
    for place, fraction in enumerate(worth):  # the best of 20 is the one at this place
        chance = left * 20 / (size - place)
        expected += fraction * chance
        left -= chance
        if size - place - 1 < 20:
            break
    assert found.final == pytest.approx(expected, abs=4 * found.final_error)


@pytest.mark.deep
def test_workers_change_nothing(recorded, foreign):
    strategies = ["random", "genetic:population=5"]
    one = race([recorded, foreign], strategies, trials=12, seeds=2, workers=1)
    seen = []
    two = race([recorded, foreign], strategies, trials=12, seeds=2, workers=2, progress=lambda *at: seen.append(at))
    assert [replace(run, seconds=0.0) for run in two.runs] == [replace(run, seconds=0.0) for run in one.runs]
    assert seen == [(done, 8) for done in range(1, 9)]
    assert set(two.scopes) == {recorded.name, foreign.name, "Some GPU"}


def test_a_foreign_space_is_searched_to_its_end(foreign):
    found = race(foreign, ["random", "genetic"], trials=60, seeds=6, workers=1)
    assert {run.evaluated for run in found.runs} == {len(foreign)} == {28}
    assert {run.failed for run in found.runs} == {sum(not result.ok for result in foreign.results.values())}
    assert all(standing.optimum_found == 1.0 for standing in found.standings)


def test_models_are_judged(recorded):
    found = race(recorded, ["random", "autotvm"], trials=100, seeds=1, workers=1)
    without, with_model = found.standings
    assert (without.spearman, without.holdout) == (None, None)
    assert -1 <= with_model.spearman <= 1
    assert with_model.holdout > 0.3
    assert [batch.holdout is None for batch in found.runs[1].batches] == [True, False, False, True]
    assert 0 < with_model.hamming < 1


def test_names_and_files_and_workloads(shipped, foreign, tmp_path):
    path = foreign.save(tmp_path / "elsewhere.json.gz")
    for asked in (shipped.name, "n8h7w7c64k64r3s3p1", subbyte.workload("n8h7w7c64k64r3s3p1"), path, str(path)):
        found = race(asked, "random", trials=2, seeds=1, workers=1)
        assert len(found.landscapes) == 1


def test_a_network_races_on_what_is_recorded(shipped, monkeypatch):
    layers = [shipped.workload, subbyte.workload("resnet50.stage2@8")]
    monkeypatch.setattr("subbyte.analysis.racing.parse_workloads", lambda text: layers)
    found = race("net@8", "random", trials=2, seeds=1, workers=1)
    assert [facts.name for facts in found.landscapes] == [shipped.name]
    assert found.skipped == ("resnet50.stage2@8: no landscape of it is shipped",)
    assert "left out: resnet50.stage2@8" in found.text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"trials": 0}, "trials=0"),
        ({"seeds": 0}, "seeds=0"),
        ({"trials": "x"}, "trials='x'"),
        ({"seeds": 1.5}, "seeds=1.5"),
        ({"seeds": [1, 1]}, "seeds="),
        ({"workers": 0}, "workers=0"),
        ({"batch": 0}, "batch=0"),
        ({"strategies": []}, "at least one"),
        ({"strategies": ["random", "random"]}, "named once"),
        ({"strategies": "randm"}, "did you mean random"),
        ({"strategies": "random:x=1"}, "no options"),
        ({"workloads": []}, "no landscape"),
        ({"workloads": "resnet50.stage2@8888"}, "no landscape 'resnet50.stage2@8888'"),
        ({"workloads": "nowhere.json.gz"}, "nowhere.json.gz"),
    ],
)
def test_what_cannot_race_is_refused(shipped, arguments, message):
    with pytest.raises(InvalidInput, match=message):
        race(**{"workloads": shipped, "strategies": "random", "trials": 5, "seeds": 1, "workers": 1, **arguments})


def test_two_landscapes_of_one_name_are_refused(recorded):
    with pytest.raises(InvalidInput, match="two landscapes"):
        race([recorded, recorded], "random", 5, 1, 1)


def test_a_strategy_of_this_session_stays_in_it(recorded, monkeypatch):
    from subbyte.tune.strategy import STRATEGIES, Random

    here = type("Here", (Random,), {"name": "here", "__module__": "__main__"})
    monkeypatch.setitem(STRATEGIES, "here", here)
    assert race(recorded, "here", 5, 2, workers=1).runs
    with pytest.raises(InvalidInput, match="workers=1"):
        race(recorded, "here", 5, 2, workers=2)


# ---- guests ----------------------------------------------------------------------------------------------------


def test_traces_count_unique_evaluations(recorded, tmp_path):
    order = sorted(recorded.results, key=lambda i: (recorded.results[i].ok, -i))
    best = recorded.best[0]
    visits = {0: [order[0], order[0], order[1], best], 1: [best] * 10}
    path = write_traces(tmp_path / "t.json.gz", "guest", recorded, visits, {"name": "by hand"})
    found = race(recorded, "random", trials=3, seeds=2, workers=1, traces=[path])
    first, second = found.runs_of(recorded.name, "guest")
    assert (first.evaluated, second.evaluated) == (3, 1)
    assert first.best_microseconds[2] == recorded.best[1].microseconds
    assert second.best_microseconds == (recorded.best[1].microseconds,) * 3
    assert found.participants == ("random", "guest")


def test_traces_of_elsewhere_are_refused(recorded, foreign, tmp_path):
    path = write_traces(tmp_path / "t.json", "guest", foreign, {0: [0]})
    with pytest.raises(InvalidInput, match="not of landscape"):
        race(recorded, "random", 3, 1, 1, traces=[path])
    missing = next(index for index in range(1800) if index not in recorded.results)
    path = write_traces(tmp_path / "t.json", "guest", recorded, {0: [missing]})
    with pytest.raises(InvalidInput, match=f"index {missing}"):
        race(recorded, "random", 3, 1, 1, traces=[path])
    path = write_traces(tmp_path / "t.json", "random", recorded, {0: [0]})
    with pytest.raises(InvalidInput, match="this name"):
        race(recorded, "random", 3, 1, 1, traces=[path])


def test_damaged_traces_are_refused(recorded, tmp_path):
    path = tmp_path / "t.json"
    good = json.loads(write_traces(path, "guest", recorded, {0: [0]}).read_text())
    spoilt = [
        {**good, "format": "x"}, {**good, "schema": 9}, {**good, "runs": [{"seed": 0}]}, {**good, "runs": 3},
        {**good, "runs": good["runs"] * 2}, [1], {name: good[name] for name in good if name != "landscape"},
    ]  # fmt: skip
    for data in spoilt:
        path.write_text(json.dumps(data))
        with pytest.raises(BrokenRecord, match=r"t\.json"):
            read_traces(path)
    path.write_bytes(gzip.compress(json.dumps(good).encode())[:-8])
    with pytest.raises(BrokenRecord, match=r"t\.json"):
        read_traces(path)
    with pytest.raises(InvalidInput, match="No such file"):
        read_traces(tmp_path / "no.json")


def test_kernel_tuner_is_a_baseline(recorded, tmp_path):
    pytest.importorskip("kernel_tuner")
    from benchmarks.paper import kernel_tuner

    source, target = recorded.save(tmp_path / "l.json.gz"), tmp_path / "ga.json.gz"
    assert kernel_tuner.main([str(source), "--seeds", "3", "--trials", "40", "-o", str(target)]) == 0
    traces = read_traces(target)
    assert traces.tool["name"] == "kernel-tuner"
    assert len(set(traces.visits.values())) == 3
    assert all(20 <= len(set(visited)) == len(visited) <= 40 for visited in traces.visits.values())
    again = kernel_tuner.search(recorded, "genetic_algorithm", 40, [1])
    assert tuple(again[0]) == traces.visits[1]
    found = race(recorded, "random", trials=40, seeds=3, workers=1, traces=[target])
    assert found.participants == ("random", "kernel_tuner:genetic_algorithm")
    assert kernel_tuner.main([str(tmp_path / "no"), "-o", str(target)]) == 2

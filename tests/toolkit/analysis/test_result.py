"""Races of known effect: curves, censored targets, verdicts, files."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from subbyte.analysis import LandscapeFacts, Race, Run
from subbyte.analysis.comparison import compare
from subbyte.analysis.curves import checkpoints, reach_of
from subbyte.analysis.runs import best_so_far, describe_batches, from_improvements, improvements
from subbyte.errors import BrokenRecord, InvalidInput

TRIALS = 40


def facts(name: str = "one", device: str = "Some GPU") -> LandscapeFacts:
    return LandscapeFacts(name, "layer", "spec", device, "sm_90a", "paper", "0123", 1000, 0, 10.0)


ONE = (facts(),)


def curve(rng: np.random.Generator, level: float, trials: int = TRIALS) -> tuple[float, ...]:
    """A best-so-far curve around a fraction of the optimum, in microseconds (optimum 10)."""
    end = np.clip(level + rng.normal(0, 0.03), 0.05, 1.0)
    rising = end * (1 - 0.5 * np.exp(-np.arange(trials) / 10))
    return tuple(float(10.0 / share) for share in rising)


def made_up(levels: dict[str, float], landscapes=ONE, seeds: int = 50, start: int = 0) -> Race:
    """A race whose participants reach ``levels`` on average."""
    rng = np.random.default_rng([start, 1])
    runs = tuple(
        Run(where.name, name, seed, curve(rng, level), TRIALS, 0)
        for where in landscapes
        for name, level in levels.items()
        for seed in range(seeds)
    )
    return Race(tuple(landscapes), tuple(levels), TRIALS, runs)


# ---- verdicts --------------------------------------------------------------------------------------------------


def test_a_known_effect_is_found():
    race = made_up({"weak": 0.80, "strong": 0.90})
    (comparison,) = race.comparisons
    assert comparison.outcome == "worse"
    assert comparison.difference == pytest.approx(-0.1 / 0.9, abs=0.02)
    assert comparison.interval.low < -0.1 / 0.9 < comparison.interval.high
    assert "strong is ahead of weak" in race.verdict
    assert "95 % interval" in comparison.verdict


def test_the_same_search_twice_gives_no_verdict():
    """A/A: independent runs of the same level, many times over; a difference is claimed about as rarely as 5 %."""
    claimed = sum(
        made_up({"a": 0.85, "b": 0.85}, seeds=20, start=number).comparisons[0].outcome in ("better", "worse")
        for number in range(100)
    )
    assert claimed <= 10


def test_equivalence_is_shown_with_many_seeds_and_undecided_with_few():
    outcomes = {seeds: made_up({"a": 0.85, "b": 0.85}, seeds=seeds).comparisons[0] for seeds in (6, 500)}
    assert outcomes[6].outcome == "undecided"
    assert outcomes[500].outcome == "equivalent"
    assert "ruled out" in outcomes[500].verdict
    assert "1 %" in outcomes[500].verdict
    assert "no difference" in made_up({"a": 0.85, "b": 0.85}, seeds=500).verdict


def test_equivalence_is_not_shown_for_a_difference_above_the_margin():
    race = made_up({"a": 0.85, "b": 0.872}, seeds=500)
    assert race.comparisons[0].outcome == "worse"
    assert "less than" not in race.comparisons[0].verdict


def test_a_small_certain_difference_is_named_and_called_small():
    rng = np.random.default_rng(0)
    a = rng.normal(0.8, 0.05, 100)
    made = compare("a", "b", "one", 10, [(a + rng.normal(0.003, 0.001, 100), a)])
    assert made.outcome == "better"
    assert "but by less than 1 %" in made.verdict


def test_few_seeds_decide_nothing():
    race = made_up({"a": 0.5, "b": 0.9}, seeds=4)
    assert race.comparisons[0].outcome == "undecided"
    assert race.comparisons[0].interval is None
    assert "least" in race.comparisons[0].verdict
    assert "no verdict" in race.verdict


def test_many_pairs_are_allowed_for():
    race = made_up(dict.fromkeys("abcdef", 0.85), seeds=30)
    assert len(race.comparisons) == 15
    for made in race.comparisons:
        assert made.pairs == 15
        assert made.joint.low < made.interval.low < made.interval.high < made.joint.high
        assert made.outcome not in ("better", "worse")


def test_unlike_gpus_are_not_ranked_together():
    grounds = (facts("one", "GPU A"), facts("two", "GPU A"), facts("three", "GPU B"))
    race = made_up({"a": 0.80, "b": 0.90}, grounds, seeds=20)
    assert set(race.scopes) == {"one", "two", "three", "GPU A"}
    assert {c.scope for c in race.comparisons if c.landscapes == 2} == {"GPU A"}
    assert {curve.landscape for curve in race.curves} == {"one", "two", "three", "GPU A"}
    pooled = next(curve for curve in race.curves if (curve.landscape, curve.participant) == ("GPU A", "a"))
    alone = [curve for curve in race.curves if curve.participant == "a" and curve.landscape in ("one", "two")]
    assert pooled.mean == pytest.approx([(x + y) / 2 for x, y in zip(alone[0].mean, alone[1].mean, strict=True)])
    assert "not ranked together: GPU A; GPU B" in race.verdict
    unknown = made_up({"a": 0.8, "b": 0.9}, (facts("one", "unknown"), facts("two", "unknown")), seeds=6)
    assert set(unknown.scopes) == {"one", "two"}


def test_a_participant_that_ran_elsewhere_is_compared_where_it_ran():
    race = made_up({"a": 0.80, "b": 0.90}, (facts("one"), facts("two")), seeds=10)
    race = replace(race, runs=tuple(run for run in race.runs if (run.landscape, run.participant) != ("two", "b")))
    assert [c.scope for c in race.comparisons] == ["one"]
    with pytest.raises(InvalidInput, match="no run"):
        race.fractions("two", "b")


# ---- curves and targets ----------------------------------------------------------------------------------------


def test_best_so_far_counts_failures_and_holds_on():
    assert best_so_far([None, 5.0, 7.0, None, 4.0], 7) == (None, 5.0, 5.0, 5.0, 4.0, 4.0, 4.0)
    assert best_so_far([], 2) == (None, None)
    assert best_so_far([3.0, 2.0, 1.0], 2) == (3.0, 2.0)


def test_curves_and_standing_by_hand():
    runs = (
        Run("one", "a", 0, (None, 20.0, 10.0, 10.0), 4, 1),
        Run("one", "a", 1, (20.0, 20.0, 20.0, 12.5), 4, 0),
    )
    race = Race((facts(),), ("a",), 4, runs)
    (curve,), (standing,) = race.curves, race.standings
    assert curve.mean == (0.25, 0.5, 0.75, 0.9)
    assert curve.low == pytest.approx((0.125, 0.5, 0.625, 0.85))
    assert standing.area == pytest.approx((0.625 + 0.575) / 2)
    assert standing.fractions == {4: 0.9}
    assert standing.optimum_found == 0.5
    assert [reach.share for reach in standing.reach] == [0.5, 0.5, 0.5]
    assert "nothing to compare" in race.verdict


def test_censored_runs_count_as_longer_than_all_others():
    rows = np.array([[0.5, 0.95, 1.0, 1.0], [0.5, 0.5, 0.95, 1.0], [0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.94]])
    reach = reach_of(rows, 0.95)
    assert reach.share == 0.5
    assert (reach.low, reach.median, reach.high) == (2.75, None, None)
    assert reach.mean == (2 + 3 + 4 + 4) / 4
    assert reach_of(rows, 0.5).median == 1.0
    never = reach_of(rows[2:3], 0.95)
    assert (never.share, never.low, never.median, never.mean) == (0.0, None, None, 4.0)
    assert ">4 (0%)" in str(Race((facts(),), ("a",), 4, (Run("one", "a", 0, (20.0,) * 4, 4, 0),)))


def test_a_run_faster_than_the_optimum_is_refused():
    race = Race((facts(),), ("a",), 2, (Run("one", "a", 0, (9.0, 9.0), 2, 0),))
    with pytest.raises(InvalidInput, match="another landscape"):
        _ = race.curves


def test_checkpoints():
    assert checkpoints(200) == (25, 50, 100, 200)
    assert checkpoints(10) == (10,)
    assert checkpoints(600) == (25, 50, 100, 200, 350, 500, 600)


def test_distinctness_by_hand():
    """Knobs of 2, 3 and 1 values: the last cannot vary and does not count."""
    same, mixed = describe_batches(
        [0, 0, 0, 1, 2, 4], [1.0, 1.0, None, 1.0, 2.0, 3.0], [2, 3, 1], [(None, None), (0.5, 0.25)], 3
    )
    assert (same.hamming, same.nearest, same.spread, same.holdout) == (0.0, None, 0.0, None)
    assert mixed.hamming == pytest.approx((1.0 + 1.0 + 0.5) / 3)  # (1,0) (0,1) (0,2)
    assert mixed.nearest == pytest.approx(0.5)
    assert mixed.values == pytest.approx(1.0)
    assert mixed.spread == pytest.approx(np.std([1, 2, 3]) / 2)
    assert (mixed.holdout, mixed.found) == (0.5, 0.25)
    assert describe_batches([0], [1.0], [2], (), 3) == ()


def test_improvements_hold_the_whole_curve():
    curve = (None, None, 5.0, 5.0, 4.0, 4.0)
    assert improvements(curve) == [[3, 5.0], [5, 4.0]]
    assert from_improvements([[3, 5.0], [5, 4.0]], 6) == curve
    assert from_improvements([], 2) == (None, None)
    assert from_improvements([[1, 2.0]], 1) == (2.0,)


def test_a_duel_pools_landscapes_and_looks_at_a_trial():
    race = made_up({"a": 0.80, "b": 0.88}, (facts("one"), facts("two")), seeds=40)
    area, late = race.duel("b", "a"), race.duel("b", "a", at=TRIALS, scope="both")
    assert (area.landscapes, area.seeds, area.outcome, area.measure) == (2, 40, "better", "area")
    rows = {
        name: race.fractions("one", name)[:, -1].mean() + race.fractions("two", name)[:, -1].mean() for name in "ab"
    }
    assert (late.area_a, late.area_b) == (pytest.approx(rows["b"] / 2), pytest.approx(rows["a"] / 2))
    assert "on 2 landscapes of both, 40 seeds, 40 trials: better; fraction 0.8" in late.verdict
    assert race.duel("b", "a", ["two"]).scope == "two"
    for arguments, message in (({"at": 41}, "trials 1 to 40"), ({"landscapes": ["three"]}, "no run of")):
        with pytest.raises(InvalidInput, match=message):
            race.duel("a", "b", **arguments)


def test_races_on_different_landscapes_are_joined():
    one, two = (made_up({"a": 0.80, "b": 0.88}, (facts(name),), seeds=8) for name in ("one", "two"))
    joined = Race.join([one, two])
    assert joined.scopes["Some GPU"] == ("one", "two")
    assert joined.fractions("two", "a").tolist() == two.fractions("two", "a").tolist()
    assert Race.join([one]).comparisons == one.comparisons
    for odd in ([], [one, one], [one, replace(two, trials=9)]):
        with pytest.raises(InvalidInput, match="joined"):
            Race.join(odd)


# ---- files -----------------------------------------------------------------------------------------------------


def test_a_race_is_kept_whole(tmp_path):
    race = made_up({"a": 0.80, "b": 0.82}, seeds=12)
    again = Race.load(race.save(tmp_path / "race.json.gz"))
    assert again.runs == race.runs
    assert again.comparisons == race.comparisons
    assert {**again.to_dict(), "created": ""} == {**race.to_dict(), "created": ""}
    json.dumps(again.to_dict(), allow_nan=False)
    assert replace(race, statistics_seed=1).comparisons != race.comparisons
    with pytest.raises(InvalidInput, match="must end in"):
        race.save(tmp_path / "race.json")


def test_a_race_shows_itself():
    race = made_up({"a": 0.80, "b": 0.82}, seeds=12)
    assert "participant" in race.text()
    assert "<table>" in race._repr_html_()
    pytest.importorskip("pandas")
    assert len(race.to_frame()) == 2


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: data.update(format="x"), "format"),
        (lambda data: data.update(schema=1), "schema"),
        (lambda data: data.pop("runs"), "runs"),
        (lambda data: data["runs"][0].update(improvements=[[1, 12.0], [2, 13.0]]), "never rises"),
        (lambda data: data["runs"][0].update(improvements=[[2, 13.0], [2, 12.0]]), "never rises"),
        (lambda data: data["runs"][0].update(improvements=[[41, 12.0]]), "the run has 40"),
        (lambda data: data["runs"][0].update(trials=41), "does not fit"),
        (lambda data: data["runs"][0].update(improvements=[[1, "x"]]), "run of 'a'"),
        (lambda data: data.pop("command"), "command"),
        (lambda data: data["runs"][0].update(landscape="two"), "does not fit"),
        (lambda data: data["runs"][0].pop("batches"), "batches"),
        (lambda data: data["landscapes"][0].pop("size"), "size"),
    ],
)
def test_a_damaged_race_is_refused(tmp_path, spoil, message):
    path = made_up({"a": 0.8}, seeds=2).save(tmp_path / "race.json.gz")
    data = json.loads(gzip.decompress(path.read_bytes()))
    spoil(data)
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    with pytest.raises(BrokenRecord, match=message):
        Race.load(path)


def test_no_race_at_all(tmp_path):
    with pytest.raises(InvalidInput, match="No such file"):
        Race.load(tmp_path / "missing.json.gz")
    (tmp_path / "cut.json.gz").write_bytes(made_up({"a": 0.8}, seeds=2).save(tmp_path / "r.json.gz").read_bytes()[:-9])
    for name, content in (("text.json.gz", b"hello"), ("list.json.gz", gzip.compress(b"[1]"))):
        (tmp_path / name).write_bytes(content)
    for name in ("cut.json.gz", "text.json.gz", "list.json.gz"):
        with pytest.raises(BrokenRecord, match=name):
            Race.load(tmp_path / name)

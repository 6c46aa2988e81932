"""Noise: outliers, clocks that fall, timings taken again, the top k and ties."""

from __future__ import annotations

import random

import pytest

from subbyte.errors import InvalidInput
from subbyte.gpu.telemetry import Snapshot
from subbyte.gpu.timing import Timing, TimingProtocol
from subbyte.measure.noise import Watch, clock_notes, find_outliers, judge, rank_interleaved

STEADY = (4.00, 4.01, 4.00, 3.99, 4.00, 4.01, 4.00)
NOISY = (4.0, 4.6, 3.9, 4.5, 4.1, 4.7, 3.8)


def timing(samples, before=None, after=None, throttle=()):
    middle = sorted(samples)[len(samples) // 2]
    snapshots = Snapshot(sm_mhz=before), Snapshot(sm_mhz=after, throttle=throttle)
    return Timing(middle, tuple(samples), None, (), *snapshots, TimingProtocol(), {}, "", "")


def test_outliers_are_found_and_small_noise_is_none():
    assert find_outliers(STEADY) == ()
    assert find_outliers((6.0, *STEADY)) == (0,)
    assert find_outliers(NOISY) == ()  # wide, but nothing stands out
    assert find_outliers((4.0,)) == ()


def test_a_steady_timing_has_nothing_to_say():
    verdict = judge(timing(STEADY, 1980, 1980))
    assert (verdict.steady, verdict.notes) == (True, ())
    assert judge(timing(STEADY)).steady  # without NVML


def test_one_late_sample_is_noted_but_does_not_spoil_the_median():
    verdict = judge(timing((6.0, *STEADY)))
    assert verdict.steady
    assert verdict.notes == ("1 of 8 samples are outliers",)


def test_a_fallen_clock_is_said_with_its_cause():
    verdict = judge(timing(STEADY, 1980, 1700, ("power cap",)))
    assert not verdict.steady
    assert verdict.notes == ("the clock fell from 1980 to 1700 MHz while it was timed (power cap)",)
    before = judge(timing(STEADY, 1700, 1700), highest_mhz=1980)
    assert before.notes == ("the clock fell from 1980 to 1700 MHz since the first timings",)
    assert judge(timing(STEADY, 1980, 1965), highest_mhz=1980).steady
    assert clock_notes(Snapshot(), Snapshot(sm_mhz=1700)) == ()


def test_an_unsteady_timing_is_taken_again_and_the_steadiest_counts():
    watch, queue = Watch(), [timing(NOISY, 1980, 1980), timing(STEADY, 1980, 1980)]
    taken, notes = watch.steady(lambda: queue.pop(0))
    assert taken.samples == STEADY
    assert notes == ("timed 2 times",)
    assert watch.highest_mhz == 1980
    worse = [timing(NOISY), timing((4.0, 5.0, 3.0, 6.0, 2.0)), timing(NOISY)]
    taken, notes = watch.steady(lambda: worse.pop(0))
    assert taken.samples == NOISY
    assert "noisy" in notes[0]
    assert notes[-1] == "timed 3 times"
    later, notes = watch.steady(lambda: timing(STEADY, 1700, 1700))
    assert "since the first timings" in notes[0]
    assert later.samples == STEADY


def test_kernels_are_told_apart_where_drift_is_larger_than_their_difference():
    rng = random.Random(0)
    drift = [1 + 0.1 * step / 9 for step in range(9)]  # the GPU slows down by 10 % on the way
    noise = [[1 + 0.001 * rng.uniform(-1, 1) for _ in range(9)] for _ in range(3)]
    truth = (5.10, 5.0, 5.002)
    rounds = [[base * d * n for d, n in zip(drift, own, strict=True)] for base, own in zip(truth, noise, strict=True)]
    standings = rank_interleaved(rounds)
    assert {standings[0].place, standings[1].place} == {1, 2}
    assert [standing.tied for standing in standings] == [True, True, False]
    assert standings[2].place == 0
    assert standings[2].low > 0.015
    assert standings[2].to_dict()["samples"] == rounds[0]


def test_with_few_rounds_nothing_is_told_apart():
    assert [s.tied for s in rank_interleaved([[1.0, 1.0], [2.0, 2.0]])] == [True, True]
    assert rank_interleaved([[3.0]])[0].tied
    for odd in ([], [[]], [[1.0], [1.0, 2.0]]):
        with pytest.raises(InvalidInput, match="same number of rounds"):
            rank_interleaved(odd)

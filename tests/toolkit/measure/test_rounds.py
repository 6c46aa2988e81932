"""Kernels sampled in turns: the order, the clocks beside every round, what a sample is of."""

import random
from contextlib import ExitStack

import pytest

from subbyte.errors import InvalidInput
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.telemetry import Snapshot
from subbyte.measure.rounds import Entry, Replays, RoundProtocol, interleave

QUICK = RoundProtocol(rounds=3, launches=4, warmup_ms=0.01, sample_ms=0.05, cold_launches=2, spin_up_ms=0.1)


def drifting(count=3, rounds=12, slower=1.0):
    """Entries on a clock that drifts: each sample takes a step, and all get slower with the steps."""
    log, steps = [], [0]

    def entry(place):
        def sample():
            log.append(place)
            steps[0] += 1
            return (1 + 0.05 * steps[0]) * (slower if place else 1.0)

        return Entry(f"side{place}", "hot", sample)

    readings = iter(range(1000))
    found = interleave([entry(i) for i in range(count)], rounds, random.Random(7), lambda: Snapshot(next(readings)))
    return log, found


def test_every_round_holds_every_entry_once_in_an_order_of_its_own():
    log, found = drifting()
    turns = [tuple(log[first : first + 3]) for first in range(0, len(log), 3)]
    assert turns == list(found.orders)
    assert all(sorted(order) == [0, 1, 2] for order in turns)
    assert len(set(turns)) > 3
    assert {order[0] for order in turns} == {0, 1, 2}
    assert [len(times) for times in found.samples] == [12] * 3
    assert [one.sm_mhz for one in found.clocks] == list(range(13))


def test_a_drift_does_not_become_a_difference():
    _, found = drifting(2, rounds=40)
    apart = [b / a - 1 for a, b in zip(*found.samples, strict=True)]
    assert abs(sorted(apart)[20]) < 0.05  # one side after the other: side 1 would be 1.7 times as slow
    assert max(found.samples[0]) > 3 * min(found.samples[0])


def test_samples_are_of_one_launch_hot_and_cold(fake):
    driver = fake.Driver({b"k": fake.kernel(1)(lambda arrays: None)})
    device = CudaDevice(api=driver)
    buffer = device.alloc(64)
    function = device.load(b"k", "conv_kernel")

    def launch():
        function.launch((1, 1, 1), (32, 1, 1), 0, [buffer.pointer])

    def four():
        for _ in range(4):
            launch()

    with ExitStack() as stack:
        replays = Replays(stack, QUICK)
        hot, cold, chain = replays.hot(device, launch), replays.cold(device, launch), replays.hot(device, four, each=4)
        assert (hot(), cold(), chain()) == (pytest.approx(4.0), pytest.approx(6.5), pytest.approx(4.0))
        captured = len(driver.graphs)
        replays.cold(device, launch)
        assert len(driver.graphs) == captured + 1  # the overwriting alone is captured once a device
    assert not driver.graphs
    assert device.spun_up


@pytest.mark.parametrize("bad", [{"rounds": 0}, {"launches": True}, {"cold_launches": 1.5}])
def test_a_protocol_of_nothing_is_refused(bad):
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        RoundProtocol(**bad)

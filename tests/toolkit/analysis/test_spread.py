"""How the times of a landscape spread."""

from __future__ import annotations

import pytest

from subbyte.analysis import spread
from subbyte.errors import InvalidInput
from subbyte.families import space
from subbyte.records.result import Failed, Measured
from subbyte.tune import Landscape


def test_the_counts_are_those_of_the_times() -> None:
    known = space("n8h7w7c32k32r3s3p1", "sm_90a")
    times = [10.0, 10.5, 11.0, 12.0, 19.0, 21.0]
    results = {**{i: Measured(t) for i, t in enumerate(times)}, 7: Failed("launch", "no")}
    record = spread(Landscape.from_results(known, results, {"name": "x"}))
    assert record.microseconds == tuple(times)
    assert (record.best, record.median) == (10.0, 11.5)
    assert record.good == {0.5: 5, 0.8: 4, 0.9: 3, 0.95: 2, 0.99: 1}
    assert record.finding == "3 of 6 configurations (50.0%) reach 90 % of the best speed"
    assert sum(count for _, _, count in record.bins) == len(times)
    assert [count for low, _, count in record.bins if low < 10.9] == [1, 0, 1, 0, 0]
    assert record.bins[-1][1] == pytest.approx(21.0)
    assert record.table().rows[0] == ("50%", 20.0, 5, "83.3%")


def test_nothing_measured_is_refused() -> None:
    known = space("n8h7w7c32k32r3s3p1", "sm_90a")
    with pytest.raises(InvalidInput, match="no configuration was measured"):
        spread(Landscape.from_results(known, {3: Failed("launch", "no")}, {"name": "x"}))

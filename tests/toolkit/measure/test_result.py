"""Results survive JSON, and nonsense is refused."""

from __future__ import annotations

import json
import math

import pytest

from subbyte.errors import InvalidInput
from subbyte.records.result import FAILURE_KINDS, Failed, Measured, result_from_dict

FULL = Measured(12.5, (12.4, 12.5, 12.7), 15.0, True, {"name": "GPU"}, {"sm_mhz": 1980}, {"build": 0.5})


@pytest.mark.parametrize("result", [FULL, Measured(1.0), *(Failed(kind, "why") for kind in FAILURE_KINDS)])
def test_round_trip(result):
    again = result_from_dict(json.loads(json.dumps(result.to_dict())))
    assert again == result
    assert again.ok is isinstance(result, Measured)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_a_time_is_a_positive_number(value):
    with pytest.raises(InvalidInput, match="positive number"):
        Measured(value)


def test_an_unknown_kind_of_failure_is_refused():
    with pytest.raises(InvalidInput, match="did you mean timeout"):
        Failed("timeouts", "")


@pytest.mark.parametrize(
    "data",
    [None, 3, {}, {"ok": 1}, {"ok": True}, {"ok": True, "microseconds": "x"}, {"ok": True, "microseconds": 1, "odd": 2},
     {"ok": False, "kind": "build"}, {"ok": False, "kind": "odd", "reason": ""}],
)  # fmt: skip
def test_damaged_results_are_refused(data):
    with pytest.raises(InvalidInput):
        result_from_dict(data)

"""Imported spaces at their oddest: one configuration, nothing to choose, equal times, almost nothing that works."""

from __future__ import annotations

import warnings

import pytest

from subbyte.records.foreign import ForeignSpace, ForeignWorkload
from subbyte.records.result import Failed, Measured
from subbyte.tune.strategy import make_strategy

FAILED = Failed("crash", "made up")
SPACES = {
    "one configuration": ({"a": (5,)}, [0], lambda index: Measured(1.0)),
    "two": ({"a": (5,), "b": ("x", "y")}, [0, 1], lambda index: Measured(1.0)),
    "equal times, mixed values": (
        {"a": (1, 2, 3), "b": ("x", "y", True), "c": (0.5, -1.0, 0.0)}, range(27), lambda index: Measured(7.0)
    ),
    "no neighbours in one knob": (
        {"a": tuple(range(30)), "b": ("x", "y")}, range(0, 60, 2),
        lambda index: Measured(index + 1.0) if index % 3 else FAILED,
    ),
    "one that works": (
        {"a": tuple(range(30)), "b": (-4, -2, 1)}, range(90), lambda index: Measured(1e9) if index == 50 else FAILED
    ),
}  # fmt: skip


@pytest.mark.sample("-8-")
@pytest.mark.parametrize("name", ["auto", "autotvm", "diverse", "genetic"])
@pytest.mark.parametrize("batch", [1, 8, 50])
@pytest.mark.parametrize("what", SPACES)
def test_every_configuration_once_without_a_warning(name, batch, what):
    knobs, recorded, measure = SPACES[what]
    strategy = make_strategy(name, ForeignSpace(ForeignWorkload("kernel", (1,)), "a GPU", knobs, recorded), 0)
    seen: list[int] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while asked := strategy.ask(batch):
            for index in asked:
                strategy.tell(index, measure(index))
            seen += asked
    assert sorted(seen) == list(recorded)

"""How long a search takes that needs no GPU. Seconds of the processor, which a busy machine does not stretch."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("xgboost")

from subbyte.measure.replay import ReplayRunner
from subbyte.tune import Landscape, Study
from subbyte.tune.recorded import space_of
from subbyte.tune.search.cost_model import load_xgboost

EXTENDED, PAPER = "resnet50.stage2@8.extended.sm_90a", "resnet50.stage4@8.paper.sm_90a"


class Table(ReplayRunner):
    """Replays a landscape for the space made from it."""

    def check(self, space):
        pass


@pytest.fixture(scope="module")
def tables():
    load_xgboost()  # a first import takes seconds where nothing may be cached
    return {name: Table(Landscape.load(name)) for name in (EXTENDED, PAPER)}


@pytest.mark.parametrize(
    ("name", "strategy", "seconds"),
    [
        (EXTENDED, "auto", 10.0), (EXTENDED, "autotvm", 10.0), (EXTENDED, "diverse", 10.0), (PAPER, "auto", 10.0),
        (PAPER, "diverse", 10.0), (PAPER, "random", 0.5), (EXTENDED, "random", 0.5),
    ],
)  # fmt: skip
def test_500_trials(tables, name, strategy, seconds):
    space = space_of(tables[name].landscape)
    begun = time.process_time()
    record = Study(space, strategy, seed=1).run(tables[name], 500)
    assert len(record.trials) == 500
    assert time.process_time() - begun < seconds

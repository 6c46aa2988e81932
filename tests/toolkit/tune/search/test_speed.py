"""How long a search takes that needs no GPU.

Seconds of the processor, which other processes stretch less than the clock on the wall: up to three times where every
core does two things at once. The limits leave room for that; alone, these searches take a third of them.
"""

from __future__ import annotations

import time

import pytest

from subbyte.families import space
from subbyte.measure.replay import ReplayRunner
from subbyte.records.recorded_space import space_of
from subbyte.tune import Landscape, Study, make_strategy
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


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "strategy", "seconds"),
    [(EXTENDED, "auto", 10.0), (PAPER, "autotvm", 2.0), (EXTENDED, "random", 0.15)],
)
def test_100_trials(tables, name, strategy, seconds):
    recorded = space_of(tables[name].landscape)
    begun = time.process_time()
    record = Study(recorded, strategy, seed=1).run(tables[name], 100)
    assert len(record.trials) == 100
    assert time.process_time() - begun < seconds


@pytest.mark.deep
def test_auto_searches_a_space_as_it_was_judged_on_its_landscape(tables):
    found = tables[EXTENDED].landscape
    spaces = space_of(found), space(found.workload, found.arch, "extended")
    assert len({tuple(make_strategy("auto", one, 1).ask(16)) for one in spaces}) == 1

"""Views of searches and spaces take the wgmma family too, and what is selected there opens in the others."""

from __future__ import annotations

import random

import pytest

import subbyte
from subbyte.families import space
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.records.landscape import Landscape
from subbyte.records.result import Measured
from subbyte.tune.record import StudyRecord
from subbyte_widgets import LiveCurve, SpaceExplorer, TuningMonitor, workbench

LAYER = "n8h8w8c64k64r3s3p1"


@pytest.fixture(scope="module")
def landscape() -> Landscape:
    """Made-up times of a whole small space."""
    known, draw = space(LAYER, kind="wgmma-small"), random.Random(0)
    return Landscape.from_results(known, {i: Measured(4 + draw.random()) for i in known.valid}, {"name": "none"})


@pytest.fixture(scope="module")
def record(landscape: Landscape) -> StudyRecord:
    report = subbyte.tune(LAYER, "replay", trials=20, kind="wgmma", landscape=landscape)
    found: StudyRecord = report.records[0]
    return found


@pytest.mark.deep
def test_spaces_and_searches_are_drawn(landscape: Landscape, record: StudyRecord) -> None:
    for view in (SpaceExplorer(landscape), LiveCurve(record), TuningMonitor(record)):
        assert not view.error
        assert "none" in view.to_svg() or "auto" in view.to_svg()
    explorer = SpaceExplorer(landscape)
    assert isinstance(explorer.config, WgmmaConfig)
    assert explorer.config == landscape.config(landscape.best[0])


@pytest.mark.deep
def test_a_trial_opens_in_the_other_views(landscape: Landscape, record: StudyRecord) -> None:
    bench = workbench(LAYER, record, landscape=landscape)
    bench.choosing["Tuning"].selected = 5
    bench.selection.settle()
    config = bench.selection.now.config
    assert isinstance(config, WgmmaConfig)
    assert config == landscape.config(record.trials[5].index)
    assert bench.choosing["Space"].selected == record.trials[5].index
    for name in ("Duplicates", "Taps", "Stores", "Fragments"):
        view = bench.following[name]
        view.catch_up()
        assert not view.error, name
    assert config.key in bench.following["Taps"].alternative
    w = bench.selection.now.workload
    assert (
        f"output tile {min(config.tile_rows, w.p)}x{min(config.tile_width, w.q)},"
        in bench.following["Duplicates"].alternative
    )
    bench.close()

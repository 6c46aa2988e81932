"""Maps and effects of a landscape against a computation by hand, reasons against the space, refusals."""

from __future__ import annotations

import math
import statistics

import pytest

import subbyte
from subbyte.analysis.landscape_view import knob_effects, landscape_map, landscape_points
from subbyte.errors import InvalidInput
from subbyte.families import space
from subbyte.records.landscape import Landscape
from subbyte.records.result import Failed, Measured

NAME = "resnet50.stage2@8"


@pytest.fixture(scope="module")
def landscape() -> Landscape:
    return subbyte.landscape(NAME)


def test_every_configuration_of_the_space_is_measured_or_has_its_reason(landscape: Landscape) -> None:
    points = landscape_points(landscape)
    known = space(NAME, "sm_90a")
    assert points.indices == tuple(range(len(known)))
    assert points.measured == len(landscape)
    assert points.refused == known.refused
    for index, digits, time, reason in zip(
        points.indices, points.digits, points.microseconds, points.reasons, strict=True
    ):
        values = [choices[digit] for choices, digit in zip(points.knobs.values(), digits, strict=True)]
        config = known.config(index).to_dict()
        assert values == [config[knob] for knob in points.knobs]
        assert (time is None) == bool(reason)
        if reason:
            assert reason == known.check(index)
    assert len(points.table().rows) == len(known)


def test_a_map_is_what_the_rows_say(landscape: Landscape) -> None:
    found = landscape_map(landscape, "chunk", "warp_row_tiles")
    for i, down in enumerate(found.y_values):
        for j, across in enumerate(found.x_values):
            cell = found.cells[i][j]
            rows = [r for r in landscape.rows() if r["chunk"] == across and r["warp_row_tiles"] == down]
            assert cell.measured == len(rows)
            assert cell.measured + cell.refused == 1800 // (len(found.x_values) * len(found.y_values))
            if rows:
                times = [row["microseconds"] for row in rows]
                assert cell.best == min(times)
                assert cell.median == statistics.median(times)
                assert landscape.results[cell.index].microseconds == cell.best  # type: ignore[union-attr]
            else:
                assert cell.best is None
                assert cell.reason == space(NAME, "sm_90a").check(cell.index)
    assert "chunk" in str(found)
    swapped = landscape_map(landscape, "warp_row_tiles", "chunk")
    assert swapped.cells == tuple(zip(*found.cells, strict=True))


def test_effects_are_those_of_the_rows(landscape: Landscape) -> None:
    effects = knob_effects(landscape)
    assert {effect.knob for effect in effects} == set(landscape.header["space"]["knobs"])
    assert [effect.share for effect in effects] == sorted((effect.share for effect in effects), reverse=True)
    rows = landscape.rows()
    logs = [math.log(row["microseconds"]) for row in rows]
    for effect in effects:
        means = {
            value: statistics.fmean(math.log(row["microseconds"]) for row in rows if row[effect.knob] == value)
            for value, count in zip(effect.values, effect.measured, strict=True)
            if count
        }
        explained = statistics.pvariance([means[row[effect.knob]] for row in rows])
        assert effect.share == pytest.approx(explained / statistics.pvariance(logs))
        assert min(filter(None, effect.best)) == landscape.best[1].microseconds
        assert effect.loss >= 1


def test_a_knob_that_decides_all_and_one_that_decides_nothing() -> None:
    known = space("n8h7w7c32k32r3s3p1", "sm_90a")
    times = {i: Measured(10.0 * known.config(i).blk_row_warps) for i in known.valid}
    made = Landscape.from_results(known, times, {"name": "x"})
    first, *others = knob_effects(made)
    assert (first.knob, first.share, first.loss) == ("blk_row_warps", pytest.approx(1.0), 4.0)
    assert all(other.share < 0.5 for other in others)


def test_failures_keep_their_reason_and_are_no_times() -> None:
    known = space("n8h7w7c32k32r3s3p1", "sm_90a")
    one, two = known.valid[:2]
    made = Landscape.from_results(known, {one: Measured(5.0), two: Failed("timeout", "slow")}, {"name": "x"})
    points = landscape_points(made)
    assert points.measured == 1
    assert points.reasons[points.indices.index(two)] == "timeout: slow"
    assert points.refused["not measured"] == len(known.valid) - 2
    failed = Landscape.from_results(known, {two: Failed("timeout", "slow")}, {"name": "x"})
    with pytest.raises(InvalidInput, match="no configuration was measured"):
        knob_effects(failed)


def test_unknown_knobs_are_refused(landscape: Landscape) -> None:
    with pytest.raises(InvalidInput, match="did you mean chunk"):
        landscape_map(landscape, "chnk", "warp_row_tiles")
    with pytest.raises(InvalidInput, match="two knobs"):
        landscape_map(landscape, "chunk", "chunk")

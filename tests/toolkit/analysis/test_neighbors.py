"""Neighbors of the fastest configuration against a computation by hand; a refused one says why."""

from __future__ import annotations

from dataclasses import replace

import pytest

import subbyte
from subbyte.analysis import neighbors
from subbyte.errors import InvalidInput
from subbyte.records.landscape import Landscape


@pytest.fixture(scope="module")
def landscape() -> Landscape:
    return subbyte.landscape("resnet50.stage2@8")


def test_each_neighbor_has_its_recorded_time_or_the_reason_of_the_space(landscape: Landscape) -> None:
    record, space = neighbors(landscape), subbyte.space(landscape.workload, landscape.arch)
    champion = landscape.config(landscape.best[0])
    assert {knob: tuple(one.value for one in row) for knob, row in record.rows.items()} == dict(space.knobs)
    for knob, row in record.rows.items():
        assert [one.value for one in row if one.chosen] == [getattr(champion, knob)]
        for one in row:
            config = replace(champion, **{knob: one.value})
            if one.microseconds is None:
                assert one.reason == space.check(config)
                assert one.reason
            else:
                assert one.microseconds == landscape.results[landscape.by_config[config]].microseconds
                assert one.microseconds >= record.best


def test_the_grid_names_times_and_reasons(landscape: Landscape) -> None:
    record = neighbors(landscape)
    assert "blk_row_warps   1: 4.60   2: 4.53*  4: 5.57" in record.text()
    shown = record._repr_html_()
    assert shown.count("<tr>") == len(record.rows)
    assert "<b>4.53*</b>" in shown
    assert "divisibility: blocks of 128 output channels do not divide 64" in shown


def test_what_is_no_landscape_is_refused() -> None:
    with pytest.raises(InvalidInput, match="landscape"):
        neighbors("resnet50.stage2@8")

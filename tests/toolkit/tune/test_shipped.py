"""The landscapes of the package: whole, verified, raw samples, provenance, small."""

from __future__ import annotations

import random
import statistics

import pytest

from subbyte.families.mma.values import KINDS
from subbyte.records.landscape_file import SHIPPED
from subbyte.records.landscape_space import space_today
from subbyte.records.result import Measured
from subbyte.tune import Landscape, shipped

FORMER = "warpgroup-small"
"""A kind of space of earlier versions."""
MOST, SAMPLE = 10_000, 3_000
"""Larger spaces of earlier versions take seconds to list: what is not recorded of them is asked for by a sample."""
WANTED = {
    *(f"resnet50.stage{stage}@8.paper.sm_90a" for stage in (2, 3, 4, 5)),
    *(f"resnet50.stage{stage}@32.paper.sm_90a" for stage in (2, 4)),
    *(f"resnet50.stage{stage}@8.extended.sm_90a" for stage in (2, 5)),
    *(f"resnet50.stage{stage}@8.warpgroup-small.sm_90a" for stage in (2, 3, 4, 5)),
}


@pytest.fixture(scope="module", params=sorted(shipped()))
def one(request):
    return Landscape.load(request.param)


def test_all_that_is_promised_is_there_and_small():
    assert set(shipped()) >= WANTED
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 10_000_000


@pytest.mark.sample(2)
def test_it_holds_every_valid_configuration_of_its_space_verified(one, monkeypatch):
    made = space_today(one.header)
    assert made.hash == one.space_hash
    if one.kind == FORMER and len(made) > MOST:
        asked = random.Random(1).sample(range(len(made)), SAMPLE)
        missing = tuple(index for index in asked if made.check(index) is None and index not in one.results)
        monkeypatch.setitem(vars(one), "missing", missing)
    info = one.info()
    reasons = {index: made.check(index) for index in one.results} if one.kind == FORMER else {}
    retired = [index for index, reason in reasons.items() if reason is not None]
    assert all(reasons[index].startswith("retired: at_once=2") for index in retired)
    assert one.kind == FORMER or set(one.results) == set(made.valid)
    assert (info.missing, info.dropped, info.notice) == (0, 0, "")
    assert bool(retired) == (one.kind == FORMER)
    if one.kind == FORMER:
        # what the assembler would serialize, and what needs local memory, is refused when it is built
        assert set(info.failed) <= {"build"}
        assert info.verified == info.measured >= len(one) / 2
        return
    assert info.failed == {}
    assert info.verified == info.measured == len(one)
    assert info.kind in (*KINDS, "bits")
    assert info.kind != "extended" or info.measured >= info.programs >= 10_000


@pytest.mark.sample(5)
def test_times_are_medians_of_raw_samples_and_say_where_they_come_from(one):
    gpus = one.device.get("uuids", [])
    for result in (found for found in one.results.values() if isinstance(found, Measured)):
        assert len(result.samples) == one.header["protocol"]["repeats"]
        assert result.microseconds == pytest.approx(statistics.median(result.samples), abs=1e-4)
        assert result.cold_microseconds is None or result.cold_microseconds > 0
        assert not gpus or result.device["uuid"] in gpus
    assert one.device["name"] == "NVIDIA H200"
    assert one.device["driver_version"]
    assert one.header["command"]
    assert one.header["created"].startswith("2026")


@pytest.mark.sample(4)
def test_programs_shared_by_configurations_are_recorded_as_such(one):
    assert all(one.results[index] is one.results[owner] for index, owner in one.same.items())
    assert all(owner not in one.same for owner in one.same.values())

"""What `compile` takes of a layer at each batch, against the same layer at larger ones, by what is known of both."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest

import subbyte
from subbyte.device.arch import arch
from subbyte.families.image.family import IMAGE
from subbyte.families.wgmma import batches
from subbyte.families.wgmma.model import CLOCK_MHZ, shipped
from subbyte.kernel.choose import best_known, recorded_best
from subbyte.workload import ConvWorkload

TARGET = arch("sm_90a")
STAGES = (2, 3, 4, 5)
LAUNCH = 0.02
"""By how much two launches would have to be faster than one: times of a kernel differ by more between two runs."""


def recorded(layer):
    """Microseconds of the fastest recorded kernel, None where there is none."""
    best = recorded_best().get(layer.spec)
    return None if best is None else best["microseconds"]


def known(layer):
    """Microseconds of what `compile` takes: recorded, else expected by the family that leads."""
    if (measured := recorded(layer)) is not None:
        return measured
    if IMAGE.leads(layer, TARGET):
        plan = IMAGE.plan(layer, next(iter(IMAGE.candidates(layer, TARGET))), TARGET)
        return IMAGE.estimate(plan) / CLOCK_MHZ
    return batches.microseconds(layer, TARGET)


def behind(times):
    """Batches that take longer than a larger one, with that."""
    return [(n, more) for n in times for more in times if n < more and times[n] > times[more]]


def parts_ahead(times):
    """Of recorded times by batch: where two recorded batches together are faster than a recorded one of as many images,
    or of fewer."""
    return [
        (whole, one, other) for whole in times for one in times for other in times
        if max(one, other) < whole <= one + other and times[one] + times[other] < (1.0 - LAUNCH) * times[whole]
    ]  # fmt: skip


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_is_expected_to_be_slower_than_at_a_larger_batch(stage):
    """Batches of whole groups of 8 images, which others are padded to."""
    layer = subbyte.workload(f"resnet50.stage{stage}@8")
    times = {n: recorded(one) or batches.microseconds(one, TARGET)
             for n in range(8, 65, 8) for one in [replace(layer, n=n)]}  # fmt: skip
    assert behind(times) == []


@pytest.mark.deep
@pytest.mark.parametrize("stage", STAGES)
def test_no_batch_of_a_stage_is_expected_to_be_slower_than_a_larger_one(stage):
    """Every batch, with the kernels of one image."""
    layer = subbyte.workload(f"resnet50.stage{stage}@1")
    times = {n: known(replace(layer, n=n)) for n in range(1, 65)}
    assert behind(times) == []
    assert best_known(replace(layer, n=40))[0] == batches.choice(replace(layer, n=40), TARGET).config


def test_a_batch_that_is_behind_is_found():
    assert behind({1: 2.0, 8: 3.0, 16: 2.9, 24: 5.0}) == [(8, 16)]
    assert parts_ahead({8: 3.0, 16: 7.0, 24: 9.0, 32: 11.0}) == [(16, 8, 8)]


def test_no_two_recorded_launches_are_faster_than_the_recorded_one():
    """Why a batch is one launch: notes/tuning.md. Records that say otherwise would be a reason to build two."""
    times = defaultdict(dict)
    for one in shipped().winners:
        times[replace(one.layer, n=1)][one.layer.n] = one.microseconds
    for spec, best in recorded_best().items():
        if ":" not in spec and " " not in spec and "microseconds" in best:
            layer = subbyte.workload(spec)
            if type(layer) is ConvWorkload:  # a matrix product has rows, no batch
                times[replace(layer, n=1, name="")][layer.n] = best["microseconds"]
    several = {layer: found for layer, found in times.items() if len(found) > 1}
    assert sum(len(found) for found in several.values()) > 80
    assert {layer.spec: wrong for layer, found in several.items() if (wrong := parts_ahead(found))} == {}

"""The image family: places and taps against counting by loops; its keys, spaces, choices, refusals."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import pytest

import subbyte
from subbyte.device import ARCHS
from subbyte.errors import Unsupported
from subbyte.families import config_from_dict, config_from_key
from subbyte.families.image import family
from subbyte.families.image.config import ImageConfig
from subbyte.families.image.family import IMAGE
from subbyte.families.image.plan import ImagePlan
from subbyte.families.image.space import KIND
from subbyte.families.wgmma.model import CLOCK_MHZ
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import best_known

SM_90A = ARCHS["sm_90a"]
LAYER = "n1h56w56c64k64r3s3p1"


@pytest.mark.parametrize(("size", "stride", "pad"), list(product((1, 3, 5), (1, 2), (0, 1, 3))))
def test_every_tap_reads_the_pixel_it_should(size, stride, pad):
    w = subbyte.workload(f"n1h9w10c64k64r{size}s{size}p{pad}u{stride}")
    plan = ImagePlan(w, ImageConfig(pixels=8), SM_90A)
    for tile, column, row, tap in product(range(plan.tiles), range(8), range(size), range(size)):
        p, q = divmod(tile * 8 + column, plan.pitch)
        if p >= w.p or q >= w.q:
            continue
        phase, staged = plan.tap_place(row, tap)
        place = tile * 8 + plan.place_of(staged + column)
        y = place // plan.pitch * stride + phase // plan.phases[1] - pad
        x = place % plan.pitch * stride + phase % plan.phases[1] - pad
        wanted = p * stride + row - pad, q * stride + tap - pad
        outside = not (0 <= wanted[0] < w.h and 0 <= wanted[1] < w.w)
        assert (y, x) == wanted or (outside and not (0 <= y < w.h and 0 <= x < w.w))


def test_keys_fields_and_indices_are_read_back():
    config = ImageConfig(pixels=24, channel_warpgroups=2, layout="nhwc")
    assert config_from_key(config.key) == config_from_dict(config.to_dict()) == config
    space = IMAGE.space(subbyte.workload(LAYER), SM_90A, KIND, {})
    assert all(space.index(space.config(index)) == index for index in space.valid)
    assert len(space.valid) > 20


def test_it_is_taken_for_one_image_and_not_for_eight():
    assert IMAGE.owns(best_known(subbyte.workload(LAYER))[0])
    assert not IMAGE.owns(best_known(subbyte.workload(LAYER.replace("n1", "n8")))[0])


@pytest.mark.parametrize(
    ("spec", "key", "reason"),
    [
        (LAYER, "wgi-px40-fw1-cw1", "no width"),
        (LAYER, "wgi-px24-fw1-cw4", "do not divide"),
        (LAYER, "wgi-px24-fw1-cw2", "half of each weight word"),
        ("n1h7w7c64k64r3s3p1", "wgi-px128-fw1-cw1", "too many for the 55"),
        ("n1h7w7c512k512r3s3p1", "wgi-px64-fw1-cw1", "72 fragments"),
        ("n1h7w7c64k64r3s3p1d2", "wgi-px24-fw1-cw1", "dilation 2"),
    ],
)
def test_refusals_give_one_reason(spec, key, reason):
    with pytest.raises(Unsupported, match=reason):
        make_plan(subbyte.workload(spec), config_from_key(key), "sm_90a", None, None, "fixed")


def test_kernels_of_one_image_lead_where_they_are_expected_to_be_faster(monkeypatch):
    few, many = subbyte.workload("n1h48w11c40k672r4s4p2u2"), subbyte.workload("n2h128w128c64k512r2s2p0")
    first = [next(iter(IMAGE.candidates(one, SM_90A))) for one in (few, many)]
    estimates = [IMAGE.estimate(IMAGE.plan(*one, SM_90A)) for one in zip((few, many), first, strict=True)]
    # measured: images-drawn-second-h200-2026-11-27.json, images-larger-h200-2026-11-27.json
    for estimate, time in zip(estimates, (2.72, 65.1), strict=True):
        assert 0.75 < estimate / CLOCK_MHZ / time < 1.35
    other = SimpleNamespace(candidates=lambda *_: ["one"], plan=lambda *_: None, estimate=lambda _: estimates[1] + 1)
    monkeypatch.setattr(family, "WGMMA", other)
    for time, leads in (
        (estimates[1] / CLOCK_MHZ / 0.93, True),
        (estimates[1] / CLOCK_MHZ / 0.95, False),
        (None, True),
    ):
        monkeypatch.setattr(family, "microseconds", lambda *_, time=time: time)
        family._leads.cache_clear()
        assert IMAGE.leads(many, SM_90A) is leads
    other.estimate = lambda _: estimates[1] - 1  # nothing is expected of the others: an estimate beside an estimate
    family._leads.cache_clear()
    assert not IMAGE.leads(many, SM_90A)
    family._leads.cache_clear()

"""``workloads``, ``build``, ``compile`` and ``tune`` give one answer about what kernels cover, and at once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

import subbyte
from subbyte.cli.workloads import _row
from subbyte.device.arch import ARCHS
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families import space
from subbyte.families.mma.estimate import estimated_first
from subbyte.kernel import choose
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import recorded_best
from subbyte.kernel.coverage import covered
from subbyte.kernel.default import default_config
from subbyte.measure.fake import FakeRunner
from subbyte.tune import Study, build_bundle, tune
from subbyte.tune.sources import Sources
from subbyte.workload import ConvWorkload, workload
from subbyte.workload.precision import INT4

BEYOND = (
    "n8h100000w100000c64k64r3s3p1",
    "n1000000h56w56c64k64r3s3p1",
    "n8h1w1c32k32r3s3p99999",
    "n8h8w8c200000k32r1s1",
)
"""Tensors beyond 32-bit indices, sums beyond 32 bits."""


def drawn(count: int) -> list[ConvWorkload]:
    """Layers of all sizes, a few of them with what the warp family lacks."""
    rng = random.Random(9)
    found: list[ConvWorkload] = []
    while len(found) < count:
        odd = rng.random() < 0.12
        r, s = (rng.randint(1, 11), rng.randint(1, 11)) if odd else (rng.choice((1, 3, 7)), rng.choice((1, 3, 5)))
        n, h, w = (rng.choice((1, 8, 17, 28)) if rng.random() < 0.9 else 10**6 for _ in range(3))
        c, k = (rng.choice((1, 3, 32, 64, 96, 2048, 300_000)) for _ in range(2))
        try:
            found.append(
                ConvWorkload(n, h, w, c, k, r, s, rng.randint(0, 3), rng.choice((1, 2, 3)), rng.choice((1, 1, 2, 3)))
            )
        except InvalidInput:
            continue
    return found


def answers(call: Callable[..., object], *given: object) -> bool:
    try:
        call(*given)
    except Unsupported:
        return False
    return True


def built(layer: ConvWorkload, arch: str) -> object:
    """What ``build`` does before it generates a kernel."""
    return make_plan(layer, default_config(layer, arch), arch, "int4", (-8, 7), "fixed")


def tuned(layer: ConvWorkload, arch: str, kind: str = "paper") -> object:
    """What ``tune`` does before its first trial."""
    with Sources(FakeRunner(), arch, kind, None, None) as sources:
        return sources.of(layer)


@pytest.mark.parametrize("count", [30, pytest.param(100, marks=pytest.mark.deep)])
def test_everybody_gives_the_same_answer(monkeypatch, count):
    monkeypatch.setattr(
        "subbyte.families.mma.estimate.estimated_cycles", lambda plan: 0.0
    )  # which is best is of no account
    monkeypatch.setattr("subbyte.families.mma.family.estimated_first", estimated_first.__wrapped__)  # nothing is kept
    lacking = 0
    for number, layer in enumerate(drawn(count)):
        arch = "sm_80" if number % 6 else "sm_90a"
        warp = covered(layer, arch, "mma") is None
        assert answers(tuned, layer, arch) == warp
        if warp or arch == "sm_80":  # elsewhere another family may compute it, and takes a while to list
            assert answers(built, layer, arch) == warp
        assert number % 8 or bool(space(layer, arch).valid) == warp
        lacking += not warp
        if covered(layer, family="mma") is None:
            assert _row(layer)["covered"]
        elif lacking % 10 == 0:  # what the wgmma family tries takes a while to list
            assert (
                any(any(choose.choices(layer, ARCHS["sm_90a"], name)) for name in ("wgmma", "stem"))
                == _row(layer)["covered"]
                == (covered(layer) is None)
                == answers(built, layer, "sm_90a")
            )
    assert count // 5 < lacking < count


@pytest.mark.sample("u3")
@pytest.mark.parametrize(
    "spec", ["n8h14w14c64k64r8s8p4", "n8h14w14c64k64r3s3p1u3", "n8h28w28c64k64r3s3p3d3", "alexnet.conv1"]
)
def test_what_the_mma_family_lacks_is_covered_by_the_other(spec):
    assert covered(spec) is None
    assert covered(spec, "sm_80") is not None
    assert _row(workload(spec))["covered"]
    with pytest.raises(Unsupported, match=r"the wgmma family covers it: kind='wgmma'"):
        tune(spec, "fake", trials=1)
    assert answers(tuned, workload(spec), "sm_90a", "wgmma")


@pytest.mark.deep
def test_a_recorded_layer_is_covered():
    small = min((one for one in map(workload, recorded_best()) if one.precision == INT4), key=lambda one: one.macs)
    assert covered(small, family="wgmma") is None


@pytest.mark.deep
def test_an_odd_number_of_channel_blocks_in_wide_rows_has_value_lists():
    assert all(space("n8h56w112c96k64r3s3p1", kind="wgmma").knobs.values())
    assert covered("n8h56w112c96k64r3s3p1", family="wgmma") is None


@pytest.mark.parametrize("spec", BEYOND)
def test_sizes_beyond_reason_are_refused_everywhere_at_once(spec, tmp_path):
    calls = [
        lambda: subbyte.build(spec),
        lambda: subbyte.compile(spec),
        *(lambda kind=kind: tune(spec, "fake", kind=kind) for kind in ("paper", "extended", "wgmma")),
        *(lambda kind=kind: Study(space(spec, kind=kind)) for kind in ("paper", "wgmma")),
        lambda: build_bundle(space(spec, kind="wgmma"), tmp_path / "bundle"),
    ]
    for call in calls:
        begun = time.monotonic()
        with pytest.raises(Unsupported, match=r"exceeds 32-bit indices|32 bits could overflow"):
            call()
        assert time.monotonic() - begun < 1.0
    assert space(spec, kind="wgmma").valid == ()


def test_more_rows_than_the_wgmma_family_plans_are_the_other_familys():
    begun = time.monotonic()
    reason = covered("n1h20000w4c32k32r3s3p1", family="wgmma")
    assert reason == "rows: 20000 output rows exceed the 16384 that this family plans; split the image"
    assert covered("n1h60000000w1c32k32r1s1") is None
    assert time.monotonic() - begun < 1.0

"""compile(): a kernel for every convolution, and why it was chosen."""

import numpy as np
import pytest

import subbyte
from subbyte.device.arch import arch
from subbyte.errors import BuildFailed, InvalidInput, Unsupported
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import Plan
from subbyte.families.mma.rules import why_not
from subbyte.families.registry import config_from_dict, family_of
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.estimate import candidates
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.kernel.choose import TRIES, best_known, recorded_best, recorded_fused
from subbyte.numerics import Requantization, reference
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named


def test_on_hopper_the_wgmma_family():
    workload = ConvWorkload(11, 5, 5, 16, 8, 3, 3, 1)
    kernel = subbyte.compile(workload)
    assert isinstance(kernel.config, WgmmaConfig)
    assert "estimate" in kernel.reason
    assert best_known(workload) == (kernel.config, kernel.reason)
    rng = np.random.default_rng(0)
    x = rng.integers(-8, 8, (11, 5, 5, 16), np.int8)
    w = rng.integers(-8, 8, (8, 3, 3, 16), np.int8)
    requant = Requantization.random(workload, rng)
    out = kernel.run(x, w, requant, device="emulator")
    assert np.array_equal(out, requant.apply(reference(workload, x, w)))


@pytest.mark.deep
def test_two_tiles_of_channels_are_proposed_by_estimate():
    proposed = candidates(workload_named("resnet50.stage4.expand1x1@8"), arch("sm_90a"))[:TRIES]
    assert {config.tiles_m for config in proposed} == {1, 2}


def test_the_best_known_is_the_fastest_measured_of_all_families_and_nothing_is_built(monkeypatch):
    monkeypatch.setattr("subbyte.kernel.choose.make_plan", pytest.fail)
    monkeypatch.setattr("subbyte.kernel.choose.Kernel", pytest.fail)
    config, reason = best_known(workload_named("resnet50.stage2@8"))
    assert isinstance(config, WgmmaConfig)
    assert "3.52 us" in reason
    config, reason = best_known(workload_named("resnet50.stage2@8"), family="mma")
    assert isinstance(config, MmaConfig)
    assert "4.51 us" in reason


def test_elsewhere_the_warp_family_with_the_reason():
    kernel = subbyte.compile("resnet50.stage4@8", arch="sm_80")
    assert isinstance(kernel.config, MmaConfig)
    assert kernel.reason == "mma family, because atom: wgmma exists only on sm_90a, not on sm_80"
    padded = ConvWorkload(8, 4, 4, 64, 64, 3, 3, 3)
    assert subbyte.compile(padded).reason.startswith("image family")  # wider padding than the wgmma family has
    with pytest.raises(Unsupported, match="padding"):
        subbyte.compile(padded, family="wgmma")


def test_one_family_alone_where_it_is_asked_for():
    workload = "n8h5w5c32k32r3s3p1"
    for family, kind in (("mma", MmaConfig), ("wgmma", WgmmaConfig), ("warp", MmaConfig), ("warpgroup", WgmmaConfig)):
        kernel = subbyte.compile(workload, family=family)
        assert isinstance(kernel.config, kind)
        assert best_known(workload_named(workload), family=family)[0] == kernel.config
    with pytest.raises(InvalidInput, match="did you mean wgmma"):
        best_known(workload_named(workload), family="wgmna")
    with pytest.raises(Unsupported, match="sm_80 in the wgmma family: atom"):
        subbyte.compile(workload, arch="sm_80", family="wgmma")
    with pytest.raises(InvalidInput, match="did you mean wgmma"):
        subbyte.compile(workload, family="wgmna")
    with pytest.raises(TypeError, match="unroll"):
        subbyte.compile(workload, unroll=2)


@pytest.mark.deep
def test_the_reason_of_a_fallback_is_that_of_the_layer():
    assert "a tile iteration needs 5" in subbyte.compile("n8h14w14c4064k64r5s5p2").reason  # 127 blocks of channels


@pytest.mark.deep
def test_narrow_outputs_stay_in_the_wgmma_family():
    for spec in ("n2h4w4c3k8r2s2p0u2", "n8h9w2c64k64r3s3p3d3"):
        kernel = subbyte.compile(spec, family="wgmma", output="int32")
        w = kernel.workload
        assert kernel.config.tile_width <= 4
        draw = np.random.default_rng(2).integers
        x, weights = draw(-8, 8, (w.n, w.h, w.w, w.c), np.int8), draw(-8, 8, (w.k, w.r, w.s, w.c), np.int8)
        np.testing.assert_array_equal(kernel.run(x, weights, device="emulator"), reference(w, x, weights))


def test_a_layer_that_nobody_covers_names_both_reasons():
    with pytest.raises(Unsupported, match=r"dilation 1 and 2 \(the mma family\); stages: .* \(the wgmma family\)"):
        subbyte.compile("n8h99w99c512k64r3s3p2d40")


def test_what_nobody_covers_is_refused():
    with pytest.raises(Unsupported):
        subbyte.compile(ConvWorkload(8, 14, 14, 1 << 20, 64, 3, 3, 1))


def test_the_warp_family_where_it_was_measured_faster(monkeypatch):
    workload = ConvWorkload(8, 5, 5, 64, 64, 3, 3, 1)
    warp = {"config": MmaConfig(chunk=1).to_dict(), "microseconds": 3.0}
    best = {"config": PipelineConfig(tile_width=6, segments=1, stages=5).to_dict(), "microseconds": 3.5, "device": "D",
            "generator": "g", "source": "s", "warp": warp}  # fmt: skip
    monkeypatch.setattr("subbyte.kernel.choose.recorded_best", lambda: {workload.spec: best})
    kernel = subbyte.compile(workload)
    assert kernel.config == MmaConfig(chunk=1)
    assert kernel.reason.startswith("mma family, fastest measured configuration (3.00 us on D")
    assert "3.50" in kernel.reason
    assert subbyte.compile(workload, arch="sm_80").reason.startswith("mma family, because atom")
    best["microseconds"] = 2.9
    assert subbyte.compile(workload).config == PipelineConfig(tile_width=6, segments=1, stages=5)


def test_every_record_can_be_built():
    for spec, best in recorded_best().items():
        config = config_from_dict(best["config"])
        family = family_of(config)
        assert family.check(family.plan(subbyte.workload(spec), config, arch("sm_90a"))) is None
        assert best["microseconds"] > 0
        assert best["source"]
        assert best["device"]
        if "warp" in best:
            assert (
                why_not(Plan(subbyte.workload(spec), MmaConfig.from_dict(best["warp"]["config"]), arch("sm_90a")))
                is None
            )


def test_what_is_too_large_for_every_configuration_is_refused_before_any_plan(monkeypatch):
    monkeypatch.setattr("subbyte.families.wgmma.family.candidates", pytest.fail)
    monkeypatch.setattr("subbyte.families.wgmma.family.ranked", pytest.fail)
    for spec in ("n8h99999w99999c64k64r3s3p1", "n8h1w1c32k32r3s3p99999", "n800000000h4w8c32k32r1s1p0"):
        with pytest.raises(Unsupported, match=r"index: a tensor of \d+ words exceeds 32-bit indices"):
            subbyte.compile(spec, family="wgmma")
    with pytest.raises(Unsupported, match="wgmma exists only on sm_90a"):
        subbyte.compile("n8h99999w99999c64k64r3s3p1", "sm_80", family="wgmma")


@pytest.mark.deep
def test_a_kernel_row_that_meets_padding_alone_ends_no_program():
    kernel = subbyte.compile("n1h1w6c32k32r3s3p1", output="int32")
    draw = np.random.default_rng(2).integers
    x, w = draw(-8, 8, (1, 1, 6, 32), np.int8), draw(-8, 8, (32, 3, 3, 32), np.int8)
    np.testing.assert_array_equal(kernel.run(x, w, device="emulator"), reference(kernel.workload, x, w))
    with pytest.raises(BuildFailed, match="the kernel's text cannot be formed"):
        _ = subbyte.build(kernel.workload, PipelineConfig(tile_width=6, stages=1, stagger=0)).resources


def test_every_record_of_a_fused_kernel_can_be_built():
    assert recorded_fused()
    for cell, best in recorded_fused().items():
        spec, output = cell.split(" ")
        config = config_from_dict(best["config"])
        family = family_of(config)
        assert family.check(family.plan(subbyte.workload(spec), config, arch("sm_90a"), output)) is None
        assert best_known(workload_named(spec), output=output)[0] == config

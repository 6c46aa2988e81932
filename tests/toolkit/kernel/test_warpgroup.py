"""Kernels of the warpgroup family: every element on the CPU, and what stands in their machine code."""

from dataclasses import replace

import numpy as np
import pytest

import subbyte
from subbyte.device.arch import arch
from subbyte.errors import BuildFailed, Unsupported
from subbyte.families.mma.config import MmaConfig
from subbyte.families.wgmma import faults
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.kernel import Kernel
from subbyte.numerics import Requantization, reference
from subbyte.workload import ConvWorkload

W, S = PipelineConfig, SingleTileConfig
SMALL = {
    "plain": (ConvWorkload(8, 6, 6, 64, 64, 3, 3, 1), W(tile_width=6, stages=6)),
    "two rows, odd sizes": (
        ConvWorkload(9, 7, 9, 64, 96, 3, 3, 1), W(tile_width=10, tile_rows=2, segments=2, stages=4),
    ),
    "column tiles": (
        ConvWorkload(8, 8, 20, 64, 64, 3, 3, 1),
        W(tile_width=6, consumers_n=2, tile_rows=2, segments=2, stages=5),
    ),
    "one channel block": (ConvWorkload(8, 8, 8, 32, 64, 3, 3, 1), W(tile_width=8, tile_rows=2, segments=2, stages=5)),
    "stride 2": (ConvWorkload(8, 16, 16, 64, 128, 3, 3, 1, 2), W(tile_width=4, tile_rows=2, segments=2, stages=6)),
    "dilation": (ConvWorkload(8, 10, 10, 64, 64, 3, 3, 2, 1, 2), W(tile_width=10, segments=2, stages=6)),
    "7x7 stem": (ConvWorkload(8, 24, 24, 3, 64, 7, 7, 3, 2), W(tile_width=12, segments=3, stages=9)),
    "1x1": (ConvWorkload(8, 7, 7, 128, 256, 1, 1, 0), W(tile_width=26, stages=2, m_iterations=2, consumers_m=2)),
    "1x1, shortest ring": (
        ConvWorkload(8, 7, 7, 128, 256, 1, 1, 0),
        W(tile_width=12, consumers_m=2, segments=2, m_iterations=2, channel_groups=2, stages=2, stagger=0),
    ),
    "1x1, own rows": (
        ConvWorkload(8, 10, 10, 256, 256, 1, 1, 0),
        W(tile_width=20, segments=2, row_reuse=0, channel_groups=4, stages=4, m_iterations=2, consumers_m=2, stagger=0),
    ),
    "1x1, stride 2": (ConvWorkload(8, 14, 14, 128, 128, 1, 1, 0, 2), W(tile_width=8, tile_rows=2, stages=3)),
    "turns": (ConvWorkload(8, 9, 9, 64, 64, 3, 3, 1), W(tile_width=10, tile_rows=2, consumers_rows=2, stages=6)),
    "one starts late": (
        ConvWorkload(8, 9, 9, 128, 64, 3, 3, 1),
        W(tile_width=10, tile_rows=2, consumers_rows=2, stages=6, stagger=2, in_flight=2),
    ),
    "one starts late, rows of one": (
        ConvWorkload(8, 8, 20, 64, 64, 3, 3, 1), W(tile_width=10, consumers_n=2, segments=2, stages=5, stagger=2),
    ),
    "cluster": (ConvWorkload(8, 7, 7, 256, 64, 3, 3, 1), W(tile_width=8, segments=7, cluster_split_k=2, stages=3)),
    "single pass, two rows": (
        ConvWorkload(9, 7, 20, 64, 96, 3, 3, 1), S(tile_width=10, tile_rows=2, segments=4),
    ),
    "single pass, side by side": (
        ConvWorkload(8, 6, 12, 64, 128, 3, 3, 1), S(tile_width=6, consumers_m=2, segments=6),
    ),
    "single pass, cluster": (
        ConvWorkload(8, 7, 7, 256, 64, 3, 3, 1), S(tile_width=8, segments=7, cluster_split_k=2),
    ),
    "single pass, stride 2": (ConvWorkload(8, 14, 14, 64, 64, 3, 3, 1, 2), S(tile_width=4, segments=7)),
}  # fmt: skip
LARGE = {
    "stage 4": (
        "resnet50.stage4@256",
        W(tile_width=14, tile_rows=2, consumers_m=2, segments=2, stages=5, load_ahead=1, in_flight=2, stagger=2),
    ),
    "stage 5": ("resnet50.stage5@256", W(tile_width=8, tile_rows=4, consumers_m=2, stages=6, load_ahead=1, stagger=2)),
    "stage 5, batch 8": ("resnet50.stage5@8", S(tile_width=8, segments=7, cluster_split_k=2)),
    "stage 4, batch 8": ("resnet50.stage4@8", W(tile_width=14, segments=14, cluster_split_k=2, stages=3, unroll=2)),
}


def _made(workload, config, **options):
    """The kernel without its machine code, which the tests below look at in kernels of real layers."""
    plan = WgmmaPlan(workload, config, arch("sm_90a"), **options)
    assert why_not(plan) is None
    return Kernel(plan)


def _operands(workload, kind, rng):
    x = rng.integers(-8, 8, (workload.n, workload.h, workload.w, workload.c), np.int8)
    w = rng.integers(-8, 8, (workload.k, workload.r, workload.s, workload.c), np.int8)
    if kind == "smallest":
        x[:], w[:] = 7, -8
    if kind == "largest":
        x[:], w[:] = -8, -8
    return x, w


@pytest.mark.sample("pass, cluster")
@pytest.mark.parametrize("name", SMALL)
def test_every_element_on_the_cpu(name):
    workload, config = SMALL[name]
    rng = np.random.default_rng(3)
    x, w = _operands(workload, "random", rng)
    requant = Requantization.random(workload, rng)
    kernel = _made(workload, config).for_requantization(requant)
    out = kernel.run(x, w, requant, device="emulator")
    assert np.array_equal(out, requant.apply(reference(workload, x, w)))


SWITCHES = {
    "every tap loaded anew": {"duplicate_aware": "none", "stagger": 0},
    "packed behind shared memory": {"register_packing": False},
    "NHWC": {"layout": "nhwc"},
    "all off": {"duplicate_aware": "none", "stagger": 0, "register_packing": False, "layout": "nhwc"},
}
SWITCHED = [
    ("dilation", "all off"), ("cluster", "all off"), ("7x7 stem", "every tap loaded anew"),
    ("1x1", "packed behind shared memory"), ("column tiles", "NHWC"), ("stride 2", "NHWC"),
]  # fmt: skip


@pytest.mark.sample("packed behind")
@pytest.mark.parametrize(("name", "switch"), SWITCHED)
def test_switches_change_no_element(name, switch):
    workload, config = SMALL[name]
    rng = np.random.default_rng(5)
    x, w = _operands(workload, "random", rng)
    requant = Requantization.random(workload, rng)
    kernel = _made(workload, replace(config, **SWITCHES[switch])).for_requantization(requant)
    assert np.array_equal(kernel.run(x, w, requant, device="emulator"), requant.apply(reference(workload, x, w)))


@pytest.mark.deep
def test_raw_sums_in_the_other_layout():
    workload, config = SMALL["two rows, odd sizes"]
    x, w = _operands(workload, "random", np.random.default_rng(6))
    kernel = _made(workload, replace(config, **SWITCHES["all off"]), output="int32")
    assert np.array_equal(kernel.run(x, w, device="emulator"), reference(workload, x, w))


@pytest.mark.deep
def test_switches_show_in_the_machine_code():
    workload, config = "n8h14w14c128k64r3s3p1", replace(LARGE["stage 4, batch 8"][1], cluster_split_k=1)
    switched = replace(config, **{**SWITCHES["all off"], "layout": config.layout})
    on, off = (subbyte.build(workload, one).instructions for one in (config, switched))
    assert 0 < _count(off, "IGMMA") < _count(on, "IGMMA")  # taps are turns of a loop, no addresses in its body
    assert _count(off, "STS.128") > 0
    assert _count(off, "LDS.128") > 0
    assert _count(on, "STSM") > 0 == _count(off, "STSM")


def _count(instructions, part):
    return sum(count for opcode, count in instructions.items() if part in opcode)


@pytest.mark.deep
@pytest.mark.parametrize("form", ["int32", "relu", "wide"])
def test_extreme_sums_and_every_form_of_output(form):
    workload, config = SMALL["two rows, odd sizes"]
    made = _made(workload, config, output="int32" if form == "int32" else "int4")
    for kind in ("smallest", "largest"):
        rng = np.random.default_rng(4)
        x, w = _operands(workload, kind, rng)
        sums = reference(workload, x, w)
        if form == "int32":
            assert np.array_equal(made.run(x, w, device="emulator"), sums)
            continue
        requant = Requantization.random(workload, rng, relu=form == "relu", wide=form == "wide")
        kernel = made.for_requantization(requant)
        assert np.array_equal(kernel.run(x, w, requant, device="emulator"), requant.apply(sums))


@pytest.mark.sample("stage 5, batch 8")
@pytest.mark.parametrize("name", LARGE)
def test_machine_code(name):
    kernel = subbyte.build(*LARGE[name])
    counts = kernel.instructions
    multiplications = sum(count for opcode, count in counts.items() if "IGMMA" in opcode)
    assert multiplications
    assert kernel.resources.local_bytes == 0
    assert not any(opcode.startswith(("LDL", "STL", "IMMA")) for opcode in counts)
    groups = kernel.sass.count("gsb0 ;") - kernel.sass.count("DEPBAR.LE gsb0")
    assert groups * 2 <= multiplications  # several wgmma in a group: the compiler did not serialize them
    for needed in ("I2IP.U4", "STSM", "FFMA", "SYNCS"):
        assert any(needed in opcode for opcode in counts)
    assert not any("IMAD.HI" in opcode or "FTZ" in opcode for opcode in counts)  # slow beside wgmma; denormals count


@pytest.mark.sample("stage 5, batch 8")
@pytest.mark.parametrize("name", ["two rows, channel groups", *LARGE])
def test_no_comparison_is_merged_with_a_minimum(name):
    """ptxas 13.0 turns ``max(min(a, b), 0) == b`` into a VIMNMX.RELU with predicates; an H200 answered it wrongly."""
    workload = ConvWorkload(8, 7, 7, 128, 128, 3, 3, 1)
    config = W(tile_width=8, tile_rows=2, channel_groups=2, stages=8, load_ahead=1, in_flight=2, stagger=0)
    kernel = subbyte.build(*LARGE[name]) if name in LARGE else subbyte.build(workload, config, output="int32")
    assert faults.counts(kernel.cubin)["merged"] == 0


@pytest.mark.deep  # seconds to compile; what the compiler says of it is in test_kernel_faults.py
def test_a_serialized_kernel_is_refused():
    workload, config = LARGE["stage 5"]
    with pytest.raises(BuildFailed, match="serialized the wgmma"):
        subbyte.build(workload, replace(config, in_flight=2))


def test_the_warp_family_does_not_take_it():
    with pytest.raises(Unsupported, match="wgmma exists only on sm_90a"):
        subbyte.build(SMALL["plain"][0], SMALL["plain"][1], "sm_80")
    assert subbyte.build(SMALL["plain"][0], MmaConfig()).arch == "sm_90a"

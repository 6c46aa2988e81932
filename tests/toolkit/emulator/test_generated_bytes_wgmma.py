"""8-bit activations, 8-bit weights and outputs, and zero points in the family wgmma: clean, exact, refused where they
mean nothing, and what goes wrong with them is found."""

from __future__ import annotations

import numpy as np
import pytest
from generated import Generated, plan_of
from generated_samples import chain_of_bytes, samples

import subbyte
from subbyte.device import ARCHS
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families import config_from_dict, family_of, space
from subbyte.families.mma import family as mma_family
from subbyte.families.wgmma import family as wgmma_family
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.explain.stores import packed_stores
from subbyte.families.wgmma.explain.taps import tap_addresses
from subbyte.families.wgmma.explain.tiling import warpgroup_tiling
from subbyte.families.wgmma.faults import counts
from subbyte.families.wgmma.former import FormerConfig
from subbyte.families.wgmma.model import CLOCK_MHZ
from subbyte.families.wgmma.weights import prepare_warpgroup_weights
from subbyte.kernel.choose import best_known, recorded_best
from subbyte.workload.precision import INT4

SIGNED, ZERO = "w8a8:signed.signed", "w8a8:signed.offset-z37"
BYTES = {
    "s8": (f"n8h5w6c32k64r3s3p1:{SIGNED}", "wgp-tw6-tr1-cm1-sg1-st4-la1-sta0-ca1", {}),
    "u8, odd blocks": ("n9h4w7c40k40r3s3p1:w8a8", "wgp-tw4-tr1-cm1-sg1-st4", {"clip": (3, 200)}),
    "first layer": ("n3h9w11c3k40r7s7p3u2:w8a8", "wgp-tw6-tr1-cm1-sg1-st8-la1-sta0-ca1", {"requant": "general"}),
    "int4 weights, groups of channels": (
        "n8h4w6c128k64r3s3p1:w4a8",
        "wgp-tw6-tr1-cm1-sg2-cg2-st7-rr0-la1-sta0-if2-ca2",
        {},
    ),
    "rows of an iteration in a stage": (
        f"n8h6w8c64k64r3s3p1u2:{SIGNED}",
        "wgp-tw4-tr3-cm1-sg1-cg2-st3-rr3-la1-sta0-ca1",
        {},
    ),
    "1x1, flat batch": ("n16h3w5c128k128r1s1p0:w4a8", "wgp-tw8-tr1-cm2-sg2-cg2-st4-rr0-la1-sta0-px2-ca2", {}),
    "1x1, stride, pixels behind the last": (
        f"n8h8w8c64k64r1s1p0u2:{SIGNED}",
        "wgp-tw6-tr2-cm1-sg1-st3-la1-un2-sta0-px1-ca1",
        {},
    ),
    "lean start": (f"n8h6w7c64k64r3s3p1:{SIGNED}", "wgp-tw8-tr1-cm1-sg1-st5-rr2-la1-sta0-ls2-ca1", {}),
    "one tile iteration": (f"n9h3w6c32k70r3s3p1:{SIGNED}", "wgs-tw3-tr1-cm1-sg3-mc1-pdl0", {}),
    "one tile iteration, int4 weights for two": ("n16h3w4c64k64r3s3p1:w4a8", "wgs-tw4-tr1-cm1-sg3-mc2", {}),
    "lowered, nhwc": (f"n5h4w6c32k64r3s3p1:{SIGNED}", "wgp-tw6-tr1-cm1-sg1-st4-la1-sta0-dup.none-rp0-nhwc", {}),
    "int4 out": ("n8h4w6c64k64r1s1p0:w8a8o4:signed.signed.signed", "wgp-tw6-tr1-cm1-sg1-st3-la1-sta0-ca1", {}),
    "uint8 out of uint4": ("n8h4w6c64k48r3s3p1:w4a4o8:signed.unsigned.unsigned", "wgp-tw6-tr1-cm1-sg1-st4", {}),
    "a cluster shares channels": (f"n8h3w4c64k64r3s3p1:{SIGNED}", "wgp-tw4-tr1-cm1-sg3-sk2-st3-la1-sta0-ca1", {}),
    "sums": ("n8h4w6c64k64r3s3p1:w4a8", "wgp-tw6-tr1-cm1-sg1-st4", {"output": "int32"}),
    "residual": (
        f"n8h4w6c32k48r3s3p1:{SIGNED}",
        "wgp-tw6-tr1-cm1-sg1-st4-la1-sta0-ca1",
        {"output": "int8+addint8", "requant": "general"},
    ),
}
ZERO_POINTS = {
    "codes without a sign": (f"n8h5w6c32k48r3s3p1:{ZERO}", "wgp-tw6-tr1-cm1-sg1-st5-la1-sta0-ca2", {}),
    "codes with a sign, sums, edges": (
        "n8h5w9c32k48r3s3p1u2:w8a8:signed.signed-z-7",
        "wgp-tw3-tr1-cm1-sg1-st4",
        {"output": "int32"},
    ),
    "int4 weights": ("n3h4w6c40k48r3s3p1:w4a8:signed.offset-z200", "wgp-tw6-tr1-cm1-sg1-st4", {"requant": "general"}),
    "uint4": ("n8h4w6c64k64r3s3p1:w4a4:signed.offset-z3", "wgp-tw6-tr1-cm1-sg1-st4", {}),
    "int4, one tile iteration": ("n8h3w6c64k64r3s3p1:w4a4:signed.signed-z-3", "wgs-tw6-tr1-cm1-sg3-mc1-pa2", {}),
    "lowered": (f"n8h4w6c32k64r3s3p1:{ZERO}", "wgp-tw6-tr1-cm1-sg1-st4-dup.none", {}),
    "of the output": ("n8h4w6c32k48r3s3p1:w4a4:signed.signed.signed-z-5", "wgp-tw6-tr1-cm1-sg1-st4", {"clip": (0, 7)}),
    "of both": (f"n8h4w6c32k48r3s3p1:{ZERO}.signed-z-9", "wgp-tw6-tr1-cm1-sg1-st4", {}),
}
KERNELS = samples("wgmma", {**BYTES, **{f"zero point, {name}": made for name, made in ZERO_POINTS.items()}})


@pytest.mark.sample("u8, odd blocks", "int4 weights, groups of channels", "zero point, codes without a sign")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_clean_and_exact(name: str) -> None:
    KERNELS[name].require_exact()


WAIT = "tvm_builtin_ptx_cp_async_wait_group_async_wait_group_1();"
FAULTS = {
    "activations read with a sign": ("u8, odd blocks", ".s8.u8", ".s8.s8"),
    "int8 weights left inverted": ("s8", '"not.b32 %0, %1;"', '"mov.b32 %0, %1;"'),
    "codes saturated with a sign": ("u8, odd blocks", "cvt.pack.sat.u8", "cvt.pack.sat.s8"),
    "blocks of 16 channels in each other's place": ("u8, odd blocks", "& 1) * 128)", "& 1 ^ 1) * 128)"),
    "a stage handed over before it has come": ("int4 weights, groups of channels", WAIT, ""),
    "the border holds code 0": ("zero point, codes without a sign", "(uint)623191333", "(uint)0"),
    "what the zero point adds left out": ("zero point, codes without a sign", "]) + correction", "]) + 0 * correction"),
    "that of the neighbouring channel": ("zero point, codes without a sign", "correction_1)", "correction)"),
}


@pytest.mark.sample("int8 weights left inverted", "the border holds code 0")
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    kernel, *change = FAULTS[name]
    KERNELS[kernel].require_found((change[0], change[1]))


@pytest.mark.parametrize(
    ("spec", "key", "reason"),
    [
        (f"n8h5w6c32k64r3s3p1:{SIGNED}", "wgp-tw6-tr1-cm1-sg1-st4-la1-sta0-ca4", "needs 5"),
        (f"n8h6w8c64k64r3s3p1:{ZERO}", "wgp-tw8-tr3-cm1-sg1-st3-rr3-la1-sta0", "a zero point is a code that rows"),
        ("n8h5w6c64k64r3s3p1:w4a4:signed.offset-z3", "wgp-tw6-tr1-cm1-sg1-st4-la1-sta0-ca1", "copies in shared memory"),
        ("n8h5w6c40k64r3s3p1:w8a8", "wgs-tw6-tr1-cm1-sg5-mc1", "an even number of blocks of 16 channels"),
        ("n8h5w6c64k64r3s3p1:w8a8:signed-2of4.signed", "wg24-tw6-tr1-cm1-sg1-st4", "dense ones on wgmma, take 8-bit"),
        ("n8h5w6c64k64r3s3p1:w2a8", "wgp-tw6-tr1-cm1-sg1-st4", "with 8-bit activations they take int8 or int4"),
    ],
)
def test_what_has_no_meaning_is_refused(spec: str, key: str, reason: str) -> None:
    assert reason in (why_not(plan_of(spec, key)) or "")


def test_weights_lie_as_an_instruction_reads_them() -> None:
    """Thread 32 * warp + 4 * g + q, word i: filter 16 * warp + 2 * g + i % 2, channels 16 * (i // 2) + 4 * q ..."""
    w = np.random.default_rng(0).integers(-128, 128, (64, 1, 1, 64), np.int8)
    whole = prepare_warpgroup_weights(w, beside="8w8")[0, 0, 0, 0].reshape(2, 128, 4)
    low, high = (half.clip(-8, 7) for half in (w[..., :32], w[..., 32:]))
    nibbles = prepare_warpgroup_weights(np.concatenate([low, high], axis=3), beside="8w4").reshape(128, 4)
    for thread, word, byte in np.random.default_rng(1).integers(0, (128, 4, 4), (64, 3)):
        filters = thread // 32 * 16 + thread % 32 // 4 * 2 + word % 2
        channel = word // 2 * 16 + thread % 4 * 4 + byte
        for step in range(2):
            code = int(~whole[step, thread, word]) >> (8 * int(byte)) & 255
            assert code == int(w[filters, 0, 0, 32 * step + channel]) & 255
        both = int(nibbles[thread, word]) >> (8 * int(byte)) & 255
        assert both == int(low[filters, 0, 0, channel]) & 15 | (int(high[filters, 0, 0, channel]) & 15) << 4


def test_the_family_with_fewer_estimated_cycles_is_tried_first() -> None:
    """A large layer goes to wgmma, one that a few warps of mma.sync do to those; without bytes nothing changes."""
    large, small = (subbyte.workload(f"{sizes}:{SIGNED}") for sizes in ("n8h14w14c256k256r3s3p1", "n1h7w7c16k16r3s3p1"))
    assert best_known(large)[1].startswith("wgmma family, chosen by estimate: not measured yet")
    assert best_known(small)[1].startswith("mma family, chosen by estimate: not measured yet")
    assert best_known(small, family="wgmma")[1].startswith("wgmma family")


def test_a_layer_of_bytes_is_built_without_local_memory() -> None:
    """What is built is looked at: wgmma is there, nothing is in local memory, no multiplication waits for another."""
    kernel = subbyte.compile(f"n8h4w7c32k64r3s3p1:{SIGNED}", family="wgmma")
    assert counts(kernel.cubin)["IGMMA"] > 0
    assert kernel.resources.stack_bytes == 0
    assert "m64n" in kernel.ptx
    assert ".s32.s8.s8" in kernel.ptx


def test_pictures_say_what_they_are_not_of() -> None:
    plan = KERNELS["s8"].kernel.plan
    assert warpgroup_tiling(plan).levels[0].depth == 9 * 32
    assert len(tap_addresses(plan).taps) == 6
    with pytest.raises(Unsupported, match="drawn for outputs of 4 bits"):
        packed_stores(plan)
    with pytest.raises(InvalidInput, match="a zero point is multiplied there"):
        tap_addresses(KERNELS["zero point, codes without a sign"].kernel.plan)


@pytest.mark.deep
def test_layers_of_bytes_in_a_chain_with_int4() -> None:
    """int8 words in, int4 words between, uint8 values out; the same through the reference."""
    specs = ("n2h4w5c5k32r3s3p1:w8a8o4:signed.signed.signed", "n2h4w5c32k21r1s1p0:w4a4o8:signed.signed.unsigned")
    chain, x, wanted = chain_of_bytes(specs, family="wgmma")
    assert np.array_equal(chain.run(x, device="emulator"), wanted)
    assert np.array_equal(chain.on_device("emulator")(x), wanted)


@pytest.mark.deep
@pytest.mark.parametrize("types", [SIGNED, "w4a8:signed.offset-z9"])
def test_spaces_hold_what_the_rules_allow(types: str) -> None:
    found = space(subbyte.workload(f"n8h7w7c48k80r3s3p1:{types}"), "sm_90a", kind="wgmma-small")
    assert list(found.valid) == [index for index in range(len(found)) if found.check(index) is None]
    assert found.valid


@pytest.mark.deep
def test_estimates_of_families_are_compared_by_what_records_say_of_them() -> None:
    found: dict[str, list[float]] = {"mma": [], "wgmma": []}
    for spec, entry in recorded_best().items():
        layer = subbyte.workload(spec)
        for one in (entry, *(more for more in entry.values() if isinstance(more, dict) and "microseconds" in more)):
            config = config_from_dict(one["config"])
            name = family_of(config).name
            if name in found and layer.precision == INT4 and not isinstance(config, FormerConfig):
                cycles = family_of(config).estimate(family_of(config).plan(layer, config, ARCHS["sm_90a"]))
                found[name].append(one["microseconds"] * CLOCK_MHZ / cycles)
    means = {name: round(float(np.exp(np.log(shares).mean())), 2) for name, shares in found.items()}
    assert means == {"mma": mma_family.RECORDED, "wgmma": wgmma_family.RECORDED}


SHAPES = ("n17h5w9c40k70r3s3p1", "n8h9w9c64k64r3s3p1u2", "n24h5w5c128k128r1s1p0", "n8h8w8c64k64r1s1p0u2",
          "n9h8w5c96k64r1s3p1", "n8h9w7c64k64r3s3p2d2")  # fmt: skip


@pytest.mark.deep
@pytest.mark.parametrize("types", [SIGNED, "w4a8", ZERO, "w4a8:signed.signed-z-7", "w4a4:signed.offset-z5"])
def test_random_configurations_are_clean_and_exact(types: str) -> None:
    rng = np.random.default_rng(len(types))
    for sizes in SHAPES:
        found = space(subbyte.workload(f"{sizes}:{types}"), "sm_90a", kind="wgmma")
        drawn = (int(index) for index in rng.integers(0, len(found), 3000))
        index = next((index for index in drawn if found.check(index) is None), None)
        if index is not None:
            Generated(found.workload, found.config(index)).require_exact(1)

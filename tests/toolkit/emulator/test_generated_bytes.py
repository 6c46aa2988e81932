"""8-bit activations beside int8 and int4 weights, and zero points: clean and exact in the family that takes them."""

from __future__ import annotations

import numpy as np
import pytest
from generated_samples import chain_of_bytes, samples

import subbyte
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families import config_from_key, space
from subbyte.families.mma.rules import why_not
from subbyte.kernel.execute import expected, random_operands
from subbyte.kernel.kernel import build
from subbyte.numerics import Requantization
from subbyte.workload import Precision

SIGNED, ZERO = "w8a8:signed.signed", "w8a8:signed.offset-z37"
BYTES = {
    "u8, odd blocks": ("n3h5w6c40k70r3s3p1:w8a8", "brw2-bcw1-wrt4-wct2-ch1-ri0", {}),
    "s8": (f"n9h5w6c64k70r3s3p1:{SIGNED}", "brw1-bcw1-wrt3-wct2-ch2-ri1", {"clip": (-100, 90)}),
    "u8, first layer": ("n3h7w6c3k40r7s7p3u2:w8a8", "brw1-bcw1-wrt3-wct1-ch1-ri1", {"requant": "general"}),
    "int4 weights": ("n3h5w6c64k64r1s1p0:w4a8", "brw2-bcw1-wrt4-wct8-ch4-ri0-sp2", {}),
    "int4 weights, odd blocks": ("n3h5w6c33k64r3s2p1d2:w4a8", "brw1-bcw2-wrt3-wct4-ch1-ri0-rp0", {}),
    "sums, nhwc": ("n3h5w6c64k64r3s3p1:w4a8", "brw2-bcw1-wrt4-wct4-ch2-ri0-nhwc-dup.none", {"output": "int32"}),
    "int4 out": ("n3h5w6c64k64r3s3p1:w8a8o4:signed.signed.signed", "brw2-bcw1-wrt4-wct4-ch2-ri0-dup.shared", {}),
    "uint8 out of uint4": ("n3h5w6c64k48r3s3p1:w4a4o8:signed.unsigned.unsigned", "brw2-bcw1-wrt4-wct2-ch2-ri0", {}),
    "residual": (
        f"n3h5w6c64k48r3s3p1:{SIGNED}",
        "brw2-bcw1-wrt4-wct2-ch2-ri0",
        {"output": "int8+addint8", "requant": "general"},
    ),
}
ZERO_POINTS = {
    "codes without a sign": (f"n3h5w6c64k48r3s3p1:{ZERO}", "brw2-bcw1-wrt4-wct2-ch2-ri0", {}),
    "codes with a sign, sums": (
        "n3h5w6c64k48r3s3p2u2:w8a8:signed.signed-z-7",
        "brw2-bcw1-wrt4-wct2-ch4-ri0-sp2",
        {"output": "int32"},
    ),
    "int4 weights": (
        "n3h5w6c40k48r3s3p1:w4a8:signed.offset-z200",
        "brw2-bcw1-wrt3-wct2-ch1-ri0-sp1",
        {"requant": "general"},
    ),
    "uint4": ("n3h5w6c64k64r3s3p1:w4a4:signed.offset-z3", "brw2-bcw1-wrt4-wct4-ch2-ri0", {}),
    "int4": ("n3h5w6c40k64r3s3p1:w4a4:signed.signed-z-3", "brw2-bcw1-wrt4-wct4-ch2-ri0-rp0", {}),
}
KERNELS = samples("mma", {**BYTES, **{f"zero point, {name}": made for name, made in ZERO_POINTS.items()}})


@pytest.mark.sample("u8, odd", "int4 weights]", "zero point, int4")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_clean_and_exact(name: str) -> None:
    KERNELS[name].require_exact()


FAULTS = {
    "activations read with a sign": ("u8, odd blocks", ".u8.s8", ".s8.s8"),
    "weights read without": ("s8", ".s8.s8", ".s8.u8"),
    "codes saturated with a sign": ("u8, odd blocks", "cvt.pack.sat.u8", "cvt.pack.sat.s8"),
    "weights of the odd tile for the even one": ("int4 weights", "<< (uint)4", "<< (uint)0"),
    "the border holds code 0": ("zero point, codes without a sign", "(uint)623191333", "(uint)0"),
}


@pytest.mark.sample("activations read with a sign", "the border holds code 0")
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    kernel, *change = FAULTS[name]
    KERNELS[kernel].require_found((change[0], change[1]))


@pytest.mark.deep
@pytest.mark.parametrize("types", ["w8a8", "w4a8"])
def test_spaces_hold_what_the_rules_allow(types: str) -> None:
    found = space(subbyte.workload(f"n1h7w7c48k80r3s3p1:{types}"), "sm_80")
    assert list(found.valid) == [index for index in range(len(found)) if why_not(found.plan(index)) is None]


@pytest.mark.deep
@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
@pytest.mark.parametrize("types", ["w8a8", "w4a8:signed.offset-z37", "w4a4:signed.offset-z3"])
def test_other_architectures(types: str, arch: str) -> None:
    made = build(f"n3h5w6c64k64r3s3p1:{types}", config_from_key("brw2-bcw1-wrt4-wct4-ch2-ri0"), arch)
    x, w, requant = random_operands(made, 3)
    fitting = made.for_requantization(requant)
    assert np.array_equal(fitting.run(x, w, requant, device="emulator"), expected(fitting, x, w, requant))


def test_compile_says_that_nobody_measured_it() -> None:
    kernel = subbyte.compile("n1h4w4c3k16r3s3p1:w8a8", "sm_80", output="int32")
    assert (kernel.plan.atom.name, kernel.reason) == (
        "s8.m16n8k16", "mma family, chosen by estimate: not measured yet"
    )  # fmt: skip


def test_a_layer_of_bytes_on_a_device_and_in_a_chain_with_int4() -> None:
    """int8 words in, int4 words between, int8 values out; the same through the reference."""
    specs = ("n2h4w5c5k32r3s3p1:w8a8o4:signed.signed.signed", "n2h4w5c32k21r1s1p0:w4a4o8:signed.signed.signed")
    chain, x, wanted = chain_of_bytes(specs, arch="sm_80")
    assert np.array_equal(chain.run(x, device="emulator"), wanted)
    assert np.array_equal(chain.on_device("emulator")(x), wanted)
    with pytest.raises(InvalidInput, match=r"x is uint8 .*: must be int8"):
        chain.on_device("emulator")(x.view(np.uint8))


def test_what_is_not_covered_is_refused_in_a_sentence() -> None:
    deep = subbyte.workload("n1h9w9c4096k16r5s5p0:w8a8")
    refused = {
        "R\\*S\\*C = 102400 reaches 65794, where 32 bits could overflow": lambda: build(deep, _CONFIG, "sm_80"),
        "warp_col_tiles 2 or more": lambda: build(
            "n1h3w3c16k16r1s1p0:w4a8", _CONFIG.with_values({"warp_col_tiles": 1}), "sm_80"
        ),
        "of 8 bits leave it at auto": lambda: build(
            "n1h3w3c16k16r1s1p0:w8a8", _CONFIG.with_values({"atom": "s4.m16n8k32"}), "sm_80"
        ),
        "C headers of residuals are written for operands of four bits": lambda: build(
            "n1h3w3c16k32r1s1p0:w8a8", _CONFIG, "sm_80", output="uint8+addint8"
        ).export("never"),
        "those on mma.sync, and dense ones on wgmma, take 8-bit activations and outputs": lambda: subbyte.compile(
            "n8h8w8c64k64r3s3p1:w8a8", family="image"
        ),
        "with 8-bit activations they take int8 or int4 weights": lambda: build(
            "n1h3w3c16k16r1s1p0:w8a8:signed.signed:minus", _CONFIG, "sm_80"
        ),
        "drawn for operands of four bits": lambda: subbyte.accesses("n1h3w3c16k16r1s1p0:w8a8", _CONFIG),
    }
    for sentence, asked in refused.items():
        with pytest.raises((InvalidInput, Unsupported), match=sentence):
            asked()
    with pytest.raises(InvalidInput, match="zero point 300"):
        Precision.of("w8a8:signed.offset-z300")


def test_scales_of_8_bit_outputs_are_closer() -> None:
    """Half a step of 255 is 2^-9: what is near enough for int4 would round another way."""
    types = Precision.of("w8a8").output
    near = Requantization.from_scale(1.5 / (1 << 16), k=1, output=types)
    assert near.shift[0] in (24, 28)
    rough = Requantization.from_scale(300.4 / (1 << 24), k=1, output=types)
    assert rough.shift[0] == 28
    assert rough.scale_error < 2.0**-13
    assert Requantization.from_scale(300.4 / (1 << 24), k=1).shift[0] == 24


_CONFIG = config_from_key("brw1-bcw1-wrt1-wct2-ch1-ri0")

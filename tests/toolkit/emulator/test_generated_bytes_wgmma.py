"""8-bit activations, 8-bit weights and outputs, and zero points in the family wgmma: clean, exact, refused where they
mean nothing, and what goes wrong with them is found."""

from __future__ import annotations

import numpy as np
import pytest
from generated import plan_of
from generated_samples import samples

import subbyte
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.weights import prepare_warpgroup_weights
from subbyte.kernel.choose import best_known

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

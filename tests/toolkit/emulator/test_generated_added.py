"""Values that are added before sums are rounded (a residual): clean and exact in the families mma and wgmma."""

from __future__ import annotations

import pytest
from generated_samples import samples

KERNELS = {
    **samples("mma", {
        "mma": ("n9h5w6c40k70r3s3p1", "brw4-bcw2-wrt4-wct2-ch2-ri0", {"output": "int4+addint4"}),
        "mma, nhwc, int8": ("n9h5w6c40k40r3s3p1", "brw4-bcw1-wrt4-wct2-ch2-ri0-nhwc", {"output": "int4+addint8"}),
        "mma, through shared memory": (
            "n3h4w5c32k40r1s1p0:w4a4:signed.signed.unsigned", "brw2-bcw1-wrt2-wct4-ch1-ri0-rp0",
            {"output": "uint4+adduint4", "clip": (2, 13)},
        ),
    }),
    **samples("wgmma", {
        "pipeline": ("n9h5w7c40k40r3s3p1", "wgp-tw8-tr2-cm1-sg1-st4", {"output": "int4+adduint4"}),
        "pipeline, int8": ("n9h5w7c40k40r3s3p1", "wgp-tw8-tr2-cm1-sg1-st4", {"output": "int4+addint8", "clip": (0, 7)}),
        "pipeline, through shared memory": (
            "n8h4w6c64k64r3s3p1", "wgp-tw6-tr1-cm1-sg1-st4-rp0", {"output": "int4+addint4"},
        ),
        "one tile": (
            "n9h7w6c40k70r3s3p1:w4a4:signed.unsigned", "wgs-tw3-tr1-cm1-sg7-mc1-pdl0-wa3-pa2",
            {"output": "uint4+adduint4"},
        ),
        "a cluster": ("n16h7w7c256k72r3s3p1", "wgp-tw8-tr1-cm1-sg7-sk2-st3", {"output": "int4+addint4"}),
    }),
}  # fmt: skip


@pytest.mark.sample("mma]", "pipeline]", "one tile]")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_clean_and_exact(name: str) -> None:
    KERNELS[name].require_exact()


FAULTS = {
    "the neighbour's value": (
        "mma",
        "int residual = (((int)(added_ptr[0] << ((uint)28",
        "int residual = (((int)(added_ptr[0] << ((uint)24",
    ),
    "values of the image beside": ("pipeline", "Res_ptr[", "Res_ptr[4 ^ "),
    "nothing is added": (
        "one tile",
        "residual_multiplier_1 = ((int)own_parameters_ptr[7])",
        "residual_multiplier_1 = 0",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    kernel, right, wrong = FAULTS[name]
    KERNELS[kernel].require_found((right, wrong))

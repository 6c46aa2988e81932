"""Unsigned int4 activations and outputs, what ReLU leaves: clean and exact in every family that takes them."""

from __future__ import annotations

import numpy as np
import pytest
from generated_samples import samples

import subbyte
from subbyte.errors import InvalidInput
from subbyte.kernel.choose import best_known
from subbyte.kernel.kernel import build
from subbyte.numerics import Requantization

IN_AND_OUT, IN, OUT = "w4a4:signed.unsigned", "w4a4:signed.unsigned.signed", "w4a4:signed.signed.unsigned"
MMA = {
    "mma": (f"n9h5w6c40k70r3s3p1:{IN_AND_OUT}", "brw4-bcw2-wrt4-wct2-ch2-ri0", {}),
    "mma, general, int4 out": (f"n3h4w5c33k40r3s2p1u2:{IN}", "brw2-bcw1-wrt2-wct4-ch1-ri1", {"requant": "general"}),
    "mma, through shared memory": (f"n3h4w5c32k40r1s1p0:{OUT}", "brw2-bcw1-wrt2-wct4-ch1-ri0-rp0", {"clip": (2, 13)}),
}
WGMMA = {
    "pipeline": (f"n9h5w7c40k40r3s3p1:{IN_AND_OUT}", "wgp-tw8-tr2-cm1-sg1-st4", {}),
    "pipeline, clipped, general": (f"n3h6w6c32k64r3s2p1:{IN}", "wgp-tw6-tr1-cm1-sg1-st5", {"requant": "general"}),
    "pipeline, through shared memory": (f"n8h4w6c64k64r3s3p1:{OUT}", "wgp-tw6-tr1-cm1-sg1-st4-rp0", {"clip": (1, 14)}),
    "one tile": (f"n9h7w6c40k70r3s3p1:{IN_AND_OUT}", "wgs-tw3-tr1-cm1-sg7-mc1-pdl0-wa3-pa2", {"clip": (0, 7)}),
    "2:4": ("n9h7w9c70k40r3s3p1:w4a4:signed-2of4.unsigned", "wg24-tw10-tr1-cm1-sg2-st5-res1", {}),
    "sums": (f"n8h6w6c64k64r3s3p1:{IN}", "wgp-tw6-tr1-cm1-sg1-st4", {"output": "int32"}),
}
IMAGE = {
    "image": (f"n1h7w7c64k64r3s3p1:{IN_AND_OUT}", "wgi-px24-fw1-cw1", {}),
    "image, general": (f"n2h5w9c16k40r3s3p1:{OUT}", "wgi-px8-fw1-cw1", {"requant": "general"}),
}
KERNELS = {**samples("mma", MMA), **samples("wgmma", WGMMA), **samples("image", IMAGE)}


@pytest.mark.sample("mma]", "pipeline]", "image]", "2:4")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_clean_and_exact(name: str) -> None:
    KERNELS[name].require_exact()


FAULTS = {
    "activations read with a sign": ("mma", ".u8.s8", ".s8.s8"),
    "weights read without": ("pipeline", ".s8.u8", ".u8.u8"),
    "codes saturated with a sign": ("mma", "cvt.pack.sat.u4", "cvt.pack.sat.s4"),
    "sums of odd channels without what is added": (
        "image",
        "int added_1 = ((int)own_parameters_ptr[1]);",
        "int added_1 = ((int)own_parameters_ptr[0]);",
    ),
}


@pytest.mark.sample("activations read", "sums of odd")
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    kernel, *change = FAULTS[name]
    KERNELS[kernel].require_found((change[0], change[1]))


@pytest.mark.deep
def test_a_layer_takes_what_was_measured_of_its_int4_twin() -> None:
    signed, unsigned = (best_known(subbyte.workload(f"resnet50.stage3@256{types}")) for types in ("", f":{IN_AND_OUT}"))
    assert signed[0] == unsigned[0]
    assert "measured on int4 values" in unsigned[1]
    assert "measured on int4 values" not in signed[1]


def test_codes_outside_the_type_are_refused() -> None:
    kernel = build(f"n1h3w3c4k4r1s1p0:{IN_AND_OUT}", arch="sm_80", output="int32")
    x, w = np.full((1, 3, 3, 4), 15, np.int8), np.full((4, 1, 1, 4), -8, np.int8)
    assert (kernel.run(x, w, device="emulator") == -480).all()
    for wrong in (-1, 16):
        x[0, 1, 2, 3] = wrong
        with pytest.raises(InvalidInput, match=r"x .*0 to 15|x .*0 \.\.\. 15|uint4"):
            kernel.run(x, w, device="emulator")


def test_a_requantization_to_the_other_type_is_refused() -> None:
    kernel = subbyte.build(f"n1h3w3c4k4r1s1p0:{IN_AND_OUT}", arch="sm_80")
    x, w = np.zeros((1, 3, 3, 4), np.int8), np.zeros((4, 1, 1, 4), np.int8)
    with pytest.raises(InvalidInput, match="requantization to int4: the layer gives uint4"):
        kernel.run(x, w, Requantization.from_scale(0.1, k=4), device="emulator")

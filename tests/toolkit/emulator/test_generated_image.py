"""Kernels whose columns are pixels of one image, as TVM generates them: clean and exact, and faults are found."""

from __future__ import annotations

import pytest
from generated_samples import samples

KERNELS = samples("image", {
    "3x3, one image": ("n1h7w7c64k64r3s3p1", "wgi-px24-fw1-cw1", {}),
    "two images, 16 channels, narrow rows": ("n2h5w9c16k40r3s3p1", "wgi-px8-fw1-cw1", {"clip": (0, 7)}),
    "three images, stride 2": ("n3h10w11c64k64r3s3p1u2", "wgi-px16-fw1-cw1-if1", {"clip": (-7, 6)}),
    "warpgroups share channels, tile in a row": ("n1h4w40c128k64r3s3p1", "wgi-px16-fw1-cw2", {}),
    "warpgroups share channels, uneven": ("n1h7w7c128k72r3s3p1", "wgi-px24-fw2-cw2-if4", {}),
    "a cluster": ("n1h7w7c128k64r3s3p1", "wgi-px64-fw1-cw1-sk2", {}),
    "a cluster of pairs, uneven": ("n1h7w7c256k96r3s3p1", "wgi-px48-fw1-cw2-sk2-pdl0", {}),
    "ways without pixels": ("n1h5w5c256k64r3s3p1", "wgi-px8-fw1-cw2-sk2-if4", {}),
    "512 channels": ("n1h7w7c512k64r3s3p1", "wgi-px64-fw1-cw1-sk8", {}),
    "1x1, nhwc": ("n9h6w5c128k64r1s1p0", "wgi-px32-fw1-cw1-nhwc", {}),
    "1x1, stride 2, sums": ("n1h9w8c96k32r1s1p0u2", "wgi-px16-fw1-cw1", {"output": "int32"}),
    "general": ("n1h6w6c64k64r3s3p1", "wgi-px48-fw1-cw1", {"requant": "general"}),
    "wide padding, sums of a pair": ("n1h3w4c128k33r3s3p3", "wgi-px32-fw1-cw2", {"output": "int32"}),
})  # fmt: skip
"""Between them every form of the output, every way to share channels, and sizes that fill nothing."""


@pytest.mark.sample("a cluster of pairs, uneven")
@pytest.mark.parametrize("name", KERNELS)
def test_generated_kernels_are_clean_and_exact(name: str) -> None:
    KERNELS[name].require_exact()


FAULTS = {
    "a tap one place further": ("(low + (uint)133)", "(low + (uint)134)"),
    "even channels twice": ("(operand_ptr_1[0], weights_ptr[0],", "(operand_ptr_1[0], (weights_ptr[0] << (uint)4),"),
    "zeros above the image are not": ("(row >= 0)", "(row >= 1)"),
    "sums of a way sent to the other block": ("(place_ptr_2[0], to_2, (uint)1)", "(place_ptr_2[0], to_2, (uint)0)"),
    "rows one place shorter": ("(pixel_2 >> 3)", "(pixel_2 / 7)"),
    "fewer bytes waited for": (" * 8192)", " * 4096)"),
}
"""In the kernel with a cluster of pairs: what is replaced, and by what."""


@pytest.mark.sample("a tap one place further", "fewer bytes waited for")
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    KERNELS["a cluster of pairs, uneven"].require_found(FAULTS[name])


@pytest.mark.deep
def test_machine_code_spills_nothing() -> None:
    kernel = KERNELS["3x3, one image"].kernel
    counts = kernel.instructions
    assert sum(count for opcode, count in counts.items() if opcode.startswith("IGMMA.64x24x32.S8.S8")) == 18
    assert not any(opcode.startswith(("LDL", "STL")) for opcode in counts)
    assert kernel.resources.local_bytes == 0

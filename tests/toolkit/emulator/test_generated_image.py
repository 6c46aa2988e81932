"""Kernels whose columns are pixels of one image, as TVM generates them: clean and exact, and faults are found."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import subbyte
from subbyte.emulator import EmulatorRun, run_cuda
from subbyte.families import config_from_key, family_of
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.execute import expected, random_operands

POISON = 0xA5A5A5A5
KERNELS: dict[str, tuple[str, str, dict[str, Any]]] = {
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
}  # fmt: skip
"""Between them every form of the output, every way to share channels, and sizes that fill nothing."""


@cache
def kernel_of(name: str) -> Kernel:
    spec, key, options = KERNELS[name]
    asked = {"output": None, "clip": None, "requant": "fixed", **options}
    plan = make_plan(subbyte.workload(spec), config_from_key(key), "sm_90a", *asked.values())
    assert family_of(plan.config).name == "image"
    return Kernel(plan)


def run(kernel: Kernel, change: tuple[str, str] = ("", ""), extreme: bool = False) -> tuple[EmulatorRun, int]:
    """A run on a poisoned output, and how many elements are wrong; ``extreme``: all values are -8, the sums largest."""
    x, w, requant = random_operands(kernel, 1)
    if extreme:
        x, w = np.full_like(x, -8), np.full_like(w, -8)
    words = np.full(kernel.argument("Out").shape, POISON, np.uint32).view(kernel.argument("Out").dtype)
    text = kernel.cuda.replace(*change) if change[0] else kernel.cuda
    assert not change[0] or text != kernel.cuda
    done = run_cuda(text, kernel.launch, {**kernel.pack(x, w, requant), "Out": words}, seed=0, max_steps=10**7)
    wanted = expected(kernel, x, w, requant)
    if requant is not None:
        wanted = np.clip(wanted, *kernel.plan.clip)
    return done, int((kernel.unpack(words) != wanted).sum())


@pytest.mark.sample("3x3, one image", "three images, stride 2", "a cluster of pairs, uneven")
@pytest.mark.parametrize("name", KERNELS)
def test_generated_kernels_are_clean_and_exact(name: str) -> None:
    for extreme in (False, True):
        kernel = kernel_of(name)
        found, wrong = run(kernel, extreme=extreme)
        assert not found.findings
        assert not any(found.unwritten.values()), "images that only fill up the last 8 are zeros"
        assert not any(found.rewritten.values())
        assert wrong == 0


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
    try:
        done, wrong = run(kernel_of("a cluster of pairs, uneven"), FAULTS[name])
    except subbyte.SubbyteError:
        return
    assert wrong > 10 or done.findings or any(done.unwritten.values()), wrong


def test_machine_code_spills_nothing() -> None:
    kernel = kernel_of("3x3, one image")
    counts = kernel.instructions
    assert sum(count for opcode, count in counts.items() if opcode.startswith("IGMMA.64x24x32.S8.S8")) == 18
    assert not any(opcode.startswith(("LDL", "STL")) for opcode in counts)
    assert kernel.resources.local_bytes == 0

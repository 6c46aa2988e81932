"""The papers' experiments: sides exist for every point, compositions of launches give the layer, and the convolution of
values is the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.bits import direct
from benchmarks.bits.paper_kernels import FUSED_POOL, Built
from benchmarks.bits.paper_sides import POOLED, QUANTIZED, SEPARATE, ablation
from subbyte.emulator import run_cuda
from subbyte.numerics import reference
from subbyte.workload import workload


@pytest.mark.parametrize(
    "spec", ["n3h7w6c40k24r3s3p1u2:w2a2", "n2h5w5c33k8r3s3p2d2:w1a1:minus", "n9h1w1c70k20r1s1p0:w1a8"]
)
def test_a_convolution_of_values_is_the_reference(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "AT_ONCE", 5000)  # in several parts
    layer = workload(spec)
    one = Built("", "", "", spec, "bmma-brw1-bcw1-wrt2-wct4-ch1-ri0", "int32", "")
    x, w = one.operands()
    np.testing.assert_array_equal(direct.convolved(layer, x, w, np), reference(layer, x, w))


@pytest.mark.parametrize(
    ("spec", "output", "ends"),
    [
        ("n9h4w4c64k70r1s1p0:w2a2:signed.unsigned", "int32", SEPARATE),
        ("n9h4w4c64k70r1s1p0:w1a2", "uint2", QUANTIZED),
        ("n9h4w4c64k70r1s1p0:w1a1", "bipolar1", POOLED),
        ("n9h4w4c64k70r1s1p0:w1a2", "uint2", ""),
    ],
)
def test_launches_together_give_the_layer(spec: str, output: str, ends: str) -> None:
    one = Built("A3", "", "", spec, "bmma-brw1-bcw1-wrt2-wct4-ch1-ri0", output, ends)
    cubins = [one.kernel.cuda.encode(), one.second_text.encode()]
    x, w = one.operands()
    steps, given, outputs = one.steps(cubins[0], cubins[1] if ends else None, one.words((x, w)))
    buffers: dict[str, Any] = dict(given) | {name: np.full(size // 4, 7, np.uint32) for name, size in outputs.items()}
    for text, launch, names in steps:
        own = [argument.name for argument in launch.arguments]
        passed = {to: buffers[name].view(argument.dtype) for to, name, argument in
                  zip(own, names, launch.arguments, strict=True)}  # fmt: skip
        run_cuda(text.decode(), launch, passed, check=False)
    found = one.values(buffers[list(outputs)[-1]].view(one.written.dtype))
    np.testing.assert_array_equal(found, one.expected(reference(one.layer, x, w), np))
    assert len(np.unique(found)) > 1
    if ends == SEPARATE:
        assert len(steps) == 5


def test_every_point_has_its_sides() -> None:
    """The ablation, whose switches must be there."""
    found = list(ablation(1))
    names = {(side.point, side.name) for side in found}
    for pair in ("w2a2", "w1a4"):
        for how in (
            "bits registers",
            "bmma registers",
            "bmma shared",
            "bits separate launches",
            "bmma separate launches",
        ):
            assert (f"combine {pair}", how) in names
    assert {side.output for side in found if side.point == "pool @16"} == {"bipolar1", "bipolar1" + FUSED_POOL}
    assert sum(point == "tile w1a2" for point, _ in names) >= 3

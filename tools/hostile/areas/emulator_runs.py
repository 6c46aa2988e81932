"""Random layers and configurations of both families, and conv2d, run in the emulator against the reference."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

from hostile.harness import Case

WARP, WARPGROUP, CONV2D = 196, 84, 62
LARGEST = 60_000
"""Multiply-accumulates of a layer of the mma family and of conv2d; the wgmma family's are padded to more."""


def cases(rng: random.Random) -> Iterator[Case]:
    """196 runs of the mma family, 62 of conv2d and 84 of the wgmma family; cheap layers first."""
    drawn = sorted((_layer(rng, 7, 2, 2) for _ in range(WARP)), key=lambda layer: layer.macs)
    for number, layer in enumerate(drawn):
        arch = rng.choice(("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a"))
        seed = rng.randrange(1 << 30)
        text = f"warp {layer.spec} {arch} seed {seed}"
        yield Case(text, partial(_warp, layer, arch, seed, "int4" if number % 3 else "int32"), "answer", bool, 120.0)
    for layer in sorted((_layer(rng, 5, 2, 2) for _ in range(CONV2D)), key=lambda layer: layer.macs):
        seed = rng.randrange(1 << 30)
        yield Case(f"conv2d {layer.spec} seed {seed}", partial(_conv2d, layer, seed), "answer", bool, 120.0)
    for layer in sorted((_layer(rng, 9, 4, 3) for _ in range(WARPGROUP)), key=lambda layer: layer.macs):
        seed = rng.randrange(1 << 30)
        text = f"warpgroup {layer.spec} seed {seed}"
        yield Case(text, partial(_warpgroup, layer, seed), "either", bool, 300.0)


def _layer(rng: random.Random, kernel: int, stride: int, dilation: int) -> Any:
    """A small layer of odd sizes."""
    from subbyte.errors import InvalidInput
    from subbyte.workload import ConvWorkload

    while True:
        n, h, w = rng.choice((1, 2, 3, 7, 8, 9, 17)), rng.randint(1, 9), rng.randint(1, 9)
        c, k = rng.choice((1, 3, 17, 32, 33, 64)), rng.choice((1, 5, 8, 32, 40))
        r, s = rng.randint(1, kernel), rng.randint(1, kernel)
        try:
            made = ConvWorkload(
                n, h, w, c, k, r, s, rng.randint(0, 4), rng.randint(1, stride), rng.randint(1, dilation)
            )
        except InvalidInput:
            continue
        if made.macs <= LARGEST:
            return made


def _warp(layer: Any, arch: str, seed: int, output: str) -> bool:
    """A random valid configuration of the extended space."""
    from subbyte.families import space

    found = space(layer, arch, "extended", layout=random.Random(seed).choice(("nhwc", "nhwcnc")))
    return _same(layer, found.config(random.Random(seed).choice(found.valid)), arch, seed, output)


def _warpgroup(layer: Any, seed: int) -> bool:
    """One of the configurations that are tried first, where the family covers the layer."""
    from subbyte.device.arch import ARCHS
    from subbyte.errors import Unsupported
    from subbyte.families import family_named
    from subbyte.kernel.coverage import covered

    reason = covered(layer, "sm_90a", "wgmma")
    if reason is not None:
        raise Unsupported(reason)
    listed = list(islice(family_named("wgmma").candidates(layer, ARCHS["sm_90a"]), 20))
    return _same(layer, random.Random(seed).choice(listed), "sm_90a", seed, "int4")


def _same(layer: Any, config: Any, arch: str, seed: int, output: str) -> bool:
    """Whether every element is what the reference gives."""
    import numpy as np

    from subbyte.kernel.build import make_plan
    from subbyte.kernel.execute import expected, random_operands
    from subbyte.kernel.kernel import Kernel

    kernel = Kernel(make_plan(layer, config, arch, output, (-8, 7), "fixed"))
    x, w, requant = random_operands(kernel, seed)
    return np.array_equal(kernel.run(x, w, requant, "emulator"), expected(kernel, x, w, requant))


def _conv2d(layer: Any, seed: int) -> bool:
    import numpy as np

    from subbyte import conv2d
    from subbyte.numerics import Requantization, reference

    rng = np.random.default_rng(seed)
    x = rng.integers(-8, 8, (layer.n, layer.h, layer.w, layer.c), np.int8)
    w = rng.integers(-8, 8, (layer.k, layer.r, layer.s, layer.c), np.int8)
    requant = Requantization.random(layer, rng) if seed % 2 else None
    sums = reference(layer, x, w)
    found = conv2d(
        x, w, requant, pad=layer.pad, stride=layer.stride, dilation=layer.dilation, device="emulator",
        arch=("sm_80", "sm_90a")[seed // 2 % 2],
    )  # fmt: skip
    return np.array_equal(found, sums if requant is None else requant.apply(sums))

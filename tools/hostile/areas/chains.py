"""Chains of layers: six kinds of misfit are refused at the check, and what fits gives what the reference gives."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from hostile.corpus import corpus
from hostile.harness import Case

Layer = tuple[Any, str, str, str]
"""A workload, its architecture, output and layout."""
RUN_EVERY = 13
"""Of the chains that fit every so many-th one runs in the emulator; the others stop at the check."""


def cases(rng: random.Random) -> Iterator[Case]:
    """The misfits of the corpus, 52 chains that fit, 120 that do not."""
    from subbyte.workload import workload

    for entry in corpus("chains"):
        pair = [(workload(spec), arch, output, "nhwcnc") for spec, arch, output in entry["layers"]]
        yield Case(f"chain {entry['layers']}", partial(_chained, pair), entry["must"])
    for number in range(52):
        layers = _fitting(rng)
        run = number % RUN_EVERY == 0
        call, right = (_run, _all_right) if run else (_chained, None)
        yield Case(f"chain that fits {_said(layers)}", partial(call, layers), "answer", right, seconds=60.0)
    for kind, misfit in MISFITS.items():
        for _ in range(20):
            layers = _fitting(rng)
            place = rng.randrange(1, len(layers))
            layers[place] = misfit(rng, layers[place])
            yield Case(f"{kind} {_said(layers)}", partial(_chained, layers), "refuse")


def _fitting(rng: random.Random) -> list[Layer]:
    """Two or three small layers, each taking what the one before gives."""
    from subbyte.workload import ConvWorkload

    n, h, w, c = rng.choice((1, 3, 8)), rng.randint(2, 6), rng.randint(2, 6), rng.choice((3, 20, 32, 40))
    arch, layout = rng.choice(("sm_80", "sm_90a")), rng.choice(("nhwc", "nhwcnc"))
    layers: list[Layer] = []
    for _ in range(rng.randint(2, 3)):
        r = rng.choice((1, 3))
        made = ConvWorkload(n, h, w, c, rng.choice((5, 20, 32, 64)), r, r, r // 2, rng.choice((1, 2)))
        layers.append((made, arch, "int4", layout))
        h, w, c = made.p, made.q, made.k
    return layers


def _sized(**changes: Callable[[Any], int]) -> Callable[[random.Random, Layer], Layer]:
    def misfit(rng: random.Random, layer: Layer) -> Layer:
        made = replace(layer[0], **{name: change(layer[0]) for name, change in changes.items()})
        return (made, *layer[1:])

    return misfit


MISFITS: dict[str, Callable[[random.Random, Layer], Layer]] = {
    "height and width": _sized(h=lambda w: w.h * w.w + 3, w=lambda w: 1, r=lambda w: 1, s=lambda w: 1),
    "channels": _sized(c=lambda w: w.c + 1 if w.c % 32 else w.c - 1),
    "batch": _sized(n=lambda w: w.n + 1 if w.n % 8 else w.n - 1),
    "architecture": lambda rng, layer: (layer[0], "sm_86", *layer[2:]),
    "output": lambda rng, layer: (*layer[:2], "int32", layer[3]),
    "layout": lambda rng, layer: (*layer[:3], "nhwc" if layer[3] == "nhwcnc" else "nhwcnc"),
}


def _said(layers: list[Layer]) -> str:
    return " -> ".join(f"{made.spec} {arch} {output} {layout}" for made, arch, output, layout in layers)


def _chained(layers: list[Layer]) -> Any:
    """The chain, with operands; no kernel is generated."""
    import numpy as np

    from subbyte import Chain
    from subbyte.families.mma.config import MmaConfig
    from subbyte.kernel.build import make_plan
    from subbyte.kernel.kernel import Kernel
    from subbyte.numerics import Requantization

    random_numbers = np.random.default_rng(1)
    kernels = [
        Kernel(make_plan(made, MmaConfig(blk_col_warps=1, layout=layout), arch, output, (-8, 7), "fixed"))
        for made, arch, output, layout in layers
    ]
    weights = [random_numbers.integers(-8, 8, (made.k, made.r, made.s, made.c), np.int8) for made, *_ in layers]
    return Chain(kernels, weights, [Requantization.random(made, random_numbers) for made, *_ in layers])


def _run(layers: list[Layer]) -> bool:
    """Whether the emulator gives what the reference gives, layer after layer."""
    import numpy as np

    from subbyte.numerics import reference

    chain, first = _chained(layers), layers[0][0]
    x = np.random.default_rng(2).integers(-8, 8, (first.n, first.h, first.w, first.c), np.int8)
    wanted = x
    for (made, *_), w, requant in zip(layers, chain._weights, chain._requants, strict=True):
        wanted = requant.apply(reference(made, wanted, w))
    return np.array_equal(chain.run(x, device="emulator"), wanted)


def _all_right(answer: object) -> bool:
    return answer is True

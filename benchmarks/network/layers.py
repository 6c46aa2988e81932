"""Layers by words: names and specs, the 3x3 stages, layers that are held out, layers drawn by a seed.

``heldout`` are the layers that the model is judged by, ``stages`` the 3x3 stages of ResNet-50 at batches 1 to 64,
``random:SEED:COUNT`` layers drawn as those are that no judging uses, ``random:SEED:COUNT:r1u2`` those of them with 1x1
kernels and stride 2. ``heldout@8,64`` and ``stages@8,64`` are the same layers at these batches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import subbyte
from benchmarks.network import heldout
from subbyte.errors import InvalidInput
from subbyte.workload import ConvWorkload

STAGES = tuple(f"resnet50.stage{stage}" for stage in (2, 3, 4, 5))
TRAINED = (16 * 10**10, 64 * 10**6, 4 * 10**6)
"""Most multiply-adds, values of activations or outputs, and weights of a random layer, so that many can be measured."""


def layers_of(words: Sequence[str]) -> list[ConvWorkload]:
    """The layers that words stand for, each once. Raises InvalidInput."""
    return list(dict.fromkeys(layer for word in words for layer in _of(word)))


def _of(word: str) -> list[ConvWorkload]:
    group, _, at = word.partition("@")
    if group in ("heldout", "stages"):
        try:
            batches = [int(one) for one in at.split(",")] if at else None
        except ValueError:
            raise InvalidInput(f"--layers {word}: expected batches behind @, such as {group}@8,64") from None
        if group == "stages":
            return [subbyte.workload(f"{stage}@{n}") for stage in STAGES for n in batches or heldout.BATCHES]
        return [replace(one, n=n) for one in heldout.drawn() for n in batches or [one.n]]
    if not word.startswith("random:"):
        return [subbyte.workload(word)]
    found = re.fullmatch(r"random:(\d+):(\d+)(?::r([1-7])u([12]))?", word)
    if found is None:
        raise InvalidInput(
            f"--layers {word}: expected random:SEED:COUNT, such as random:7:60; random:7:60:r1u2 are 1x1, stride 2"
        )
    seed, count = int(found[1]), int(found[2])
    if seed in (heldout.SEED, *heldout.FORMER_SEEDS):
        raise InvalidInput(f"--layers {word}: this seed draws the layers that are held out; choose another")
    kind = (int(found[3]), int(found[4])) if found[3] else None
    fitting = (one for one in heldout.draws(seed) if kind in (None, (one.r, one.stride)) and _small(one))
    return list(islice(fitting, count))


def _small(layer: ConvWorkload) -> bool:
    w = layer
    sizes = w.macs, max(w.n * w.h * w.w * w.c, w.n * w.p * w.q * w.k), w.k * w.r * w.s * w.c
    return all(a <= b for a, b in zip(sizes, TRAINED, strict=True)) and not heldout.is_held_out(w)

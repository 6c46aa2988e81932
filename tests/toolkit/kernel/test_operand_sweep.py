"""Layers with operands and epilogues drawn at random: types, zero points, padding of each side, residuals, pooling.

Kernels of the families mma and wgmma run in the emulator, through ``Chain.on_device`` (values in and out, converted by
kernels too) or ``run_layer``. What is right is computed here, tap by tap and pixel by pixel in whole numbers, with
nothing of the library's numerics. The seed of a failure is in the test's name.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from subbyte.device import ARCHS
from subbyte.errors import BuildFailed, InvalidInput, Unsupported
from subbyte.families import family_named, family_of
from subbyte.kernel import Chain, Kernel, Pooling
from subbyte.kernel.build import make_plan
from subbyte.kernel.execute import random_operands
from subbyte.workload import ConvWorkload, Operand, Precision
from subbyte.workload.operand import SIGNED, UNSIGNED

SEEDS = range(160)
ADDED = ("int4", "uint4", "int8")
"""Types that kernels add."""


@dataclass
class Case:
    """What a seed draws."""

    types: Precision
    sides: tuple[int, int, int, int]
    layer: ConvWorkload
    after: Pooling | None
    added: str | None
    """The type that is added; where a layer behind this one adds this one's output, the type of both."""
    second: ConvWorkload | None
    family: str


def _operand(rng: np.random.Generator, bits: int) -> Operand:
    """Signed or unsigned, every third with a zero point."""
    encoding = str(rng.choice([SIGNED, UNSIGNED]))
    plain = Operand(bits, encoding)
    return plain if rng.random() < 0.6 else replace(plain, zero_point=int(rng.integers(plain.least, plain.largest + 1)))


def _pooling(rng: np.random.Generator, rows: int, cols: int) -> Pooling | None:
    window = (int(rng.integers(1, min(rows, 3) + 1)), int(rng.integers(1, min(cols, 3) + 1)))
    if rng.random() < 0.4:
        return None
    kind, padding = str(rng.choice(["max", "average"])), int(rng.integers(0, min(window) // 2 + 1))
    return Pooling(kind, window, int(rng.integers(1, 3)), padding, bool(rng.integers(2)), bool(rng.integers(2)))


def drawn(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng(seed)
    while True:
        bits = int(rng.choice([4, 8]))
        weights = Operand(int(rng.choice([4, 8])) if bits == 8 else 4)
        output = _operand(rng, int(rng.choice([4, 8])))
        types = Precision(weights, _operand(rng, bits), output)
        sides = tuple(int(side) for side in rng.integers(0, 3, 4))
        if rng.random() < 0.4:
            sides = (sides[0],) * 4
        r, s = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        n, h, w = int(rng.integers(1, 10)), int(rng.integers(1, 8)), int(rng.integers(1, 8))
        c, k, stride = int(rng.choice([3, 16, 32, 40, 64])), int(rng.choice([8, 32, 40, 64])), int(rng.integers(1, 3))
        whole = len(set(sides)) == 1  # the kernel pads; else its caller does
        pad, more = (sides[0], (0, 0)) if whole else (0, (sides[0] + sides[1], sides[2] + sides[3]))
        try:
            layer = ConvWorkload(n, h + more[0], w + more[1], c, k, r, s, pad, stride, precision=types)
        except InvalidInput:
            continue  # the kernel does not fit the input
        if layer.macs > 1_500_000:
            continue
        added, second = (str(rng.choice(ADDED)), None) if rng.random() < 0.5 else (None, None)
        if added is not None and output.name in ADDED and (output.bits == 8 or weights.bits == 4):
            added, behind = output.name, Precision(weights, output, _operand(rng, int(rng.choice([4, 8]))))
            second = ConvWorkload(n, layer.p, layer.q, k, k, 1, 1, 0, precision=behind)
        last = second or layer
        family = str(rng.choice(["mma", "wgmma"]))
        return Case(types, sides, layer, _pooling(rng, last.p, last.q), added, second, family)


def _fitting(family: str, workload: ConvWorkload, output: str | None, form: str) -> list[Kernel]:
    """Of the kernels that a family names first, those that give the output and read the words."""
    found, reason = [], Unsupported(f"{workload.label}: nothing to try")
    for config in islice(family_named(family).candidates(workload, ARCHS["sm_90a"]), 24):
        try:
            kernel = Kernel(make_plan(workload, config, ARCHS["sm_90a"], output, None, "fixed"))
        except Unsupported as error:
            reason = error
            continue
        if form in ("", kernel.argument("A").form):
            found.append(kernel)
    if not found:
        raise reason
    return found


def _written(fitting: list[Kernel], rng: np.random.Generator) -> Kernel:
    """One of them whose text can be formed: of tiny layers with rows beyond the border alone some cannot."""
    for place in rng.permutation(len(fitting)):
        with suppress(BuildFailed):
            _ = fitting[place].cuda
            return fitting[place]
    raise Unsupported(f"{fitting[0].workload.label}: no text can be formed")


def built(case: Case, rng: np.random.Generator) -> list[Kernel]:
    """Its layers, of one of the configurations of the family that come first."""
    kernels: list[Kernel] = []
    for workload in [case.layer, case.second] if case.second else [case.layer]:
        adds = case.added is not None and (workload is case.second or case.second is None)
        output = f"{workload.precision.output.name}+add{case.added}" if adds else None
        form = kernels[-1].argument("Out").form if kernels else ""
        kernels.append(_written(_fitting(case.family, workload, output, form), rng))
    return kernels


def convolved(x: np.ndarray, w: np.ndarray, pad: int, stride: int) -> np.ndarray:
    """Sums [N,P,Q,K], tap by tap."""
    x = np.pad(x.astype(np.int64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    rows, cols = ((size - taps) // stride + 1 for size, taps in zip(x.shape[1:3], w.shape[1:3], strict=True))
    found = np.zeros((x.shape[0], rows, cols, w.shape[0]), np.int64)
    for r, s in np.ndindex(w.shape[1:3]):
        taken = x[:, r : r + (rows - 1) * stride + 1 : stride, s : s + (cols - 1) * stride + 1 : stride]
        found += taken @ w[:, r, s].astype(np.int64).T
    return found


def rounded(sums: np.ndarray, requant: Any, added: np.ndarray | None) -> np.ndarray:
    """``clip(((acc + bias) * m + r * mr + 2^(s-1)) >> s)`` in Python's integers."""
    low, high = requant.clip
    found = np.empty(sums.shape, object)
    more = np.zeros(sums.shape, int) if added is None else added
    for place in np.ndindex(sums.shape):
        k = place[-1]
        factor = 0 if requant.added is None else int(requant.added[k])
        total = (int(sums[place]) + int(requant.bias[k])) * int(requant.multiplier[k]) + int(more[place]) * factor
        shift = int(requant.shift[k])
        found[place] = min(high, max(low, (total + (1 << shift - 1)) >> shift))
    return found


def pooled(x: np.ndarray, pooling: Pooling) -> np.ndarray:
    """Pixel by pixel, of all images and channels at once."""
    (rows, cols), stride, pad = pooling.size, pooling.stride, pooling.padding
    starts = [
        [start for start in range(-pad, size + pad, stride)
         if start + window <= size + pad
         or (pooling.ceil_mode and start - stride + window < size + pad and start < size)]
        for size, window in zip(x.shape[1:3], (rows, cols), strict=True)
    ]  # fmt: skip
    found = np.empty((x.shape[0], len(starts[0]), len(starts[1]), x.shape[3]), object)
    for p, q in np.ndindex(found.shape[1:3]):
        top, left = starts[0][p], starts[1][q]
        tall, wide = (min(start + window, size + pad) - start
                      for start, window, size in zip((top, left), (rows, cols), x.shape[1:3], strict=True))  # fmt: skip
        window = x[:, max(top, 0) : top + rows, max(left, 0) : left + cols].astype(int)
        if pooling.kind == "max":
            found[:, p, q] = window.max((1, 2))
        else:
            count = tall * wide if pooling.count_padding else window.shape[1] * window.shape[2]
            found[:, p, q] = (2 * window.sum((1, 2)) + count) // (2 * count)
    return found


def _padded(case: Case, x: np.ndarray) -> np.ndarray:
    """Values as the layer takes them: what its kernel does not pad is padded by the caller, with the value 0."""
    top, bottom, left, right = case.sides
    if case.layer.pad or not any(case.sides):
        return x
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))


def outcome(seed: int, wrong: str = "") -> tuple[np.ndarray, np.ndarray]:
    """What the kernels of a case give, and what is right; ``wrong`` names what the latter leaves out."""
    case, rng = drawn(seed), np.random.default_rng([seed, 1])
    kernels = built(case, rng)
    assert all(family_of(kernel.config).name == case.family for kernel in kernels)
    drawn_operands = [random_operands(kernel, seed + number) for number, kernel in enumerate(kernels)]
    wl = case.layer
    asymmetric = not wl.pad and any(case.sides)
    sizes = (wl.n, wl.h - (case.sides[0] + case.sides[1]) * asymmetric,
             wl.w - (case.sides[2] + case.sides[3]) * asymmetric, wl.c)  # fmt: skip
    a = case.types.activations
    x = _padded(case, rng.integers(a.least, a.largest + 1, sizes).astype(a.dtype))
    (_, w, requant), *more = drawn_operands
    if case.added is None or case.second is not None:
        right = rounded(convolved(x, w, wl.pad, wl.stride), requant, None)
        if more:
            (_, w2, requant2), added = more[0], right
            sums = convolved(right.astype(int), w2, 0, 1)
            right = rounded(sums, requant2, np.zeros_like(added) if wrong == "residual" else added)
        steps = [*kernels, *([case.after] if case.after else [])]
        weights = [one[1] for one in drawn_operands] + [None] * (case.after is not None)
        requants = [one[2] for one in drawn_operands] + [None] * (case.after is not None)
        residuals = [None, *([0] if more else []), *([None] if case.after else [])]
        found = Chain(steps, weights, requants, residuals).on_device("emulator")(x)
    else:
        one = Operand.named(case.added)
        residual = rng.integers(one.least, one.largest + 1, (wl.n, wl.p, wl.q, wl.k)).astype(one.dtype)
        right = rounded(convolved(x, w, wl.pad, wl.stride), requant, 0 * residual if wrong == "residual" else residual)
        found = kernels[0].run_layer(x, w, requant, residual, "emulator").values
        if case.after:
            before = found
            found = case.after.kernel(before.shape, operand=wl.precision.output).run(before, "emulator")
    if case.after and wrong != "pooling":
        right = pooled(right, case.after)
    return found, right


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_operands_are_exact(seed: int) -> None:
    try:
        found, right = outcome(seed)
    except Unsupported as error:  # said in one sentence
        pytest.skip(str(error))
    assert found.shape == right.shape
    assert (found == right).all(), f"{drawn(seed)}: {(found != right).sum()} of {right.size} wrong"


def test_what_is_left_out_is_noticed() -> None:
    seed = next(seed for seed in SEEDS if drawn(seed).second is not None)
    found, right = outcome(seed, wrong="residual")
    assert (found != right).any()


def test_the_seeds_meet_every_kind() -> None:
    cases = [drawn(seed) for seed in SEEDS]
    for bits in (4, 8):
        kinds = {(one.types.activations.encoding, bool(one.types.activations.zero_point)) for one in cases
                 if one.types.activations.bits == bits}  # fmt: skip
        assert len(kinds) >= 3
    assert {(one.types.weights.bits, one.types.activations.bits) for one in cases} == {(4, 4), (4, 8), (8, 8)}
    assert {one.family for one in cases} == {"mma", "wgmma"}
    assert sum(len(set(one.sides)) > 1 for one in cases) > 40
    assert sum(one.added is not None for one in cases) > 40
    assert sum(one.second is not None for one in cases) > 8
    assert {one.after.kind for one in cases if one.after} == {"max", "average"}

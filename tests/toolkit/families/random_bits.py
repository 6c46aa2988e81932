"""Layers and chains of bit planes drawn at random from a seed, run in the emulator and compared with a convolution of
values in int64 that shares nothing with kernels, packing or the reference.

    python tests/toolkit/families/random_bits.py 0 300      # first seed, how many
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch, arch
from subbyte.emulator import require_clean, run_cuda
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families import family_named
from subbyte.families.base import Plan
from subbyte.kernel import Chain, Kernel
from subbyte.kernel.chain import check_layers
from subbyte.kernel.execute import random_residual
from subbyte.kernel.operands import kept_sums
from subbyte.numerics import Thresholds, random_values
from subbyte.numerics.bit_layer import AFTER
from subbyte.workload import ConvWorkload, workload
from subbyte.workload.matmul import MatmulWorkload
from subbyte.workload.precision import SUMS

CODES = ("signed", "unsigned", "offset", "bipolar")
FILTERS = (1, 1, 2, 3, 3, 3, 4, 5, 7, 11)
CHANNELS = (1, 3, 31, 33, 40, 63, 64, 65, 96, 127, 128, 130, 192, 200, 256, 300)
FAMILIES = ("bits", "bmma", "bits", "bits", "popc")
HELD = {"correction": ("ones", "popcount", "double"), "staging": ("shared", "direct"),
        "combine": ("registers", "registers", "shared")}  # fmt: skip
MOST_WORK = 3e6
"""Products of bits of a case; the emulator takes about a second for that."""
POISON = 0x25C3F00D


@dataclass(frozen=True)
class Case:
    """Kernels in a row; ``added`` says which earlier layer's sums each adds, None for none."""

    seed: int
    plans: tuple[Plan, ...]
    added: tuple[int | None, ...] = ()

    @property
    def text(self) -> str:
        """What was drawn, to find it again."""
        parts = (f"{p.workload.spec} {p.config.key} {p.output} {p.arch.name}" for p in self.plans)
        return f"seed {self.seed}: {' | '.join(parts)}"


def convolved(layer: ConvWorkload, x: NDArray[Any], w: NDArray[Any]) -> NDArray[np.int64]:
    """Sums int64 [N,P,Q,K], a tap after the other."""
    pad, by = layer.pad, layer.stride
    border = ((0, 0), (pad, pad), (pad, pad), (0, 0))
    padded = np.pad(x.astype(np.int64), border, constant_values=layer.precision.pad_value)
    sums = np.zeros((layer.n, layer.p, layer.q, layer.k), np.int64)
    for row in range(layer.r):
        for column in range(layer.s):
            down, right = row * layer.dilation, column * layer.dilation
            seen = padded[:, down : down + (layer.p - 1) * by + 1 : by, right : right + (layer.q - 1) * by + 1 : by]
            sums += np.einsum("npqc,kc->npqk", seen, w[:, row, column].astype(np.int64), optimize=True)
    return sums


def windows(values: NDArray[Any], pool: int) -> NDArray[Any]:
    """The largest of each window of pool x pool."""
    n, rows, columns, k = values.shape
    cut = values[:, : rows // pool * pool, : columns // pool * pool]
    return cut.reshape(n, rows // pool, pool, columns // pool, pool, k).max(axis=(2, 4))


def compared(sums: NDArray[np.int64], rule: Thresholds) -> NDArray[np.int8]:
    """The value with as many smaller ones as thresholds are passed."""
    passed = np.zeros(sums.shape, np.int64)
    for level in rule.levels:
        passed += (sums >= level) ^ rule.flip
    return np.array(sorted(rule.output.values), np.int8)[passed]


def drawn(seed: int) -> Case | None:
    """The case of a seed; None where nothing could be drawn that a kernel covers."""
    rng = np.random.default_rng([20261127, seed])
    for _ in range(100):
        try:
            found = _chain(seed, rng) if seed % 4 == 3 else _single(seed, rng)
        except (InvalidInput, Unsupported):
            continue
        if found is not None:
            return found
    return None


def _pick(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _types(rng: np.random.Generator) -> str:
    most = int(_pick(rng, (1, 2, 2, 4, 8)))
    weights, activations = (int(rng.integers(1, most + 1)) for _ in range(2))
    text = f"w{weights}a{activations}:{_pick(rng, CODES)}.{_pick(rng, CODES)}"
    return text + str(_pick(rng, ("", "", ":minus", ":plus")))


def _layer(rng: np.random.Generator) -> ConvWorkload | None:
    n, h, w = int(rng.integers(1, 18)), int(rng.integers(1, 13)), int(rng.integers(1, 20))
    c, k = int(_pick(rng, CHANNELS)), int(_pick(rng, CHANNELS))
    r, s = int(_pick(rng, FILTERS)), int(_pick(rng, FILTERS))
    pad, stride = int(rng.integers(0, max(r, s) + 2)), int(_pick(rng, (1, 1, 2, 4)))
    dilation = int(_pick(rng, (1, 1, 1, 2, 3)))
    sizes = f"gemm{n * h}x{k}x{c}" if rng.random() < 0.12 else f"n{n}h{h}w{w}c{c}k{k}r{r}s{s}p{pad}u{stride}d{dilation}"
    found = workload(f"{sizes}:{_types(rng)}")
    types = found.precision
    work = found.n * found.p * found.q * found.k * found.r * found.s * -(-found.c // 32)
    return found if work * types.weights.bits * types.activations.bits < MOST_WORK else None


def _target(seed: int, rng: np.random.Generator) -> tuple[str, Arch]:
    name = FAMILIES[seed // 4 % len(FAMILIES)]
    return name, arch("sm_90a" if name == "bits" else str(_pick(rng, ("sm_75", "sm_80", "sm_90a"))))


def _outputs(rng: np.random.Generator, layer: ConvWorkload, name: str) -> str:
    out = layer.precision.output
    if out.bits > 4 or rng.random() < 0.2:
        return SUMS
    fused = ("", "", "+pool2", "+pool2after", f"+add{min(32 * int(rng.integers(1, 4)), layer.k // 32 * 32)}", "+keep",
             "+keep32")  # fmt: skip
    return out.name + (str(_pick(rng, fused)) if name == "bits" else "")


def _plan(rng: np.random.Generator, name: str, layer: ConvWorkload, target: Arch, output: str) -> Plan | None:
    """A configuration of a space, any of the valid ones, with what the space holds now and then."""
    family = family_named(name)
    kind = str(_pick(rng, list(family.kinds))) if isinstance(layer, MatmulWorkload) else next(iter(family.kinds))
    space = family.space(layer, target, kind, {})
    for _ in range(200):
        config = space.config(int(rng.integers(len(space))))
        held: dict[str, Any] = {"counted": int(rng.random() < 0.3), "row_parts": int(_pick(rng, (1, 1, 2, 3)))}
        held |= {name: str(_pick(rng, values)) for name, values in HELD.items()}
        config = config.with_values({key: value for key, value in held.items() if key in config.rows})
        plan = family.plan(layer, config, target, output)
        if family.check(plan) is None:
            return plan
    return None


def _single(seed: int, rng: np.random.Generator) -> Case | None:
    layer = _layer(rng)
    if layer is None:
        return None
    name, target = _target(seed, rng)
    plan = _plan(rng, name, layer, target, _outputs(rng, layer, name))
    return None if plan is None else Case(seed, (plan,))


def _chain(seed: int, rng: np.random.Generator) -> Case | None:
    """Two or three layers, each on the values that the one before it gives; now and then sums are added again."""
    first = _layer(rng)
    if first is None or first.precision.output.bits > 3 or isinstance(first, MatmulWorkload):
        return None
    name, target = _target(seed, rng)
    adds = name == "bits" and first.k % 32 == 0 and rng.random() < 0.5
    plans: list[Plan] = []
    layer, count = first, int(rng.integers(2, 4))
    for place in range(count):
        if place:
            before, types = layer, layer.precision
            bits = f"w{int(rng.integers(1, 3))}a{types.output.bits}"
            codes = f"{_pick(rng, CODES)}.{types.output.code}"
            same = adds and place == 1
            r = 3 if same else int(_pick(rng, (1, 3, 5)))
            k = before.k if same else int(_pick(rng, CHANNELS))
            stride = 1 if same else int(_pick(rng, (1, 2)))
            pad = 1 if same else int(rng.integers(0, r + 1))
            layer = workload(f"n{before.n}h{before.p}w{before.q}c{before.k}k{k}r{r}s{r}p{pad}u{stride}:{bits}:{codes}")
        output = layer.precision.output.name
        output += "+keep" if adds and place == 0 else f"+add{first.k}" if adds and place == 1 else ""
        plan = _plan(rng, name, layer, target, output)
        if plan is None:
            return None
        plans.append(plan)
    check_layers([Kernel(plan) for plan in plans])
    return Case(seed, tuple(plans), tuple(0 if adds and place == 1 else None for place in range(count)))


def checked(case: Case) -> int:
    """Run a case; how many values were compared. Raises AssertionError for a wrong one, and for findings."""
    return _checked_chain(case) if len(case.plans) > 1 else _checked_one(case)


def _checked_one(case: Case) -> int:
    kernel = Kernel(case.plans[0])
    layer, fused, rng = kernel.workload, kernel.fusion, np.random.default_rng(case.seed)
    x, w = _operands(layer, rng)
    rule = None if kernel.output == SUMS else Thresholds.random(layer, rng)
    kernel = kernel.for_requantization(rule)
    residual = random_residual(kernel, case.seed)
    outputs = {one.name: np.full(one.shape, POISON, one.dtype) for one in kernel.launch.arguments if one.role == "out"}
    require_clean(run_cuda(kernel.cuda, kernel.launch, {**kernel.pack(x, w, rule, residual), **outputs}))
    sums = convolved(layer, x, w)
    if residual is not None:
        added = windows(residual, fused.residual_pool)
        sums[..., : added.shape[-1]] += added
    wanted = sums if rule is None else windows(compared(sums, rule), fused.pool)
    if rule is not None and fused.pool > 1 and fused.pool_order != AFTER:
        wanted = compared(windows(sums, fused.pool), rule)
    _same(case, kernel.unpack(outputs["Out"]), wanted)
    if fused.keep:
        _same(case, kept_sums(outputs["Sum"], layer, fused), windows(sums, fused.keep_pool))
    return wanted.size


def _checked_chain(case: Case) -> int:
    kernels = [Kernel(plan) for plan in case.plans]
    rng = np.random.default_rng(case.seed)
    operands = [_operands(kernel.workload, rng) for kernel in kernels]
    rules = [Thresholds.random(kernel.workload, rng) for kernel in kernels]
    kernels = [kernel.for_requantization(rule) for kernel, rule in zip(kernels, rules, strict=True)]
    chain = Chain(kernels, [w for _, w in operands], rules, case.added)
    found, values, kept, count = chain.outputs(operands[0][0]), operands[0][0], {}, 0
    for place, (kernel, rule) in enumerate(zip(kernels, rules, strict=True)):
        sums = convolved(kernel.workload, values, operands[place][1])
        source = case.added[place]
        if source is not None:
            sums += kept[source]
        kept[place], values = sums, compared(sums, rule)
        _same(case, kernel.unpack(found[place]["Out"]), values)
        count += values.size
    return count


def _operands(layer: ConvWorkload, rng: np.random.Generator) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    types = layer.precision
    x = random_values(types.activations, (layer.n, layer.h, layer.w, layer.c), rng)
    return x, random_values(types.weights, (layer.k, layer.r, layer.s, layer.c), rng)


def _same(case: Case, found: NDArray[Any], wanted: NDArray[Any]) -> None:
    wrong = int(np.count_nonzero(found != wanted))
    assert wrong == 0, f"{wrong} of {wanted.size} values are wrong: {case.text}"


def main(first: int, count: int) -> int:
    """Run cases, print what was drawn, and how many are wrong; 1 where one is."""
    seen: Counter[str] = Counter()
    failed = []
    for seed in range(first, first + count):
        started, case = time.monotonic(), drawn(seed)
        if case is None:
            seen["nothing drawn"] += 1
            continue
        try:
            compared_values = checked(case)
        except Exception as problem:
            failed.append(seed)
            print(f"FAILED {case.text}\n  {type(problem).__name__}: {problem}", flush=True)
            continue
        seen["chains" if len(case.plans) > 1 else "layers"] += 1
        seen["values"] += compared_values
        for plan in case.plans:
            seen[plan.config.key.partition("-")[0]] += 1  # type: ignore[attr-defined]
        print(f"{case.text}  {compared_values} values, {time.monotonic() - started:.1f} s", flush=True)
    print(dict(seen), f"failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*(int(one) for one in sys.argv[1:3])))

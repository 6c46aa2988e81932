"""Named kernels of one family, to run as they are or with a fault in their text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from generated import POISON

import subbyte
from subbyte.emulator import EmulatorRun, require_clean, run_cuda
from subbyte.errors import SubbyteError
from subbyte.families import config_from_key, family_of
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.execute import expected, random_operands, random_residual
from subbyte.numerics import Requantization, reference
from subbyte.workload import Operand
from subbyte.workload.operand import DENSE


class Sample:
    """A kernel of ``family``. It is built when it is first asked for."""

    def __init__(self, family: str, spec: str, key: str, given: Mapping[str, Any]) -> None:
        asked = {"output": None, "clip": None, "requant": "fixed", **given}
        self._plan = make_plan(subbyte.workload(spec), config_from_key(key), "sm_90a", *asked.values())
        assert family_of(self._plan.config).name == family

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel."""
        return Kernel(self._plan)

    def run(self, change: tuple[str, str] = ("", ""), extreme: bool = False) -> tuple[EmulatorRun, int]:
        """A run on a poisoned output, and how many elements are wrong. ``change``: what is replaced in the text, and by
        what; ``extreme``: all values are the farthest from 0, the sums largest."""
        kernel = self.kernel
        x, w, requant = random_operands(kernel, 1)
        if extreme:
            types = kernel.workload.precision
            x, w = np.full_like(x, _farthest(types.activations)), np.full_like(w, _farthest(types.weights))
        words = np.full(kernel.argument("Out").shape, POISON, np.uint32).view(kernel.argument("Out").dtype)
        text = kernel.cuda.replace(*change) if change[0] else kernel.cuda
        assert not change[0] or text != kernel.cuda
        residual = random_residual(kernel, 1)
        buffers = {**kernel.pack(x, w, requant, residual), "Out": words}
        done = run_cuda(text, kernel.launch, buffers, seed=0, max_steps=10**7)
        wanted = expected(kernel, x, w, requant, residual)
        if requant is not None:
            wanted = np.clip(wanted, *kernel.plan.clip)
        return done, int((kernel.unpack(words) != wanted).sum())

    def require_exact(self) -> None:
        """Clean, and every element right, of random values and, where any value may differ from 0, of the largest
        sums."""
        for extreme in (False, True) if self._plan.workload.precision.weights.sparsity == DENSE else (False,):
            done, wrong = self.run(extreme=extreme)
            require_clean(done)
            assert wrong == 0

    def require_found(self, change: tuple[str, str]) -> None:
        """A fault is found: refused, reported, left unwritten, or wrong in more than a few elements."""
        try:
            done, wrong = self.run(change)
        except SubbyteError:
            return
        assert wrong > 10 or done.findings or any(done.unwritten.values()), wrong


def _farthest(operand: Operand) -> int:
    """Its value of the largest magnitude."""
    return max(operand.least, operand.largest, key=abs)


def samples(family: str, kernels: Mapping[str, tuple[str, str, Mapping[str, Any]]]) -> dict[str, Sample]:
    """By name: of a workload, a key, and what else the plan is given."""
    return {name: Sample(family, *made) for name, made in kernels.items()}


def chain_of_bytes(specs: tuple[str, str], **asked: str) -> tuple[subbyte.Chain, np.ndarray, np.ndarray]:
    """Two layers, int8 activations and then int4 ones, as a chain of what ``compile`` takes; values for it, and what
    the reference makes of them."""
    rng = np.random.default_rng(0)
    layers = [subbyte.workload(spec) for spec in specs]
    kernels = [subbyte.compile(layer, **asked) for layer in layers]
    x = rng.integers(-128, 128, (2, 4, 5, 5), np.int8)
    weights = [rng.integers(-128, 128, (32, 3, 3, 5), np.int8), rng.integers(-8, 8, (21, 1, 1, 32), np.int8)]
    requants = [Requantization.random(layer, rng) for layer in layers]
    wanted = x
    for layer, w, requant in zip(layers, weights, requants, strict=True):
        wanted = requant.apply(reference(layer, wanted, w))
    return subbyte.Chain(kernels, weights, requants), x, wanted

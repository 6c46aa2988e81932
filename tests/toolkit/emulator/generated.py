"""A generated kernel on wgmma with random operands, to run as it is or with a fault in its text."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.device import ARCHS
from subbyte.emulator import EmulatorRun, require_clean, run_cuda
from subbyte.families.registry import config_from_key
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.kernel import Kernel
from subbyte.kernel.execute import expected, random_operands
from subbyte.workload import ConvWorkload, workload

POISON = 0xA5A5A5A5


def plan_of(spec: str | ConvWorkload, config: WgmmaConfig | str, **given: Any) -> WgmmaPlan:
    """The plan of a configuration, which may be its key; ``given`` as for a plan."""
    made = config_from_key(config) if isinstance(config, str) else config
    assert isinstance(made, WgmmaConfig)
    return WgmmaPlan(workload(spec), made, ARCHS["sm_90a"], **given)


class Generated:
    """A kernel that no constraint refuses. It is built when its text is first asked for."""

    def __init__(self, spec: str | ConvWorkload, config: WgmmaConfig | str, **given: Any) -> None:
        self.plan = plan_of(spec, config, **given)
        assert why_not(self.plan) is None

    @cached_property
    def _built(self) -> tuple[Kernel, Any]:
        kernel = Kernel(self.plan)
        operands = self.operands(kernel)
        return kernel.for_requantization(operands[2]), operands

    def operands(self, kernel: Kernel) -> Any:
        """Activations, weights and what stands behind the sums."""
        return random_operands(kernel, 0)

    def buffers(self, kernel: Kernel, operands: Any) -> dict[str, NDArray[Any]]:
        """What the kernel reads."""
        return kernel.pack(*operands)

    @cached_property
    def _expected(self) -> NDArray[Any]:
        return expected(self._built[0], *self._built[1])

    @property
    def text(self) -> str:
        """Its CUDA text."""
        return self._built[0].cuda

    def run(self, seed: int, text: str | None = None) -> tuple[EmulatorRun, int, NDArray[Any]]:
        """The run of a text in its place, how many elements are wrong, and the output's words."""
        kernel, operands = self._built
        words = np.full(kernel.argument("Out").shape, POISON, np.uint32).view(kernel.argument("Out").dtype)
        buffers = {**self.buffers(kernel, operands), "Out": words}
        run = run_cuda(text or kernel.cuda, kernel.launch, buffers, seed=seed, max_steps=10**6)
        return run, int((kernel.unpack(words) != self._expected).sum()), words

    def require_exact(self, seeds: int) -> None:
        """Clean, and every element right, in that many orders."""
        for seed in range(seeds):
            run, wrong, _ = self.run(seed)
            require_clean(run)
            assert wrong == 0

    def require_found(self, old: str, new: str, *kinds: str) -> None:
        """A fault, ``new`` in the place of ``old``, is found as one of ``kinds``."""
        assert old in self.text
        run, *_ = self.run(0, self.text.replace(old, new))
        assert {finding.kind for finding in run.findings} & set(kinds), str(run)

"""A generated kernel on one-bit products with random operands, to run as it is or with a fault in text or words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from generated import Generated
from numpy.typing import NDArray

from subbyte.emulator import EmulatorRun, require_clean
from subbyte.families.bits.config import BitsConfig
from subbyte.families.bits.plan import BitsPlan
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.execute import expected, random_operands
from subbyte.kernel.operands import layout_words
from subbyte.numerics import Thresholds
from subbyte.workload import ConvWorkload, workload
from subbyte.workload.precision import SUMS

Words = dict[str, NDArray[Any]]


class GeneratedBits(Generated):
    """A kernel of the bits family, with thresholds of which a third is flipped, and some are constant."""

    def __init__(self, spec: str | ConvWorkload, output: str | None = None, **knobs: int | str) -> None:
        made = make_plan(workload(spec), BitsConfig().with_values(knobs), "sm_90a", output, None, "fixed")
        assert isinstance(made, BitsPlan)
        self.plan: BitsPlan = made  # type: ignore[assignment]

    def operands(self, kernel: Kernel) -> Any:
        """With thresholds, also where the output type has a requantization."""
        x, w, _ = random_operands(kernel, 0)
        if kernel.output == SUMS:
            return x, w, None
        return x, w, Thresholds.random(kernel.workload, np.random.default_rng(1))

    def require_exact(self, seeds: int) -> None:
        """Clean, every element right, and 0 in the bits of images and channels that only fill up."""
        kernel, operands = self._built
        for seed in range(seeds):
            run, wrong, words = self.run(seed)
            require_clean(run)
            assert wrong == 0
            if kernel.output != SUMS:
                values = expected(kernel, *operands)
                packed = layout_words(kernel.argument("Out").form, values, kernel.workload.precision.output)
                np.testing.assert_array_equal(words.reshape(-1), packed.reshape(-1))

    def wrong_with(self, change: Callable[[Words], None]) -> tuple[EmulatorRun, int]:
        """A run with other words in its buffers, and how many elements are wrong."""
        self.change = change
        run, wrong, _ = self.run(0)
        del self.change
        return run, wrong

    change: Callable[[Words], None]

    def buffers(self, kernel: Kernel, operands: Any) -> Words:
        """What the kernel reads; changed where a fault is planted there."""
        made = {name: words.copy() for name, words in super().buffers(kernel, operands).items()}
        if hasattr(self, "change"):
            self.change(made)
        return made

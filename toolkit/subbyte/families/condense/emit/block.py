"""What the parts of the kernel share while it is emitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from subbyte.families.condense.plan import CondensePlan
from subbyte.tirx.emit import loop, when
from subbyte.workload.conv import ceil_div


@dataclass
class Block:
    """Buffers and coordinates of one thread block. Every field but ``plan`` is a TIRx buffer or expression."""

    plan: CondensePlan
    activations: Any
    weights: Any
    parameters: Any
    output: Any
    shared: Any
    base: Any
    """Byte address of the block's shared memory."""
    sums: Any
    """Accumulators: [panel][tile of 8 columns][pair of pixels][pixel, column]."""
    thread: Any
    lane: Any
    warp: Any
    warp_row: Any
    warp_col: Any
    first_pixel: Any
    """The block's first pixel, counted over all groups of images."""
    first_panel: Any

    def address(self, word: Any) -> Any:
        """Byte address of a word in shared memory."""
        return self.base + T.cast(word, "uint32") * T.uint32(4)

    def by_warps(self, units: int, emit: Callable[[Any], None]) -> None:
        """Distribute ``units`` over the warps."""
        warps = self.plan.config.warps
        with loop("turn", ceil_div(units, warps), T.serial) as turn:
            unit = turn * warps + self.warp
            with when(units % warps == 0 or unit < units):
                emit(unit)

    def by_threads(self, units: int, emit: Callable[[Any], None]) -> None:
        """Distribute ``units`` over the threads, consecutive ones to neighbouring threads."""
        threads = self.plan.config.threads
        with loop("turn", ceil_div(units, threads)) as turn:
            unit = turn * threads + self.thread
            with when(units % threads == 0 or unit < units):
                emit(unit)

"""The family of kernels that skip the zeros they find."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.families.base import ExportParts, Function, Plan
from subbyte.families.condense.config import CondenseConfig
from subbyte.families.condense.dense import dense_at
from subbyte.families.condense.estimate import estimated_cycles, kept, tile_steps
from subbyte.families.condense.live import kept_of, live_columns, live_rows, steps_of
from subbyte.families.condense.plan import BLOCK_WORDS, FORM, CondensePlan
from subbyte.families.condense.rules import other_layers, why_not
from subbyte.families.condense.space import KIND, VALUES
from subbyte.families.condense.weights import prepare_weights
from subbyte.families.shared.one_by_one.family import OneByOneFamily
from subbyte.families.topic import Topic
from subbyte.info_record import InfoRecord
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.sparsity import FOUND

_HERE = Path(__file__).parent


class CondenseFamily(OneByOneFamily[CondensePlan]):
    """Kernels that gather the positions of K where neither side is all zeros."""

    name = "condense"
    title = "mma.sync on gathered positions, sm_80 and later"
    rank = -2
    configurations = (CondenseConfig,)
    planned = CondensePlan
    varied = tuple(VALUES)
    half = 2e5
    kinds: ClassVar[Mapping[str, str]] = {KIND: "tiles and stages of kernels that skip the zeros they find"}
    features = ("estimate", "rows", "columns", "threads", "chunks", "shared", "blocks")

    # ---- rules and spaces --------------------------------------------------------------------------------------------

    def why_not(self, plan: CondensePlan) -> str | None:
        """Why the plan cannot be built, None when it can."""
        return why_not(plan)

    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration at all can be built; None when some may."""
        return other_layers(workload, arch)

    def value_lists(self, workload: ConvWorkload) -> Mapping[str, tuple[int, ...]]:
        """The value lists for a product."""
        return VALUES

    def cycles(self, plan: CondensePlan) -> float:
        """A rough count, at a density of 5 % on both sides."""
        return estimated_cycles(plan)

    def feature_row(self, plan: Plan) -> list[float]:
        """The estimate, and sizes of tiles, stages and launch."""
        one = cast(CondensePlan, plan)
        found = (
            estimated_cycles(one), one.block_pixels, one.columns, one.config.threads, one.chunks, one.shared_bytes,
            one.launch.grid[0] * one.launch.grid[1],
        )  # fmt: skip
        return [log2(1 + value) for value in found]

    # ---- zeros -------------------------------------------------------------------------------------------------------

    finds_zeros = True
    zero_spaces: ClassVar[Mapping[str, str]] = {FOUND: KIND}

    def dense_at(self, workload: ConvWorkload, density: float) -> str | None:
        """According to measurements of this product, or of others."""
        return dense_at(workload, density)

    def keeps(self, plan: Plan, x: NDArray[np.int8], w: NDArray[np.int8]) -> dict[str, float] | None:
        """Fractions of K that tiles keep, and steps of 32 positions per tile."""
        one = cast(CondensePlan, plan)
        rows, columns = live_rows(one, x), live_columns(one, w)
        densities = float(np.mean(x != 0)), float(np.mean(w != 0))
        share = kept(*densities, one.config.tile_columns)
        return {
            "kept": kept_of(rows, columns), "kept_expected": share,
            "steps": steps_of(one, rows, columns), "steps_expected": tile_steps(one, share),
        }  # fmt: skip

    # ---- generating -------------------------------------------------------------------------------------------------

    def emit(self, plan: Plan) -> Function:
        """The TIRx function."""
        from subbyte.families.condense.emit.kernel import condense_kernel

        function: Function = condense_kernel(cast(CondensePlan, plan))
        return function

    @property
    def sources(self) -> tuple[Path, ...]:
        """The sources that determine the generated text."""
        return (_HERE / "emit", _HERE / "plan.py", _HERE / "config.py")

    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights [K,1,1,C] with the filters of a position together; None for a layout of another family."""
        return prepare_weights(w) if form == FORM else None

    def export(self, plan: Plan) -> ExportParts:
        """What a C header of the kernel needs."""
        w = plan.workload
        text = (_HERE / "weights.h").read_text(encoding="utf-8")
        return ExportParts({"weights": text}, (w.filter_blocks, w.channel_blocks, BLOCK_WORDS), {})

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """What tiles keep."""
        from subbyte.families.condense.explain import TOPICS

        return TOPICS


CONDENSE = CondenseFamily()

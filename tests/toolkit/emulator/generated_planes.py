"""A generated kernel on fragments of bit planes, to run as it is or with a fault in text or words."""

from __future__ import annotations

from generated_bits import GeneratedBits

from subbyte.families import family_named
from subbyte.families.shared.planes.config import PlaneConfig
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.kernel.build import make_plan
from subbyte.kernel.execute import expected
from subbyte.kernel.operands import layout_words
from subbyte.workload import ConvWorkload, workload


class GeneratedPlanes(GeneratedBits):
    """A kernel of the families bmma or popc for an architecture; thresholds as in :class:`GeneratedBits`."""

    def __init__(
        self, family: str, arch: str, spec: str | ConvWorkload, output: str | None = None, **knobs: int | str
    ) -> None:
        config = family_named(family).plain.with_values(knobs)
        assert isinstance(config, PlaneConfig)
        made = make_plan(workload(spec), config, arch, output, None, "fixed")
        assert isinstance(made, PlanePlan)
        self.plan: PlanePlan = made  # type: ignore[assignment]

    def faulty(self, text: str) -> bool:
        """Whether another text in its place is found wrong: a finding, an element, or a bit that only fills up."""
        run, wrong, words = self.run(0, text)
        kernel, operands = self._built
        packed = layout_words(
            kernel.argument("Out").form, expected(kernel, *operands), kernel.workload.precision.output
        )
        return bool(run.findings or wrong or (words.reshape(-1) != packed.reshape(-1)).any())

"""The load stepper: one warp of a real kernel loads its input, from global memory to the matrix instruction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import InvalidInput, SubbyteError, did_you_mean
from subbyte.families.registry import usual
from subbyte.spaces.configuration import Configuration
from subbyte.technique.load_steps import LoadSteps, load_steps
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._given import expect
from subbyte_widgets._selection import FIRST, Choice
from subbyte_widgets._stepper import CODE, PLAYER, Stepper, style
from subbyte_widgets.load_stepper.page import MOST_BYTES, aligned, in_ways, page_data
from subbyte_widgets.load_stepper.picture import steps_svg
from subbyte_widgets.load_stepper.words import in_words
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent
WAYS = ("none", "shared", "full")
SMALL = usual().plain.with_values(
    {"blk_row_warps": 2, "blk_col_warps": 1, "warp_row_tiles": 4, "warp_col_tiles": 2, "tile_height": 2}
)
"""Two warps with four output pixels each: small enough to see every instruction."""
__all__ = ["MOST_BYTES", "SMALL", "WAYS", "LoadStepper", "telling_step"]


class LoadStepper(Stepper):
    """Steps through what a block of a generated kernel does, for each way of sharing.

    ``source``: a workload, or :class:`~subbyte.technique.load_steps.LoadSteps` records of the same block; the default
    is the selected kernel, or one of ResNet50's second stage. For a workload, a kernel is generated for each of
    ``ways`` and run on the CPU; ``config``, ``arch``, ``block`` and ``warp`` say which. Errors are shown in the view.
    The browser writes ``step`` and ``way``.
    """

    _esm = script(CODE, *PLAYER, HERE / "view.js")
    _css = style(HERE, code=True)
    slow = True
    _state_in_page = ("data", "step", "way")
    _ways: tuple[str, ...] = WAYS

    way = traitlets.Unicode("full", help="The way of sharing that is shown").tag(sync=True)
    records = traitlets.Dict({}, help="The records by their way of sharing")

    def __init__(
        self,
        source: ConvWorkload | str | Sequence[LoadSteps] | None = None,
        config: Configuration = SMALL,
        *,
        arch: str = "sm_80",
        block: int | None = None,
        warp: int = 0,
        ways: Sequence[str] = WAYS,
        **options: Any,
    ) -> None:
        chosen, step = options.pop("way", None), options.pop("step", 0)
        super().__init__(**options)
        self._ways = tuple(ways)
        if source is None and self.selection is not None:
            return
        source = source or FIRST
        if isinstance(source, (str, ConvWorkload)):
            self.show(source, config, arch=arch, block=block, warp=warp)
        else:
            expect(self, source, LoadSteps, "give a workload, or records of subbyte.technique.load_steps")
            self.show_records(source)
        self.way, self.step = chosen or self.way, step
        if not self.error:
            refuse_outside(self, {"step": step})

    def show(self, workload: ConvWorkload | str, config: Configuration = SMALL, **where: Any) -> None:
        """Generate and step through another kernel, for each way of sharing; ``where`` takes ``arch``, ``block`` and
        ``warp``. Errors are shown in the view."""
        try:
            made = [config.with_values({"duplicate_aware": way}) for way in self._ways]
            records = [load_steps(workload, one, **where) for one in made]
        except SubbyteError as refused:
            self.error = str(refused)
            return
        self.show_records(records)

    def show_records(self, source: Sequence[LoadSteps]) -> None:
        """Draw records of the same block; if they are too much to send, the view says so."""
        records = {record.sharing: record for record in source}
        try:
            data = page_data(records)
        except SubbyteError as refused:
            self.error = str(refused)
            return
        with self.hold_sync():
            self.error, self.step = "", 0
            self.records, self.data = records, data
            if self.way not in records:
                self.way = "full" if "full" in records else next(iter(records), "full")
            self._describe()

    def turn_to(self, choice: Choice) -> None:
        """Step through the selected kernel; if all three ways are too much to send, only through its own."""
        config, self.note = choice.config_for(LoadSteps)
        made = in_ways(choice.workload, config, choice.arch, self._ways)
        own = [record for record in made if record.sharing == config.duplicate_aware]
        self.show_records(made)
        if self.error:
            self.show_records(own)
        if config.duplicate_aware in self.records:
            self.way = config.duplicate_aware

    @property
    def record(self) -> LoadSteps | None:
        """The record that is shown."""
        return self.records.get(self.way)

    @property
    def steps(self) -> int:
        """Number of steps of the record that is shown."""
        return len(self.record.steps) if self.record else 0

    @traitlets.observe("way")
    def _describe(self, _change: Any = None) -> None:
        self.alternative = in_words(self.record) if self.record else ""
        self.step = min(self.step, self.steps)

    @traitlets.validate("way")
    def _known_way(self, proposal: Any) -> str:
        if self.records and proposal.value not in self.records:
            raise InvalidInput(f"way {proposal.value!r}: {did_you_mean(proposal.value, list(self.records))}")
        return str(proposal.value)

    def to_svg(self) -> str:
        """The current step as a self-contained picture; before the first step, a representative one in the middle."""
        self.catch_up()
        if self.record is None or self.error:
            return sentence_svg(self.error or "nothing to step through yet")
        moment = self.step or telling_step(self.record)
        return standalone(steps_svg(aligned(self.records)[self.way], moment), style(HERE))


def telling_step(record: LoadSteps) -> int:
    """The first multiplication that finds its fragments in registers, or the first multiplication."""
    kinds = [number for number, step in enumerate(record.steps, 1) if step.kind == "mma"]
    kept = [number for number in kinds if record.steps[number - 1].repeats]
    return (kept or kinds)[0]

"""The load stepper: one warp of a real kernel fetches its input, from global memory to the matrix instruction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import InvalidInput, SubbyteError, did_you_mean
from subbyte.schedule import ConvConfig
from subbyte.technique.load_steps import LoadSteps, load_steps
from subbyte.workload import ConvWorkload
from subbyte_widgets._stepper import Stepper, script, style
from subbyte_widgets.load_stepper.picture import Layout, changes, links, marked, steps_svg
from subbyte_widgets.load_stepper.words import end, in_words, sentence, start
from subbyte_widgets.svg import INK, sentence_svg, standalone

HERE = Path(__file__).parent
WAYS = ("none", "shared", "full")
SMALL = ConvConfig(blk_row_warps=2, blk_col_warps=1, warp_row_tiles=4, warp_col_tiles=2, tile_height=2)
"""Two warps with four output pixels each: small enough to see every instruction."""
MOST_BYTES = 400_000


class LoadStepper(Stepper):
    """Steps through what a block of a generated kernel does, for each way of sharing.

    ``source``: a workload, or :class:`~subbyte.technique.load_steps.LoadSteps` records of the same block. For a
    workload, a kernel is generated for each of ``ways`` and run on the CPU; ``config``, ``arch``, ``block`` and
    ``warp`` say which. What cannot be generated is said in the view. The browser writes ``step`` and ``way``.
    """

    _esm = script(HERE)
    _css = style(HERE)
    _state_in_page = ("data", "step", "way")

    way = traitlets.Unicode("full", help="The way of sharing that is shown").tag(sync=True)
    records = traitlets.Dict({}, help="The records by their way of sharing")

    def __init__(
        self,
        source: ConvWorkload | str | Sequence[LoadSteps] = "resnet50.stage2@8",
        config: ConvConfig = SMALL,
        *,
        arch: str = "sm_80",
        block: int | None = None,
        warp: int = 0,
        ways: Sequence[str] = WAYS,
        **options: Any,
    ) -> None:
        try:
            if isinstance(source, (str, ConvWorkload)):
                made = [replace(config, duplicate_aware=way) for way in ways]
                source = [load_steps(source, one, arch=arch, block=block, warp=warp) for one in made]
            records = {record.sharing: record for record in source}
            data, problem = page_data(records), ""
        except SubbyteError as refused:
            records, data, problem = {}, {}, str(refused)
        chosen = options.pop("way", "full" if "full" in records else next(iter(records), "full"))
        super().__init__(records=records, way=chosen, data=data, error=problem, **options)
        if records:
            self._describe()

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
        """The present step, as a picture that stands alone; before the first step, a telling one in the middle."""
        if self.record is None:
            return sentence_svg(self.error)
        moment = self.step or telling_step(self.record)
        return standalone(steps_svg(aligned(self.records)[self.way], moment), style(HERE))


def telling_step(record: LoadSteps) -> int:
    """The first multiplication that finds its fragments in registers, or the first multiplication."""
    kinds = [number for number, step in enumerate(record.steps, 1) if step.kind == "mma"]
    kept = [number for number in kinds if record.steps[number - 1].repeats]
    return (kept or kinds)[0]


def aligned(records: dict[str, LoadSteps]) -> dict[str, Layout]:
    """The layouts of the records, of one height, so that nothing jumps from one to the other."""
    layouts = [Layout.of(record) for record in records.values()]
    low = max(layout.low for layout in layouts) - 62
    bars = max(layout.bars + low + 62 - layout.low for layout in layouts)
    return {way: Layout.of(record, low, bars) for way, record in records.items()}


def page_data(records: dict[str, LoadSteps]) -> dict[str, Any]:
    """Everything the browser needs. Raises InvalidInput when that is more than it should be given."""
    layouts = aligned(records)
    ways = {way: _way(record, layouts[way]) for way, record in records.items()}
    data = {"ways": ways, "ink": [f"i{int(ink != '#ffffff')}" for ink in INK]}
    if (size := len(json.dumps(data))) > MOST_BYTES:
        raise InvalidInput(
            f"The steps of this block take {size / 1000:.0f} kB, at most {MOST_BYTES / 1000:.0f}: choose fewer pixels "
            "or column tiles for each warp, or fewer ways of sharing."
        )
    return data


def _way(record: LoadSteps, layout: Layout) -> dict[str, Any]:
    steps = [
        {"kind": step.kind, "set": cells, "on": marked(step), "links": links(layout, step), "done": step.done,
         "say": sentence(record, step)}
        for step, cells in zip(record.steps, changes(record), strict=True)
    ]  # fmt: skip
    kinds = [step.kind for step in record.steps]
    stops = [i for i in range(1, len(kinds)) if kinds[i] != kinds[i - 1]]
    return {"svg": steps_svg(layout, 0), "steps": steps, "stops": stops, "start": start(record), "end": end(record)}

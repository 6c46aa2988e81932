"""What the browser needs to step: the pictures and, for each step, the cells it sets and marks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from subbyte.errors import InvalidInput
from subbyte.spaces.configuration import Configuration
from subbyte.technique.load_steps import LoadSteps, load_steps
from subbyte.workload import ConvWorkload
from subbyte_widgets._code import code_data
from subbyte_widgets.load_stepper.picture import BETWEEN, Layout, changes, flights, links, marked, steps_svg
from subbyte_widgets.load_stepper.words import end, sentence, start
from subbyte_widgets.svg import INK

MOST_BYTES = 480_000
"""Of JSON, which travels packed: into about a sixth."""


def aligned(records: dict[str, LoadSteps]) -> dict[str, Layout]:
    """The layouts of the records, of one height, so that nothing jumps from one to the other."""
    layouts = [Layout.of(record) for record in records.values()]
    low = max(layout.low for layout in layouts) - BETWEEN
    bars = max(layout.bars + low + BETWEEN - layout.low for layout in layouts)
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
         "flights": flights(record, step), "line": step.line, "say": sentence(record, step)}
        for step, cells in zip(record.steps, changes(record), strict=True)
    ]  # fmt: skip
    kinds = [step.kind for step in record.steps]
    stops = [i for i in range(1, len(kinds)) if kinds[i] != kinds[i - 1]]
    return {
        "svg": steps_svg(layout, 0), "steps": steps, "stops": stops, "start": start(record), "end": end(record),
        "code": code_data(record.listing, "Click a line: the picture shows all that is done there."),
    }  # fmt: skip


def in_ways(workload: ConvWorkload, config: Configuration, arch: str, ways: Sequence[str]) -> list[LoadSteps]:
    """The steps of a configuration in its own way of sharing, and in each other one with which it can be built."""
    own = load_steps(workload, config, arch=arch)
    made = {own.sharing: own}
    for way in ways:
        with suppress(InvalidInput):
            if way not in made:
                made[way] = load_steps(workload, config.with_values({"duplicate_aware": way}), arch=arch)
    return [made[way] for way in dict.fromkeys((*ways, own.sharing)) if way in made]

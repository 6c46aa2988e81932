"""What the browser needs to step through both schemes."""

from __future__ import annotations

import json
from typing import Any

from subbyte.errors import InvalidInput
from subbyte.technique.listings import listing
from subbyte.technique.packing import RegisterState
from subbyte_widgets._code import example_data
from subbyte_widgets.packing_stepper.picture import (
    LOW,
    NIBBLES,
    VALUE_LINES,
    WINDOW,
    ZOOM_HEIGHT,
    ZOOM_WIDTH,
    Layout,
    skeleton,
)  # fmt: skip
from subbyte_widgets.svg import INK

MOST_BYTES = 400_000
MADE = "quad"
"""The scheme that generated kernels use; the other one has no CUDA text."""
IDLE = "Values stay in their lanes: nothing here touches memory or another lane."


def page_data(layouts: dict[str, Layout]) -> dict[str, Any]:
    """Everything the browser needs. Raises InvalidInput when that is more than it should be given."""
    data = {
        "schemes": {name: _scheme(layout) for name, layout in layouts.items()},
        "ink": [f"i{int(ink != '#ffffff')}" for ink in INK],
        "sizes": {
            "low": LOW,
            "nibbles": NIBBLES,
            "window": WINDOW,
            "zoomHeight": ZOOM_HEIGHT,
            "zoomWidth": ZOOM_WIDTH,
            "lines": [VALUE_LINES[nibble] for nibble in range(-1, NIBBLES)],
        },
    }
    if (size := len(json.dumps(data))) > MOST_BYTES:
        raise InvalidInput(f"The steps take {size / 1000:.0f} kB, at most {MOST_BYTES / 1000:.0f}: give fewer tiles.")
    return data


def _scheme(layout: Layout) -> dict[str, Any]:
    """One scheme: each register's states once, and for each step which of them are in use."""
    trace = layout.trace
    known: dict[RegisterState, int] = {}
    states = [[known.setdefault(register, len(known)) for register in state.registers] for state in trace.states]
    says = [f"{step.name}: {step.does}\n{step.operation}\n" for step in layout.program.steps]
    stores = "instruction stores" if layout.program.stores == 1 else "instructions store"
    says.append(f"store: {layout.program.stores} {stores} a word from every lane; no lane is idle.\n")
    shown = "the scheme that every such kernel follows"
    code = example_data(listing("packing"), shown, IDLE) if layout.program.scheme == MADE else None
    return {
        "code": code, "steps": [*(step.name for step in layout.program.steps), "store"],
        "svg": skeleton(layout), "tiles": trace.tiles, "names": layout.names, "lanes": layout.lanes,
        "laneWidth": layout.lane, "rowHeight": layout.row, "rows": [layout.y(name) for name in layout.names],
        "zoom": layout.zoom, "left": layout.lanes[0], "states": states, "registers": [_register(r) for r in known],
        "says": says, "useful": [state.useful_lanes for state in trace.states],
        "stores": [[s.lane, s.word, 64 * s.tile + 8 * s.row, f"{s.value:#010x}"] for s in trace.stores],
    }  # fmt: skip


def _register(register: RegisterState) -> dict[str, Any]:
    """A register of 32 lanes: the words, and where each value came from (-1: none)."""
    origins = [-1 if origin is None else origin for lane in register.origins for origin in lane]
    return {"name": register.name, "kind": register.kind, "words": register.words, "origins": origins}

"""The packing stepper: how 32 lanes turn sums into packed words without leaving their registers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import InvalidInput, SubbyteError, did_you_mean
from subbyte.technique.packing import PackingTrace, RegisterState, packing_program
from subbyte_widgets._stepper import Stepper, script, style
from subbyte_widgets.packing_stepper.picture import (
    LOW,
    NIBBLES,
    WINDOW,
    ZOOM_HEIGHT,
    ZOOM_WIDTH,
    Layout,
    packing_svg,
    skeleton,
)  # fmt: skip
from subbyte_widgets.svg import INK, sentence_svg, standalone

HERE = Path(__file__).parent
SCHEMES = ("quad", "width8")
EXAMPLE = [[[(5 * t + 3 * n + 7 * c) % 19 - 9 for c in range(8)] for n in range(8)] for t in range(8)]
"""Tiles whose values reach a little beyond -8 to 7, so that saturation can be seen."""
MOST_BYTES = 400_000


class PackingStepper(Stepper):
    """Steps through the packing programs, run on ``values`` (integers [tiles, 8 images, 8 channels], up to 8 tiles).

    A program that packs fewer tiles takes the first ones. Hover over a value, or press the up and down arrow keys, to
    follow it through all steps; a click keeps following. The last step stores the words. The browser writes ``step``,
    ``scheme`` and ``follow`` (``64*tile + 8*image + channel``, -1 for none).
    """

    _esm = script(HERE)
    _css = style(HERE)
    _state_in_page = ("data", "step", "scheme", "follow")

    scheme = traitlets.Unicode("quad", help="The packing scheme that is shown").tag(sync=True)
    follow = traitlets.Int(-1, help="The output value to follow, -1 for none").tag(sync=True)
    layouts = traitlets.Dict({}, help="Program and trace of each scheme")

    def __init__(self, values: Any = EXAMPLE, **options: Any) -> None:
        try:
            programs = [packing_program(scheme) for scheme in SCHEMES]
            layouts = {p.scheme: Layout(p, p.run(values[: p.tiles])) for p in programs}
            data, problem = page_data(layouts), ""
        except (SubbyteError, TypeError) as refused:
            known = isinstance(refused, SubbyteError)
            data, layouts = {}, {}
            problem = str(refused) if known else "packing values must be integers [tiles, 8 images, 8 channels]"
        scheme = str(options.pop("scheme", "quad"))
        super().__init__(layouts=layouts, data=data, scheme=scheme, error=problem, **options)
        self._describe()

    @property
    def trace(self) -> PackingTrace | None:
        """The trace that is shown."""
        layout = self.layouts.get(self.scheme)
        return layout.trace if layout else None

    @property
    def steps(self) -> int:
        """Number of steps after the first state: the other states, and the store."""
        return len(self.trace.states) if self.trace else 0

    @traitlets.validate("scheme")
    def _known_scheme(self, proposal: Any) -> str:
        name = str(proposal.value).lower()
        if name not in SCHEMES:
            raise InvalidInput(f"unknown packing scheme {proposal.value!r}: {did_you_mean(name, SCHEMES)}")
        return name

    @traitlets.validate("follow")
    def _keep_a_value(self, proposal: Any) -> int:
        return proposal.value if self.trace and 0 <= proposal.value < 64 * self.trace.tiles else -1

    @traitlets.observe("scheme")
    def _describe(self, _change: Any = None) -> None:
        if self.trace is None:
            return
        program = self.layouts[self.scheme].program
        self.step = min(self.step, self.steps)
        self.follow = self.follow if self.follow < 64 * self.trace.tiles else -1
        counts = ", ".join(str(state.useful_lanes) for state in self.trace.states)
        self.alternative = (
            f"{program.title()}. Lanes with a complete word after each of {len(program.steps)} steps: {counts}, of 32. "
            f"Shared memory for a tile: {program.shared_bytes_after} instead of {program.shared_bytes_before} bytes."
        )

    def to_svg(self) -> str:
        """The present step as a picture that stands alone; before the first step, the one before the last."""
        if self.trace is None:
            return sentence_svg(self.error)
        step = self.step or self.steps - 3
        return standalone(packing_svg(self.layouts[self.scheme], step, self.follow), style(HERE))


def page_data(layouts: dict[str, Layout]) -> dict[str, Any]:
    """Everything the browser needs. Raises InvalidInput when that is more than it should be given."""
    data = {
        "schemes": {name: _scheme(layout) for name, layout in layouts.items()},
        "ink": [f"i{int(ink != '#ffffff')}" for ink in INK],
        "sizes": {"low": LOW, "nibbles": NIBBLES, "window": WINDOW, "zoomHeight": ZOOM_HEIGHT, "zoomWidth": ZOOM_WIDTH},
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
    return {
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

"""The packing stepper: how 32 lanes turn sums into packed words without leaving their registers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import InvalidInput, SubbyteError, did_you_mean
from subbyte.technique.packing import PackingRun, PackingTrace, packing_program
from subbyte.technique.topics import explained
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._selection import Choice
from subbyte_widgets._stepper import CODE, PLAYER, Stepper, style
from subbyte_widgets.packing_stepper.page import MOST_BYTES, page_data
from subbyte_widgets.packing_stepper.picture import Layout, packing_svg
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent
SCHEMES = ("quad", "width8")
EXAMPLE = [[[(5 * t + 3 * n + 7 * c) % 19 - 9 for c in range(8)] for n in range(8)] for t in range(8)]
"""Tiles with values slightly outside -8 to 7, so that saturation can be seen."""
__all__ = ["EXAMPLE", "MOST_BYTES", "SCHEMES", "PackingStepper"]


class PackingStepper(Stepper):
    """Steps through the packing programs, run on ``values`` (integers [tiles, 8 images, 8 channels], up to 8 tiles).

    A program that packs fewer tiles uses the first ones. Hover over a value, or press the up and down arrow keys, to
    follow it through all steps; a click keeps following it. The last step stores the words. The browser writes
    ``step``, ``scheme`` and ``follow`` (``64*tile + 8*image + channel``, -1 for none).
    """

    _esm = script(CODE, *PLAYER, HERE / "view.js")
    _css = style(HERE, code=True)
    _state_in_page = ("data", "step", "scheme", "follow")

    scheme = traitlets.Unicode("quad", help="The packing scheme that is shown").tag(sync=True)
    follow = traitlets.Int(-1, help="The output value to follow, -1 for none").tag(sync=True)
    layouts = traitlets.Dict({}, help="Program and trace of each scheme")

    def __init__(self, values: Any = EXAMPLE, **options: Any) -> None:
        chosen: dict[str, Any] = {name: options.pop(name) for name in ("step", "scheme", "follow") if name in options}
        super().__init__(**options)
        self.values = values
        self.show(values)
        for name, value in chosen.items():
            setattr(self, name, value)
        if not self.error:
            refuse_outside(self, chosen)

    def show(self, values: Any) -> None:
        """Pack other values; errors are shown in the view."""
        try:
            programs = [packing_program(scheme) for scheme in SCHEMES]
            layouts = {p.scheme: Layout(p, p.run(values[: p.tiles])) for p in programs}
            data = page_data(layouts)
        except (SubbyteError, TypeError) as refused:
            known = isinstance(refused, SubbyteError)
            self.error = str(refused) if known else "packing values must be integers [tiles, 8 images, 8 channels]"
            return
        with self.hold_sync():
            self.layouts, self.data, self.error = layouts, data, ""
            self._describe()

    def turn_to(self, choice: Choice) -> None:
        """Pack as many tiles as a warp of the selected kernel has; the view says so if the kernel does not pack in
        registers.

        A tile is 8 images by 8 channels of one output pixel; the kernel packs four at a time, from several pixels if a
        warp has fewer column tiles.
        """
        config, note = choice.config_for(PackingRun)
        run = explained(PackingRun, choice.workload, config, choice.arch, scheme="width8")  # which takes most tiles
        self.show(self.values[: len(run.values)])
        self.note = note

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
        """The current step as a self-contained picture; before the first step, the one before the last."""
        self.catch_up()
        if self.trace is None or self.error:
            return sentence_svg(self.error)
        step = self.step or self.steps - 3
        return standalone(packing_svg(self.layouts[self.scheme], step, self.follow), style(HERE))

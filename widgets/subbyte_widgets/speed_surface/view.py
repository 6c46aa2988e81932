"""The speed surface: how much faster the dual-side sparse unit is, by the densities of both operands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from subbyte.errors import SubbyteError
from subbyte.sparse.maps import SpeedMap, speed_map
from subbyte.sparse.surfaces import Surface
from subbyte.workload import workload as parse_workload
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._given import expect
from subbyte_widgets._picked import SCRIPTS, Picker
from subbyte_widgets._selection import Choice
from subbyte_widgets._turned import style
from subbyte_widgets.speed_surface.picture import surface_svg
from subbyte_widgets.speed_surface.words import sentences, whole

HERE = Path(__file__).parent
NAMES = {
    "same unit dense": "same_unit", "dense core": "dense_core", "compute: same unit dense": "compute",
    "compute: dense core": "compute_dense_core",
}  # fmt: skip
"""Buttons, and what they show."""
FIRST = "gemm1024"
AXIS = tuple(i / 10 for i in range(1, 11))
"""Densities of a selected layer."""
MOST = 32
"""Densities of one operand that can be told apart."""


class SpeedSurface(Picker):
    """Draws a :class:`~subbyte.sparse.SpeedMap`: speed-ups by both densities, contours, layers, break-even lines.

    ``source``: a record of :func:`subbyte.sparse.speed_map` or of :func:`subbyte.sparse.surface`, or the name of a
    layer. A click or the arrow keys choose a pair of densities, Escape deselects it. With a ``selection`` the surface
    is that of the selected layer. The browser writes ``chosen``, an index along the weights with the densest
    activations first, and ``variant``.
    """

    _esm = script(*SCRIPTS, HERE / "view.js")
    _css = style(HERE)
    slow = True

    def __init__(self, source: SpeedMap | Surface | str | None = None, **options: Any) -> None:
        chosen: dict[str, Any] = {name: options.pop(name) for name in ("variant", "chosen") if name in options}
        self.record: SpeedMap | None = None
        super().__init__(**options)
        if source is None and self.selection is not None:
            return
        self.show(FIRST if source is None else source)
        for name, value in chosen.items():
            setattr(self, name, value)
        if not self.error:
            refuse_outside(self, chosen)

    def show(self, source: SpeedMap | Surface | str) -> None:
        """Draw another surface; errors are shown in the view."""
        try:
            expect(self, source, (str, SpeedMap, Surface), "give a layer, or what sparse.speed_map or surface gives")
            record = source if isinstance(source, SpeedMap) else speed_map(source)
        except SubbyteError as problem:
            self.error = str(problem)
            return
        where = record.surface
        if max(len(where.activations), len(where.weights)) > MOST:
            self.error = (
                f"SpeedSurface: {len(where.activations)} x {len(where.weights)} densities; at most {MOST} a side"
            )
            return
        self.record = record
        pictures = {name: surface_svg(record, over) for name, over in NAMES.items()}
        self.fill("over", pictures, sentences(record), whole(record), f"{record.title()}.", len(where.weights))

    def turn_to(self, choice: Choice) -> None:
        """Draw the selected layer's surface, for one image of it."""
        wl = replace(parse_workload(choice.workload.sizes), n=1)
        self.show(speed_map(wl, activations=AXIS, weights=AXIS))
        self.note = f"One image of {choice.workload.label}; shapes alone count, not types."

    def drawn(self) -> str:
        """The map that is shown, with the chosen pair marked."""
        assert self.record is not None
        return surface_svg(self.record, NAMES[self.variant], self.chosen)

"""The tile strides: the cost of loading a tile of one-bit operands, by row stride."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from subbyte.errors import SubbyteError
from subbyte.technique.strides import DISTANCES, Strides, pixel_distance, strides
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._selection import Choice
from subbyte_widgets._turned import SCRIPTS, Turner, style
from subbyte_widgets.tile_strides.picture import pages

HERE = Path(__file__).parent
MOST = 8
"""Most leading dimensions shown beside each other."""


class TileStrides(Turner):
    """Draws :class:`~subbyte.technique.strides.Strides`: banks, sectors and lines of a tile, by its leading dimension.

    ``source``: a record, or up to 8 leading dimensions in bits (multiples of 128). Each row has a colour, and in global
    memory a number. The slider or the arrow keys choose a leading dimension. The browser writes ``chosen``.
    """

    _esm = script(*SCRIPTS, HERE / "view.js")
    _css = style(HERE)

    def __init__(self, source: Sequence[int] | Strides = DISTANCES, **options: Any) -> None:
        chosen = {name: options.pop(name) for name in ("chosen",) if name in options}
        super().__init__(**options)
        self.show(source)
        for name, value in chosen.items():
            setattr(self, name, value)
        if not self.error:
            refuse_outside(self, chosen)

    def show(self, source: Sequence[int] | Strides) -> None:
        """Draw other loads; errors are shown in the view."""
        try:
            record = source if isinstance(source, Strides) else strides(source)
        except SubbyteError as problem:
            self.error = str(problem)
            return
        if len(record.plain) > MOST:
            self.error = f"TileStrides: {len(record.plain)} leading dimensions; give at most {MOST}"
            return
        self.record = record
        self.fill(pages(record), f"{record.title()}.")

    def turn_to(self, choice: Choice) -> None:
        """Show the leading dimension of neighbouring pixels of the selected workload."""
        own = pixel_distance(choice.workload)
        shown = DISTANCES if own in DISTANCES else (*DISTANCES[:-1], own)
        self.show(shown)
        self.chosen = shown.index(own)
        self.note = f"Neighbouring pixels of {choice.workload.label} are {own:,} bits apart in the plain layout."

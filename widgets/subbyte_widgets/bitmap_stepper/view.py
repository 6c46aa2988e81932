"""The bitmap stepper: one warp tile of the dual-side sparse Tensor Core, from bitmaps to scattered sums."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import SubbyteError
from subbyte.sparse.stepping import GEOMETRIES, TileSteps, layer_tile, tile_steps
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._given import expect
from subbyte_widgets._revealed import SCRIPTS, Revealed, Revealer
from subbyte_widgets._selection import Choice
from subbyte_widgets._stepper import style
from subbyte_widgets.bitmap_stepper.picture import (
    CONDENSED,
    GATHER,
    LEVEL1,
    OHMMA,
    WHOLE,
    Drawing,
    places,
    stepper_svg,
)
from subbyte_widgets.bitmap_stepper.words import SENTENCES, in_words
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent
STOPS = (LEVEL1, CONDENSED, OHMMA, GATHER, WHOLE)


class BitmapStepper(Revealer):
    """Steps through :class:`~subbyte.sparse.TileSteps`: levels of bitmaps, condensed vectors, OHMMA, BOHMMA, merge.

    ``source``: one or several records of :func:`subbyte.sparse.tile_steps`; by default the 8 x 8 toy and a random tile
    of the unit. Up and down arrow keys go to other OHMMA, with Shift to other k; a click on a ghost shows why it is
    skipped. With a ``selection`` a tile of the selected layer is shown. The browser writes ``step``, ``place`` (the
    index of an OHMMA) and ``variant``.
    """

    _esm = script(*SCRIPTS, HERE / "view.js")
    _css = style(HERE)

    def __init__(self, source: TileSteps | Sequence[TileSteps] | None = None, **options: Any) -> None:
        chosen: dict[str, Any] = {name: options.pop(name) for name in ("variant", "step", "place") if name in options}
        self.records: dict[str, TileSteps] = {}
        super().__init__(**options)
        if source is None and self.selection is not None:
            return
        self.show([tile_steps(size=size) for size in GEOMETRIES] if source is None else source)
        for name, value in chosen.items():
            setattr(self, name, value)
        if not self.error:
            refuse_outside(self, chosen)

    def show(self, source: TileSteps | Sequence[TileSteps]) -> None:
        """Step through other records; errors are shown in the view."""
        given = [source] if isinstance(source, TileSteps) else source
        try:
            expect(self, given, TileSteps, "give records of subbyte.sparse.tile_steps()")
            self.records = dict(zip(_names(given), given, strict=True))
            self.fill_variants("size", {name: _revealed(one) for name, one in self.records.items()})
        except SubbyteError as refused:
            self.error = str(refused)
            return
        self._say(None)

    def turn_to(self, choice: Choice) -> None:
        """Step through the toy and a tile of the selected layer, with random zeros at assumed densities."""
        self.show([layer_tile(choice.workload), tile_steps(size="toy")])
        self.note = f"A warp tile in the middle of {choice.workload.label}; densities are assumed."

    @traitlets.observe("variant")
    def _say(self, _change: Any) -> None:
        if self.variant in self.records:
            self.alternative = in_words(self.records[self.variant])

    def to_svg(self) -> str:
        """The current step as a self-contained picture; before the first step, the sums before they are added."""
        self.catch_up()
        if self.variant not in self.records or self.error:
            return sentence_svg(self.error or "nothing to step through yet")
        drawing = Drawing(self.records[self.variant])
        return standalone(stepper_svg(drawing, places(drawing)[self.place], self.step or GATHER), style(HERE))


def _revealed(record: TileSteps) -> Revealed:
    drawing = Drawing(record)
    found = places(drawing)
    return Revealed(
        stepper_svg(drawing, found[drawing.start], 0), SENTENCES, found, STOPS, drawing.per_k, drawing.start
    )


def _names(records: Sequence[TileSteps]) -> list[str]:
    """Sizes, with a number where several have the same."""
    sizes = [f"{one.geometry.positions} x {one.geometry.positions} x {one.geometry.depth}" for one in records]
    return [f"{size} ({at + 1})" if sizes.count(size) > 1 else size for at, size in enumerate(sizes)]

"""The duplicate map: which entries of the lowered matrix are the same input pixel, and what sharing saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import SubbyteError
from subbyte.families.base import PixelTile
from subbyte.families.registry import family_of
from subbyte.technique.duplicates import Duplicates, duplicates
from subbyte.technique.topics import plan_of
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import View, refuse_outside, script
from subbyte_widgets._given import expect
from subbyte_widgets._selection import Choice
from subbyte_widgets._stepper import ROOT
from subbyte_widgets.duplicate_map.picture import duplicates_svg, height_of, in_words, words_svg
from subbyte_widgets.duplicate_map.places import MOST_CELLS, page_data, plan
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent
TILE = (3, 3)
"""Output pixels of the default tile: some input pixel of it is used by all taps of a 3 x 3 kernel."""


class DuplicateMap(View):
    """Draws one :class:`~subbyte.technique.duplicates.Duplicates` record; click a number or use the arrow keys.

    ``record`` may also be a workload (a name, a spec or a ConvWorkload): then a tile of 3 x 3 output pixels of it is
    drawn. The button animates one pixel, the selected one or one of those used most often: loaded once for each of its
    uses, then only once.

    ``selected`` is the flat index of a lowered entry, -1 for none; it is the only trait the browser writes, so views
    can follow each other through ``link``. Set ``record`` to draw another tile.
    """

    _esm = script(ROOT / "motion.js", HERE / "cells.js", HERE / "story.js", HERE / "view.js")
    _css = HERE / "view.css"
    _state_in_page = ("words", "map", "selected")

    record = traitlets.Instance(Duplicates, allow_none=True)
    words = traitlets.Unicode("", help="All of the picture but its cells, as SVG").tag(sync=True)
    map = traitlets.Dict(help="The record in short lists, which the page draws as cells").tag(sync=True)
    warps = traitlets.Int(1, min=1, help="Warps that share the tile; what each loads is said below the bars")
    selected = traitlets.Int(-1, help="Flat index of the selected lowered entry, -1 for none").tag(sync=True)

    def __init__(self, record: Duplicates | ConvWorkload | str | None = None, **options: Any) -> None:
        if isinstance(record, str | ConvWorkload):
            record = duplicates(record, TILE)
        instead = "give subbyte.duplicates(layer, tile), or a layer"
        expect(self, record, (Duplicates, type(None)), instead)
        super().__init__(record=record, **options)
        if record is not None:
            refuse_outside(self, {name: options[name] for name in ("selected",) if name in options})

    @traitlets.validate("selected")
    def _keep_inside(self, proposal: Any) -> int:
        return proposal.value if self.record is not None and 0 <= proposal.value < self.record.entries else -1

    @traitlets.observe("record", "warps")
    def _redraw(self, _change: Any) -> None:
        self._draw()

    def show(self, record: Duplicates | None) -> None:
        """Draw ``record``; errors are shown in the view."""
        if record == self.record:
            self._draw()
        else:
            self.record = record

    def _draw(self) -> None:
        record = self.record
        with self.hold_sync():
            self.words, self.map, self.alternative, self.error = "", {}, "", ""
            if record is None:
                return
            try:
                self.map = page_data(record, height_of(plan(record)))
                self.words, self.alternative = words_svg(record, self.warps), in_words(record)
            except SubbyteError as problem:
                self.error = str(problem)
            if self.selected >= record.entries:
                self.selected = -1

    def turn_to(self, choice: Choice) -> None:
        """Draw the map of the selected kernel's block tile, or of one warp's part if that has too many entries."""
        tile = tile_of(choice)
        entries = tile.block[0] * tile.block[1] * choice.workload.r * choice.workload.s
        whole = entries <= MOST_CELLS
        self.warps = tile.warps if whole else 1
        self.show(duplicates(choice.workload, tile.block if whole else tile.warp))

    def to_svg(self) -> str:
        """The map with its selection, as a self-contained picture."""
        self.catch_up()
        if self.record is None or self.error:
            return sentence_svg(self.error or "nothing to draw yet")
        return standalone(duplicates_svg(self.record, self.selected, self.warps), HERE / "view.css")


def tile_of(choice: Choice) -> PixelTile:
    """Output pixels whose input the blocks of the selected kernel load together, and the warps that share them."""
    config = choice.config
    return family_of(config).loads_together(plan_of(choice.workload, config, choice.arch))

"""The convolution and its tiling: feature maps, matrix product, block tile and steps, linked by one selection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import SubbyteError
from subbyte.technique.tiling import Tiling, tiling
from subbyte_widgets._base import View, refuse_outside, script
from subbyte_widgets._selection import Choice
from subbyte_widgets.convolution_tiling.picture import Selection, in_words, page_data, tiling_svg
from subbyte_widgets.svg import element, standalone, text

HERE = Path(__file__).parent
CHOICE = ("tile", "column_block", "warp", "multiply", "step")


class ConvolutionTiling(View):
    """Draws one :class:`~subbyte.technique.tiling.Tiling` record; click or use the arrow keys in each panel.

    The selection is five traits, the only ones the browser writes: ``tile`` (number of the pixel tile in the launch
    grid), ``column_block``, ``warp``, ``multiply`` (the instruction) and ``step`` (along K).
    """

    _esm = script(HERE / "places.js", HERE / "view.js")
    _css = HERE / "view.css"
    _state_in_page = ("svg", "data", *CHOICE)

    record = traitlets.Instance(Tiling, allow_none=True)
    svg = traitlets.Unicode("", help="The picture without a selection, drawn by show()").tag(sync=True)
    data = traitlets.Dict(help="The parts of the record that place the markers").tag(sync=True)
    tile = traitlets.Int(0).tag(sync=True)
    column_block = traitlets.Int(0).tag(sync=True)
    warp = traitlets.Int(0).tag(sync=True)
    multiply = traitlets.Int(0).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)

    def __init__(self, record: Tiling | None = None, **options: Any) -> None:
        super().__init__(record=record, **options)
        if record is not None:
            shown = {**vars(self.chosen), "warp": max(0, min(self.warp, len(record.warps) - 1))}
            refuse_outside(self, {name: options[name] for name in CHOICE if name in options}, shown)

    @property
    def chosen(self) -> Selection:
        """The selection as drawn: every number clamped to its range."""
        wanted = Selection(*(getattr(self, name) for name in CHOICE))
        return wanted if self.record is None else wanted.inside(self.record)

    @traitlets.observe("record")
    def _redraw(self, _change: Any) -> None:
        self._draw()

    @traitlets.observe(*CHOICE)
    def _say(self, _change: Any) -> None:
        if self.record is not None and not self.error:
            self.alternative = in_words(self.record, self.chosen)

    def show(self, record: Tiling | None) -> None:
        """Draw ``record``; errors are shown in the view."""
        if record == self.record:
            self._draw()
        else:
            self.record = record

    def _draw(self) -> None:
        record = self.record
        with self.hold_sync():
            self.svg, self.data, self.alternative, self.error = "", {}, "", ""
            if record is None:
                return
            try:
                self.svg, self.data = tiling_svg(record), page_data(record)
                self.alternative = in_words(record, self.chosen)
            except SubbyteError as problem:
                self.error = str(problem)

    def turn_to(self, choice: Choice) -> None:
        """Draw the tiling of what is selected; the position in it does not change."""
        config, note = choice.config_for(Tiling)
        self.show(tiling(choice.workload, config, arch=choice.arch))
        self.note = note

    def to_svg(self) -> str:
        """The picture with its selection, self-contained."""
        self.catch_up()
        if self.record is None or self.error:
            sentence = text(12, 26, self.error or "nothing to draw yet")
            return standalone(element("svg", sentence, xmlns="http://www.w3.org/2000/svg", viewBox="0 0 760 44"), "")
        return standalone(tiling_svg(self.record, self.chosen), HERE / "view.css")

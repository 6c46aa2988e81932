"""The duplicate map: which entries of the lowered matrix are the same input pixel, and what sharing saves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ipywidgets
import traitlets

from subbyte.errors import SubbyteError
from subbyte.technique.duplicates import Duplicates, duplicates
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import Panel, View, refuse_unknown
from subbyte_widgets.duplicate_map.picture import duplicates_svg, in_words
from subbyte_widgets.svg import standalone

HERE = Path(__file__).parent


class DuplicateMap(View):
    """Draws one :class:`~subbyte.technique.duplicates.Duplicates` record; click a number or use the arrow keys.

    ``selected`` is the flat index of a lowered entry, -1 for none; it is the only trait the browser writes, so views
    follow each other through ``link``. Set ``record`` to draw another tile.
    """

    _esm = HERE / "view.js"
    _css = HERE / "view.css"
    _state_in_page = ("svg", "selected")

    record = traitlets.Instance(Duplicates, allow_none=True)
    svg = traitlets.Unicode("", help="The picture without a selection, drawn by show()").tag(sync=True)
    selected = traitlets.Int(-1, help="Flat index of the selected lowered entry, -1 for none").tag(sync=True)

    def __init__(self, record: Duplicates | None = None, **options: Any) -> None:
        super().__init__(record=record, **options)

    @traitlets.validate("selected")
    def _keep_inside(self, proposal: Any) -> int:
        return proposal.value if self.record is not None and 0 <= proposal.value < self.record.entries else -1

    @traitlets.observe("record")
    def _redraw(self, _change: Any) -> None:
        self.show(self.record)

    def show(self, record: Duplicates | None) -> None:
        """Draw ``record``; what cannot be drawn is said in the view."""
        with self.hold_sync():
            self.record = record
            self.svg, self.alternative, self.error = "", "", ""
            if record is None:
                return
            try:
                self.svg, self.alternative = duplicates_svg(record), in_words(record)
            except SubbyteError as problem:
                self.error = str(problem)
            if self.selected >= record.entries:
                self.selected = -1

    def to_svg(self) -> str:
        """The map with its selection, as a picture that stands alone."""
        if self.record is None or self.error:
            return standalone(_sentence(self.error or "nothing to draw yet"), "")
        return standalone(duplicates_svg(self.record, self.selected), HERE / "view.css")


def _sentence(words: str) -> str:
    from subbyte_widgets.svg import element, text

    return element("svg", text(12, 26, words), xmlns="http://www.w3.org/2000/svg", viewBox="0 0 760 44")


class DuplicateExplorer(Panel):
    """A :class:`DuplicateMap` with controls: kernel, stride, dilation, the output tile, and whether it touches padding.

    ``workload``: a name, a spec or a ConvWorkload; the controls change its kernel, stride and dilation. What the
    convolution cannot be is said in the view, in the toolkit's own words.
    """

    def __init__(
        self, workload: ConvWorkload | str = "resnet50.stage2@8", tile: tuple[int, int] = (1, 4), **options: Any
    ) -> None:
        refuse_unknown(DuplicateMap, options)
        record = duplicates(workload, tile)
        self.workload = record.workload
        self.view = DuplicateMap(record, **options)
        start = self.workload
        self.kernel = _slider("kernel", start.r, 1, 7)
        self.stride = _slider("stride", start.stride, 1, 4)
        self.dilation = _slider("dilation", start.dilation, 1, 3)
        self.tile_height = _slider("tile height", tile[0], 1, 8)
        self.tile_width = _slider("tile width", tile[1], 1, 16)
        self.corner = ipywidgets.Checkbox(False, description="tile at the image's corner", indent=False)
        self.corner.layout = ipywidgets.Layout(width="270px", margin="2px 2px 2px 24px")
        controls = [self.kernel, self.stride, self.dilation, self.tile_height, self.tile_width, self.corner]
        for control in controls:
            control.observe(self._update, "value")
        box = ipywidgets.HBox(controls, layout=ipywidgets.Layout(flex_flow="row wrap", max_width="900px"))
        super().__init__([box, self.view])

    def _update(self, _change: Any) -> None:
        size = {"r": self.kernel.value, "s": self.kernel.value}
        try:
            workload = replace(self.workload, **size, stride=self.stride.value, dilation=self.dilation.value, name="")
            place = (0, 0) if self.corner.value else None
            record = duplicates(workload, (self.tile_height.value, self.tile_width.value), at=place)
        except SubbyteError as problem:
            self.view.error = str(problem)
            return
        self.view.show(record)


def _slider(name: str, value: int, least: int, most: int) -> ipywidgets.IntSlider:
    return ipywidgets.IntSlider(
        value,
        min=min(least, value),
        max=max(most, value),
        description=name,
        continuous_update=True,
        layout=ipywidgets.Layout(width="270px"),
    )

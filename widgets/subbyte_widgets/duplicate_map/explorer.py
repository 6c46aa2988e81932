"""The duplicate map with controls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ipywidgets

from subbyte.errors import SubbyteError
from subbyte.technique.duplicates import Duplicates, duplicates
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import Panel, refuse_unknown
from subbyte_widgets._clamp import clamped
from subbyte_widgets._selection import Choice
from subbyte_widgets.duplicate_map.places import plan
from subbyte_widgets.duplicate_map.view import DuplicateMap, tile_of


class DuplicateExplorer(Panel):
    """A :class:`DuplicateMap` with controls: kernel, stride, dilation, the output tile, and whether it touches padding.

    ``workload``: a name, a spec or a ConvWorkload; the controls change its kernel, stride and dilation. A slider moved
    to an impossible value goes to the nearest possible one, and the view says why. With a ``selection``, the controls
    go to its convolution and block tile; changes made there are not written back to the selection.
    """

    def __init__(
        self, workload: ConvWorkload | str = "resnet50.stage2@8", tile: tuple[int, int] = (1, 4), **options: Any
    ) -> None:
        refuse_unknown(DuplicateMap, options)
        selection = options.pop("selection", None)
        record = duplicates(workload, tile)
        self.workload = record.workload
        self.view = DuplicateMap(record, **options)
        start = self.workload
        self.kernel = _slider("kernel", start.r, 1, 7)
        self.stride = _slider("stride", start.stride, 1, 4)
        self.dilation = _slider("dilation", start.dilation, 1, 3)
        self.tile_height = _slider("tile height", tile[0], 1, 8)
        self.tile_width = _slider("tile width", tile[1], 1, 16)
        self.warps = _slider("warps", self.view.warps, 1, 8)
        self.corner = ipywidgets.Checkbox(False, description="tile at the image's corner", indent=False)
        self.corner.layout = ipywidgets.Layout(width="200px", margin="2px 2px 2px 24px")
        controls = [self.kernel, self.stride, self.dilation, self.tile_height, self.tile_width,
                    self.warps, self.corner]  # fmt: skip
        self._moved = False
        for control in controls:
            control.observe(self._update, "value")
        box = ipywidgets.HBox(controls, layout=ipywidgets.Layout(flex_flow="row wrap", max_width="900px"))
        super().__init__([box, self.view], selection)
        self.add_class("sb-map-exploring")

    def turn_to(self, choice: Choice) -> None:
        """Set the controls to the selected convolution and its block tile, and draw their map."""
        self.workload = w = choice.workload
        tile = tile_of(choice)
        values = {self.kernel: w.r, self.stride: w.stride, self.dilation: w.dilation, self.tile_height: tile.block[0],
                  self.tile_width: tile.block[1], self.warps: tile.warps}  # fmt: skip
        self._moved = True
        try:
            for control, value in values.items():
                control.max = max(control.max, value)
                control.value = value
        finally:
            self._moved = False
        self._update()

    def _update(self, change: Any = None) -> None:
        if self._moved:
            return
        if change is None:
            self._draw()
            self.note = ""
            return
        self._moved = True
        try:
            change.owner.value, self.note = clamped(change, lambda value: self._try(change.owner, value))
            self._draw()
        except SubbyteError as problem:
            self.view.error = str(problem)
        finally:
            self._moved = False

    def _try(self, control: Any, value: Any) -> None:
        """Raises the refusal of what is shown with another value of one control, if there is one."""
        plan(self._record({control: value}))

    def _draw(self) -> None:
        try:
            record = self._record({})
        except SubbyteError as problem:
            self.view.error = str(problem)
            return
        self.view.warps = self.warps.value
        self.view.show(record)

    def _record(self, other: dict[Any, Any]) -> Duplicates:
        """What the controls say, with the values of some of them replaced. Raises the toolkit's refusal."""
        controls = (self.kernel, self.stride, self.dilation, self.tile_height, self.tile_width, self.corner)
        kernel, stride, dilation, height, width, corner = (other.get(one, one.value) for one in controls)
        size = {"r": kernel, "s": kernel} if kernel != self.workload.r else {}
        workload = replace(self.workload, **size, stride=stride, dilation=dilation, name="")
        return duplicates(workload, (height, width), at=(0, 0) if corner else None)


def _slider(name: str, value: int, least: int, most: int) -> ipywidgets.IntSlider:
    return ipywidgets.IntSlider(
        value,
        min=min(least, value),
        max=max(most, value),
        description=name,
        continuous_update=True,
        layout=ipywidgets.Layout(width="206px"),
    )

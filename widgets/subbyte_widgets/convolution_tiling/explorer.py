"""The tiling with the knobs of the paper above it."""

from __future__ import annotations

from typing import Any

import ipywidgets

from subbyte.errors import SubbyteError
from subbyte.families import space
from subbyte.spaces.configuration import Configuration
from subbyte.technique.tiling import Tiling, tiling
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import Panel, refuse_unknown
from subbyte_widgets._selection import Choice
from subbyte_widgets.convolution_tiling.view import ConvolutionTiling


class TilingExplorer(Panel):
    """A :class:`ConvolutionTiling` with the knobs of the paper above it.

    ``workload``: a name, a spec or a ConvWorkload. A configuration that cannot be built is rejected in the view, with
    the constraint's own message. With a ``selection``, the knobs show its configuration and change it.
    """

    def __init__(
        self,
        workload: ConvWorkload | str = "resnet50.stage2@8",
        config: Configuration | None = None,
        arch: str = "sm_90a",
        **options: Any,
    ) -> None:
        refuse_unknown(ConvolutionTiling, options)
        selection = options.pop("selection", None)
        record = tiling(workload, config, arch=arch)
        self.workload, self.config, self.arch = record.workload, record.config, arch
        self.view = ConvolutionTiling(record, **options)
        self.knobs: dict[str, ipywidgets.Dropdown] = {}
        layout = ipywidgets.Layout(flex_flow="row wrap", max_width="900px")
        self.controls = ipywidgets.HBox(layout=layout)
        self._set_knobs()
        super().__init__([self.controls, self.view], selection)
        self.add_class("sb-tiling-exploring")

    def turn_to(self, choice: Choice) -> None:
        """Set the knobs to what is selected and draw its tiling."""
        config, note = choice.config_for(Tiling)
        self.workload, self.config, self.arch = choice.workload, config, choice.arch
        self._set_knobs()
        self._draw(note)

    def _draw(self, note: str = "") -> None:
        """Draw what the knobs say. What is refused is said, and the picture of the layer stays as it is.

        Raises the refusal where there is no picture of this layer on this architecture.
        """
        try:
            self.view.show(tiling(self.workload, self.config, arch=self.arch))
        except SubbyteError as problem:
            kept = self.view.record
            if kept is None or (kept.workload, kept.arch) != (self.workload, self.arch):
                raise
            self.view.show(kept)
            reason = str(problem).rpartition(" cannot be built: ")[2]  # the knobs show the rest
            note = f"Refused: {reason}. Still shown: {kept.config.key}."
        self.note = note

    def _set_knobs(self) -> None:
        values = space(self.workload, self.arch).knobs
        if [*values] != [*self.knobs]:
            self.knobs = {name: _dropdown(name) for name in values}
            self.controls.children = [*self.knobs.values()]
            for knob in self.knobs.values():
                knob.observe(self._update, "value")
        self._moved = True
        try:
            for name, offered in values.items():
                self.knobs[name].options = sorted({*offered, getattr(self.config, name)})
                self.knobs[name].value = getattr(self.config, name)
        finally:
            self._moved = False

    def _update(self, change: Any) -> None:
        if self._moved:
            return
        self.config = self.config.with_values({change.owner.description: change.new})
        if self.selection is not None:
            self.write_selection(configuration=self.config)
            return
        self._draw()


def _dropdown(name: str) -> ipywidgets.Dropdown:
    layout = ipywidgets.Layout(width="190px")
    return ipywidgets.Dropdown(description=name, style={"description_width": "110px"}, layout=layout)

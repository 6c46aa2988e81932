"""The speed-of-light view: from the floors of a layer to its measured time, under the roofs, beside cuDNN."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import traitlets

from subbyte.analysis.speed import Roofline, SpeedLimits, roofline, speed_of_light, studied_workloads
from subbyte.errors import InvalidInput, SubbyteError, did_you_mean
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import View, refuse_unknown
from subbyte_widgets._selection import Choice
from subbyte_widgets.speed_of_light.picture import ROOF, layer_html, layer_svg, marked, roofline_svg
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent
FIRST = "resnet50.stage2@8"


class SpeedOfLight(View):
    """Draws how fast a layer could be and how fast it was (:func:`subbyte.speed_of_light`, :func:`subbyte.roofline`).

    ``workload`` is the layer shown first, any layer; those with a recorded landscape or ablation on ``device`` can be
    chosen. The browser writes ``layer`` (name of the layer) and ``item`` (a bar, in the order of the arrow keys; -1 for
    none).
    """

    _esm = HERE / "view.js"
    _css = HERE / "view.css"
    _state_in_page = ("layers", "roof", "layer", "item")

    layers: traitlets.Dict[str, Any] = traitlets.Dict(help="Spec and pictures of each layer by name").tag(sync=True)
    roof = traitlets.Unicode("", help="The roofline, which all pictures share").tag(sync=True)
    layer = traitlets.Unicode("", help="Name of the layer shown").tag(sync=True)
    item = traitlets.Int(-1, help="The marked bar, -1 for none").tag(sync=True)

    def __init__(self, workload: ConvWorkload | str | None = None, device: str = "NVIDIA H200", **options: Any) -> None:
        refuse_unknown(type(self), options)
        self.records: dict[str, SpeedLimits] = {}
        self.device = device
        super().__init__(**options)
        try:
            records = [speed_of_light(one, device) for one in studied_workloads(device)]
            chosen = speed_of_light(workload or FIRST, device)
            if chosen.spec not in {record.spec for record in records}:
                records.append(chosen)
            self.show(records, roofline(device).of_workloads({record.spec for record in records}))
            self.choose(chosen)
        except SubbyteError as problem:
            self.error = str(problem)

    def show(self, records: Sequence[SpeedLimits], roofs: Roofline) -> None:
        """Draw these layers, and all points of ``roofs``; the first layer is shown unless the current one is among
        them."""
        self.records = {record.workload: record for record in records}
        with self.hold_sync():
            self.roof = roofline_svg(roofs)
            self.layers = {name: {"spec": one.spec, "svg": layer_html(one)} for name, one in self.records.items()}
            if self.layer not in self.records:
                self.layer = next(iter(self.records), "")
            self._say(None)

    def choose(self, record: SpeedLimits | ConvWorkload) -> None:
        """Show a layer; it is added if it is not there yet."""
        if isinstance(record, ConvWorkload):
            record = speed_of_light(record, self.device)
        known = next((name for name, one in self.records.items() if one.spec == record.spec), None)
        if known is None:
            self.records[record.workload] = record
            self.layers = {**self.layers, record.workload: {"spec": record.spec, "svg": layer_html(record)}}
        self.layer = known or record.workload
        self._say(None)

    def turn_to(self, choice: Choice) -> None:
        """Show the selected layer. Raises InvalidInput if no time of it was recorded."""
        self.choose(choice.workload)

    @traitlets.validate("layer")
    def _a_layer(self, proposal: Any) -> str:
        if self.records and proposal.value not in self.records:
            raise InvalidInput(f"no layer {proposal.value!r} is shown: {did_you_mean(proposal.value, self.records)}")
        return str(proposal.value)

    @traitlets.observe("layer")
    def _say(self, _change: Any) -> None:
        if self.layer in self.records:
            self.alternative, self.error = self.records[self.layer].finding, ""

    def to_svg(self) -> str:
        """The layer as a self-contained picture."""
        if self.error or self.layer not in self.records:
            return sentence_svg(self.error or "nothing to draw: no layer was given")
        record = self.records[self.layer]
        svg = marked(layer_svg(record).replace(ROOF, self.roof), record.spec, self.item)
        return standalone(svg, HERE / "view.css")

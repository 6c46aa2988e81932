"""The network timeline: the least that each layer of a network moves and multiplies, and its kernel's estimate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import SubbyteError
from subbyte.networks import Network, network
from subbyte.networks import NetworkTimeline as Record
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import PACKED, SHELL, View, refuse_outside, script
from subbyte_widgets._given import expect
from subbyte_widgets._selection import Choice
from subbyte_widgets._turned import style
from subbyte_widgets.network_timeline.picture import timeline_svg
from subbyte_widgets.network_timeline.words import sentence, whole
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent
FIRST = "tcbnn.resnet18@8"
MOST = 40
"""Layers that can be told apart."""


class NetworkTimeline(View):
    """Draws a network's :class:`~subbyte.networks.NetworkTimeline`: floors, estimates and bytes of its layers.

    ``source``: a network (its name with a batch, or a Network), or a record of :meth:`Network.timeline`; ``arch`` is
    the architecture for a network's floors. A click or the arrow keys choose a layer, Escape deselects it. The browser
    writes ``chosen``, the index of a layer, -1 for none. With a ``selection`` the layer with the sizes of the selected
    workload is chosen.
    """

    _esm = script(SHELL, HERE / "view.js")
    _css = style(HERE)
    _state_in_page = ("data", "chosen")
    slow = True

    data: traitlets.Dict[str, Any] = traitlets.Dict(help="The picture and its sentences").tag(**PACKED)
    chosen = traitlets.Int(-1, help="The layer that is told of, -1 for none").tag(sync=True)

    def __init__(self, source: Network | str | Record | None = None, arch: str = "sm_90a", **options: Any) -> None:
        chosen = {name: options.pop(name) for name in ("chosen",) if name in options}
        self.record: Record | None = None
        self._network: Network | None = None
        super().__init__(**options)
        if source is None and self.selection is not None:
            return
        self.show(FIRST if source is None else source, arch)
        for name, value in chosen.items():
            setattr(self, name, value)
        if not self.error:
            refuse_outside(self, chosen)

    def show(self, source: Network | str | Record, arch: str = "sm_90a") -> None:
        """Draw another network; errors are shown in the view."""
        try:
            expect(self, source, (str, Network, Record), "give a network, its name, or what Network.timeline() gives")
            made = network(source) if isinstance(source, str) else source
            record = made.timeline(arch) if isinstance(made, Network) else made
        except SubbyteError as problem:
            self.error = str(problem)
            return
        if not 0 < len(record.layers) <= MOST:
            self.error = f"NetworkTimeline: {record.network} has {len(record.layers)} layers; at most {MOST} are drawn"
            return
        self.record, self._network = record, made if isinstance(made, Network) else None
        with self.hold_sync():
            says = [sentence(one) for one in record.layers]
            self.data = {"svg": timeline_svg(record), "says": says, "whole": whole(record)}
            self.chosen, self.error = min(self.chosen, len(says) - 1), ""
            self._say(None)

    def turn_to(self, choice: Choice) -> None:
        """Choose the layer with the sizes of the selected workload, for any batch and types."""
        if self.record is None or (self._network is not None and self.record.arch != choice.arch):
            self.show(self._network or FIRST, choice.arch)
        if self.record is None or self.error:
            return
        alike = [n for n, one in enumerate(self.record.layers) if _sizes(one.workload) == _sizes(choice.workload)]
        self.chosen = alike[0] if alike else -1
        found = f"layer {self.record.layers[alike[0]].name} has" if alike else "no layer has"
        self.note = f"In {self.record.network} {found} the sizes of {choice.workload.label}."

    @traitlets.validate("chosen")
    def _a_layer(self, proposal: Any) -> int:
        last = len(self.record.layers) - 1 if self.record else proposal.value
        return max(-1, min(last, proposal.value))

    @traitlets.observe("chosen")
    def _say(self, _change: Any) -> None:
        if self.record is not None:
            said = self.data["says"][self.chosen] if self.chosen >= 0 else self.data["whole"]
            self.alternative = f"{self.record.title()}. {said}"

    def to_svg(self) -> str:
        """The layers with the chosen one marked, as a self-contained picture."""
        self.catch_up()
        if self.error or self.record is None:
            return sentence_svg(self.error or "nothing to draw yet")
        return standalone(timeline_svg(self.record, self.chosen), style(HERE))


def _sizes(workload: ConvWorkload | str) -> str:
    """Of a workload without batch and types."""
    sizes = workload.sizes if isinstance(workload, ConvWorkload) else workload.partition(":")[0]
    return sizes[sizes.index("h") :]

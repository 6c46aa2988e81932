"""Layouts drawn as orders: one tensor, and the same data in NHWC and in NHWCnc from byte 0 on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.technique.layout_order import MOST_CHANNELS, layout_order
from subbyte.technique.layout_order import LayoutOrder as Record
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._selection import Choice
from subbyte_widgets._stepper import PLAYER, Stepper, style
from subbyte_widgets.layout_view.order import cell_places, count_in_words, order_svg, sentence
from subbyte_widgets.svg import standalone

HERE = Path(__file__).parent
STYLE = style(HERE, name="order.css")


class LayoutOrder(Stepper):
    """Draws :func:`subbyte.technique.layout_order.layout_order`: a warp's load sweeps over both orders, lane by lane.

    A click on a box marks the same datum in the tensor, in both strips of memory and at its lane. The browser writes
    ``step`` (lanes that have accessed memory, 0 to 32) and ``datum`` (-1 for none).
    """

    _esm = script(*PLAYER, HERE / "order.js")
    _css = STYLE
    _state_in_page = ("data", "step", "datum")

    datum = traitlets.Int(-1, help="The datum that is marked, -1 for none").tag(sync=True)

    def __init__(self, **options: Any) -> None:
        self.record: Record = layout_order()
        super().__init__(**options)
        self.show(self.record)
        refuse_outside(self, {name: options[name] for name in ("step", "datum") if name in options})

    def show(self, record: Record) -> None:
        """Draw the orders of another tensor."""
        with self.hold_sync():
            self.record, self.data, self.error = record, self._page_data(record), ""
            self.datum = self.datum if self.datum < len(record.data) else -1
            self.alternative = f"{record.title()}. One datum is 16 bytes, one sector 32."

    def turn_to(self, choice: Choice) -> None:
        """Draw as many channels as the selected layer has, 64 at most."""
        channels = 32 * min(choice.workload.channel_blocks, MOST_CHANNELS // 32)
        self.show(layout_order(channels))
        more = choice.workload.c > channels
        self.note = f"Drawn with {channels} of {choice.workload.c} channels: the others lie farther on." if more else ""

    @property
    def steps(self) -> int:
        """Number of lanes."""
        return len(self.record.lanes)

    @traitlets.validate("datum")
    def _a_datum(self, proposal: Any) -> int:
        return proposal.value if 0 <= proposal.value < len(self.record.data) else -1

    def _page_data(self, record: Record) -> dict[str, Any]:
        data = range(len(record.data))
        return {
            "svg": order_svg(record), "lanes": record.lanes, "layouts": list(record.bytes),
            "places": cell_places(record),
            "sectors": {name: [record.sector(name, datum) for datum in data] for name in record.bytes},
            "says": [sentence(record, datum) for datum in data],
            "counts": {name: [count_in_words(record, name, step) for step in range(self.steps + 1)]
                       for name in record.bytes},
        }  # fmt: skip

    def to_svg(self) -> str:
        """The current step as a self-contained picture; before the first lane, all of them."""
        self.catch_up()
        return standalone(order_svg(self.record, self.step or self.steps, self.datum), STYLE)

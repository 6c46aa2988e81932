"""The path of a byte: how a warp of a warpgroup turns sums into packed words, without asking other lanes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import SubbyteError
from subbyte.technique.packed_stores import PackedStores, packed_stores
from subbyte.technique.topics import explained
from subbyte_widgets._base import PACKED, SHELL, View, refuse_outside, script
from subbyte_widgets._given import expect
from subbyte_widgets._selection import Choice
from subbyte_widgets.store_path.picture import in_words, stores_svg
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent


class StorePath(View):
    """Draws :class:`~subbyte.technique.packed_stores.PackedStores` of one warp: point at a byte to follow it.

    ``warp``: 0 to 3, or a record. A click keeps following a byte; the arrow keys go to other channels and images, the
    space bar to the other pixel. The browser writes ``follow``, an index into the record's bytes (-1 for none).
    """

    _esm = script(SHELL, HERE / "view.js")
    _css = HERE / "view.css"
    _state_in_page = ("svg", "sentences", "follow")

    svg = traitlets.Unicode("", help="The picture without a chosen byte").tag(**PACKED)
    sentences: traitlets.List[str] = traitlets.List(help="The way of each byte").tag(**PACKED)
    follow = traitlets.Int(91, help="The byte to follow, -1 for none").tag(sync=True)

    def __init__(self, warp: int | PackedStores = 0, **options: Any) -> None:
        self.record: PackedStores | None = None
        super().__init__(**options)
        self.show(warp)
        if not self.error:
            refuse_outside(self, {name: options[name] for name in ("follow",) if name in options})

    def turn_to(self, choice: Choice) -> None:
        """Draw the way of the selected kernel, where it packs in this one."""
        warp = self.record.warp if self.record else 0
        self.show(explained(PackedStores, choice.workload, choice.config, choice.arch, warp=warp))

    def show(self, warp: int | PackedStores) -> None:
        """Draw another warp; what cannot be drawn is said in the view."""
        try:
            record = packed_stores(warp) if isinstance(warp, int) else warp
            expect(self, record, PackedStores, "give a warp, 0 to 3, or a record of subbyte.technique.packed_stores")
        except SubbyteError as problem:
            self.error = str(problem)
            return
        self.record = record
        with self.hold_sync():
            self.svg, self.error = stores_svg(record), ""
            self.sentences = [in_words(record, index) for index in range(len(record.bytes))]
            if self.follow >= len(record.bytes):
                self.follow = -1
            self._say(None)

    @traitlets.validate("follow")
    def _a_byte(self, proposal: Any) -> int:
        last = proposal.value if self.record is None else len(self.record.bytes) - 1
        return proposal.value if 0 <= proposal.value <= last else -1

    @traitlets.observe("follow")
    def _say(self, _change: Any) -> None:
        if self.record is not None:
            self.alternative = (
                f"{self.record.title()}. {self.sentences[self.follow] if self.follow >= 0 else ''}".strip()
            )

    def to_svg(self) -> str:
        """The picture with the chosen byte, standing alone."""
        self.catch_up()
        if self.error or self.record is None:
            return sentence_svg(self.error or "nothing to draw yet")
        return standalone(stores_svg(self.record, self.follow), HERE / "view.css")

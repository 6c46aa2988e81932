"""The path of a byte: how a warp of a warpgroup turns sums into packed words without exchanging data between lanes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import SubbyteError
from subbyte.technique.listings import listing
from subbyte.technique.packed_stores import PackedStores, packed_stores, worked_stores
from subbyte.technique.topics import explained
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._code import example_data
from subbyte_widgets._given import expect
from subbyte_widgets._selection import Choice
from subbyte_widgets._stepper import CODE, PLAYER, Stepper, style
from subbyte_widgets.store_path.picture import STEPS, VEILS, in_words, moves, stores_svg, values_in_words
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent
SAYS = (
    "Sums: wgmma leaves int32 sums in registers; a lane has both channels of a byte.",
    "Pack: each lane requantizes its sums and packs four bytes into one register. No lane asks another.",
    "stmatrix.trans: 32 lanes write their registers to shared memory at once, images and channels change places.",
    "Load and prmt: eight lanes read 16 bytes each; a lane has 16 channels of its image, two words for each pixel.",
    "Store: each lane writes both words of a pixel to its place in NHWCnc.",
)

IDLE = "Values stay in their lanes: nothing here touches memory."


class StorePath(Stepper):
    """Draws :class:`~subbyte.technique.packed_stores.PackedStores` of one warp, step by step from sums to packed words.

    ``warp``: 0 to 3, or a record. Point at a byte to follow it, with its values; a click keeps following it. Up and
    down arrow keys go to other channels, with Shift to other images; p goes to the other pixel. The browser writes
    ``step``, the panel that is reached, and ``follow``, an index into the record's bytes (-1 for none).
    """

    _esm = script(CODE, *PLAYER, HERE / "view.js")
    _css = style(HERE, code=True)
    _state_in_page = ("data", "step", "follow")

    follow = traitlets.Int(91, help="The byte to follow, -1 for none").tag(sync=True)

    def __init__(self, warp: int | PackedStores = 0, **options: Any) -> None:
        self.record: PackedStores | None = None
        self.sentences: list[str] = []
        """The way of each byte."""
        super().__init__(**options)
        self.show(warp)
        if not self.error:
            refuse_outside(self, {name: options[name] for name in ("follow", "step") if name in options})

    def turn_to(self, choice: Choice) -> None:
        """Draw the path in the selected kernel, if it packs in this way."""
        warp = self.record.warp if self.record else 0
        self.show(explained(PackedStores, choice.workload, choice.config, choice.arch, warp=warp))

    def show(self, warp: int | PackedStores) -> None:
        """Draw another warp; errors are shown in the view."""
        try:
            record = packed_stores(warp) if isinstance(warp, int) else warp
            expect(self, record, PackedStores, "give a warp, 0 to 3, or a record of subbyte.technique.packed_stores")
        except SubbyteError as problem:
            self.error = str(problem)
            return
        self.record, self.numbers = record, worked_stores(record)
        self.sentences = [in_words(record, index) for index in range(len(record.bytes))]
        with self.hold_sync():
            self.data, self.error = self._page_data(record), ""
            if self.follow >= len(record.bytes):
                self.follow = -1
            self._say(None)

    def _page_data(self, record: PackedStores) -> dict[str, Any]:
        indices = range(len(record.bytes))
        return {
            "svg": stores_svg(record), "sentences": self.sentences, "says": SAYS, "steps": STEPS, "veils": VEILS,
            "moves": moves(record), "pixels": [byte.pixel for byte in record.bytes],
            # Lanes act at the same time: only the loading lanes are shown one by one, so that the eye can follow.
            "lags": [[byte.reader / 8 if step == 3 else 0 for byte in record.bytes] for step in range(len(STEPS))],
            "values": [values_in_words(record, self.numbers, index) for index in indices],
            "code": example_data(listing("stores"), "the tile that every such kernel stores", IDLE),
        }  # fmt: skip

    @property
    def steps(self) -> int:
        """Number of steps after the sums."""
        return len(STEPS) - 1

    @traitlets.validate("follow")
    def _a_byte(self, proposal: Any) -> int:
        last = proposal.value if self.record is None else len(self.record.bytes) - 1
        return proposal.value if 0 <= proposal.value <= last else -1

    @traitlets.observe("follow")
    def _say(self, _change: Any) -> None:
        if self.record is not None:
            way = self.sentences[self.follow] if self.follow >= 0 else ""
            self.alternative = f"{self.record.title()}. {way}".strip()

    def to_svg(self) -> str:
        """The picture with the chosen byte and its values, self-contained."""
        self.catch_up()
        if self.error or self.record is None:
            return sentence_svg(self.error or "nothing to draw yet")
        return standalone(stores_svg(self.record, self.follow, self.numbers), style(HERE))

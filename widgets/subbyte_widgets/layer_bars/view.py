"""The layer bars: what each layer of a network gains from zeros of one side, of both, from 2:4; what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from subbyte.errors import SubbyteError
from subbyte.sparse.bars import LayerBars as Record
from subbyte.sparse.bars import layer_bars
from subbyte.sparse.networks import NetworkCycles
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._given import expect
from subbyte_widgets._picked import SCRIPTS, Picker
from subbyte_widgets._turned import style
from subbyte_widgets.layer_bars.picture import bars_svg
from subbyte_widgets.layer_bars.words import sentence, whole

HERE = Path(__file__).parent
NAMES = {"same unit dense": "same_unit", "dense core": "dense_core"}
"""Buttons, and what they show."""
MOST = 26
"""Layers that can be told apart."""


class LayerBars(Picker):
    """Draws :class:`~subbyte.sparse.LayerBars`: dense, weights' zeros, activations' zeros, both, 2:4, measured.

    ``source``: a record of :func:`subbyte.sparse.layer_bars` or of :func:`subbyte.sparse.network`, or a network's name
    with a batch. A click or the arrow keys choose a layer, Escape none. The browser writes ``chosen``, a number among
    the layers, and ``variant``.
    """

    _esm = script(*SCRIPTS, HERE / "view.js")
    _css = style(HERE)

    def __init__(self, source: Record | NetworkCycles | str = "resnet18@1", **options: Any) -> None:
        chosen: dict[str, Any] = {name: options.pop(name) for name in ("variant", "chosen") if name in options}
        self.record: Record | None = None
        super().__init__(**options)
        self.show(source)
        for name, value in chosen.items():
            setattr(self, name, value)
        if not self.error:
            refuse_outside(self, chosen)

    def show(self, source: Record | NetworkCycles | str) -> None:
        """Draw another network; what cannot be drawn is said in the view."""
        try:
            expect(self, source, (str, Record, NetworkCycles), "give a network, or what sparse.layer_bars gives")
            record = source if isinstance(source, Record) else layer_bars(source)
        except SubbyteError as problem:
            self.error = str(problem)
            return
        layers = record.cycles.layers
        if not 0 < len(layers) <= MOST:
            self.error = f"LayerBars: {record.cycles.network} has {len(layers)} layers; 1 to {MOST} are drawn"
            return
        self.record = record
        pictures = {name: bars_svg(record, over) for name, over in NAMES.items()}
        says = [sentence(record, one) for one in layers]
        self.fill("over", pictures, says, whole(record), f"{record.title()}.")

    def drawn(self) -> str:
        """The bars that are shown, with the chosen layer marked."""
        assert self.record is not None
        return bars_svg(self.record, NAMES[self.variant], self.chosen)

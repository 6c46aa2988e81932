"""The layer bars: what each layer of a network gains from zeros on one side, on both, and from 2:4; and what was
measured."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from subbyte.errors import SubbyteError
from subbyte.sparse.bars import LayerBars as Record
from subbyte.sparse.bars import layer_bars
from subbyte.sparse.networks import NetworkCycles
from subbyte.sparse.shapes import NETWORK_NAMES
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._given import expect
from subbyte_widgets._picked import SCRIPTS, Picker
from subbyte_widgets._selection import Choice
from subbyte_widgets._turned import style
from subbyte_widgets.layer_bars.picture import bars_svg
from subbyte_widgets.layer_bars.words import sentence, whole

HERE = Path(__file__).parent
NAMES = {"same unit dense": "same_unit", "dense core": "dense_core"}
"""Buttons, and what they show."""
FIRST = "resnet18@1"
MOST = 26
"""Layers that can be told apart."""


def _bars(source: NetworkCycles | str) -> Record:
    return _named(source) if isinstance(source, str) else layer_bars(source)


@lru_cache(maxsize=4)
def _named(network: str) -> Record:
    """To simulate a network takes a second: the next view of it, or a selection that comes back, has it at once."""
    return layer_bars(network)


class LayerBars(Picker):
    """Draws :class:`~subbyte.sparse.LayerBars`: dense, weights' zeros, activations' zeros, both, 2:4, measured.

    ``source``: a record of :func:`subbyte.sparse.layer_bars` or of :func:`subbyte.sparse.network`, or a network's name
    with a batch. A click or the arrow keys choose a layer, Escape deselects it. With a ``selection`` the selected layer
    is chosen, in its own network unless one is given. The browser writes ``chosen``, the index of a layer, and
    ``variant``.
    """

    _esm = script(*SCRIPTS, HERE / "view.js")
    _css = style(HERE)
    slow = True

    def __init__(self, source: Record | NetworkCycles | str | None = None, **options: Any) -> None:
        chosen: dict[str, Any] = {name: options.pop(name) for name in ("variant", "chosen") if name in options}
        self.record: Record | None = None
        super().__init__(**options)
        self._given = source is not None
        if source is None and self.selection is not None:
            return
        self.show(FIRST if source is None else source)
        for name, value in chosen.items():
            setattr(self, name, value)
        if not self.error:
            refuse_outside(self, chosen)

    def show(self, source: Record | NetworkCycles | str) -> None:
        """Draw another network; errors are shown in the view."""
        try:
            expect(self, source, (str, Record, NetworkCycles), "give a network, or what sparse.layer_bars gives")
            record = source if isinstance(source, Record) else _bars(source)
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

    def turn_to(self, choice: Choice) -> None:
        """Choose the selected layer; if no network was given, draw the one that it belongs to."""
        name = choice.workload.label.partition("@")[0]
        network = name.partition(".")[0]
        known = network in NETWORK_NAMES and not self._given
        if self.record is None or (known and self.record.cycles.network != f"{network}@1"):
            self.show(f"{network}@1" if known else FIRST)
        if self.record is None or self.error:
            return
        names = [one.name.partition("@")[0] for one in self.record.cycles.layers]
        self.chosen = names.index(name) if name in names else -1
        where = self.record.cycles.network
        self.note = f"{name} in {where}." if name in names else f"{where} has no layer {choice.workload.label}."

    def drawn(self) -> str:
        """The bars that are shown, with the chosen layer marked."""
        assert self.record is not None
        return bars_svg(self.record, NAMES[self.variant], self.chosen)

"""A layer's origin: which kernel is chosen, by whose record or estimate, and its time beside the floor."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import traitlets

from subbyte.analysis.origin import Origin, origin
from subbyte.errors import SubbyteError
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import PACKED, SHELL, View, script
from subbyte_widgets._given import expect
from subbyte_widgets._selection import FIRST, Choice
from subbyte_widgets._turned import style
from subbyte_widgets.layer_origin.picture import origin_svg
from subbyte_widgets.layer_origin.words import Search, rows, whole
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent


class LayerOrigin(View):
    """Draws :func:`subbyte.origin`: the floor of a layer, what the user's own store, the package and the model know
    about its time, with error bars, and which of them ``compile`` uses.

    ``source``: a layer (a name, a spec, a ConvWorkload) or a record of :func:`subbyte.origin`. ``store`` and ``gpu``
    are those of :func:`subbyte.compile`. A click or the arrow keys choose a row, Escape deselects it. With a
    ``selection`` the selected layer is shown. The browser writes ``chosen``, the index of a row.
    """

    _esm = script(SHELL, HERE / "view.js")
    _css = style(HERE)
    _state_in_page = ("data", "chosen")
    slow = True

    data: traitlets.Dict[str, Any] = traitlets.Dict(help="The picture and its sentences").tag(**PACKED)
    chosen = traitlets.Int(-1, help="The row that is told of, -1 for none").tag(sync=True)

    def __init__(
        self, source: Origin | ConvWorkload | str | None = None, *, arch: str = "sm_90a",
        store: str | os.PathLike[str] | None = None, gpu: str | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.arch, self.store, self.gpu = arch, store, gpu
        self.record: Origin | None = None
        self.search: Search | None = None
        self._lock = threading.RLock()
        super().__init__(**options)
        if source is not None or self.selection is None:
            self.show(FIRST if source is None else source)

    def show(self, source: Origin | ConvWorkload | str) -> None:
        """Draw another layer; errors are shown in the view."""
        try:
            expect(self, source, (Origin, ConvWorkload, str), "give a layer, or what subbyte.origin gives")
            if not isinstance(source, Origin):
                source = origin(source, self.arch, store=self.store, gpu=self.gpu)
        except SubbyteError as problem:
            self.error = str(problem)
            return
        with self._lock:
            if self.record is None or self.record.spec != source.spec:
                self.search = None
            self.record, self.error = source, ""
            self.draw()

    def draw(self, search: Search | None = None) -> None:
        """Redraw the record together with what a search has found so far. Safe to call from several threads."""
        with self._lock, self.hold_sync():
            if self.record is None:
                return
            self.search = search or self.search
            found = rows(self.record, self.search)
            self.data = {"svg": origin_svg(self.record, found), "says": [one.say for one in found],
                         "whole": whole(self.record)}  # fmt: skip
            self.chosen = min(self.chosen, len(found) - 1)
            self._say(None)

    def turn_to(self, choice: Choice) -> None:
        """Show the selected layer."""
        self.arch = choice.arch
        self.show(choice.workload)

    @traitlets.validate("chosen")
    def _a_row(self, proposal: Any) -> int:
        last = len(self.data["says"]) - 1 if self.data else proposal.value
        return max(-1, min(last, proposal.value))

    @traitlets.observe("chosen")
    def _say(self, _change: Any) -> None:
        if self.data and self.record is not None:
            said = self.data["says"][self.chosen] if self.chosen >= 0 else self.data["whole"]
            self.alternative = f"{self.record.title()}. {said}"

    def to_svg(self) -> str:
        """The current picture, self-contained."""
        self.catch_up()
        if self.error or self.record is None:
            return sentence_svg(self.error or "nothing to draw yet")
        return standalone(origin_svg(self.record, rows(self.record, self.search), self.chosen), str(self._css))

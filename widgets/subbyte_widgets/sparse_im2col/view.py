"""Sparse im2col: how a column of the lowered matrix is made from the bitmap and the packed values of an image row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import SubbyteError
from subbyte.sparse.lowering import WIDEST, RowLowering, row_lowering
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._given import expect
from subbyte_widgets._revealed import SCRIPTS, Revealed, Revealer
from subbyte_widgets._selection import Choice
from subbyte_widgets._stepper import style
from subbyte_widgets.sparse_im2col.picture import COLUMN, CUT, FIRST, MASK, SHIFT, Drawing, im2col_svg, places
from subbyte_widgets.sparse_im2col.words import SENTENCES, in_words
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent
STOPS = (MASK, SHIFT, CUT, FIRST, COLUMN)
FIRST_SHOWN = ("n1h6w16c4k8r3s3p1", "n1h6w16c4k8r3s3p1u2")
SEED = 8
"""Seed of a row whose first pixel is not zero, so that the column's first value is not the row's."""


class SparseIm2col(Revealer):
    """Steps through :class:`~subbyte.sparse.RowLowering`: mask, shift, popcount, first value, column.

    ``source``: one or several records of :func:`subbyte.sparse.row_lowering`; by default a row of 16 pixels with stride
    1, and one with stride 2. Up and down arrow keys go to other s, with Shift to other r. With a ``selection`` a row of
    the selected layer is shown. The browser writes ``step``, ``place`` (the index of an offset) and ``variant``.
    """

    _esm = script(*SCRIPTS, HERE / "view.js")
    _css = style(HERE)

    def __init__(self, source: RowLowering | Sequence[RowLowering] | None = None, **options: Any) -> None:
        chosen: dict[str, Any] = {name: options.pop(name) for name in ("variant", "step", "place") if name in options}
        self.records: dict[str, RowLowering] = {}
        super().__init__(**options)
        if source is None and self.selection is not None:
            return
        self.show([row_lowering(one, seed=SEED) for one in FIRST_SHOWN] if source is None else source)
        for name, value in chosen.items():
            setattr(self, name, value)
        if not self.error:
            refuse_outside(self, chosen)

    def show(self, source: RowLowering | Sequence[RowLowering]) -> None:
        """Step through other rows; what cannot be is said in the view."""
        given = [source] if isinstance(source, RowLowering) else source
        try:
            expect(self, given, RowLowering, "give records of subbyte.sparse.row_lowering()")
            self.records = dict(zip(_names(given), given, strict=True))
            self.fill_variants("stride", {name: _revealed(one) for name, one in self.records.items()})
        except SubbyteError as refused:
            self.error = str(refused)
            return
        self._say(None)

    def turn_to(self, choice: Choice) -> None:
        """Step through a row of the selected layer, or through as much of it as a picture holds."""
        wl = choice.workload
        shown = replace(wl, n=1, w=min(wl.w, WIDEST - 2 * wl.pad), name=wl.name)
        self.show(row_lowering(shown, seed=SEED))
        part = f"the first {shown.w} of {wl.w} pixels" if shown.w < wl.w else f"{wl.w} pixels"
        self.note = f"A row of {wl.label}, {part}, with random values."

    @traitlets.observe("variant")
    def _say(self, _change: Any) -> None:
        if self.variant in self.records:
            self.alternative = in_words(self.records[self.variant])

    def to_svg(self) -> str:
        """The current step as a self-contained picture; before the first step, the last one."""
        self.catch_up()
        if self.variant not in self.records or self.error:
            return sentence_svg(self.error or "nothing to step through yet")
        drawing = Drawing(self.records[self.variant])
        return standalone(im2col_svg(drawing, places(drawing)[self.place], self.step or self.steps), style(HERE))


def _revealed(record: RowLowering) -> Revealed:
    drawing = Drawing(record)
    found, across = places(drawing), record.workload.s
    start = record.workload.r // 2 * across + min(2, across - 1)
    return Revealed(im2col_svg(drawing, found[start], 0), SENTENCES, found, STOPS, across, start)


def _names(records: Sequence[RowLowering]) -> list[str]:
    """Strides, with a number where several have the same."""
    strides = [str(one.workload.stride) for one in records]
    return [f"{one} ({at + 1})" if strides.count(one) > 1 else one for at, one in enumerate(strides)]

"""The threshold folding: batch normalization and rounding become comparisons with integers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from subbyte.errors import SubbyteError
from subbyte.technique.folding import Folding, folding
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._given import expect
from subbyte_widgets._selection import Choice
from subbyte_widgets._turned import SCRIPTS, Turner, style
from subbyte_widgets.threshold_folding.picture import pages

HERE = Path(__file__).parent
FIRST = "resnet50.stage2@8:w1a2"
GAMMAS = tuple(number / 10 for number in range(-20, 21))
"""From -2 through 0 to 2."""
MOST = 101


class ThresholdFolding(Turner):
    """Draws :class:`~subbyte.technique.folding.Folding` for one gamma after another; the slider passes through 0.

    ``source``: a workload whose output has few bits (a name, a spec or a ConvWorkload), or records of
    :func:`~subbyte.technique.folding.folding`, in the order of the slider. ``gammas`` and the other parameters of a
    batch normalization (``beta``, ``mean``, ``variance``, ``eps``, ``step``) are those of a channel of the workload.
    The browser writes ``chosen``, the index of the picture.
    """

    _esm = script(*SCRIPTS, HERE / "view.js")
    _css = style(HERE)

    def __init__(
        self, source: ConvWorkload | str | Sequence[Folding] | None = None, gammas: Sequence[float] = GAMMAS,
        normalization: dict[str, float] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        chosen = {name: options.pop(name) for name in ("chosen",) if name in options}
        super().__init__(**options)
        self.gammas, self.normalization = tuple(gammas), dict(normalization or {})
        if source is None and self.selection is not None:
            return
        self.show(FIRST if source is None else source)
        self.chosen = chosen.get("chosen", 3 * len(self.data) // 4)
        if not self.error:
            refuse_outside(self, chosen)

    def show(self, source: ConvWorkload | str | Sequence[Folding]) -> None:
        """Draw another channel; errors are shown in the view."""
        try:
            if isinstance(source, (str, ConvWorkload)):
                records = [folding(source, gamma=gamma, **self.normalization) for gamma in self.gammas]
            else:
                expect(self, source, Folding, "give a workload, or records of subbyte.technique.folding")
                records = [*source]
        except SubbyteError as problem:
            self.error = str(problem)
            return
        if not 0 < len(records) <= MOST:
            self.error = f"ThresholdFolding: {len(records)} gammas; give 1 to {MOST}"
            return
        self.records = records
        self.fill(pages(records), f"{records[0].workload.label}: batch normalization as thresholds.")

    def turn_to(self, choice: Choice) -> None:
        """Draw a channel of the selected workload."""
        self.show(choice.workload)

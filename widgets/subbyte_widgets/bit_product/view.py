"""The bit products: how bits of a window and of weights become one sum, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import SubbyteError
from subbyte.technique.bits import BitSum, bit_sum
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._given import expect
from subbyte_widgets._revealed import SCRIPTS, Revealer
from subbyte_widgets._selection import Choice
from subbyte_widgets._stepper import style
from subbyte_widgets.bit_product.picture import Drawing, bits_svg, places
from subbyte_widgets.bit_product.words import in_words, sentences
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent
FIRST = "resnet50.stage2@8:w1a2"


class BitProduct(Revealer):
    """Steps through one output of a few-bit workload: values, codes, planes, AND, counts, corrections, the sum.

    ``source``: a workload (a name, a spec or a ConvWorkload) with random operands, or a record of
    :func:`~subbyte.technique.bits.bit_sum`; ``at``, ``image``, ``channel`` and ``seed`` select the output. Up and down
    arrow keys go to other channels, with Shift to other taps. The browser writes ``step`` and ``place``.
    """

    _esm = script(*SCRIPTS, HERE / "view.js")
    _css = style(HERE)

    record = traitlets.Any(None, help="The record that is shown")

    def __init__(
        self, source: ConvWorkload | str | BitSum | None = None, *, at: tuple[int, int] = (0, 0), image: int = 0,
        channel: int = 0, seed: int = 0, **options: Any,
    ) -> None:  # fmt: skip
        chosen: dict[str, Any] = {name: options.pop(name) for name in ("step", "place") if name in options}
        super().__init__(**options)
        if source is None and self.selection is not None:
            return
        self.show(FIRST if source is None else source, at=at, image=image, channel=channel, seed=seed)
        for name, value in chosen.items():
            setattr(self, name, value)
        if not self.error:
            refuse_outside(self, chosen)

    def show(self, source: ConvWorkload | str | BitSum, **where: Any) -> None:
        """Step through another sum; ``where`` takes ``at``, ``image``, ``channel`` and ``seed``. Errors are shown in
        the view."""
        try:
            record = bit_sum(source, **where) if isinstance(source, (str, ConvWorkload)) else source
            expect(self, record, BitSum, "give a workload, or a record of subbyte.technique.bit_sum")
            drawing = Drawing(record)
            found = places(drawing)
            stops = [1, 2, drawing.step_of(0), drawing.step_of(4)]
            self.fill(bits_svg(drawing, found[0], 0), sentences(drawing), found, stops, drawing.windows)
        except SubbyteError as refused:
            self.error = str(refused)
            return
        self.record, self.alternative = record, in_words(record)
        self.place = len(record.taps) // 2 * drawing.windows

    def turn_to(self, choice: Choice) -> None:
        """Step through a sum of the selected workload."""
        self.show(choice.workload)

    def to_svg(self) -> str:
        """The current step as a self-contained picture; before the first step, the last one."""
        self.catch_up()
        if self.record is None or self.error:
            return sentence_svg(self.error or "nothing to step through yet")
        drawing = Drawing(self.record)
        return standalone(bits_svg(drawing, places(drawing)[self.place], self.step or self.steps), style(HERE))

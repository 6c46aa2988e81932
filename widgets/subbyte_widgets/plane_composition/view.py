"""The plane composition: how a thread combines the counts of its planes into an output, in one instruction's
registers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import SubbyteError
from subbyte.spaces.configuration import Configuration
from subbyte.technique.composition import PlaneComposition as Record
from subbyte.technique.composition import plane_composition
from subbyte.technique.topics import explained
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._given import expect
from subbyte_widgets._revealed import SCRIPTS, Revealer
from subbyte_widgets._selection import Choice
from subbyte_widgets._stepper import style
from subbyte_widgets.plane_composition.picture import AT_SUM, Drawing, composition_svg, places
from subbyte_widgets.plane_composition.words import in_words, sentences
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent
FIRST = "resnet50.stage2@8:w2a2"


class PlaneComposition(Revealer):
    """Steps through one output of a kernel on bit planes: its rows, columns, lane and registers, counts and their sum.

    ``source``: a workload (a name, a spec or a ConvWorkload) with random operands, or a record of
    :func:`~subbyte.technique.composition.plane_composition`; ``config``, ``image``, ``pixel`` and ``seed`` select the
    output. Up and down arrow keys follow another output channel. The browser writes ``step`` and ``place``.
    """

    _esm = script(*SCRIPTS, HERE / "view.js")
    _css = style(HERE)

    record = traitlets.Any(None, help="The record that is shown")

    def __init__(
        self, source: ConvWorkload | str | Record | None = None, config: Configuration | None = None, *, image: int = 0,
        pixel: int = 0, seed: int = 0, **options: Any,
    ) -> None:  # fmt: skip
        chosen: dict[str, Any] = {name: options.pop(name) for name in ("step", "place") if name in options}
        super().__init__(**options)
        if source is None and self.selection is not None:
            return
        self.show(FIRST if source is None else source, config=config, image=image, pixel=pixel, seed=seed)
        for name, value in chosen.items():
            setattr(self, name, value)
        if not self.error:
            refuse_outside(self, chosen)

    def show(self, source: ConvWorkload | str | Record, **where: Any) -> None:
        """Step through another output; ``where`` takes ``config``, ``image``, ``pixel`` and ``seed``. Errors are shown
        in the view."""
        try:
            record = plane_composition(source, **where) if isinstance(source, (str, ConvWorkload)) else source
            expect(self, record, Record, "give a workload, or a record of subbyte.technique.plane_composition")
            drawing = Drawing(record)
            found = places(drawing)
            self.fill(composition_svg(drawing, found[0], 0), sentences(record), found, [1, 3, AT_SUM], 8)
        except SubbyteError as refused:
            self.error = str(refused)
            return
        self.record, self.alternative = record, in_words(record)

    def turn_to(self, choice: Choice) -> None:
        """Step through the selected kernel, if it works on bit planes."""
        config, note = choice.config_for(Record)
        self.show(explained(Record, choice.workload, config, choice.arch))
        self.note = note

    def to_svg(self) -> str:
        """The current step as a self-contained picture; before the first step, the last one."""
        self.catch_up()
        if self.record is None or self.error:
            return sentence_svg(self.error or "nothing to step through yet")
        drawing = Drawing(self.record)
        return standalone(composition_svg(drawing, places(drawing)[self.place], self.step or self.steps), style(HERE))

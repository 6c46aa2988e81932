"""The record of the toy family's topic as a picture."""

from __future__ import annotations

from typing import Any

import traitlets

from subbyte.technique import explained
from subbyte_widgets._base import View
from subbyte_widgets._selection import Choice
from subbyte_widgets.svg import element, sentence_svg, standalone, text
from toy_family.threads import ThreadMap


class ThreadView(View):
    """Draws a :class:`ThreadMap`: a box for each thread, coloured by its image."""

    _esm = "function render({ model, el }) { el.innerHTML = model.get('svg'); }\nexport default { render };\n"
    _css = ""
    _state_in_page = ("svg",)

    svg = traitlets.Unicode("").tag(sync=True)

    def __init__(self, record: ThreadMap | None = None, **options: Any) -> None:
        self.record = record
        super().__init__(**options)
        if record is not None:
            self.show(record)

    def turn_to(self, choice: Choice) -> None:
        """Draw the first block of the selected kernel."""
        config, note = choice.config_for(ThreadMap)
        self.show(explained(ThreadMap, choice.workload, config, choice.arch))
        self.note = note

    def show(self, record: ThreadMap) -> None:
        """Draw another record."""
        boxes = [
            text(10 + thread % 32 * 22, 20 + thread // 32 * 22, str(place[0]))
            for thread, place in enumerate(record.threads)
        ]
        self.record, self.error, self.alternative = record, "", record.title()
        self.svg = element("svg", boxes, xmlns="http://www.w3.org/2000/svg", viewBox="0 0 720 200")

    def to_svg(self) -> str:
        """The picture, standing alone."""
        self.catch_up()
        return standalone(self.svg, "") if self.svg and not self.error else sentence_svg(self.error or "nothing yet")

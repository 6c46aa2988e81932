"""The fragment explorer: which lane and register holds which matrix element, for every instruction, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.device.fragments import EVERY_PATTERN, Fragments, fragments, narrowest
from subbyte.errors import SubbyteError
from subbyte.technique.topics import plan_of
from subbyte_widgets._base import PACKED, View, script
from subbyte_widgets._selection import Choice
from subbyte_widgets.fragment_explorer.picture import Chosen, fragments_html, fragments_svg, in_words
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent


class FragmentExplorer(View):
    """Draws the :class:`~subbyte.device.fragments.Fragments` of every matrix instruction, of a warp or of four.

    The browser writes ``instruction`` and the selected element: ``operand`` (``a``, ``b`` or ``c``), ``row``,
    ``column``. An atom's name such as ``s8.m16n8k32`` is accepted as instruction too.
    """

    _esm = script(HERE / "parts.js", HERE / "view.js")
    _css = HERE / "view.css"
    _state_in_page = ("pictures", "instruction", "operand", "row", "column")

    pictures: traitlets.Dict[str, str] = traitlets.Dict(
        help="The picture of each instruction without a selection; sent once, the browser marks the selection"
    ).tag(**PACKED)
    instruction = traitlets.Unicode("m16n8k32.s8").tag(sync=True)
    operand = traitlets.Unicode("a", help="a, b, or c (which D shares)").tag(sync=True)
    row = traitlets.Int(0, help="Row of the selected element").tag(sync=True)
    column = traitlets.Int(0, help="Column of the selected element").tag(sync=True)

    def __init__(self, instruction: str = "m16n8k32.s8", **options: Any) -> None:
        super().__init__(instruction=instruction, **options)
        self.pictures = {name: fragments_html(fragments(name)) for name in EVERY_PATTERN}
        self._say(None)

    @property
    def record(self) -> Fragments:
        """The record of the chosen instruction. Raises InvalidInput for an unknown one."""
        return fragments(self.instruction)

    @property
    def chosen(self) -> Chosen:
        """The selected element."""
        return Chosen(self.operand.lower().replace("d", "c"), self.row, self.column)

    @traitlets.observe("instruction", "operand", "row", "column")
    def _say(self, _change: Any) -> None:
        try:
            record = self.record
            self.alternative, self.error = in_words(record, self.chosen), ""
            self.instruction = record.instruction
        except SubbyteError as problem:
            self.alternative, self.error = "", str(problem)

    def turn_to(self, choice: Choice) -> None:
        """Show the instruction of the selected kernel."""
        self.instruction = narrowest(plan_of(choice.workload, choice.config, choice.arch).atom.name)

    def to_svg(self) -> str:
        """The chosen instruction with the selected element, as a self-contained picture."""
        self.catch_up()
        if self.error:
            return sentence_svg(self.error)
        return standalone(fragments_svg(self.record, self.chosen), HERE / "view.css")

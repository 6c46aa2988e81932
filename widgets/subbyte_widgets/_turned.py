"""Views of several pictures, one shown at a time: a slider and the arrow keys switch between them, in the browser
only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import traitlets

from subbyte_widgets._base import PACKED, RADIOS_STYLE, SHELL, View
from subbyte_widgets.svg import element, sentence_svg, standalone

ROOT = Path(__file__).parent
SCRIPTS = (SHELL, ROOT / "turn.js")
"""They come before a view's own script."""


class Page(NamedTuple):
    """One of the pictures: its SVG, its slider label, and the sentence below."""

    svg: str
    label: str
    say: str


def style(folder: Path) -> str:
    """The styles of the view in ``folder``: the shared ones, then its own."""
    own = (folder / "view.css").read_text(encoding="utf-8")
    return RADIOS_STYLE + (ROOT / "turn.css").read_text(encoding="utf-8") + own


def panel_svg(content: Sequence[str], size: tuple[float, float], class_: str, label: str) -> str:
    """A picture that takes the keyboard."""
    panel = element("g", content, class_="panel", tabindex=0, data_lm_suppress_shortcuts="true", role="application",
                    aria_label=label)  # fmt: skip
    return element("svg", panel, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {size[0]:.0f} {size[1]:.0f}",
                   class_=f"sb-turn-svg {class_}")  # fmt: skip


class Turner(View):
    """Base of these views: ``chosen`` is the index of a picture."""

    _state_in_page = ("data", "chosen")

    data: traitlets.List[Any] = traitlets.List(help="The pictures with their words, sent once").tag(**PACKED)
    chosen = traitlets.Int(0, help="Which picture is shown").tag(sync=True)
    what = ""
    """The pictures in words, without the sentence of the one that is shown."""

    def fill(self, pages: Sequence[Page], what: str) -> None:
        """Show other pictures."""
        with self.hold_sync():
            self.what, self.error = what, ""
            self.data = [page._asdict() for page in pages]
            self.chosen = min(self.chosen, len(pages) - 1)
            self._say(None)

    @traitlets.validate("chosen")
    def _a_picture(self, proposal: Any) -> int:
        return max(0, min(len(self.data) - 1, proposal.value)) if self.data else max(0, proposal.value)

    @traitlets.observe("chosen")
    def _say(self, _change: Any) -> None:
        if self.data:
            self.alternative = f"{self.what} {self.data[self.chosen]['say']}"

    def to_svg(self) -> str:
        """The current picture, self-contained."""
        self.catch_up()
        if self.error or not self.data:
            return sentence_svg(self.error or "nothing to draw yet")
        return standalone(str(self.data[self.chosen]["svg"]), str(self._css))

"""Views of one record in several pictures, in which things are chosen and told of: all of it in the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import traitlets

from subbyte_widgets._base import PACKED, RADIOS, SHELL, View
from subbyte_widgets.svg import sentence_svg, standalone

SCRIPTS = (RADIOS, SHELL, Path(__file__).parent / "pick.js")
"""They come before a view's own script."""


class Picker(View):
    """Base of these views: ``variant`` names a picture, ``chosen`` is a number among the things in it, -1 for none."""

    _state_in_page = ("data", "chosen", "variant")

    data: traitlets.Dict[str, Any] = traitlets.Dict(help="The pictures and their sentences").tag(**PACKED)
    chosen = traitlets.Int(-1, help="The thing that is told of, -1 for none").tag(sync=True)
    variant = traitlets.Unicode("", help="Which picture is shown").tag(sync=True)
    what = ""
    """The record in words, before what is said of the chosen thing."""

    def fill(
        self, word: str, pictures: Mapping[str, str], says: Sequence[str], whole: str, what: str, row: int = 1
    ) -> None:
        """Show other pictures: an svg by name, a sentence for each thing, one of all of them."""
        with self.hold_sync():
            self.what, self.error = what, ""
            self.data = {"word": word, "pictures": dict(pictures), "says": list(says), "whole": whole, "row": row}
            self.variant = self.variant if self.variant in pictures else next(iter(pictures))
            self.chosen = min(self.chosen, len(says) - 1)
            self._say(None)

    def drawn(self) -> str:
        """The picture that is shown, with the chosen thing marked."""
        raise NotImplementedError

    @traitlets.validate("chosen")
    def _a_thing(self, proposal: Any) -> int:
        last = len(self.data["says"]) - 1 if self.data else proposal.value
        return max(-1, min(last, proposal.value))

    @traitlets.validate("variant")
    def _a_picture(self, proposal: Any) -> str:
        known = self.data.get("pictures", {})
        return str(proposal.value if not known or proposal.value in known else next(iter(known)))

    @traitlets.observe("chosen")
    def _say(self, _change: Any) -> None:
        if self.data:
            said = self.data["says"][self.chosen] if self.chosen >= 0 else self.data["whole"]
            self.alternative = f"{self.what} {said}"

    def to_svg(self) -> str:
        """The picture that is shown, standing alone."""
        self.catch_up()
        if self.error or not self.data:
            return sentence_svg(self.error or "nothing to draw yet")
        return standalone(self.drawn(), str(self._css))

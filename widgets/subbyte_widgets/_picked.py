"""Views of one record in several pictures, in which parts can be chosen and are explained, all in the browser."""

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
    """Base of these views: ``variant`` names a picture, ``chosen`` is the index of a part of it, -1 for none."""

    _state_in_page = ("data", "chosen", "variant")

    data: traitlets.Dict[str, Any] = traitlets.Dict(help="The pictures and their sentences").tag(**PACKED)
    chosen = traitlets.Int(-1, help="The thing that is told of, -1 for none").tag(sync=True)
    variant = traitlets.Unicode("", help="Which picture is shown").tag(sync=True)
    what: str | Mapping[str, str] = ""
    """The record in words, before the sentence for the chosen part; or one text for each picture."""

    def fill(self, word: str, pictures: Mapping[str, str], says: Sequence[str] | Mapping[str, Sequence[str]],
             whole: str | Mapping[str, str], what: str | Mapping[str, str], row: int = 1) -> None:  # fmt: skip
        """Show other pictures: an svg by name, a sentence for each part, and one for the whole.

        If each picture has parts of its own, ``says``, ``whole`` and ``what`` are given by picture.
        """
        with self.hold_sync():
            self.what, self.error = what, ""
            sentences = dict(says) if isinstance(says, Mapping) else list(says)
            every = dict(whole) if isinstance(whole, Mapping) else whole
            self.data = {"word": word, "pictures": dict(pictures), "says": sentences, "whole": every, "row": row}
            self.variant = self.variant if self.variant in pictures else next(iter(pictures))
            self.chosen = min(self.chosen, len(self.sentences) - 1)
            self._say(None)

    @property
    def sentences(self) -> list[str]:
        """A sentence for each thing in the picture that is shown."""
        return list(self._of("says"))

    def _of(self, what: str) -> Any:
        found = self.data[what]
        return found[self.variant] if isinstance(found, dict) else found

    def drawn(self) -> str:
        """The current picture, with the chosen part marked."""
        raise NotImplementedError

    @traitlets.validate("chosen")
    def _a_thing(self, proposal: Any) -> int:
        last = len(self.sentences) - 1 if self.data and self.variant else proposal.value
        return max(-1, min(last, proposal.value))

    @traitlets.validate("variant")
    def _a_picture(self, proposal: Any) -> str:
        known = self.data.get("pictures", {})
        return str(proposal.value if not known or proposal.value in known else next(iter(known)))

    @traitlets.observe("chosen")
    def _say(self, _change: Any) -> None:
        if self.data:
            said = self.sentences[self.chosen] if self.chosen >= 0 else self._of("whole")
            what = self.what if isinstance(self.what, str) else self.what[self.variant]
            self.alternative = f"{what} {said}".strip()

    @traitlets.observe("variant")
    def _other_things(self, change: Any) -> None:
        if self.data and isinstance(self.data["says"], dict) and change.old:
            self.chosen = -1
            self._say(None)

    def to_svg(self) -> str:
        """The current picture, self-contained."""
        self.catch_up()
        if self.error or not self.data:
            return sentence_svg(self.error or "nothing to draw yet")
        return standalone(self.drawn(), str(self._css))

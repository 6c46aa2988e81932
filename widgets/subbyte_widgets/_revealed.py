"""Step-through views whose picture is complete from the start: a step reveals more of it, a place refills its rows.

``reveal.js`` does in the browser what these functions do for a self-contained picture.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import InvalidInput
from subbyte_widgets._stepper import PLAYER, Stepper
from subbyte_widgets.svg import element, text

REVEAL = Path(__file__).parent / "reveal.js"
SCRIPTS = (*PLAYER, REVEAL)
"""They come before a view's own script."""
MOST_BYTES = 1_500_000
"""Of the data before they are packed."""


@dataclass(frozen=True)
class Place:
    """The contents of the picture's rows for one place, bits as one text, and the words that sentences use.

    The row ``a&b`` has the bits that are set in both rows, a and b.
    """

    rows: Mapping[str, Sequence[str]]
    say: Mapping[str, str]

    def row(self, name: str) -> Sequence[str]:
        """What a row of the picture says."""
        one, _, other = name.partition("&")
        if not other:
            return self.rows.get(name, "")
        return "".join(str(int(a == b == "1")) for a, b in zip(self.rows[one], self.rows[other], strict=True))

    def told(self, name: str) -> str:
        """What a sentence takes: of a row of bits how many are set."""
        row = self.say[name] if name in self.say else self.row(name)
        if isinstance(row, str):
            return row if name in self.say else str(row.count("1"))
        return ",".join(row)


def part(content: Iterable[str], step: int, first: int, last: int | None = None) -> str:
    """A part of the picture that is visible from step ``first`` to step ``last``."""
    hidden = step < first or (last is not None and step > last)
    class_ = "later" if hidden else "now" if 0 < first == step else "done"
    return element("g", content, class_=class_, data_from=first, data_until=last)


def bits_row(name: str, places: Sequence[tuple[float, float]], size: tuple[float, float], words: Sequence[str]) -> str:
    """Boxes of zeros and ones; places behind the last bit stay free."""
    wide, high = size
    filled = [*words, *[""] * (len(places) - len(words))]
    cells = [
        element("g", [
            element("rect", x=x, y=y, width=wide - 1.5, height=high - 2, rx=2),
            text(x + wide / 2 - 0.75, y + high / 2 + 3.4, word, "m"),
        ], class_=f"b{word}" if word else "none")
        for (x, y), word in zip(places, filled, strict=True)
    ]  # fmt: skip
    return element("g", cells, data_row=name, data_kind="bits")


def words_row(name: str, places: Sequence[tuple[float, float]], words: Sequence[str], class_: str = "m") -> str:
    """Lines of text; places behind the last word stay free."""
    filled = [*words, *[""] * (len(places) - len(words))]
    cells = [text(x, y, word, class_) for (x, y), word in zip(places, filled, strict=True)]
    return element("g", cells, data_row=name, data_kind="words")


def marks_row(name: str, cells: Iterable[tuple[str, str, dict[str, Any]]], words: Sequence[str]) -> str:
    """Elements (tag, class, attributes) of which those with the word 1 are marked."""
    drawn = [
        element(tag, class_=class_ + (" on" if word == "1" else ""), **attributes)
        for (tag, class_, attributes), word in zip(cells, words, strict=True)
    ]
    return element("g", drawn, data_row=name, data_kind="marks")


def states_row(name: str, cells: Iterable[tuple[float, float, float, float]], words: str) -> str:
    """Boxes (x, y, width, height), the state of each a letter of the words: its class is ``s`` and the letter."""
    drawn = [
        element("rect", class_=f"s{word}", x=round(x, 1), y=round(y, 1), width=round(wide, 1), height=round(high, 1))
        for (x, y, wide, high), word in zip(cells, words, strict=True)
    ]
    return element("g", drawn, data_row=name, data_kind="states")


def said(sentence: str, place: Place) -> str:
    """A step's sentence at a place."""
    return re.sub(r"\{([\w&]+)\}", lambda found: place.told(found[1]), sentence)


@dataclass(frozen=True)
class Revealed:
    """All that one picture takes; ``start`` is the place that it is shown at first."""

    svg: str
    sentences: Sequence[str]
    places: Sequence[Place]
    stops: Sequence[int]
    far: int
    start: int = 0

    def plain(self) -> dict[str, Any]:
        """As it travels to the browser. Raises InvalidInput when that is more than a browser should be given."""
        data = {
            "svg": self.svg,
            "steps": list(self.sentences),
            "stops": list(self.stops),
            "places": [{"rows": dict(one.rows), "say": dict(one.say)} for one in self.places],
            "far": self.far,
            "start": self.start,
        }
        if (size := len(json.dumps(data))) > MOST_BYTES:
            raise InvalidInput(f"The picture takes {size / 1e6:.1f} MB, at most {MOST_BYTES / 1e6}: give fewer bits.")
        return data


class Revealer(Stepper):
    """Base of these views: ``place`` is an index into the places of the data; up and down arrow keys choose it.

    With several pictures, ``variant`` is the name of the current one; buttons above the picture choose it.
    """

    _state_in_page = ("data", "step", "place", "variant")

    place = traitlets.Int(0, help="What fills the rows").tag(sync=True)
    variant = traitlets.Unicode("", help="Which of several pictures is shown").tag(sync=True)

    def fill(self, svg: str, sentences: Sequence[str], places: Sequence[Place], stops: Sequence[int], far: int) -> None:
        """Show other data. Raises InvalidInput if they are too much for a browser."""
        self._take(Revealed(svg, sentences, places, stops, far).plain(), "")

    def fill_variants(self, word: str, variants: Mapping[str, Revealed]) -> None:
        """Show several pictures, one at a time; ``word`` precedes their names. Raises InvalidInput as above."""
        sets = {name: one.plain() for name, one in variants.items()}
        kept = self.variant if self.variant in sets else next(iter(sets))
        self._take({"sets": sets, "word": word}, kept)
        self.place = sets[kept]["start"]

    def _take(self, data: dict[str, Any], variant: str) -> None:
        with self.hold_sync():
            self.data, self.error, self.variant = data, "", variant
            self.step, self.place = min(self.step, self.steps), min(self.place, len(self._here["places"]) - 1)

    @property
    def _here(self) -> Mapping[str, Any]:
        """The data of the picture that is shown."""
        sets = self.data.get("sets")
        return self.data if sets is None else sets.get(self.variant, {})

    @property
    def steps(self) -> int:
        """Number of steps."""
        return max(0, len(self._here.get("steps", ())) - 1)

    @traitlets.validate("place")
    def _a_place(self, proposal: Any) -> int:
        return max(0, min(len(self._here.get("places", ())) - 1, proposal.value))

    @traitlets.validate("variant")
    def _a_variant(self, proposal: Any) -> str:
        known = self.data.get("sets", {})
        return str(proposal.value if not known or proposal.value in known else next(iter(known)))

    @traitlets.observe("variant")
    def _turned(self, change: Any) -> None:
        if change.old in self.data.get("sets", {}):
            self.place = self._here["start"]

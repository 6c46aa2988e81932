"""The list of live blocks of weights: its words, and what of a kernel's shared memory its places count in."""

from __future__ import annotations

from dataclasses import dataclass

HEAD_WORDS = 32
"""Of each tile before all fragments: its first fragment, and of each kernel row how many live blocks come before it."""
VALUE_WORDS = 512
LISTED_WORDS = VALUE_WORDS + 32
"""Words of a fragment: values of two live blocks, and behind them the places of both, with room up to 128 bytes."""
ROW_BIT = 24
"""Of a place: from here on its kernel row, below its distance in shared memory."""
FORM = "warpgroup-blocks-"


@dataclass(frozen=True)
class ListForm:
    """How a kernel wants its list: written into the form of its weights."""

    pairs: int
    """Fragments that every tile's list is a multiple of."""
    tiles: int
    fragments: int
    """In all, at most."""
    row: int
    """Units of 16 bytes of shared memory from one kernel row to the next,"""
    block: int
    """from one block of 32 channels to the next,"""
    column: int
    """from one kernel column to the next."""

    @property
    def text(self) -> str:
        """The form of the weights."""
        numbers = (self.pairs, self.tiles, self.fragments, self.row, self.block, self.column)
        return FORM + "-".join(map(str, numbers))

    @classmethod
    def of(cls, form: str) -> ListForm:
        """The same back from the form."""
        return cls(*map(int, form.removeprefix(FORM).split("-")))

    @property
    def words(self) -> int:
        """Of all weights."""
        return self.tiles * HEAD_WORDS + self.fragments * LISTED_WORDS

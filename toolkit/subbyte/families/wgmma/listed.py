"""The list of live blocks of weights: its words, and the shared-memory distances in which its places are expressed."""

from __future__ import annotations

from dataclasses import dataclass

HEAD_WORDS = 32
"""Words of each tile before all fragments: its first fragment, and for each kernel row how many live blocks precede
it."""
VALUE_WORDS = 512
LISTED_WORDS = VALUE_WORDS + 32
"""Words of a fragment: values of two live blocks, then the places of both, padded to 128 bytes."""
ROW_BIT = 24
"""First bit of the kernel row in a place; the bits below are its distance in shared memory."""
FORM = "warpgroup-blocks-"


@dataclass(frozen=True)
class ListForm:
    """How a kernel needs its list; written into the layout of its weights."""

    pairs: int
    """The number of fragments in every tile's list is a multiple of this."""
    tiles: int
    fragments: int
    """The most fragments in total."""
    row: int
    """Units of 16 bytes of shared memory from one kernel row to the next,"""
    block: int
    """from one block of 32 channels to the next,"""
    column: int
    """from one kernel column to the next."""

    @property
    def text(self) -> str:
        """The text of the weights' layout."""
        numbers = (self.pairs, self.tiles, self.fragments, self.row, self.block, self.column)
        return FORM + "-".join(map(str, numbers))

    @classmethod
    def of(cls, form: str) -> ListForm:
        """Parse the layout's text."""
        return cls(*map(int, form.removeprefix(FORM).split("-")))

    @property
    def words(self) -> int:
        """Words of all weights."""
        return self.tiles * HEAD_WORDS + self.fragments * LISTED_WORDS

"""The CUDA texts of several kernels joined into one, and separated again: each after the first in its own namespace.

The names of helper functions are TVM's, and two texts may share some. A kernel in a namespace keeps its C linkage, so
the machine code has it under its own name: every text must name its kernel differently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_BEGIN, _END = "\nnamespace part_{} {{\n", "\n}}  // part_{}\n"
_PART = re.compile(r"\nnamespace part_(\d+) \{\n(.*?)\n\}  // part_\1\n", re.DOTALL)


def joined(texts: Sequence[str]) -> str:
    """One text that defines everything that the given texts define."""
    first, *others = texts
    more = (_BEGIN.format(place) + text + _END.format(place) for place, text in enumerate(others, 1))
    return first + "".join(more)


def separate(text: str) -> list[str]:
    """The texts that :func:`joined` joined."""
    first = _PART.search(text)
    return [text[: first.start()] if first else text, *(found[2] for found in _PART.finditer(text))]

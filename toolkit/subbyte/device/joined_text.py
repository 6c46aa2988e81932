"""The CUDA texts of several kernels in one, and back: each behind the first in a namespace of its own.

Names of helpers are those of TVM, and two texts have some in common. A kernel keeps C linkage in a namespace, so the
machine code has it by its own name: each text must name it differently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_BEGIN, _END = "\nnamespace part_{} {{\n", "\n}}  // part_{}\n"
_PART = re.compile(r"\nnamespace part_(\d+) \{\n(.*?)\n\}  // part_\1\n", re.DOTALL)


def joined(texts: Sequence[str]) -> str:
    """One text that defines what all of them define."""
    first, *others = texts
    more = (_BEGIN.format(place) + text + _END.format(place) for place, text in enumerate(others, 1))
    return first + "".join(more)


def separate(text: str) -> list[str]:
    """The texts that :func:`joined` put together."""
    first = _PART.search(text)
    return [text[: first.start()] if first else text, *(found[2] for found in _PART.finditer(text))]

"""Which part of a bundle this process measures, while the bundle may still be growing and others measure the rest.

Kernels are distributed by the digest of their program, so that those with equal machine code go to the same process,
which measures them once.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from subbyte.errors import InvalidInput
from subbyte.numerals import natural
from subbyte.records.reading import document, typed
from subbyte.records.shapes import Count, Name

_LOOK_AGAIN_S = 0.05


@dataclass
class Share:
    """Part ``number`` of ``parts`` of a bundle. ``growing`` says whether entries may still be added to it."""

    number: int = 0
    parts: int = 1
    growing: Callable[[], bool] = field(default=lambda: False)

    @classmethod
    def parse(cls, text: str, growing: Callable[[], bool]) -> Share:
        """Parse ``"2/8"``: the third of eight parts. Raises InvalidInput."""
        first, slash, second = text.partition("/")
        number, parts = natural(first), natural(second)
        if not slash or number is None or parts is None or number >= parts:
            raise InvalidInput(f"share {text!r}: expected NUMBER/PARTS with a number below the parts, such as 0/2")
        return cls(number, parts, growing)

    def holds(self, entry: Mapping[str, Any]) -> bool:
        """Whether this entry belongs to this part."""
        name = str(entry.get("program") or entry["index"])
        return sum(name.encode()) % self.parts == self.number if self.parts > 1 else True

    def entries(self, folder: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
        """Entries of this part, in the order they were built, until the bundle stops growing."""
        from subbyte.records.manifest import MANIFEST

        rest, first = b"", True
        with open(Path(folder) / MANIFEST, "rb") as file:
            while True:
                growing = self.growing()  # checked before reading, so that everything written until then is read
                *lines, rest = (rest + file.read()).split(b"\n")
                for line in lines[first:]:
                    entry = _entry(line, folder)
                    if self.holds(entry):
                        yield entry
                first = first and not lines
                if not growing:
                    return
                if not lines:
                    time.sleep(_LOOK_AGAIN_S)


class Arriving(msgspec.Struct, frozen=True):
    """The fields of an entry that decide which part it belongs to; the process that measures it reads the rest."""

    index: Count
    program: Name = ""


def _entry(line: bytes, folder: str | os.PathLike[str]) -> dict[str, Any]:
    source = f"{folder}: the manifest is damaged"
    entry: dict[str, Any] = document(line, dict[str, Any], source, "delete the folder and build it again")
    typed(entry, Arriving, source, "delete the folder and build it again")
    return entry


def input_is_open() -> bool:
    """Whether standard input is still open: the process that started this one closes it when everything is built, and
    the system does when that process is gone."""
    ready, _, _ = select.select([sys.stdin.fileno()], [], [], 0)
    return not ready or bool(os.read(sys.stdin.fileno(), 4096))

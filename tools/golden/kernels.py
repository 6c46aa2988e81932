"""Digests of kernels' CUDA texts and machine code, by workload, configuration key, architecture and output.

The list is plain text, so that it outlives every name in the library. ``retired`` holds the parts of keys (``sw``)
whose knobs are no more, or no more without another part (``ov-bw``): those kernels must be refused. Machine code is
compared by its instructions, constants and registers, whatever its sections are called, and only where the text is
another one. It is held of every kernel that is shipped or recommended and of every design variant
(:func:`holds_code`): together they go through every line of the generators, and the rest are more of the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from golden import FOLDER, library

FILE = FOLDER / "kernels.json"
SAME, RETIRED = "same", "retired"
TEXT, CODE, NOT_HELD, NOT_COMPARED = (
    "another text, the same machine code", "other machine code", "another text, no machine code held",
    "another text, machine code not compared",
)  # fmt: skip
REFUSED, BACK = "refused", "built, though its knob is retired"
GOOD, FAIR = (SAME, RETIRED), (TEXT, NOT_HELD)
"""What may be, and what may be besides where machine code was compared."""
MANY = ("tuning", "side by side", "gpu ")
"""How the names of kernels begin that stand for many alike: found by a search, or drawn."""
_CODE = (b".text", b".nv.constant", b".nv.shared", b".nv.global", b".rodata")
_NO_BITS = 8


@dataclass(frozen=True)
class Entry:
    """One kernel. ``names`` say where it comes from; ``text`` and ``code`` are digests, empty when not known yet."""

    names: tuple[str, ...]
    spec: str
    key: str
    arch: str
    options: dict[str, Any] = field(hash=False)
    text: str = ""
    code: str = ""

    @property
    def place(self) -> tuple[str, ...]:
        """What makes it this kernel and no other."""
        return self.spec, self.key, self.arch, json.dumps(self.options)

    @property
    def label(self) -> str:
        """What names it in messages."""
        more = f" {json.dumps(self.options)}" if self.options else ""
        return f"{self.spec} {self.key} {self.arch}{more} ({', '.join(self.names)})"


@dataclass(frozen=True)
class Golden:
    """What the file holds."""

    made_with: dict[str, str]
    retired: tuple[str, ...]
    entries: tuple[Entry, ...]


def is_retired(key: str, retired: Sequence[str]) -> bool:
    """Whether a key names a knob that is no more."""
    found = (re.fullmatch(r"([a-z]+)\d+", part) for part in key.removeprefix("wg-").split("-"))
    parts = {part[1] for part in found if part is not None}
    gone = (one.partition("-") for one in retired)
    return key.startswith("wg-") and any(part in parts and other not in parts for part, _, other in gone)


def read(path: Path = FILE) -> Golden:
    """The recorded digests."""
    data = json.loads(path.read_text(encoding="utf-8"))
    names = data["names"]
    entries = tuple(
        Entry(tuple(names[n] for n in numbers), spec, key, data["archs"][arch], data["options"][options], text, code)
        for spec, rows in data["kernels"].items()
        for key, arch, options, numbers, text, code in rows
    )
    return Golden(data["made_with"], tuple(data["retired"]), entries)


def write(golden: Golden, path: Path = FILE) -> None:
    """The file, one line for each kernel, those of a workload together."""
    names = sorted({name for entry in golden.entries for name in entry.names})
    archs = sorted({entry.arch for entry in golden.entries})
    options: list[dict[str, Any]] = []
    by_spec: dict[str, list[str]] = {}
    for entry in sorted(golden.entries, key=lambda e: e.place):
        if entry.options not in options:
            options.append(entry.options)
        row = [entry.key, archs.index(entry.arch), options.index(entry.options), [names.index(n) for n in entry.names],
               entry.text, entry.code]  # fmt: skip
        by_spec.setdefault(entry.spec, []).append(json.dumps(row, separators=(",", ":")))
    head = {"made_with": golden.made_with, "retired": list(golden.retired), "names": names, "archs": archs,
            "options": options}  # fmt: skip
    lines = [f"{json.dumps(name)}: {json.dumps(value)},\n" for name, value in head.items()]
    kernels = ",\n".join(f"{json.dumps(spec)}: [\n" + ",\n".join(rows) + "]" for spec, rows in by_spec.items())
    path.write_text("{" + "".join(lines) + '"kernels": {\n' + kernels + "}}\n", encoding="utf-8")


def digest(data: str | bytes) -> str:
    """By which a text is known: 48 bits of SHA-256."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()[:12]


def code_digest(cubin: bytes) -> str:
    """By which machine code is known: 40 bits over code, constants, sizes and registers, without any name."""
    parts = sorted(_sections(cubin))
    if not any(kind == b".text" for kind, *_ in parts):
        raise ValueError(f"{len(cubin)} bytes that hold no machine code")
    found = hashlib.sha256()
    for kind, registers, length, content in parts:
        found.update(struct.pack("<IQ", registers, length) + kind + content)
    return found.hexdigest()[:10]


def _sections(cubin: bytes) -> Iterator[tuple[bytes, int, int, bytes]]:
    """Kind, registers, size and content of each section that an ELF file executes or reads."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<2I4Q2I2Q", cubin, table + place * size) for place in range(count)]
    for name, form, _, _, place, length, _, info, _, _ in headers:
        title = cubin[headers[names][4] + name :].partition(b"\0")[0]
        for kind in _CODE:
            if title.startswith(kind):
                number = re.match(rb"\d*", title[len(kind) :])
                content = b"" if form == _NO_BITS else cubin[place : place + length]
                yield kind + (number[0] if number else b""), info >> 24, length, content


def holds_code(entry: Entry) -> bool:
    """Whether the digest of its machine code is recorded: compiling all would take half an hour."""
    return "form" not in entry.options and not all(name.startswith(MANY) for name in entry.names)


def compute(entry: Entry, code: bool = False) -> Entry:
    """The entry with the digests of the library as it is; with ``code`` also of its machine code, where the text is
    another one or none is known, and it is held. Raises a SubbyteError where the kernel is refused."""
    made = library.text(entry.spec, entry.key, entry.arch, entry.options)
    found = digest(made)
    if code and holds_code(entry) and (found != entry.text or not entry.code):
        return replace(entry, text=found, code=code_digest(library.machine_code(made, entry.arch)))
    return replace(entry, text=found)


def state(entry: Entry, retired: Sequence[str] = (), code: bool = False) -> tuple[str, str, Entry]:
    """What became of a kernel: one of the words above, a message and the entry as it is now."""
    from subbyte.errors import SubbyteError

    gone = is_retired(entry.key, retired)
    try:
        now = compute(entry, code)
    except SubbyteError as error:
        return (RETIRED if gone else REFUSED), str(error), entry
    if gone:
        return BACK, "", entry
    if now.text == entry.text:
        return SAME, "", now
    if not code:
        word = NOT_COMPARED
    elif not entry.code:
        word = NOT_HELD
    else:
        word = TEXT if now.code == entry.code else CODE
    return word, f"{entry.text} -> {now.text}", now


def states(
    entries: Sequence[Entry], retired: Sequence[str] = (), code: bool = False, workers: int = 2
) -> Iterator[tuple[str, str, Entry]]:
    """:func:`state` of each entry, in order, on some processes, and without what any cache holds."""
    work = partial(state, retired=tuple(retired), code=code)
    with tempfile.TemporaryDirectory(prefix="subbyte-golden-") as folder:
        before = os.environ.get("SUBBYTE_CACHE")
        os.environ["SUBBYTE_CACHE"] = folder
        library.load()
        try:
            if workers == 1:
                yield from map(work, entries)
                return
            with ProcessPoolExecutor(workers, get_context("fork")) as pool:
                yield from pool.map(work, entries, chunksize=4)
        finally:
            os.environ.pop("SUBBYTE_CACHE")
            if before is not None:
                os.environ["SUBBYTE_CACHE"] = before


def sample(golden: Golden, count: int) -> list[Entry]:
    """``count`` entries, the same ones each time, spread by their digests."""
    return sorted(golden.entries, key=lambda entry: entry.text)[:: max(1, len(golden.entries) // count)][:count]


def report(found: Iterable[tuple[str, str, Entry]]) -> tuple[Counter[str], list[str]]:
    """How many came out how, and a line for each that did not come out well."""
    counts: Counter[str] = Counter()
    lines = []
    for word, message, entry in found:
        counts[word] += 1
        if word not in GOOD:
            lines.append(f"{word}: {entry.label}: {message}")
    return counts, lines

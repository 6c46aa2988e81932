"""Valid files with one field replaced, and files damaged at random."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).resolve().parents[2] / "tests" / "corpus"
_PLACE = "@@replaced@@"
_NUMBERS = ("int", "float")


def corpus(name: str) -> Any:
    """What a corpus holds."""
    return json.loads((CORPUS / f"{name}.json").read_text(encoding="utf-8"))


def field_values() -> list[str]:
    """JSON texts to put in a field's place."""
    texts = []
    for value in corpus("field_values")["values"]:
        if "raw" in value:
            texts.append(value["raw"])
        else:
            first, times, last, ends = value["repeat"]
            texts.append(first * times + last * ends)
    return texts


def places(data: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every field of plain data; of a list the first two."""
    keys: Any = (
        list(data)[:60] if isinstance(data, dict) else range(min(2, len(data))) if isinstance(data, list) else ()
    )
    for key in keys:
        yield (*before, key)
        yield from places(data[key], (*before, key))


def at(data: Any, place: tuple[Any, ...]) -> Any:
    """The field at a place."""
    for key in place:
        data = data[key]
    return data


def replaced(data: Any, place: tuple[Any, ...], raw: str) -> str:
    """The compact JSON of ``data`` with the text ``raw`` in one place."""

    def copy(value: Any, rest: tuple[Any, ...]) -> Any:
        if not rest:
            return _PLACE
        items = value.items() if isinstance(value, dict) else enumerate(value)
        made = {key: copy(item, rest[1:]) if key == rest[0] else item for key, item in items}
        return made if isinstance(value, dict) else list(made.values())

    return json.dumps(copy(data, place), separators=(",", ":"), ensure_ascii=False).replace(f'"{_PLACE}"', raw)


def without(data: Any, place: tuple[Any, ...]) -> str:
    """The compact JSON of ``data`` without one field."""
    made = json.loads(json.dumps(data))
    del at(made, place[:-1])[place[-1]]
    return json.dumps(made, separators=(",", ":"), ensure_ascii=False)


def kind(value: Any) -> str:
    """The JSON type of a value."""
    return "null" if value is None else type(value).__name__


def must(old: Any, raw: str, loose: bool = False) -> str:
    """``refuse`` where ``raw`` is certainly no value of the field that holds ``old``: no JSON, beyond any limit, or of
    another type. ``loose``: the field may hold plain data of any type."""
    if len(raw) > 1000 or "1e999" in raw or "ud800" in raw or raw in ("NaN", "Infinity", "-Infinity"):
        return "refuse"
    new = kind(json.loads(raw))
    if loose or new == kind(old) or (new == "int" and kind(old) == "float"):
        return "either"
    return "refuse"


def damaged(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """What was done, and the bytes after it."""
    spot, lines = rng.randrange(len(data)), data.split(b"\n")
    line = rng.randrange(len(lines))
    ways = {
        "flip": lambda: data[:spot] + bytes([data[spot] ^ (1 << rng.randrange(8))]) + data[spot + 1 :],
        "cut": lambda: data[:spot],
        "drop": lambda: data[:spot] + data[spot + rng.randint(1, 40) :],
        "insert": lambda: data[:spot] + rng.randbytes(rng.randint(1, 8)) + data[spot:],
        "not UTF-8": lambda: data[:spot] + b"\xff" + data[spot + 1 :],
        "nothing": lambda: b"",
        "line away": lambda: b"\n".join(lines[:line] + lines[line + 1 :]),
        "line twice": lambda: b"\n".join(lines[: line + 1] + lines[line:]),
        "empty line": lambda: b"\n".join([*lines[:line], b"", *lines[line:]]),
        "line last": lambda: b"\n".join([*lines[:line], *lines[line + 1 :], lines[line]]),
    }
    way = rng.choice(list(ways))
    return f"{way} at {spot}, line {line}", ways[way]()


def packed(content: bytes) -> bytes:
    """gzip, quickly."""
    return gzip.compress(content, compresslevel=1, mtime=0)

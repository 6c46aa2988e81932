"""The single entry point for files: bytes, unpacked up to a limit, as UTF-8, as JSON up to a limit, as a typed record.

All readers of files go through here, so that anything damaged, too large, nested too deeply or of another type is
rejected with the same wording everywhere: which file, which line or field, what was expected. Values keep their type in
the file (5 stays an integer where a number is expected), so that what is read and written again stays the same.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from subbyte.errors import BrokenRecord, InvalidInput

MOST_BYTES = 512 * 2**20
"""The most bytes of a file's unpacked content."""
MOST_LINE_BYTES = 16 * 2**20
"""The most bytes in one line of a compressed file. The longest recorded so far has 3 kB."""
MOST_RATIO = 100
"""Limit on the compression ratio for unpacked contents above ``_SMALL``; records reach 20."""
DEEPEST = 40
"""Limit on nested lists and objects, unless the shape implies one."""
_SMALL = 64 * 2**20
_CHUNK = 2**20
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
_AT = re.compile(r"^(.*?)(?: - at `(key in )?\$?(.*)`)?$", re.DOTALL)
_POSITIVE = re.compile(r"^expected (?:int >= 1|float > 0(?:\.0)?)$")
_SHOWN = 300


def is_a_file(path: Path) -> bool:
    """Whether there is such a file; False for text that cannot be a file name."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_bytes(path: str | os.PathLike[str], what: str) -> bytes:
    """A file's bytes; ``what`` names it in messages. Raises InvalidInput (cannot be read), BrokenRecord (too large)."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(f"{what} {os.fspath(path):.200}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MOST_BYTES:
        raise BrokenRecord(f"{path}: larger than {MOST_BYTES // 2**20} MiB, which no such file is; choose another one")
    return data


def unpacked(data: bytes, source: str) -> bytes:
    """The content of gzip-compressed bytes; other bytes are returned unchanged. Raises BrokenRecord."""
    if data[:2] != _GZIP:
        return data
    most = min(MOST_BYTES, max(_SMALL, MOST_RATIO * len(data)))
    content = bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while chunk := file.read(_CHUNK):
                content += chunk
                if len(content) > most:
                    raise BrokenRecord(
                        f"{source}: unpacks to more than {most // 2**20} MiB, which is no record; choose another file"
                    )
    except (*_DAMAGED, OSError) as error:
        raise BrokenRecord(f"{source}: damaged or cut short ({error}); fetch it again") from None
    return bytes(content)


def to_text(data: bytes, source: str) -> str:
    """Bytes as UTF-8 without a byte-order mark. Raises BrokenRecord naming the line."""
    if data.startswith(_BOM):
        raise BrokenRecord(f"{source}: begins with a byte-order mark; save it as UTF-8 without one")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BrokenRecord(
            f"{source}, line {line}: damaged, byte {error.start} is not UTF-8; fetch it again or save it as UTF-8"
        ) from None


def document(data: bytes, shape: Any, source: str, advice: str = "fetch it again") -> Any:
    """The JSON in ``data`` as a ``shape``. Raises BrokenRecord naming ``source``, the field, and the ``advice``."""
    if data.startswith(_BOM):
        to_text(data, source)
    try:
        found = _decoder(shape).decode(data)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        refuse(error, source, advice)
    if shape is Any:
        shallow(found, source)
    return found


def loose_document(text: str, source: str) -> Any:
    """JSON of other programs, which may contain NaN and Infinity. Raises ValueError like json.loads if it is not JSON,
    BrokenRecord for numbers with thousands of digits and for too deep nesting."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        refuse(error, source, "choose another file")
    shallow(found, source)
    if "\\ud" in text.lower():
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise BrokenRecord(f"{source}: half of a character (\\ud800 to \\udfff alone); repair that text") from None
    return found


def typed(value: Any, shape: Any, source: str, advice: str = "fetch it again") -> Any:
    """Plain data as a ``shape``. Raises BrokenRecord like :func:`document`."""
    try:
        return msgspec.convert(value, shape)
    except (ValueError, RecursionError) as error:
        refuse(error, source, advice)


def json_file(path: str | os.PathLike[str], what: str) -> Any:
    """The JSON in a file, compressed or not. Raises InvalidInput, BrokenRecord."""
    return document(unpacked(read_bytes(path, what), str(path)), Any, str(path))


def packed_lines(path: Path, what: str) -> Iterator[bytes]:
    """Lines of a gzip-compressed file, one at a time, with their line breaks. Raises InvalidInput, BrokenRecord."""
    try:
        with gzip.open(path, "rb") as file:
            while line := file.readline(MOST_LINE_BYTES + 1):
                if len(line) > MOST_LINE_BYTES:
                    raise BrokenRecord(f"{path}: a line of more than {MOST_LINE_BYTES // 2**20} MiB is no {what}")
                yield line
    except _DAMAGED as error:
        if isinstance(error, gzip.BadGzipFile):
            raise BrokenRecord(f"{path}: not a {what} ({error})") from None
        raise BrokenRecord(f"{path}: damaged or cut short ({error}); fetch it again") from None
    except FileNotFoundError:
        raise InvalidInput(f"no {what} {path}") from None
    except OSError as error:
        raise InvalidInput(f"{what} {path}: {error.strerror or error}") from None


def why(error: Exception) -> str:
    """What a decoder found wrong, as a clause: ``samples[1]: expected a number, got text``."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    if not isinstance(error, msgspec.ValidationError):
        return "not JSON, or not whole" if isinstance(error, msgspec.DecodeError | json.JSONDecodeError) else str(error)
    matched = _AT.match(str(error))
    said, key, place = matched.groups() if matched else (str(error), None, None)
    said = said.replace("`", "")
    said = _POSITIVE.sub("expected a positive number", said[:1].lower() + said[1:])
    where = (place or "").lstrip(".").replace("[...]", "", 1 if (place or "").startswith("[...]") else 0)
    return f"{'a name in ' if key else ''}{where}: {said}"[:_SHOWN] if where else said[:_SHOWN]


def refuse(error: Exception, source: str, advice: str) -> NoReturn:
    """Raise BrokenRecord for an error of a decoder."""
    raise BrokenRecord(f"{source}: {why(error)}; {advice}") from None


def shallow(value: Any, source: str, deepest: int = DEEPEST) -> None:
    """Raise BrokenRecord if plain data is nested more than ``deepest`` levels."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(deepest):
        inner = (item for outer in level for item in (outer.values() if isinstance(outer, dict) else outer))
        level = [item for item in inner if isinstance(item, dict | list)]
        if not level:
            return
    raise BrokenRecord(f"{source}: nested more than {deepest} levels deep, which no such file is; choose another one")


@cache
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape)


def decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of a shape, for readers of many lines: its ``decode`` raises ValueError or RecursionError."""
    return _decoder(shape)

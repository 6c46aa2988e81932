"""Record logs: append-only JSON lines that survive a crash at any point.

The first line is the header (format, schema, space, workload, seed, strategy, device, versions, created); every other
line is one trial: ``{"trial", "index", "config", "result", "ask", "started", "finished", "crc"}``. A line is written
with one call and flushed to disk before the trial counts. ``crc`` is the CRC-32 of the line, continued from the
line before, so that a changed, missing or repeated line is detected and named. A last line without its line break was
cut off by a crash: it is dropped with a warning. ``ask`` is [number of the ask, its size, results told before it], from
which a resumed study restores its strategy's exact state; null for a result that was told without being asked for.
"""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import FileIO
from typing import Any

import msgspec

from subbyte.errors import BrokenRecord, InvalidInput, NotWritten
from subbyte.files import prove_writable
from subbyte.records import reading
from subbyte.records.checked import file_path
from subbyte.records.describe import config_from_dict, described, to_line
from subbyte.records.result import Result, result_of
from subbyte.records.shapes import LogHeader, LogLine
from subbyte.spaces.configuration import Configuration

try:
    import fcntl
except ImportError:  # not a POSIX system: the user must keep two writers apart
    fcntl = None  # type: ignore[assignment]

FORMAT = "subbyte-log"
_BEGINNING = b'{"format":"subbyte-log",'
"""How every log begins; distinguishes a truncated header from somebody else's file."""
SCHEMA = 1


class NotRecorded(NotWritten, OSError):
    """A result could not be written: the disk is full or gone."""


@dataclass(frozen=True)
class Entry:
    """One trial line. ``ask`` is (ask number, ask size, results told before it) or None."""

    trial: int
    index: int
    config: Configuration
    result: Result
    ask: tuple[int, int, int] | None = None
    started: str = ""
    finished: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Fields of the line, without the checksum."""
        return {
            "trial": self.trial, "index": self.index, "config": self.config.to_dict(),
            "result": self.result.to_dict(), "ask": list(self.ask) if self.ask else None,
            "started": self.started, "finished": self.finished,
        }  # fmt: skip


@dataclass(frozen=True)
class Contents:
    """Contents of a log file: header, trials, number of intact bytes, the running checksum, and a notice if it was
    truncated."""

    header: dict[str, Any]
    entries: tuple[Entry, ...]
    whole_bytes: int
    checksum: int
    notice: str = ""


def read_contents(path: str | os.PathLike[str]) -> Contents:
    """Read and check a log. Raises InvalidInput (no such file), BrokenRecord (damaged, with the line number)."""
    return parse_contents(reading.read_bytes(file_path(path, "record log"), "record log"), str(path))


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The header of a log; empty if there is none yet, or none that can be read.

    Raises InvalidInput for an impossible path, BrokenRecord for a file that is not a log.
    """
    try:
        with file_path(path, "record log").open("rb") as file:
            first = file.readline(reading.MOST_LINE_BYTES)
    except OSError:
        return {}
    return parse_contents(first, str(path)).header if first.endswith(b"\n") else {}


def parse_contents(data: bytes, path: str) -> Contents:
    """Check the bytes of a log; ``path`` is used in messages. An empty or truncated header gives an empty log."""
    whole = data.rfind(b"\n") + 1
    lines = data[:whole].split(b"\n")[:-1]
    notice = ""
    if whole < len(data):
        if not lines and not data.startswith(_BEGINNING[: len(data)]):
            raise BrokenRecord(f"{path}, line 1: not a record log of this program; choose another file")
        notice = f"{path}, line {len(lines) + 1}: cut short by a crash ({len(data) - whole} bytes), dropped"
    header: dict[str, Any] = {}
    entries: list[Entry] = []
    checksum = 0
    for number, line in enumerate(lines, start=1):
        try:
            if number == 1:
                fields, checksum = open_line(line, checksum, Any)
                header = _check_header(fields)
            else:
                trial, checksum = open_line(line, checksum, LogLine)
                entries.append(_to_entry(trial, header["space"]))
        except (ValueError, RecursionError) as error:
            kept = {1: "choose another file", 2: "keep its first line and resume"}
            raise BrokenRecord(
                f"{path}, line {number}: {_describe(error):.400}; restore the file from a copy, "
                f"or {kept.get(number, f'keep its first {number - 1} lines and resume')}"
            ) from None
    return Contents(header, tuple(entries), whole, checksum, notice)


def _describe(error: Exception) -> str:
    odd = isinstance(error, UnicodeDecodeError) or type(error) is msgspec.DecodeError
    return "not a whole JSON line" if odd else reading.why(error)


def open_line(line: bytes, before: int, shape: Any) -> tuple[Any, int]:
    """A line as a ``shape``, and the checksum after it. Raises ValueError for a damaged one."""
    body, mark, tail = line.rpartition(b',"crc":"')
    fields = reading.decoder(shape).decode(line)
    if shape is Any and not isinstance(fields, dict):
        raise ValueError("not a JSON object")
    checksum = zlib.crc32(body, before)
    if not mark or tail != f'{checksum:08x}"}}'.encode():
        raise ValueError("the checksum does not fit: the line was changed, or the line before it is missing")
    return fields, checksum


def seal_line(fields: Mapping[str, Any], before: int) -> tuple[bytes, int]:
    """The bytes of a line (with checksum and line break) and the checksum after it."""
    body = to_line(fields).encode()[:-1]
    checksum = zlib.crc32(body, before)
    return body + f',"crc":"{checksum:08x}"}}\n'.encode(), checksum


def _check_header(fields: dict[str, Any]) -> dict[str, Any]:
    if fields.get("format") != FORMAT:
        raise ValueError(f"not the header of a {FORMAT} file")
    if fields.get("schema") != SCHEMA:
        raise ValueError(f"schema {fields.get('schema')!s:.40}; this version of subbyte reads schema {SCHEMA}")
    shape: LogHeader = msgspec.convert(fields, LogHeader)
    described(shape.workload, shape.space, fields["space"])
    return {key: value for key, value in fields.items() if key != "crc"}


def _to_entry(line: LogLine, space: Mapping[str, Any]) -> Entry:
    if line.index >= space["size"]:
        raise ValueError(f"index {line.index} lies outside the space of {space['size']} configurations")
    return Entry(
        line.trial, line.index, config_from_dict(line.config, space["kind"]), result_of(line.result, line.result.ok),
        line.ask, line.started, line.finished,
    )  # fmt: skip


def prove_log(path: str | os.PathLike[str] | None, resume: bool) -> None:
    """Reject what a :class:`LogWriter` would reject, without opening one: a file that cannot be written, or that exists
    and is not to be resumed. Raises InvalidInput."""
    if path is None:
        return
    prove_writable(path, "record log", parents=True)
    if not resume and os.path.exists(path) and os.path.getsize(path):
        raise InvalidInput(f"record log {path} exists: resume it (resume=True, --resume) or choose another file")


class LogWriter:
    """The only writer of a log: holds an exclusive lock from opening to ``close``.

    With ``resume`` an existing file is read into ``contents`` and continued: a truncated last line is removed with a
    warning, everything else stays unchanged. Without it an existing file is rejected. Raises InvalidInput (exists,
    locked, not writable), BrokenRecord.
    """

    def __init__(self, path: str | os.PathLike[str], resume: bool = False) -> None:
        self.path = file_path(path, "record log")
        self._file = self._open()
        try:
            data = reading.read_bytes(self.path, "record log")
            if data and not resume:
                raise InvalidInput(
                    f"record log {path} exists: resume it (resume=True, --resume) or choose another file"
                )
            self.contents = parse_contents(data, str(path))
        except BaseException:
            self._file.close()
            raise
        if self.contents.notice:
            warnings.warn(self.contents.notice, stacklevel=3)
            self._file.truncate(self.contents.whole_bytes)
            os.fsync(self._file.fileno())
        self._checksum = self.contents.checksum
        self._indices = {entry.index for entry in self.contents.entries}
        self.empty = not self.contents.header

    def _open(self) -> FileIO:
        prove_log(self.path, resume=True)
        try:
            file = FileIO(self.path, "ab")
        except OSError as error:
            raise InvalidInput(f"cannot write record log {self.path}: {error.strerror or error}") from None
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                raise InvalidInput(
                    f"record log {self.path} is being written by another study: close it, or choose another file"
                ) from None
        return file

    def write_header(self, fields: Mapping[str, Any]) -> None:
        """Write the first line of a new log; does nothing if there is one."""
        if self.empty:
            self._append(fields)
            self.empty = False

    def write(self, entry: Entry) -> None:
        """Write one trial and flush it to disk. An index that is already in the file is not written again; that
        can only happen after Ctrl-C between writing a trial and noting it."""
        if entry.index not in self._indices:
            self._append(entry.to_dict())
            self._indices.add(entry.index)

    def _append(self, fields: Mapping[str, Any]) -> None:
        line, checksum = seal_line(fields, self._checksum)
        before, start = self._checksum, os.fstat(self._file.fileno()).st_size
        try:
            view = memoryview(line)
            while view:
                view = view[self._file.write(view) :]
            os.fsync(self._file.fileno())
            self._checksum = checksum
        except BaseException as error:  # disk full, Ctrl-C: leave no partial line behind
            self._checksum = before
            self._file.truncate(start)
            if isinstance(error, OSError):
                raise NotRecorded(
                    f"record log {self.path}: cannot be written ({error.strerror or error}); what it holds is whole. "
                    "Make room, then go on with --resume"
                ) from error
            raise

    def close(self) -> None:
        """Release the file and its lock; may be called twice."""
        self._file.close()


def refuse_other(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> None:
    """Raise InvalidInput naming the first difference between a log and a study."""
    pairs: Iterable[tuple[str, Any, Any]] = (
        ("workload", old["workload"]["spec"], new["workload"]["spec"]),
        ("architecture", old["space"]["arch"], new["space"]["arch"]),
        ("kind of space", old["space"]["kind"], new["space"]["kind"]),
        ("space (hash)", old["space"]["hash"], new["space"]["hash"]),
        ("seed", old["seed"], new["seed"]),
        ("strategy", old["strategy"], new["strategy"]),
    )
    for what, before, after in pairs:
        if before != after:
            raise InvalidInput(
                f"record log {path}: cannot resume, its {what} is {before}, this study's is {after}; "
                "use the same, or another log file"
            )

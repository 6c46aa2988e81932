"""The user's own store: the finds of searches on this user's GPUs, in one SQLite file shared by many processes.

Every method opens the file, does its work in one transaction and closes it again. What a method reports as stored is
on disk: in a write-ahead log that is flushed with each transaction (``synchronous=FULL``), so that neither ``kill -9``
nor a power cut loses any of it. The file belongs on a local disk: SQLite's write-ahead log does not work between
machines that share a folder over the network.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple

from subbyte.cache import cache_folder, cache_root
from subbyte.errors import BrokenRecord, InvalidInput, NotWritten
from subbyte.files import reason_of
from subbyte.records.checked import file_path
from subbyte.records.own import COLUMNS, OwnRecord, own_record

VARIABLE = "SUBBYTE_STORE"
"""Environment variable with the store's file; ``off`` disables the store."""
OFF = "off"
PART, NAME = "records", "own.sqlite"
SCHEMA = 1
APPLICATION = 0x73_62_79_74  # "sbyt": how SQLite files identify their application
PATIENCE_S = 10.0
"""How long a transaction waits for other processes."""
KEY = ("workload", "output", "arch", "gpu", "text")
_TYPES = {
    "microseconds": "REAL NOT NULL CHECK (microseconds > 0)", "low": "REAL NOT NULL", "high": "REAL NOT NULL",
    "samples": "INTEGER NOT NULL", "trials": "INTEGER NOT NULL", "verified": "INTEGER NOT NULL",
}  # fmt: skip
_TABLE = (
    "CREATE TABLE records (id INTEGER PRIMARY KEY, "
    + ", ".join(f"{name} {_TYPES.get(name, 'TEXT NOT NULL')}" for name in COLUMNS)
    + f", UNIQUE ({', '.join(KEY)}))"
)
Outcome = Literal["added", "replaced", "kept"]


class Row(NamedTuple):
    """A stored record and its number; ``problem`` says why the record cannot be read, else it is empty."""

    id: int
    record: OwnRecord


class Stored(NamedTuple):
    """What happened to a record: ``added``, ``replaced`` (it replaced ``other``), or ``kept`` (``other``, for the
    same kernel, is better and stays)."""

    outcome: Outcome
    other: OwnRecord | None = None

    def said(self, record: OwnRecord) -> str:
        """A sentence if something did not go as requested; else empty."""
        if self.outcome != "kept" or self.other is None or not self.other.beats(record):
            return ""
        return (
            f"{record.config} took {record.microseconds:.2f} us now; its record of {self.other.day} UTC, "
            f"{self.other.microseconds:.2f} us, is better and stays in the store"
        )


def store_path(given: str | os.PathLike[str] | None = None) -> Path | None:
    """The store's path: ``given``, else ``$SUBBYTE_STORE``, else in the cache folder. None for ``off``.

    Raises InvalidInput for an impossible path.
    """
    named = given if given is not None else os.environ.get(VARIABLE) or None
    if named is None:
        usual = cache_root() / PART / NAME
        return usual if usual.is_file() else cache_folder(PART) / NAME
    return None if str(named) == OFF else file_path(named, "store")


class Store:
    """A store's file, which need not exist yet: reading then finds nothing, and the first record creates it.

    Methods raise BrokenRecord (damaged, or not a store), InvalidInput (a store of a newer schema, a path that cannot
    be written) and NotWritten (locked for longer than ``patience`` seconds, read-only, a full disk), each with one
    sentence; nothing is then partially written.
    """

    def __init__(self, path: str | os.PathLike[str], patience: float = PATIENCE_S) -> None:
        self.path = file_path(path, "store")
        self.patience = patience

    def rows(
        self, workload: str | None = None, gpu: str | None = None, arch: str | None = None, ids: Sequence[int] = ()
    ) -> list[Row]:
        """Stored records, the fastest of a workload first; optionally only those of a workload (its spec), a GPU, an
        architecture, or with certain numbers. Raises also BrokenRecord for a record that cannot be read, with its
        number."""
        if not self._is_there():
            return []
        with self._open(write=False) as database:
            return self._rows(database, _where(workload, gpu, arch, ids)) if _tables(database) else []

    def add(self, record: OwnRecord) -> Stored:
        """Store a record; it is on disk when this returns. A better one of the same kernel text stays, unless it is
        from the same search, whose newer finds replace older ones."""
        with self._open(write=True) as database:
            done = self._put(database, record)
            if done.outcome != "kept" and record.search:
                database.execute(
                    "DELETE FROM records WHERE search = ? AND workload = ? AND output = ? AND text != ?",
                    (record.search, record.workload, record.output, record.text),
                )
            return done

    def add_all(self, records: Iterable[OwnRecord]) -> list[Stored]:
        """Store several records, all of them or none."""
        with self._open(write=True) as database:
            return [self._put(database, record) for record in records]

    def forget(
        self, workload: str | None = None, gpu: str | None = None, arch: str | None = None, ids: Sequence[int] = ()
    ) -> list[Row]:
        """Remove what :meth:`rows` returns for the same arguments; returns the removed rows."""
        if not self._is_there():
            return []
        with self._open(write=True) as database:
            where = _where(workload, gpu, arch, ids)
            found = self._rows(database, where, strict=False)
            database.execute(f"DELETE FROM records {where[0]}", where[1])
            return found

    def prove_usable(self) -> None:
        """Make sure that the file exists or can be created: an unnamed temporary file is created, and removed at once,
        in its folder or the nearest existing one above it. Raises InvalidInput."""
        if self._is_there():
            return
        above = next(one for one in self.path.absolute().parents if os.path.lexists(one))
        try:
            tempfile.TemporaryFile(dir=above).close()
        except OSError as error:
            raise self._unreachable(error, f"it is not there, and nothing can be made in {above}: ") from None

    # ---- inside ------------------------------------------------------------------------------------------------

    def _is_there(self) -> bool:
        """Whether the path exists; raises InvalidInput if that cannot be determined."""
        try:
            os.lstat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise self._unreachable(error) from None
        return True

    def _put(self, database: sqlite3.Connection, record: OwnRecord) -> Stored:
        same = " AND ".join(f"{name} = ?" for name in KEY)
        found = self._rows(database, (f"WHERE {same}", list(record.key)))
        other = found[0].record if found else None
        again = other is not None and bool(record.search) and other.search == record.search
        if other is not None and not again and not record.beats(other):
            return Stored("kept", other)
        names, marks = ", ".join(COLUMNS), ", ".join("?" * len(COLUMNS))
        database.execute(f"INSERT OR REPLACE INTO records ({names}) VALUES ({marks})", list(asdict(record).values()))
        return Stored("added" if other is None else "replaced", other)

    def _rows(self, database: sqlite3.Connection, where: tuple[str, list[Any]], strict: bool = True) -> list[Row]:
        """Rows as records; one that cannot be read is an error if ``strict``, else it is left out."""
        order = "ORDER BY workload, output, arch, gpu, microseconds, id"
        text = f"SELECT id, {', '.join(COLUMNS)} FROM records {where[0]} {order}"
        rows = []
        for number, *values in database.execute(text, where[1]):
            try:
                rows.append(Row(number, own_record(_plain(values))))
            except (ValueError, TypeError) as error:
                if strict:
                    raise BrokenRecord(
                        f"store {self.path}, record {number}: {error}; `subbyte records forget --id {number}` "
                        "removes it"
                    ) from None
        return rows

    @contextmanager
    def _open(self, write: bool) -> Iterator[sqlite3.Connection]:
        """A connection inside a transaction, which is committed at the end, or rolled back on any error."""
        try:
            if write:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._connect(write)) as database:
                self._known(database, write)
                database.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    if write and not _tables(database):
                        _make(database)
                    yield database
                    database.execute("COMMIT")
                except BaseException:
                    if database.in_transaction:
                        database.execute("ROLLBACK")
                    raise
        except sqlite3.Error as error:
            raise self._refused(error) from None
        except UnicodeDecodeError:  # SQLite's message quotes the damaged bytes
            raise self._refused(sqlite3.DatabaseError("it holds bytes that are no text")) from None
        except OSError as error:
            raise self._unreachable(error, "cannot be written: " if write else "") from None

    def _connect(self, write: bool) -> sqlite3.Connection:
        if self.path.exists() and not self.path.is_file():  # opening a pipe would wait for its other end
            kind = "a folder" if self.path.is_dir() else "not a file but a device or a pipe"
            raise InvalidInput(f"store {self.path}: {kind}; name a file with store=, --store or {VARIABLE}")
        if write:
            if not self.path.exists():
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            return sqlite3.connect(self.path, timeout=self.patience, isolation_level=None)
        # SQLite cannot create its shared-memory files next to a read-only file; nobody writes it then.
        lonely = not os.access(self.path.parent, os.W_OK) and not os.path.exists(f"{self.path}-wal")
        address = f"{self.path.absolute().as_uri()}?mode=ro{'&immutable=1' if lonely else ''}"
        return sqlite3.connect(address, timeout=self.patience, isolation_level=None, uri=True)

    def _known(self, database: sqlite3.Connection, write: bool) -> None:
        """Make sure that the file is a store of this schema, or empty."""
        whose, schema = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if (whose, schema) == (0, 0) and not _tables(database):
            if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                whose = -1
        elif whose == APPLICATION and schema != SCHEMA:
            raise InvalidInput(
                f"store {self.path}: schema {schema}; this version of subbyte reads schema {SCHEMA}: choose another "
                "file, or export its records with the version that wrote it"
            )
        if whose not in (0, APPLICATION) or (whose == 0 and _tables(database)):
            raise BrokenRecord(f"store {self.path}: not a store of this program; choose another file")
        if write:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")

    def _unreachable(self, error: OSError, what: str = "") -> InvalidInput:
        return InvalidInput(
            f"store {self.path}: {what}{reason_of(error)}; name another file with store=, --store or {VARIABLE}"
        )

    def _refused(self, error: sqlite3.Error) -> Exception:
        """SQLite's error as one of ours, in one sentence."""
        name = getattr(error, "sqlite_errorname", "") or ""
        choose = f"name another file with store=, --store or {VARIABLE}"
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return NotWritten(
                f"store {self.path}: another process kept it locked for {self.patience:g} s; try again, or {choose}"
            )
        if not name or name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_SCHEMA", "SQLITE_ERROR")):
            return BrokenRecord(
                f"store {self.path}: damaged, or not a store ({error}); restore it from a copy, or {choose}"
            )
        if name.startswith("SQLITE_CONSTRAINT"):
            return InvalidInput(f"store {self.path}: a record it does not take ({error}); nothing was stored")
        return NotWritten(f"store {self.path}: cannot be used ({error}); make it writable, or {choose}")


def _tables(database: sqlite3.Connection) -> bool:
    found = database.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'records'")
    return bool(found.fetchone()[0])


def _make(database: sqlite3.Connection) -> None:
    database.execute(_TABLE)
    database.execute("CREATE INDEX by_workload ON records (workload, arch)")
    database.execute(f"PRAGMA application_id = {APPLICATION}")
    database.execute(f"PRAGMA user_version = {SCHEMA}")


def _where(workload: str | None, gpu: str | None, arch: str | None, ids: Sequence[int]) -> tuple[str, list[Any]]:
    asked = [
        (name, value) for name, value in (("workload", workload), ("gpu", gpu), ("arch", arch)) if value is not None
    ]
    parts = [f"{name} = ?" for name, _ in asked]
    if ids:
        parts.append(f"id IN ({', '.join('?' * len(ids))})")
    return f"WHERE {' AND '.join(parts)}" if parts else "", [*(value for _, value in asked), *ids]


def _plain(values: Sequence[Any]) -> dict[str, Any]:
    """A row as the data that :func:`own_record` reads."""
    data = dict(zip(COLUMNS, values, strict=True))
    packed = {name: json.loads(data[name]) if data[name] else {} for name in ("fields", "clocks")}
    return {**data, **packed, "verified": bool(data["verified"])}

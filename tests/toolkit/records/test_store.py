"""The user's own store: nothing said to be stored is lost, nothing odd enters, every refusal is one sentence."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from subbyte.errors import BrokenRecord, InvalidInput, NotWritten
from subbyte.families.mma.config import MmaConfig
from subbyte.records.own import of_result, own_record
from subbyte.records.result import Measured
from subbyte.records.store import Store, store_path
from subbyte.records.store_file import export_records, import_records, read_records

CONFIG = MmaConfig(chunk=2)
MORE = {
    "family": "mma", "trials": 8, "generator": "0123456789abcdef tvm 1", "source": "tune",
    "measured": "2026-11-24T00:00:00.000+00:00",
}  # fmt: skip
DEVICE = {"runner": "cuda", "name": "GPU A", "driver": "580.1", "uuid": "GPU-1"}


def record(microseconds=5.0, text="a", workload="n8h5w5c64k64r3s3p1", **changes):
    result = Measured(microseconds, (microseconds - 0.1, microseconds, microseconds + 0.1), verified=True,
                      clocks={"after": {"sm_mhz": 1980}})  # fmt: skip
    made = of_result(workload, "int4", "sm_90a", CONFIG, result, DEVICE, text=text * 64, **MORE)
    return replace(made, **changes)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "deep" / "own.sqlite", patience=0.2)


def test_what_is_stored_comes_back_as_it_was(store):
    assert store.rows() == []
    assert not store.path.exists()  # reading makes nothing
    one, other = record(5.0), record(4.0, "b")
    assert store.add(one).outcome == store.add(other).outcome == "added"
    assert [row.record for row in store.rows(one.workload)] == [other, one]
    assert store.rows("n8h5w5c64k64r3s3p2") == store.rows(gpu="GPU B") == store.rows(arch="sm_80") == []
    assert one.configuration == CONFIG
    assert own_record(one.to_dict()) == one
    assert store.path.stat().st_mode & 0o077 == 0  # nobody else's business


def test_a_better_one_of_the_same_text_stays_and_that_is_said(store):
    store.add(record(4.0))
    kept = store.add(slower := record(4.5))
    assert kept.outcome == "kept"
    assert "4.50 us now; its record of 2026-11-24 00:00 UTC, 4.00 us, is better and stays" in kept.said(slower)
    assert store.add(record(3.9, verified=False)).outcome == "kept"
    assert store.add(record(3.9)).outcome == "replaced"
    assert [row.record.microseconds for row in store.rows()] == [3.9]


def test_the_finds_of_one_search_give_way_to_its_best(store):
    store.add(record(9.0, "c", search="another"))
    for microseconds, text in ((5.0, "a"), (4.0, "b")):
        store.add(record(microseconds, text, search="one"))
    assert [row.record.microseconds for row in store.rows()] == [4.0, 9.0]
    assert store.add(record(4.2, "b", search="one")).outcome == "replaced"  # measured again, side by side
    assert [row.record.microseconds for row in store.rows()] == [4.2, 9.0]


WRITER = """
import sys
from subbyte.records.own import own_record
from subbyte.records.store import Store
import json
base, path, who = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
for number in range(int(sys.argv[4])):
    text = f"{int(who):032x}{number:032x}"
    Store(path).add(own_record({**base, "text": text}))
    print(text, flush=True)
"""


def writer(store, who, count):
    command = [sys.executable, "-c", WRITER, json.dumps(record().to_dict()), str(store.path), str(who), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_three_processes_write_at_once_and_one_is_killed(store):
    dying = writer(store, 9, 100_000)
    others = [writer(store, who, 20) for who in range(2)]
    for _ in range(10):
        assert dying.stdout.readline()
    dying.send_signal(signal.SIGKILL)
    said = [line.strip() for line in dying.stdout.read().splitlines() if len(line.strip()) == 64]
    dying.wait()
    told = [line.strip() for process in others for line in process.communicate()[0].splitlines()]
    assert [process.returncode for process in others] == [0, 0]
    assert len(told) == 40
    held = {row.record.text for row in store.rows()}
    assert held >= {*told, *said, *(f"{9:032x}{number:032x}" for number in range(10))}
    store.patience = 10.0
    assert store.add(record()).outcome == "added"  # the lock of the dead is nobody's


def test_a_locked_store_is_one_sentence_and_reading_goes_on(store):
    store.add(record())
    holder = sqlite3.connect(store.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    with pytest.raises(NotWritten, match=r"another process kept it locked for 0\.2 s; try again, or name another file"):
        store.add(record(4.0, "b"))
    assert time.monotonic() - started < 5
    assert len(store.rows()) == 1
    holder.close()
    assert len(store.rows()) == 1


def test_a_damaged_store_another_file_and_another_schema(store, tmp_path):
    store.add(record())
    whole = store.path.read_bytes()
    store.path.write_bytes(whole[:100] + bytes(len(whole) - 100))
    with pytest.raises(BrokenRecord, match=r"own\.sqlite: (damaged, or )?not a store"):
        store.rows()
    store.path.write_bytes(whole.replace(b"TABLE records", b"TABLE rec\xccrds"))  # what SQLite says quotes that
    for attempt in (store.rows, lambda: store.add(record())):
        with pytest.raises(BrokenRecord, match="damaged, or not a store"):
            attempt()
    store.path.write_bytes(b"somebody's notes, in plain text, longer than a header of a database " * 3)
    for attempt in (store.rows, lambda: store.add(record())):
        with pytest.raises(BrokenRecord, match="damaged, or not a store"):
            attempt()
    assert store.path.read_bytes().startswith(b"somebody's notes")
    other = sqlite3.connect(tmp_path / "theirs.sqlite")
    other.execute("CREATE TABLE records (id INTEGER)")
    other.commit()
    with pytest.raises(BrokenRecord, match="not a store of this program; choose another file"):
        Store(tmp_path / "theirs.sqlite").rows()
    store.path.write_bytes(whole)
    database = sqlite3.connect(store.path)
    database.execute("PRAGMA user_version = 7")
    database.commit()
    database.close()
    for attempt in (store.rows, lambda: store.add(record())):
        with pytest.raises(InvalidInput, match="schema 7; this version of subbyte reads schema 1"):
            attempt()


def test_a_row_that_cannot_be_read_is_named_and_can_be_forgotten(store):
    store.add(record())
    store.add(record(4.0, "b"))
    database = sqlite3.connect(store.path)
    for change in ("microseconds = NULL", "microseconds = -1"):
        with pytest.raises(sqlite3.IntegrityError):
            database.execute(f"UPDATE records SET {change}")
    database.execute("UPDATE records SET fields = '{\"x\": [[1]]}' WHERE id = 2")
    database.commit()
    database.close()
    with pytest.raises(BrokenRecord, match=r"record 2: .*`subbyte records forget --id 2` removes it"):
        store.rows()
    assert len(store.rows(ids=[1])) == 1
    store.forget(ids=[2])
    assert [row.id for row in store.rows()] == [1]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_places_that_cannot_be_written(store, tmp_path, monkeypatch):
    store.add(record())
    with pytest.raises(InvalidInput, match="a folder; name a file with store="):
        Store(tmp_path).add(record())
    os.mkfifo(tmp_path / "pipe")
    for attempt in (Store(tmp_path / "pipe").rows, lambda: Store(tmp_path / "pipe").add(record())):
        with pytest.raises(InvalidInput, match="not a file but a device or a pipe"):  # and no waiting for its other end
            attempt()
    with pytest.raises(InvalidInput, match=r"cannot be written: (Not a directory|File exists)"):
        Store(store.path / "below" / "own.sqlite").add(record())
    with pytest.raises(InvalidInput, match="expected a path"):
        Store(7)
    monkeypatch.setattr(os, "lstat", lambda path: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    for attempt in (store.rows, store.forget):  # what cannot be reached is not empty
        with pytest.raises(InvalidInput, match=r"own\.sqlite: Permission denied; name another file with store="):
            attempt()
    monkeypatch.undo()
    refused = sqlite3.OperationalError("attempt to write a readonly database")
    refused.sqlite_errorname = "SQLITE_READONLY"  # root, who runs many tests, may write everything
    assert "cannot be used (attempt to write a readonly database); make it writable" in str(store._refused(refused))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"microseconds": float("nan")}, "microseconds"), ({"microseconds": -1}, "microseconds"),
        ({"low": 6.0}, "outside its samples"), ({"text": "abc"}, "text"), ({"source": "hearsay"}, "tune or tries"),
        ({"gpu": ""}, "gpu"), ({"fields": {}}, "fields"), ({"more": 1}, "unknown field"),
        ({"measured": "soon"}, "measured"),
    ],
)  # fmt: skip
def test_odd_records_are_refused_by_field(change, said):
    with pytest.raises(InvalidInput, match=said):
        own_record({**record().to_dict(), **change})


def test_a_file_of_records_there_and_back(store, tmp_path):
    store.add_all([record(5.0), record(4.0, "b")])
    file = tmp_path / "mine.jsonl"
    assert export_records([row.record for row in store.rows()], file) == 2
    new = Store(tmp_path / "new.sqlite")
    done = import_records(new, file)
    assert (done.added, done.replaced, done.kept, done.notices) == (2, 0, 0, ())
    assert [row.record for row in new.rows()] == [row.record for row in store.rows()]
    assert import_records(new, file).kept == 2
    assert import_records(new, file).notices == ()  # the same records again are no news
    new.add(record(3.0, "b"))
    assert "4.00 us; its record of" in import_records(new, file).notices[0]


def test_damaged_lines_are_refused_by_number_and_nothing_is_imported(store, tmp_path):
    file = tmp_path / "mine.jsonl"
    export_records([record(5.0), record(4.0, "b"), record(3.0, "c")], file)
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    damage = {
        3: [lines[0], lines[1], lines[2].replace(b"4.0", b"1.0", 1), lines[3]],  # changed
        2: [lines[0], lines[2], lines[3]],  # missing
        4: [*lines[:3], lines[3][:40]],  # cut short
        1: [lines[0].replace(b"subbyte-records", b"subbyte-log"), *lines[1:]],
    }
    for number, made in damage.items():
        file.write_bytes(b"".join(made))
        with pytest.raises(BrokenRecord, match=rf"mine\.jsonl, line {number}: .*; nothing was imported"):
            import_records(store, file)
    file.write_bytes(b"".join(lines[:3]))  # the last one missing
    with pytest.raises(BrokenRecord, match="line 4: the file ends here; its header says 3 records"):
        read_records(file)
    file.write_bytes(b"")
    with pytest.raises(BrokenRecord, match="no header"):
        read_records(file)
    with pytest.raises(InvalidInput, match="records file"):
        read_records(tmp_path / "none.jsonl")
    assert store.rows() == []


def test_where_the_store_lies(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBBYTE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SUBBYTE_STORE")
    assert store_path() == tmp_path / "cache" / "records" / "own.sqlite"
    monkeypatch.setenv("SUBBYTE_STORE", str(tmp_path / "mine.sqlite"))
    assert store_path() == tmp_path / "mine.sqlite"
    assert store_path(tmp_path / "given.sqlite") == tmp_path / "given.sqlite"
    assert store_path("off") is None

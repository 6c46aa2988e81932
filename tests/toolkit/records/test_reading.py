"""The one door for files: what it refuses, and in which words."""

import gzip
import json
from typing import Any

import pytest

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.records import reading
from subbyte.records.shapes import ResultShape, Tree


def test_bytes_that_cannot_be_read_are_one_sentence(tmp_path):
    for path in (tmp_path, tmp_path / "none", "a\0b", tmp_path / ("x" * 5000)):
        with pytest.raises(InvalidInput) as refused:
            reading.read_bytes(path, "file")
        assert len(str(refused.value)) < 400
    assert not reading.is_a_file(tmp_path / ("x" * 5000))


def test_what_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(reading, "_SMALL", 2**20)
    fine = json.dumps([0.5] * 1000).encode()
    assert reading.unpacked(gzip.compress(fine), "a") == reading.unpacked(fine, "a") == fine
    with pytest.raises(BrokenRecord, match="a: unpacks to more than 1 MiB"):
        reading.unpacked(gzip.compress(bytes(2**22)), "a")
    with pytest.raises(BrokenRecord, match="a: damaged or cut short"):
        reading.unpacked(gzip.compress(fine)[:-20], "a")


def test_a_line_without_end_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(reading, "MOST_LINE_BYTES", 1000)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"short\n" + b"0" * 2000))
    lines = reading.packed_lines(path, "record")
    assert next(lines) == b"short\n"
    with pytest.raises(BrokenRecord, match="a line of more than"):
        next(lines)


def test_text_is_utf8_without_a_mark():
    assert reading.to_text("ü".encode(), "a") == "ü"
    with pytest.raises(BrokenRecord, match="a: begins with a byte-order mark"):
        reading.to_text(b"\xef\xbb\xbf{}", "a")
    with pytest.raises(BrokenRecord, match="a, line 3: damaged, byte 4 is not UTF-8"):
        reading.to_text(b"a\nb\n\xff", "a")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "nested too deeply"), ("9" * 6000, "integer value out of range"),
        ("[" * 60 + "]" * 60, "nested more than 40 levels"), ("1e999", "number out of range"),
        ("NaN", "not JSON"), ("{", "not JSON"), ("", "not JSON"), ('"\\ud800"', "not JSON"),
        ("{} {}", "not JSON"),
    ],
)  # fmt: skip
def test_json_has_limits(text, said):
    with pytest.raises(BrokenRecord, match=f"^a: {said}"):
        reading.document(text.encode(), Any, "a")


def test_json_of_others_may_hold_nan_and_no_more():
    assert reading.loose_document('{"a": NaN}', "a")
    for text in ("[" * 100_000, "9" * 6000, "[" * 60 + "]" * 60):
        with pytest.raises(BrokenRecord):
            reading.loose_document(text, "a")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"ok": 1}', "ok: expected bool, got int"), ('{"microseconds": 1}', "object missing required field ok"),
        ('{"ok": true, "samples": [1, "a"]}', r"samples\[1\]: expected float, got str"),
        ('{"ok": true, "samples": [0]}', r"samples\[0\]: expected a positive number"),
        ('{"ok": true, "microseconds": -1}', "microseconds: expected a positive number"),
        ('{"ok": true, "odd": 1}', "object contains unknown field odd"),
    ],
)  # fmt: skip
def test_fields_are_named_by_their_place(text, said):
    with pytest.raises(BrokenRecord, match=f"a: {said}; fetch it again"):
        reading.document(text.encode(), ResultShape, "a")


def test_plain_data_is_a_few_levels_deep():
    assert reading.typed({"a": {"b": [1]}}, dict[str, Tree], "a")
    with pytest.raises(BrokenRecord):
        reading.typed({"a": {"b": {"c": {"d": {}}}}}, dict[str, Tree], "a")

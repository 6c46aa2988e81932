"""Files are replaced as a whole."""

from pathlib import Path

import pytest

from subbyte.files import replace_file


def test_a_reader_finds_the_old_content_until_the_new_one_is_whole(tmp_path, monkeypatch):
    target = tmp_path / "record.json"
    replace_file(target, b"before")
    seen = []
    write = Path.write_bytes

    def watched(self, content):
        done = write(self, content)
        seen.append(target.read_bytes())
        return done

    monkeypatch.setattr(Path, "write_bytes", watched)
    replace_file(target, b"behind")
    assert (seen, target.read_bytes()) == ([b"before"], b"behind")
    assert list(tmp_path.iterdir()) == [target]


def test_what_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch):
    target = tmp_path / "record.json"
    replace_file(target, b"before")

    def full(self, content):
        self.touch()
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space left"):
        replace_file(target, b"behind")
    assert target.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "none" / "record.json", b"")

"""Files are replaced as a whole, and names from files are names of files, never of folders."""

import json
import re
from pathlib import Path

import pytest

from subbyte.errors import InvalidInput
from subbyte.files import inside, new_file, replace_file, slug

CORPUS = Path(__file__).parents[1] / "corpus"


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


@pytest.mark.parametrize("name", json.loads((CORPUS / "file_names.json").read_text()))
def test_a_name_from_a_file_is_one_safe_name(name, tmp_path):
    made = slug(name)
    assert re.fullmatch(r"[A-Za-z0-9_@=][A-Za-z0-9.@_=-]*", made)
    assert (tmp_path / made).parent == tmp_path
    assert ".." not in made
    assert len(slug(name * 5000)) <= 121


def test_usual_names_stay_as_they_are():
    for name in ("resnet50.stage2@8.paper.sm_90a", "n8h56w56c64k64r3s3p1.extended.sm_80.layout=nhwc"):
        assert slug(name) == name


def test_a_record_names_files_of_its_own_folder(tmp_path):
    assert inside(tmp_path, "cubins/a.cubin") == tmp_path / "cubins" / "a.cubin"
    for name in ("../a", "/etc/passwd", "", "a/../../b", "a\\b", "a\0b", "."):
        with pytest.raises(InvalidInput, match="a record names files of its own folder alone"):
            inside(tmp_path, name)


def test_a_file_that_is_there_is_left(tmp_path):
    there = tmp_path / "there"
    assert new_file(there, False, "choose another") == there
    there.write_text("kept")
    with pytest.raises(InvalidInput, match="exists and is left as it is; choose another"):
        new_file(there, False, "choose another")
    assert new_file(there, True, "") == there
    with pytest.raises(InvalidInput, match="no name for a file"):
        new_file("a\0b", False, "")

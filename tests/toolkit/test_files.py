"""Files are replaced as a whole."""

import errno
import json
import re
from pathlib import Path

import pytest

from subbyte.errors import InvalidInput, MissingDependency, NotWritten
from subbyte.files import home_folder, inside, new_file, prove_writable, replace_file, slug, write_file, writing

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


def test_a_link_stays_one(tmp_path):
    target, link = tmp_path / "record.json", tmp_path / "link.json"
    target.write_bytes(b"before")
    link.symlink_to(target)
    replace_file(link, b"behind")
    assert link.is_symlink()
    assert target.read_bytes() == b"behind"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "it is a folder"),
        ("/dev/full", "it is no ordinary file"),
        ("/dev/null", "it is no ordinary file"),
        ("none/record.json", "none is missing"),
        ("file/record.json", "Not a directory"),
        ("n" * 5000, "File name too long"),
        ("nul\0", "null byte"),
    ],
)
def test_what_can_never_be_written_is_refused_before_the_work(tmp_path, name, reason):
    (tmp_path / "file").write_bytes(b"before")
    for call in (lambda: prove_writable(tmp_path / name, "record"), lambda: write_file(tmp_path / name, b"", "record")):
        with pytest.raises(InvalidInput, match=reason) as caught:
            call()
        assert str(caught.value).startswith("cannot write record ")
        assert len(str(caught.value)) < 500
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_proof_touches_nothing(tmp_path):
    target = tmp_path / "record.json"
    prove_writable(target)
    prove_writable(tmp_path / "new" / "record.json", parents=True)
    target.write_bytes(b"before")
    prove_writable(target)
    assert target.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["new", "record.json"]


def test_a_full_disk_is_seen_before_the_work_and_named_behind_it(tmp_path, monkeypatch):
    def full(self, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InvalidInput, match="No space left on device; choose another file"):
        prove_writable(tmp_path / "record.json")
    monkeypatch.setattr("subbyte.files.prove_writable", lambda *_: None)  # it filled up meanwhile
    with pytest.raises(NotWritten, match=r"cannot write race file .*record.json: No space left") as caught:
        write_file(tmp_path / "record.json", b"", "race file")
    assert caught.value.exit_code == 3
    with pytest.raises(NotWritten, match="Too many open files"), writing("log"):
        raise OSError(errno.EMFILE, "Too many open files")


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(MissingDependency, match="set HOME, or SUBBYTE_CACHE"):
        home_folder()


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
        with pytest.raises(InvalidInput, match="a record may only name files in its own folder"):
            inside(tmp_path, name)


def test_a_file_that_is_there_is_left(tmp_path):
    there = tmp_path / "there"
    assert new_file(there, False, "choose another") == there
    there.write_text("kept")
    with pytest.raises(InvalidInput, match="already exists and was not changed; choose another"):
        new_file(there, False, "choose another")
    assert new_file(there, True, "") == there
    with pytest.raises(InvalidInput, match="not a name for a file"):
        new_file("a\0b", False, "")

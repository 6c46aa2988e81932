"""Whose code a cache holds: one user's alone, also in a folder of many; and what killed processes leave there."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from subbyte import cache
from subbyte.cli import doctor
from subbyte.errors import MissingDependency
from subbyte.held import STALE, YOUNG, hold_folder, locked, sweep

NOBODY = 65_534
pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and permissions")


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder that everybody may write, where everybody can reach it."""
    with tempfile.TemporaryDirectory(prefix="subbyte-shared-") as name:
        folder = Path(name)
        folder.chmod(0o1777)
        monkeypatch.setenv(cache.VARIABLE, name)
        yield folder


def as_another_user(act: Callable[[], object]) -> str:
    """What ``act`` returns in a child process of another user."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            cache.stand_in.cache_clear()
            said = str(act())
        except BaseException as error:
            said = repr(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


needs_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only the superuser can be another")


def test_each_user_of_a_shared_folder_has_a_private_subfolder(shared: Path) -> None:
    mine = cache.cache_folder("kernels")
    assert mine == shared / f"user-{os.getuid()}" / "kernels"
    assert [stat.S_IMODE(one.stat().st_mode) for one in (mine, mine.parent)] == [0o700, 0o700]
    cache.write_cached(mine / "a.cu", b"mine")
    assert stat.S_IMODE((mine / "a.cu").stat().st_mode) == 0o600


@needs_root
def test_a_second_user_neither_sees_nor_clears_what_the_first_keeps(shared: Path) -> None:
    mine = cache.cache_folder("kernels") / "a.cu"
    cache.write_cached(mine, b"mine")

    def act() -> object:
        theirs = cache.cache_folder("kernels") / "a.cu"
        before = cache.read_cached(theirs), cache.read_cached(mine)
        cache.write_cached(theirs, b"theirs")
        after = cache.read_cached(theirs)
        return before, after, cache.clear_cache() > 0, theirs.exists(), str(theirs)

    folder = shared / f"user-{NOBODY}" / "kernels" / "a.cu"
    assert as_another_user(act) == str(((None, None), b"theirs", True, False, str(folder)))
    assert cache.read_cached(mine) == b"mine"


@needs_root
def test_a_folder_of_the_first_user_alone_costs_the_second_its_cache_not_its_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as name:
        monkeypatch.setenv(cache.VARIABLE, f"{name}/cache")
        os.chmod(name, 0o755)
        cache.write_cached(cache.cache_folder("kernels") / "a.cu", b"mine")

        def act() -> object:
            path = cache.cache_folder("kernels") / "b.cu"
            cache.write_cached(path, b"1")
            shutil.rmtree(cache.stand_in())
            return name in str(path), bool(cache.why_not_kept())

        assert as_another_user(act) == "(False, True)"


@needs_root
def test_code_of_another_user_is_not_read(shared: Path) -> None:
    path = cache.cache_folder("kernels") / "a.cu"
    cache.write_cached(path, b"planted")
    os.chown(path, NOBODY, NOBODY)
    assert cache.read_cached(path) is None
    cache.write_cached(path, b"mine")
    assert cache.read_cached(path) == b"mine"


def test_files_of_somebody_else_are_not_read(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = cache.cache_folder("kernels") / "a.cu"
    cache.write_cached(path, b"mine")
    monkeypatch.setattr(os, "getuid", lambda: NOBODY - 1)
    assert cache.read_cached(path) is None
    assert shared not in cache.cache_folder("kernels").parents  # the new subfolder is not that user's


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_not_read(shared: Path, mode: int) -> None:
    path = cache.cache_folder("kernels") / "a.cu"
    cache.write_cached(path, b"mine")
    path.chmod(mode)
    assert cache.read_cached(path) is None


def test_no_subfolder_is_found_through_a_link(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir(mode=0o700)
    (shared / f"user-{os.getuid()}").symlink_to(tmp_path)
    assert tmp_path not in cache.cache_folder("kernels").resolve().parents
    assert "others may write" in cache.why_not_kept()


def test_an_entry_does_not_stand_for_another(shared: Path) -> None:
    folder = cache.cache_folder("emulator")
    cache.write_cached(folder / "a.so", b"a")
    (folder / "a.so").rename(folder / "b.so")
    assert cache.read_cached(folder / "b.so") is None


def test_clearing_leaves_what_subbyte_did_not_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    (tmp_path / "thesis.tex").write_text("keep")
    cache.write_cached(cache.cache_folder("kernels") / "a.cu", b"1")
    assert cache.clear_cache() == 66
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_without_a_home_directory_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (cache.VARIABLE, "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_entry(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", no_entry)
    path = cache.cache_folder("kernels") / "a.cu"
    cache.write_cached(path, b"1")
    assert cache.read_cached(path) == b"1"
    (check,) = doctor._kept()
    assert (check.state, check.found) == ("note", "this user has no home directory")
    assert cache.clear_cache() > 0
    assert cache.cache_folder("kernels").is_dir()


def test_without_any_folder_one_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, "/dev/null")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    cache.stand_in.cache_clear()
    with pytest.raises(MissingDependency, match=r"no folder to keep builds in.*TMPDIR"):
        cache.cache_folder("kernels")


def test_what_killed_processes_left_is_swept(tmp_path: Path) -> None:
    held, handle = hold_folder(tmp_path, "build-")
    names = ["build-old", "build-young", "other-old"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "code").write_text("half")
    old, new = tmp_path / "a.so.012.partial", tmp_path / "b.so.345.partial"
    for file in (old, new):
        file.write_text("half")
    for path in (held, tmp_path / "build-old", tmp_path / "other-old", old):
        os.utime(path, (time.time() - 2 * STALE,) * 2)
    sweep(tmp_path, "build-", "*.partial")
    assert {path.name for path in tmp_path.iterdir()} == {held.name, "build-young", "other-old", new.name}
    os.close(handle)  # its owner is dead
    os.utime(held, (time.time() - 2 * YOUNG,) * 2)
    sweep(tmp_path, "build-", "*.partial")
    assert not held.exists()


def test_a_link_is_not_followed_when_sweeping(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").write_text("keep")
    (tmp_path / "build-link").symlink_to(tmp_path / "theirs")
    os.utime(tmp_path / "build-link", (0, 0), follow_symlinks=False)
    sweep(tmp_path, "build-")
    assert (tmp_path / "theirs" / "file").read_text() == "keep"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere/at all")])
def test_what_cannot_be_locked_makes_nobody_wait(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "a.lock")
    with locked(tmp_path / "a.lock"):
        pass

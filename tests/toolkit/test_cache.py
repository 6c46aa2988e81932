"""The cache folder: where it is, that it may vanish, be unwritable or be shared."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from subbyte import cache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test alone."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "mine"))
    return tmp_path / "mine"


def test_variable_decides_the_folder(folder: Path) -> None:
    assert cache.cache_root() == folder
    assert cache.cache_folder("kernels") == folder / "kernels"
    assert (folder / "kernels").is_dir()


def test_without_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_root() == tmp_path / "subbyte"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.cache_root() == tmp_path / "home" / ".cache" / "subbyte"


def test_bytes_and_clearing(folder: Path) -> None:
    assert cache.cache_bytes() == 0
    assert cache.clear_cache() == 0
    cache.write_cached(cache.cache_folder("kernels") / "a.cu", b"12345")
    cache.write_cached(cache.cache_folder("emulator") / "b.so", b"678")
    assert cache.cache_bytes() == 8 + 2 * 65  # a checksum line each
    assert cache.clear_cache() == 8 + 2 * 65
    assert not folder.exists()
    assert cache.read_cached(folder / "kernels" / "a.cu") is None


DAMAGES = (lambda d: b"", lambda d: d[: len(d) // 2], lambda d: d[:-1] + b"?", lambda d: b"x" + d)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_counts_as_absent(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    path = cache.cache_folder("kernels") / "x.cubin"
    cache.write_cached(path, b"code" * 100)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.read_cached(path) is None


def test_clearing_leaves_what_lies_beside_the_folder(folder: Path) -> None:
    folder.parent.joinpath("theirs").write_text("keep")
    cache.write_cached(cache.cache_folder("kernels") / "a.cu", b"1")
    cache.clear_cache()
    assert folder.parent.joinpath("theirs").read_text() == "keep"


def test_written_file_is_read_back_and_nothing_else_is_left(folder: Path) -> None:
    path = cache.cache_folder("kernels") / "x.cubin"
    for data in (b"first", b"second"):
        cache.write_cached(path, data)
        assert cache.read_cached(path) == data
    assert [file.name for file in path.parent.iterdir()] == ["x.cubin"]


def test_writing_where_nothing_can_be_written_is_no_error(folder: Path) -> None:
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file, not a folder")
    cache.write_cached(folder / "kernels" / "x.cu", b"1")
    assert cache.read_cached(folder / "kernels" / "x.cu") is None
    assert folder.read_text() == "a file, not a folder"


@pytest.mark.parametrize("reason", ["cannot be made", "cannot be written"])
def test_stand_in_for_a_cache_that_cannot_be_used(folder: Path, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason == "cannot be made":
        folder.write_text("a file, not a folder")
    else:
        monkeypatch.setattr(os, "access", lambda path, mode: folder not in Path(path).parents)
    other = cache.cache_folder("kernels")
    assert folder not in other.parents
    cache.write_cached(other / "x.cu", b"1")
    assert cache.read_cached(cache.cache_folder("kernels") / "x.cu") == b"1"


@pytest.mark.skipif(os.name != "posix", reason="another process's rename")
def test_reader_sees_all_of_a_file_or_none_of_it(folder: Path) -> None:
    path = cache.cache_folder("kernels") / "shared.cubin"
    versions = [bytes([i]) * 200_000 for i in range(8)]
    seen, done = set(), threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(cache.read_cached(path))

    reader = threading.Thread(target=read)
    reader.start()
    writers = [threading.Thread(target=cache.write_cached, args=(path, data)) for data in versions * 4]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    done.set()
    reader.join()
    assert seen - {None} <= set(versions)
    assert cache.read_cached(path) in versions

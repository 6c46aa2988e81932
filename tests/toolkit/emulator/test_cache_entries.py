"""What becomes of a damaged entry, a builder that was killed and a full disk: the kernel is built again and right."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hostile.areas import cache_entries as area
from hostile.harness import attempt

from subbyte import cache
from subbyte.emulator import compiler
from subbyte.errors import BuildFailed
from subbyte.held import YOUNG

TOOLS = str(Path(area.__file__).parents[2])
BUILD = (
    f"import sys; sys.path[:0] = [{TOOLS!r}]; from hostile.areas.cache_entries import TRANSLATION; "
    "from subbyte.emulator import compiler; print(compiler.load_library(TRANSLATION, False).answer())"
)


@pytest.mark.parametrize("text", ["cut", "flip", "instead", "a pipe", "another kernel", "somebody else", "zeros"])
def test_a_damaged_entry_is_built_again(text: str) -> None:
    for case in [case for case in area.cases(random.Random(0)) if text in case.text][:4]:
        outcome = attempt(case)
        assert outcome.kind == "answered", (case.text, outcome)


def test_the_bytes_that_were_checked_are_the_ones_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody exchanges the entry as soon as it was read."""
    with area._own_cache() as (root, count):
        (entry,) = (root / "emulator").glob("kernel_*.so")
        read = cache.read_cached

        def exchanged(path: Path) -> bytes | None:
            data = read(path)
            entry.write_bytes(b"exchanged")
            return data

        monkeypatch.setattr(compiler, "read_cached", exchanged)
        assert (area._answer(), count()) == (42, 0)


@pytest.mark.parametrize("missing", ["memfd_create", "/proc"])
def test_without_files_in_memory_a_private_copy_is_loaded(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with area._own_cache():
        if missing == "memfd_create":
            monkeypatch.delattr(os, missing)
        else:
            opened = compiler._open
            monkeypatch.setattr(compiler, "_open", lambda path: opened(path.replace("/proc/self", "/nowhere")))
        assert area._answer() == 42


def test_two_libraries_under_the_same_number_are_two() -> None:
    made = area._made()
    (made / "other.c").write_text("int answer(void) { return 43; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "other.c", "-o", "other.so"], cwd=made, check=True)
    for name, right in (("answer.so", 42), ("other.so", 43)):
        assert compiler._load(name, (made / name).read_bytes()).answer() == right


def _slow(folder: Path, seconds: float) -> str:
    """A compiler that takes its time before it does what the stand-in does."""
    script = folder / "slow-c++"
    real = area._made() / "c++"
    script.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec echo stand-in\ntouch {folder}/begun\nsleep {seconds}\n'
        f'exec {real} "$@"\n'
    )
    script.chmod(0o700)
    return str(script)


def test_a_builder_killed_in_the_middle_leaves_nothing_for_good(tmp_path: Path) -> None:
    environment = {**os.environ, cache.VARIABLE: str(tmp_path / "cache"), "CXX": _slow(tmp_path, 0.5)}
    builder = subprocess.Popen([sys.executable, "-c", BUILD], env=environment, start_new_session=True)
    while not (tmp_path / "begun").exists():
        assert builder.poll() is None
        time.sleep(0.01)
    os.killpg(builder.pid, signal.SIGKILL)
    builder.wait()
    emulator = tmp_path / "cache" / "emulator"
    left = list(emulator.glob("build-*"))
    assert left
    for folder in left:
        os.utime(folder, (time.time() - 2 * YOUNG,) * 2)
    done = subprocess.run([sys.executable, "-c", BUILD], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "42\n"
    assert sorted(path.suffix for path in emulator.iterdir()) == [".lock", ".lock", ".o", ".so"]


def test_two_processes_at_once_build_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir(mode=0o700)
    environment = {**os.environ, cache.VARIABLE: str(tmp_path / "cache"), "CXX": _slow(tmp_path, 0.1)}
    calls = area._made() / "calls"
    calls.write_text("")

    def build(_: int) -> str:
        command = [sys.executable, "-c", BUILD]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(build, range(2))) == ["42\n"] * 2
    assert calls.read_text() == "xx"  # the runtime and the kernel


def test_a_full_cache_costs_the_entry_not_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    with area._own_cache() as (root, count):
        for file in (root / "emulator").iterdir():
            file.unlink()
        _fill(monkeypatch, lambda path: root in path.parents)
        assert (area._answer(), count()) == (42, 2)
        assert not [file for file in (root / "emulator").iterdir() if file.suffix != ".lock"]


def test_without_any_space_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with area._own_cache() as (root, _):
        next((root / "emulator").glob("kernel_*.so")).unlink()
        _fill(monkeypatch, lambda path: True)
        with pytest.raises(BuildFailed, match=r"No space left on device.* or name another folder"):
            area._answer()


def _fill(monkeypatch: pytest.MonkeyPatch, full: Callable[[Path], bool]) -> None:
    """Make the disk full where ``full`` says so."""
    write, text = Path.write_bytes, Path.write_text

    def refusing(real: Callable[..., int]) -> Callable[..., int]:
        def wrapped(self: Path, *given: object, **named: object) -> int:
            if full(self) and self.name != "calls":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
            return real(self, *given, **named)

        return wrapped

    monkeypatch.setattr(Path, "write_bytes", refusing(write))
    monkeypatch.setattr(Path, "write_text", refusing(text))


def test_a_cache_cleared_during_a_build_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with area._own_cache() as (root, _):
        next((root / "emulator").glob("kernel_*.so")).unlink()
        run, times = compiler.subprocess.run, []

        def cleared(command: list[str], **named: object) -> object:
            if "-shared" in command and not times:
                times.append(cache.clear_cache())
            return run(command, **named)

        monkeypatch.setattr(compiler.subprocess, "run", cleared)
        assert area._answer() == 42
        assert times

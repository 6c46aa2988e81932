"""Damaged, foreign and misplaced cache entries: each is built again and gives the right answer.

One C function is compiled once; a compiler stand-in then hands out copies of it, so that a case costs milliseconds.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

from hostile.harness import Case
from subbyte import cache
from subbyte.emulator import compiler
from subbyte.emulator.translate import Translation

CORPUS = Path(__file__).resolve().parents[3] / "tests" / "corpus" / "cache_entries.json"
TRANSLATION = Translation("int answer() { return 42; }", "answer", (), (), 0, (), None, 0)
ENTRIES = ("kernel_*.so", "runtime_*.o")
OTHER = 65_534
"""A user that is not us."""


def cases(rng: random.Random) -> Iterator[Case]:
    """Damage of the bytes, then what else may lie in an entry's place, then who wrote it."""
    for damage in json.loads(CORPUS.read_text()):
        for pattern in ENTRIES:
            yield _emulator_case(f"{damage} of {pattern}", pattern, lambda file, d=damage: _damage(file, d))
        yield _kernel_case(str(damage), damage)
    for _ in range(60):
        damage = {"flip": rng.randrange(1 << 20), "bit": rng.randrange(8)}
        yield _emulator_case(f"{damage} of the kernel", ENTRIES[0], lambda file, d=damage: _damage(file, d))
        yield _kernel_case(str(damage), {"cut": rng.randrange(1 << 20)})
        yield _kernel_case(str(damage), damage)
    for name, place in _PLACES.items():
        for pattern in ENTRIES:
            yield _emulator_case(f"{name} in place of {pattern}", pattern, place)
    for name, change in _OWNERS.items():
        yield Case(name, lambda change=change: _elsewhere(change), "answer", lambda built: built is True)
    yield _emulator_case("nothing wrong", "*.txt", lambda file: None, built=0)


def _damage(file: Path, damage: dict[str, int | str]) -> None:
    """Change a file as the corpus says: ``cut`` to a length, ``flip`` a byte, put ``text`` before or behind."""
    data = bytearray(file.read_bytes())
    if "cut" in damage:
        data = data[: int(damage["cut"]) % len(data)]
    elif "flip" in damage:
        data[int(damage["flip"]) % len(data)] ^= 1 << int(damage.get("bit", 0))
    elif "before" in damage:
        data[:0] = str(damage["before"]).encode()
    elif "behind" in damage:
        data += str(damage["behind"]).encode()
    elif "drop" in damage:
        del data[: int(damage["drop"])]
    elif "instead" in damage:
        data = bytearray(str(damage["instead"]).encode())
    else:
        data[:] = bytes(len(data))
    file.write_bytes(data)


def _link(file: Path, target: Path) -> None:
    file.unlink()
    file.symlink_to(target)


def _copy_behind_a_link(file: Path) -> None:
    copy = file.with_name("copy")
    shutil.copy(file, copy)
    _link(file, copy)


def _folder(file: Path, content: bool) -> None:
    file.unlink()
    file.mkdir()
    if content:
        (file / "more").write_text("more")


def _socket(file: Path) -> None:
    file.unlink()
    with socket.socket(socket.AF_UNIX) as one:
        here = os.getcwd()
        os.chdir(file.parent)  # such names are at most about 100 characters long
        try:
            one.bind(file.name)
        finally:
            os.chdir(here)


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _entry_of_another(file: Path) -> None:
    other = file.with_name(f"other{file.suffix}")
    cache.write_cached(other, b"\x7fELF another")
    other.replace(file)


def _foreign(file: Path) -> None:
    if os.geteuid():
        file.chmod(0o666)  # only the superuser gives files away; what others could write is as bad
    else:
        os.chown(file, OTHER, OTHER)


def _with_lock(make: Callable[[Path], object]) -> Callable[[Path], None]:
    """The entry is gone, and something odd lies where its lock file belongs."""

    def place(file: Path) -> None:
        file.unlink()
        file.with_suffix(".lock").unlink(missing_ok=True)
        make(file.with_suffix(".lock"))

    return place


_PLACES: dict[str, Callable[[Path], object]] = {
    "nothing": Path.unlink,
    "a link to a copy": _copy_behind_a_link,
    "a link to nothing": lambda file: _link(file, file.with_name("nowhere")),
    "a link to itself": lambda file: _link(file, file),
    "a link to /dev/zero": lambda file: _link(file, Path("/dev/zero")),
    "an empty folder": lambda file: _folder(file, False),
    "a folder": lambda file: _folder(file, True),
    "a pipe": _pipe,
    "a socket": _socket,
    "the entry of another kernel": _entry_of_another,
    "a file of somebody else": _foreign,
    "a file its group may write": lambda file: file.chmod(0o664),
    "a file everybody may write": lambda file: file.chmod(0o646),
    "nothing, its lock a folder": _with_lock(Path.mkdir),
    "nothing, its lock a pipe": _with_lock(os.mkfifo),
    "nothing, its lock a link to nothing": _with_lock(lambda lock: lock.symlink_to("nowhere/at all")),
    "nothing, its lock read-only": _with_lock(lambda lock: lock.touch(0o400)),
}


def _owned_by_another(root: Path) -> None:
    for one in (root, *root.rglob("*")):
        _foreign(one) if one.is_file() else one.chmod(0o777)


_OWNERS: dict[str, Callable[[Path], object]] = {
    "everybody may write the cache": lambda root: root.chmod(0o777),
    "everybody may write the cache, sticky": lambda root: root.chmod(0o1777),
    "a group may write the cache": lambda root: root.chmod(0o770),
    "everybody may write the part": lambda root: (root / "emulator").chmod(0o777),
    "all of it is somebody else's": _owned_by_another,
    "the part is a file": lambda root: (shutil.rmtree(root / "emulator"), (root / "emulator").touch()),
    "the cache is a file": lambda root: (shutil.rmtree(root), root.touch()),
    "the cache is a link to nothing": lambda root: (shutil.rmtree(root), root.symlink_to("nowhere")),
    "the cache is a pipe": lambda root: (shutil.rmtree(root), os.mkfifo(root)),
    "this user's subfolder is a link": lambda root: _subfolder(root).symlink_to(_copy(root)),
    "this user's subfolder is somebody else's": lambda root: shutil.copytree(root, _subfolder(root)).chmod(0o777),
    "this user's subfolder is a file": lambda root: _subfolder(root).touch(),
}
"""What is done to the whole cache: nothing that was in it may be run."""


def _subfolder(root: Path) -> Path:
    root.chmod(0o1777)
    return root / f"user-{os.getuid()}"


def _copy(root: Path) -> Path:
    return Path(shutil.copytree(root, root.with_name("copy")))


def _emulator_case(text: str, pattern: str, change: Callable[[Path], object], built: int = 1) -> Case:
    def call() -> tuple[int, int]:
        with _own_cache() as (root, count):
            for file in (root / "emulator").glob(pattern):
                change(file)
            if pattern == ENTRIES[1]:  # what is only needed to build
                next((root / "emulator").glob(ENTRIES[0])).unlink()
            return _answer(), count()

    wanted = 2 if pattern == ENTRIES[1] else built
    return Case(text, call, "answer", lambda found: found == (42, wanted))


def _kernel_case(text: str, damage: dict[str, int | str]) -> Case:
    """An entry of the kernel cache, whose builder is in Python: it must read as absent, and can be written again."""

    def call() -> bool:
        with _own_cache():
            path, data = cache.cache_folder("kernels") / "one.cubin", b"\x7fELF code" * 999
            cache.write_cached(path, data)
            _damage(path, damage)
            absent = cache.read_cached(path) is None
            cache.write_cached(path, data)
            return absent and cache.read_cached(path) == data

    return Case(f"{text} of a cubin", call, "answer", lambda good: good is True)


def _elsewhere(change: Callable[[Path], object]) -> bool:
    """Whether the right answer came from code built just now, after ``change`` made the cache one not to trust."""
    with _own_cache() as (root, count):
        change(root)
        return _answer() == 42 and count() == 2


def _answer() -> int:
    """What the library of the text says, loaded as if this process had not done so before."""
    compiler._loaded.clear()
    return int(compiler.load_library(TRANSLATION, False).answer())


@contextmanager
def _own_cache() -> Iterator[tuple[Path, Callable[[], int]]]:
    """A copy of the cache that holds the function, and how often the compiler was called since."""
    made = _made()
    with tempfile.TemporaryDirectory(prefix="subbyte-cache-") as name, _using(Path(name) / "cache"):
        shutil.copytree(made / "cache", Path(name) / "cache")
        shutil.rmtree(cache.stand_in() / "emulator", ignore_errors=True)
        calls = made / "calls"
        calls.write_text("")
        yield Path(name) / "cache", lambda: len(calls.read_text())


def _using(folder: Path) -> Any:
    return mock.patch.dict(os.environ, {cache.VARIABLE: str(folder), "CXX": str(_made() / "c++")})


@lru_cache(maxsize=1)
def _made() -> Path:
    """A folder with the compiler's stand-in, which counts its calls and hands out what the real one made once, and a
    cache that was filled with it."""
    folder = Path(tempfile.mkdtemp(prefix="subbyte-cache-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "answer.c").write_text("int answer(void) { return 42; }\n")
    real = compiler.find_compiler()
    for flags in (["-c", "-o", "answer.o"], ["-shared", "-fPIC", "-o", "answer.so"]):
        subprocess.run([real, "-xc", "answer.c", *flags], cwd=folder, check=True)
    stand_in = folder / "c++"
    stand_in.write_text(
        f"#!/bin/sh\ncd {folder}\n[ $1 = --version ] && exec echo stand-in\nfor last; do :; done\n"
        'printf x >> calls\ncase "$*" in *" -shared "*) exec cp answer.so "$last";; esac\nexec cp answer.o "$last"\n'
    )
    stand_in.chmod(0o700)
    with mock.patch.dict(os.environ, {cache.VARIABLE: str(folder / "cache"), "CXX": str(stand_in)}):
        compiler.build_library(TRANSLATION, False)
    return folder

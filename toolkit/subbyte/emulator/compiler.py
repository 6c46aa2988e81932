"""Compiles translated kernels with the system's C++ compiler and keeps the results in the cache folder."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from subbyte.cache import cache_folder
from subbyte.emulator.translate import Translation
from subbyte.errors import BuildFailed, MissingDependency, Unsupported

_SOURCES = Path(__file__).parent / "cpp"
_FLAGS = ("-std=c++20", "-fPIC", "-fvisibility=hidden", "-w", "-fno-strict-aliasing", "-fwrapv", "-fno-exceptions")
_LONG = 50_000
"""Characters from which a text is compiled as it stands: those of the warpgroup family, whose work is the runtime's.
Optimized they take three times as long to compile, seconds, and run hardly faster."""


@lru_cache(maxsize=8)
def _search_compiler(preferred: str, path: str) -> str | None:
    names = [preferred] if preferred else ["c++", "g++", "clang++"]
    return next((found for name in names if (found := shutil.which(name, path=path))), None)


def find_compiler() -> str:
    """Path of the C++ compiler: ``$CXX`` when set, else c++, g++ or clang++ on the PATH.

    Raises:
        MissingDependency: there is none; the message says what to install.
    """
    preferred = os.environ.get("CXX", "")
    compiler = _search_compiler(preferred, os.environ.get("PATH", ""))
    if compiler is None:
        asked = f" ($CXX is {preferred!r})" if preferred else ""
        raise MissingDependency(
            f"running kernels on the CPU needs a C++ compiler, and neither c++, g++ nor clang++ is on the PATH{asked}. "
            "Install one, for example `apt install g++`, `dnf install gcc-c++`, `conda install gxx` or Xcode's tools"
        )
    return compiler


@lru_cache(maxsize=8)
def _compiler_version(compiler: str) -> str:
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0] + platform.machine()


@lru_cache(maxsize=1)
def _runtime_hash() -> str:
    digest = hashlib.sha256()
    for path in sorted(_SOURCES.iterdir()):
        if path.suffix in (".h", ".cpp"):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join((*parts, *_FLAGS)).encode()).hexdigest()[:24]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock file, so that parallel processes compile the same kernel once."""
    try:
        import fcntl
    except ImportError:  # the atomic rename alone keeps the cache correct
        yield
        return
    with open(path.with_suffix(".lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(compiler: str, arguments: list[str], target: Path) -> None:
    handle, temporary = tempfile.mkstemp(dir=target.parent, suffix=target.suffix)
    os.close(handle)
    try:
        command = [compiler, *_FLAGS, f"-I{_SOURCES}", *arguments, "-o", temporary]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            _refuse(done.stderr)
        os.replace(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _refuse(errors: str) -> None:
    """Raise the error that says most about why the compiler refused the translated text."""
    unknown = re.search(r"['‘](\w+)['’] was not declared|use of undeclared identifier '(\w+)'", errors)
    if unknown:
        name = unknown[1] or unknown[2]
        raise Unsupported(f"the emulator does not know the CUDA function or word {name!r}; run this kernel on a GPU")
    lines = [line for line in errors.splitlines() if "error" in line][:5]
    raise BuildFailed("the C++ compiler refused the translated kernel:\n" + "\n".join(lines or [errors[-500:]]))


def _runtime_object(compiler: str, checked: bool, extra: tuple[str, ...]) -> Path:
    """The runtime, compiled once per compiler and mode."""
    key = _key(_compiler_version(compiler), _runtime_hash(), str(checked), *extra)
    target = cache_folder("emulator") / f"runtime_{key}.o"
    if not target.exists():
        with _locked(target):
            if not target.exists():
                source = str(_SOURCES / "runtime.cpp")
                _compile(
                    compiler,
                    ["-O2", "-ftree-vectorize", f"-DEMULATOR_CHECKED={int(checked)}", *extra, "-c", source],
                    target,
                )
    return target


def build_library(translation: Translation, checked: bool, extra_flags: tuple[str, ...] = ()) -> Path:
    """Shared library of a translated kernel, from the cache when it was built before.

    Raises:
        MissingDependency: no C++ compiler.
        Unsupported: the kernel uses a CUDA word that the emulator does not know.
        BuildFailed: the compiler refused the text for another reason.
    """
    compiler = find_compiler()
    key = _key(_compiler_version(compiler), _runtime_hash(), str(checked), translation.cpp, *extra_flags)
    target = cache_folder("emulator") / f"kernel_{key}.so"
    if target.exists():
        return target
    runtime = _runtime_object(compiler, checked, extra_flags)
    with _locked(target):
        if not target.exists():
            source = target.with_suffix(f".{os.getpid()}.cpp")
            source.write_text(translation.cpp)
            try:
                level = "-Og" if len(translation.cpp) < _LONG else "-O0"
                flags = [level, f"-DEMULATOR_CHECKED={int(checked)}", *extra_flags]
                _compile(compiler, [*flags, "-shared", str(source), str(runtime)], target)
            finally:
                source.unlink(missing_ok=True)
    return target


@lru_cache(maxsize=256)
def load_library(path: Path) -> ctypes.CDLL:
    """The library, loaded once per process and private to it."""
    return ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)

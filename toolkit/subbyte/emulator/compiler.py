"""Compiles translated kernels with the system's C++ compiler and keeps the results in the cache folder."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import itertools
import os
import platform
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from subbyte.cache import BUILDING, VARIABLE, cache_folder, read_cached, stand_in, write_cached
from subbyte.emulator.translate import Translation
from subbyte.errors import BuildFailed, MissingDependency, Unsupported
from subbyte.held import hold_folder, locked

_SOURCES = Path(__file__).parent / "cpp"
_FLAGS = ("-std=c++20", "-fPIC", "-fvisibility=hidden", "-w", "-fno-strict-aliasing", "-fwrapv", "-fno-exceptions")
_LONG = 50_000
"""Texts of at least this many characters are compiled without optimization: those of the wgmma family, whose work is
done in the runtime. Optimizing makes compilation three times as long, by seconds, and they hardly run faster."""
FEW = 8192
"""Texts for launches of at most this many threads are compiled without optimization too: they run for a tenth of a
second, and optimizing takes longer than that."""
_loaded: dict[str, ctypes.CDLL] = {}
_LOADING = threading.RLock()
_LOADS = itertools.count()


@lru_cache(maxsize=8)
def _search_compiler(preferred: str, path: str) -> str | None:
    names = [preferred] if preferred else ["c++", "g++", "clang++"]
    return next((found for name in names if (found := shutil.which(name, path=path))), None)


def find_compiler() -> str:
    """Path of the C++ compiler: ``$CXX`` if set, else c++, g++ or clang++ on the PATH.

    Raises MissingDependency if there is none; the message says what to install.
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


def _cached(name: str, make: Callable[[Path], bytes]) -> bytes:
    """The cached file ``name``; if it is missing or damaged, ``make`` builds it in a folder of its own."""
    path = cache_folder("emulator") / name
    code = read_cached(path)
    if code is None:
        with locked(path.with_suffix(".lock")):
            code = read_cached(path)
            if code is None:
                code = _made(path.parent, make)
                write_cached(path, code)
    return code


def _made(cache: Path, make: Callable[[Path], bytes]) -> bytes:
    """What ``make`` builds in a new folder of the cache, or among the temporary files if the cache accepts no more."""
    problem: OSError | None = None
    for parent in (cache, None):
        try:
            folder, handle = hold_folder(parent, BUILDING)
            try:
                return make(folder)
            finally:
                os.close(handle)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError as error:
            problem = error
    raise BuildFailed(
        f"nothing can be compiled, neither in {cache} nor in the temporary folder: {problem}. "
        f"Free some space, or name another folder with {VARIABLE} or TMPDIR"
    )


def _compile(compiler: str, arguments: list[str], folder: Path) -> bytes:
    """The compiler's output for ``arguments``. Raises OSError if ``folder`` is full or was cleared meanwhile."""
    target = folder / "code"
    command = [compiler, *_FLAGS, f"-I{_SOURCES}", *arguments, "-o", str(target)]
    # the compiler's own temporary files go where they are found again if it is killed
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, env=environment)
    if done.returncode:
        if "No space left on device" in done.stderr:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        if not folder.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
        _refuse(done.stderr)
    return target.read_bytes()


def _refuse(errors: str) -> None:
    """Raise the error that best explains why the compiler rejected the translated text."""
    unknown = re.search(r"['‘](\w+)['’] was not declared|use of undeclared identifier '(\w+)'", errors)
    if unknown:
        name = unknown[1] or unknown[2]
        raise Unsupported(f"the emulator does not know the CUDA function or word {name!r}; run this kernel on a GPU")
    lines = [line for line in errors.splitlines() if "error" in line][:5]
    raise BuildFailed("the C++ compiler rejected the translated kernel:\n" + "\n".join(lines or [errors[-500:]]))


def _runtime_object(compiler: str, checked: bool, extra: tuple[str, ...]) -> bytes:
    """The runtime, compiled once per compiler and mode."""
    key = _key(_compiler_version(compiler), _runtime_hash(), str(checked), *extra)
    flags = ["-O1", "-ftree-vectorize", f"-DEMULATOR_CHECKED={int(checked)}", *extra]
    source = str(_SOURCES / "runtime.cpp")
    return _cached(f"runtime_{key}.o", lambda folder: _compile(compiler, [*flags, "-c", source], folder))


def _level(translation: Translation, threads: int) -> str:
    return "-O0" if threads <= FEW or len(translation.cpp) >= _LONG else "-Og"


def _name(compiler: str, translation: Translation, checked: bool, level: str, extra_flags: tuple[str, ...]) -> str:
    key = _key(_compiler_version(compiler), _runtime_hash(), str(checked), level, translation.cpp, *extra_flags)
    return f"kernel_{key}.so"


def build_library(
    translation: Translation, checked: bool, threads: int = 0, extra_flags: tuple[str, ...] = ()
) -> bytes:
    """Shared library of a translated kernel for a launch of ``threads``, from the cache when it was built before.

    Raises:
        MissingDependency: no C++ compiler.
        Unsupported: the kernel uses a CUDA word that the emulator does not know.
        BuildFailed: the compiler refused the text for another reason, or there is no space.
    """
    compiler, level = find_compiler(), _level(translation, threads)

    def make(folder: Path) -> bytes:
        source, runtime = folder / "kernel.cpp", folder / "runtime.o"
        source.write_text(translation.cpp)
        runtime.write_bytes(_runtime_object(compiler, checked, extra_flags))
        flags = [level, f"-DEMULATOR_CHECKED={int(checked)}", *extra_flags]
        return _compile(compiler, [*flags, "-shared", str(source), str(runtime)], folder)

    return _cached(_name(compiler, translation, checked, level, extra_flags), make)


def load_library(
    translation: Translation, checked: bool, threads: int = 0, extra_flags: tuple[str, ...] = ()
) -> ctypes.CDLL:
    """The library of :func:`build_library`, loaded once per process and private to it. Raises the same errors."""
    name = _name(find_compiler(), translation, checked, _level(translation, threads), extra_flags)
    with _LOADING:
        if name not in _loaded:
            _loaded[name] = _load(name, build_library(translation, checked, threads, extra_flags))
        return _loaded[name]


def _load(name: str, code: bytes) -> ctypes.CDLL:
    """Load exactly these bytes, from a file that nobody else can reach: a cached file may change meanwhile."""
    try:
        return _from_memory(name, code)
    except (AttributeError, OSError):  # this system has no such files, or none that can be executed
        try:
            # a new file each time: one that this process or its parent has loaded must not change
            handle, copy = tempfile.mkstemp(name, dir=stand_in())
            try:
                with open(handle, "wb") as file:
                    file.write(code)
                return _open(copy)
            finally:
                os.unlink(copy)
        except OSError as error:
            raise BuildFailed(f"the compiled kernel cannot be loaded: {error}; name a folder with TMPDIR") from None


def _from_memory(name: str, code: bytes) -> ctypes.CDLL:
    with open(os.memfd_create(name, os.MFD_CLOEXEC), "wb") as file:
        file.write(code)
        file.flush()
        # The system identifies a library by its path and would return the one loaded before under the same
        # number, so each path is written differently: ./ and / change nothing in it.
        different = f"{next(_LOADS):b}".replace("1", "./").replace("0", "/")
        return _open(f"/proc/self/fd/{different}{file.fileno()}")


def _open(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)

"""Files that are written completely or not at all, and a check, before hours of work, that a file can be written."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from subbyte.errors import InvalidInput, MissingDependency, NotWritten


def replace_file(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file atomically: readers, also after the writer was killed or the machine lost power, find either the old
    content or all of the new. A ``private`` file is for this user only, and replaces a link. Raises OSError, and then
    leaves nothing behind."""
    target = Path(os.path.realpath(path)) if path.is_symlink() and not private else path
    partial = _beside(target)
    try:
        partial.write_bytes(content)
        _to_disk(partial)
        if private:
            partial.chmod(0o600)
        partial.replace(target)
    except BaseException:  # Ctrl-C too
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def prove_writable(path: str | os.PathLike[str], what: str = "", *, parents: bool = False) -> None:
    """Check that a file can be written, before the work starts whose result it will hold.

    The file itself is not touched: a byte is really written beside it and removed. With ``parents``, missing folders
    are created. ``what`` names the file in messages (``race file``). Raises InvalidInput for a folder, a device or
    anything else that is not a regular file, a missing folder, missing permission, and a full disk.
    """
    target = Path(path)
    try:
        problem = _problem(target, parents)
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        problem = reason_of(error)
    if problem:
        raise InvalidInput(f"cannot write {_named(what, target)}: {problem}; choose another file")


def write_file(path: str | os.PathLike[str], content: bytes, what: str = "") -> None:
    """Write a result atomically. Raises InvalidInput for what :func:`prove_writable` rejects, and NotWritten when the
    disk filled up meanwhile."""
    prove_writable(path, what)
    with writing(path, what):
        replace_file(Path(path), content)


@contextlib.contextmanager
def writing(path: str | os.PathLike[str], what: str = "") -> Iterator[None]:
    """Context manager: a failed write inside raises NotWritten, which names the file."""
    try:
        yield
    except OSError as error:
        raise NotWritten(
            f"cannot write {_named(what, path)}: {reason_of(error)}; make room there, or choose another place"
        ) from None


def reason_of(error: Exception) -> str:
    """The operating system's reason for an error, in its words."""
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def home_folder() -> Path:
    """The user's home folder. Raises MissingDependency for a user without one."""
    try:
        return Path.home()
    except (RuntimeError, KeyError):
        raise MissingDependency(
            "this user has no home folder: set HOME, or SUBBYTE_CACHE to a folder for what is built"
        ) from None


def _problem(target: Path, parents: bool) -> str | None:
    """Why a file cannot be written; None when it can."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        return "it is a folder" if stat.S_ISDIR(mode) else "it is no ordinary file"
    folder = Path(os.path.realpath(target)).parent
    if parents:
        folder.mkdir(parents=True, exist_ok=True)
    if not folder.exists():
        return f"the folder {_short(folder)} is missing"
    if mode is not None:
        os.close(os.open(target, os.O_WRONLY | os.O_APPEND))
    probe = _beside(target)
    try:
        probe.write_bytes(b"\n")
        _to_disk(probe)
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
    return None


def _beside(target: Path) -> Path:
    """A new name in the folder of a file; short, because the file's own name may be as long as the system allows."""
    return target.with_name(f"{target.name[:40]}.{secrets.token_hex(6)}.partial")


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _named(what: str, path: str | os.PathLike[str]) -> str:
    return f"{what} {_short(path)}".strip()


def _short(path: str | os.PathLike[str], most: int = 200) -> str:
    """A path shortened for a message; of a very long one, the end says most."""
    text = os.fspath(path)
    return text if len(text) <= most else f"...{text[-most:]} ({len(text)} characters)"


SAFE = re.compile(r"[^A-Za-z0-9.@_=-]+")
"""Characters that a file name made from someone's text must not contain."""
LONGEST_NAME = 120
_RESERVED = re.compile(r"(?i:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?\Z")


def slug(text: object) -> str:
    """``text`` as part of one file's name: letters, digits and ``.@_=-``, nothing that leads to another folder, hides
    the file, looks like an option or is too long. Names from files become paths only through this function."""
    made = re.sub(r"\.{2,}", ".", SAFE.sub("-", str(text))).strip(".-")[:LONGEST_NAME].rstrip(".-")
    return f"_{made}" if not made or _RESERVED.match(made) else made


def inside(folder: str | os.PathLike[str], name: str) -> Path:
    """The path of the file that a record in ``folder`` names. Raises InvalidInput when it would lie outside."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise InvalidInput(f"file {name[:200]!r}: a record may only name files in its own folder")
    return Path(folder).joinpath(*parts)


def new_file(path: str | os.PathLike[str], overwrite: bool, advice: str) -> Path:
    """``path``, checked to be free unless it may be overwritten. Raises InvalidInput, ending with ``advice``."""
    target = Path(path)
    if "\0" in str(target):
        raise InvalidInput(f"file {str(target)[:200]!r}: not a name for a file; {advice}")
    if os.path.lexists(target) and not overwrite:
        raise InvalidInput(f"{target} already exists and was not changed; {advice}")
    return target

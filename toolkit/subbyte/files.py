"""Files that are there as a whole or not at all."""

import contextlib
import os
import re
import secrets
from pathlib import Path, PurePosixPath

from subbyte.errors import InvalidInput


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in one step: whoever reads meanwhile, or is left behind by a writer that was killed, finds the
    content before or all of the new one. Raises OSError, and leaves nothing of its own then."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(6)}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


SAFE = re.compile(r"[^A-Za-z0-9.@_=-]+")
"""What a file name made of somebody's text does not hold."""
LONGEST_NAME = 120
_RESERVED = re.compile(r"(?i:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?\Z")


def slug(text: object) -> str:
    """``text`` as part of one file's name: letters, digits and ``.@_=-``, nothing that leads to another folder, hides
    the file, looks like an option or is too long. Names from files become paths only through here."""
    made = re.sub(r"\.{2,}", ".", SAFE.sub("-", str(text))).strip(".-")[:LONGEST_NAME].rstrip(".-")
    return f"_{made}" if not made or _RESERVED.match(made) else made


def inside(folder: str | os.PathLike[str], name: str) -> Path:
    """The path of the file that a record in ``folder`` names. Raises InvalidInput when it would lie outside."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise InvalidInput(f"file {name[:200]!r}: a record names files of its own folder alone")
    return Path(folder).joinpath(*parts)


def new_file(path: str | os.PathLike[str], overwrite: bool, advice: str) -> Path:
    """``path``, proven to be free unless it may be overwritten. Raises InvalidInput, ending with ``advice``."""
    target = Path(path)
    if "\0" in str(target):
        raise InvalidInput(f"file {str(target)[:200]!r}: no name for a file; {advice}")
    if os.path.lexists(target) and not overwrite:
        raise InvalidInput(f"{target} exists and is left as it is; {advice}")
    return target

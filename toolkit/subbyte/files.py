"""Files that are there as a whole or not at all."""

import contextlib
import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file in one step: whoever reads meanwhile, or is left behind by a writer that was killed, finds the
    content before or all of the new one, also after a power cut. A ``private`` file is for this user alone.
    Raises OSError, and leaves nothing of its own then."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(6)}.partial")
    try:
        partial.write_bytes(content)
        with partial.open("rb+") as written:
            os.fsync(written.fileno())
        if private:
            partial.chmod(0o600)
        partial.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise

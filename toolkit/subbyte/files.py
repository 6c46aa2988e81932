"""Files that are there as a whole or not at all."""

import contextlib
import secrets
from pathlib import Path


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

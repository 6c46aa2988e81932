"""Old inputs and what came of them: logs, keys, indices and command lines of an earlier version, replayed on this one.

``python tools/compatibility record`` wrote ``tests/compatibility`` with the version that its ``made_with`` names;
``python tools/compatibility check`` replays all of it, ``tests/test_compatibility.py`` the quick part.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "compatibility"


def write(name: str, data: Any) -> None:
    """Write a file of the bundle; the same content gives the same bytes."""
    text = json.dumps(data, separators=(",", ":")) + "\n"
    (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(name: str) -> Any:
    """A file of the bundle."""
    return json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))

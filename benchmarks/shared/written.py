"""Files that outlive whoever is killed while writing them, and what a later start may keep of them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.shared.kernel_pack import Packed
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.files import replace_file


def write_at_once(path: Path, data: Any) -> None:
    """JSON that replaces a file as a whole: whoever is killed while writing leaves the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, (json.dumps(data, indent=1) + "\n").encode())


def append_line(path: Path, data: Any) -> None:
    """Append a line of JSON; a last line that was cut short stays a line of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        cut = b"\n" if size and file.read(1) != b"\n" else b""
        file.write(cut + json.dumps(data).encode() + b"\n")


def begun(path: Path | None, device: str, part: str) -> dict[str, Any]:
    """What an earlier start wrote of a record with ``device["name"]`` or ``gpu["name"]`` and a list ``part``; empty
    when there is nothing.

    Raises BrokenRecord for a file of something else, and InvalidInput when it was on another kind of GPU.
    """
    if path is None or not path.exists():
        return {}
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        before = (record.get("gpu") or record["device"])["name"]
        iter(record[part])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenRecord(f"{path}: no record of this program ({error!r}); choose another file") from None
    if before != device:
        raise InvalidInput(f"{path} holds times of {before}, this is {device}: choose another file")
    return record


def refuse_others(before: dict[str, Any], against: dict[str, Any], path: Path) -> None:
    """Raise InvalidInput when the record in ``path`` (``before``) was made beside other baselines than ``against``."""
    other = [name for name, value in against.items() if before.get(name) != value]
    if other:
        raise InvalidInput(
            f"{path} holds times beside other baselines (its {', '.join(other)} differ): name the --cutlass of its "
            "earlier starts, in the same environment, or choose another file"
        )


def prove_writable(path: Path, option: str) -> None:
    """Raise InvalidInput, before hours are spent, when a file cannot be written to ``path``."""
    probe = path.with_name(f"{path.name}.probe")
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(probe, b"")
        probe.unlink()
    except OSError as error:
        raise InvalidInput(f"{option} {path}: cannot be written ({error.strerror}); choose another file") from None


def digest_of_json(data: Any) -> str:
    """A short name of some plain data."""
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:20]


def digest_of(kernels: Iterable[Packed]) -> str:
    """What kernels do, by their machine code and launch: times of others are not theirs."""
    parts = [kernel.cubin + json.dumps(kernel.launch.to_dict()).encode() for kernel in kernels]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:20]

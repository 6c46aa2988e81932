"""Machine code to text, with the disassembler from a Python package."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections import Counter
from functools import cache
from importlib import metadata
from pathlib import Path

from subbyte.cache import cache_folder, read_cached, write_cached
from subbyte.errors import BuildFailed, MissingDependency

_PACKAGES = ("nvidia-cuda-nvdisasm", "nvidia-cuda-nvdisasm-cu12")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*(?:\.[\w.]+)?)", re.MULTILINE)


@cache
def nvdisasm() -> tuple[Path, str]:
    """The path of the disassembler, and the name and version of the package that holds it.

    Raises MissingDependency with the command that installs it."""
    for package in _PACKAGES:
        try:
            files = metadata.files(package) or []
        except metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name in ("nvdisasm", "nvdisasm.exe"):
                return Path(str(file.locate())), f"{package} {metadata.version(package)}"
    raise MissingDependency(f"SASS needs the disassembler: pip install {_PACKAGES[0]}")


def sass(cubin: bytes) -> str:
    """The machine code of a cubin as text, from the cache or the disassembler, which takes up to a second.
    Raises MissingDependency, BuildFailed."""
    tool, version = nvdisasm()
    path = cache_folder("kernels") / f"{hashlib.sha256(version.encode() + cubin).hexdigest()[:32]}.sass"
    kept = read_cached(path)
    if kept is not None:
        return kept.decode()
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        run = subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=False)
    if run.returncode:
        raise BuildFailed(f"nvdisasm could not read the cubin: {run.stderr.strip()[:500]}")
    write_cached(path, run.stdout.encode())
    return run.stdout


def instruction_counts(text: str) -> Counter[str]:
    """How often each instruction (with its modifiers) occurs in a SASS text."""
    return Counter(_INSTRUCTION.findall(text))

"""CUDA texts of kernels that belong to no family: generated once and cached under everything they depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from subbyte.cache import cache_folder, read_cached, write_cached
from subbyte.device.launch import Launch
from subbyte.errors import MissingDependency
from subbyte.kernel.build import version_of


def cached_text(
    what: str, folder: str, fields: Sequence[object], arch: str, launch: Launch, emitted: Callable[[], Any]
) -> str:
    """The CUDA text of the TIRx function that ``emitted`` returns, from the cache if it was generated before.

    ``fields`` are what the text depends on besides the architecture, the launch and the sources in ``folder``. Raises
    MissingDependency if it is not cached and TVM is not installed.
    """
    versions = version_of("apache-tvm"), version_of("apache-tvm-ffi")
    digest = hashlib.sha256(json.dumps([*fields, arch, launch.to_dict(), _generator(folder), *versions]).encode())
    path = cache_folder("kernels") / f"{digest.hexdigest()[:32]}.cu"
    cached = read_cached(path)
    if cached is not None:
        return cached.decode()
    try:
        from subbyte.tirx import lower
    except ImportError as error:
        raise MissingDependency(
            f"TVM cannot be loaded ({error}), and {what} was not built before; a chain that was saved holds its own. "
            "Install TVM with: pip install apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1"
        ) from None
    text = lower.cuda(emitted(), arch, launch, what)
    write_cached(path, text.encode())
    return text


@cache
def _generator(folder: str) -> str:
    """Digest of the sources that determine the texts of a subfolder of this package."""
    package = Path(__file__).parents[1]
    files = sorted(file for place in ("tirx", f"kernel/{folder}") for file in (package / place).rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()

"""Machine code of the CUDA texts that a machine with TVM wrote, on one without."""

from __future__ import annotations

import gzip
import json
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from subbyte.errors import BuildFailed
from subbyte.kernel import nvrtc


def compiled(line: str) -> tuple[bytes, str] | str:
    """Cubin and report of a line of JSON with the text under ``cuda``, or why there is none."""
    try:
        cubin, _, log = nvrtc.compile_both(json.loads(line)["cuda"], "sm_90a")
    except BuildFailed as error:
        return str(error)[:300]
    return cubin, log


def lines_of(path: Path) -> list[str]:
    """The lines of a file of texts, FILE.jsonl or FILE.jsonl.gz."""
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().splitlines()


def all_compiled(lines: list[str], chunksize: int = 1) -> list[tuple[bytes, str] | str]:
    """What :func:`compiled` answers for each line, on all processors."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compiled, lines, chunksize=chunksize))

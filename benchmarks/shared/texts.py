"""Machine code of the CUDA texts that a machine with TVM wrote, on one without."""

from __future__ import annotations

import json

from subbyte.errors import BuildFailed
from subbyte.kernel import nvrtc


def compiled(line: str) -> tuple[bytes, str] | str:
    """Cubin and report of a line of JSON with the text under ``cuda``, or why there is none."""
    try:
        cubin, _, log = nvrtc.compile_both(json.loads(line)["cuda"], "sm_90a")
    except BuildFailed as error:
        return str(error)[:300]
    return cubin, log

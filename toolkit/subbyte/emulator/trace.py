"""The trace of a run: one row per memory access, copy, shuffle, matrix instruction and barrier of each thread.

Rows are a numpy structured array (``TRACE_DTYPE``). ``offset`` counts bytes in the argument's array for global accesses
and copies, and bytes of the shared window for shared accesses; ``shared`` is the byte in the shared window (-1: none).
``valid`` is the number of bytes really read by a copy (the rest is zero filled). ``value`` holds up to eight bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TRACE_DTYPE = np.dtype(
    [
        ("value", "u8"),
        ("offset", "i8"),
        ("sequence", "u4"),
        ("block", "u4"),
        ("line", "u4"),
        ("phase", "u4"),
        ("shared", "i4"),
        ("buffer", "i2"),
        ("warp", "u2"),
        ("size", "u2"),
        ("valid", "u2"),
        ("instruction", "u2"),
        ("lane", "u1"),
        ("kind", "u1"),
        ("mode", "u1"),
        ("source_lane", "i1"),
        ("padding", "V2"),
    ]
)
KINDS = ("global_load", "global_store", "shared_load", "shared_store", "copy", "shuffle", "mma", "barrier")
SHUFFLE_MODES = ("bfly", "idx", "down", "up")

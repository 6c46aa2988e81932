"""What is known of an array of any library that is used where it lies."""

from __future__ import annotations

from dataclasses import dataclass

HOST = -1
"""In place of a GPU's number."""
CUDA = 2
"""DLPack's number for the memory of a CUDA GPU (``kDLCUDA``)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What an array is: its address, sizes, the name of its dtype, the GPU that it lies on (:data:`HOST`), and whether
    its elements lie behind each other in C order."""

    address: int
    shape: tuple[int, ...]
    dtype: str
    ordinal: int
    dense: bool

"""What is known about an array of any library that is used in place."""

from __future__ import annotations

from dataclasses import dataclass

HOST = -1
"""Stands for the host where a GPU's number is expected."""
CUDA = 2
"""DLPack's number for the memory of a CUDA GPU (``kDLCUDA``)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Description of an array: its address, sizes, the name of its dtype, the GPU that holds it (or :data:`HOST`), and
    whether its elements are contiguous in C order."""

    address: int
    shape: tuple[int, ...]
    dtype: str
    ordinal: int
    dense: bool

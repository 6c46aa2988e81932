"""Spaces for the searches: the toy space of the tuner's tests, and a foreign one with text and odd numbers."""

from __future__ import annotations

import hashlib
from functools import cached_property
from types import SimpleNamespace

import numpy as np
import pytest

from subbyte.records.result import Failed, Measured, Result
from subbyte.workload import ConvWorkload

KNOBS = {
    "block": (16, 48, 80, 112, 144, 176),
    "order": ("row", "column", "morton"),
    "tile": (1, 2, 3, 5),
    "cached": (False, True),
    "taps": (15,),
    "pad": (0, 1, 2),
}


class ForeignSpace:
    """432 products of which 360 exist, or fewer with fewer blocks; a table that says so itself (``listed``)."""

    workload = ConvWorkload(1, 8, 8, 32, 32, 3, 3, 1, name="foreign@1")
    arch, kind, listed = "sm_80", "foreign", True

    def __init__(self, blocks: tuple[int, ...] = KNOBS["block"]) -> None:
        self.knobs = {**KNOBS, "block": blocks}
        self.fixed: dict[str, object] = {}

    def __len__(self) -> int:
        return 72 * len(self.knobs["block"])

    def config(self, index: int) -> SimpleNamespace:
        values = {}
        for name, choices in self.knobs.items():
            index, digit = divmod(index, len(choices))
            values[name] = choices[digit]
        return SimpleNamespace(**values)

    def check(self, index: int) -> str | None:
        at = self.config(index)
        return "too many threads" if at.block * at.tile > 550 else None

    @cached_property
    def valid(self) -> tuple[int, ...]:
        return tuple(index for index in range(len(self)) if self.check(index) is None)

    @property
    def hash(self) -> str:
        return hashlib.sha256(str(self.knobs).encode()).hexdigest()

    def measure(self, index: int) -> Result:
        """A made-up time; every configuration with morton order and padding fails."""
        at = self.config(index)
        if at.order == "morton" and at.pad:
            return Failed("launch", "made up")
        slow = {"row": 1.0, "column": 1.4, "morton": 1.2}[at.order]
        return Measured(100 * slow * (1 + abs(np.log2(at.block / 80))) * (1 + 0.2 * abs(at.tile - 3)) + 7 * at.pad)


@pytest.fixture
def foreign() -> ForeignSpace:
    return ForeignSpace()

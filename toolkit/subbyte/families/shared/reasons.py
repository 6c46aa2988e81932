"""Why a kernel cannot be built, or is rejected after compilation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

Planned = TypeVar("Planned")

OTHER_OPERANDS = "operands:"
"""Prefix of the reason from a family whose kernels compute other operand types."""
_SERIALIZED = re.compile(r"wgmma\.mma_async instructions are serialized(?: due to (.*?) (?:in|for) the function)?")
"""The CUDA assembler's message, with its reason, when it waits after every wgmma (messages C7510 to C7520)."""


def first_reason(rules: Iterable[Callable[[Planned], str | None]], plan: Planned) -> str | None:
    """The reason of the first rule that rejects the plan ("kind: details"); None when all accept it."""
    return next((reason for rule in rules if (reason := rule(plan)) is not None), None)


def serialized(log: str) -> str | None:
    """The compiler's message if it serialized warpgroup instructions; None if it did not."""
    found = _SERIALIZED.search(log)
    return found and f"the compiler serialized the wgmma instructions ({found[1] or 'no reason given'})"


def spilled(local_bytes: int, what: str) -> str | None:
    """The reason for rejecting a kernel that needs local memory for ``what``; None for one that needs none."""
    return f"{local_bytes} bytes of local memory: {what} do not fit the registers" if local_bytes else None

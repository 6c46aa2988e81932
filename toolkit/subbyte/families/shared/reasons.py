"""Why a kernel cannot be built, or is not handed out although it was compiled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

Planned = TypeVar("Planned")

OTHER_OPERANDS = "operands:"
"""How the reason of a family begins whose kernels compute operands of other types."""
_SERIALIZED = re.compile(r"wgmma\.mma_async instructions are serialized(?: due to (.*?) (?:in|for) the function)?")
"""What the CUDA assembler says when it waits behind every wgmma, with its reason (messages C7510 to C7520)."""


def first_reason(rules: Iterable[Callable[[Planned], str | None]], plan: Planned) -> str | None:
    """What the first rule that refuses the plan says ("kind: details"); None when all let it pass."""
    return next((reason for rule in rules if (reason := rule(plan)) is not None), None)


def serialized(log: str) -> str | None:
    """What the compiler's log says of warpgroup instructions that it made wait for each other; None when it did not."""
    found = _SERIALIZED.search(log)
    return found and f"the compiler serialized the wgmma instructions ({found[1] or 'no reason given'})"


def spilled(local_bytes: int, what: str) -> str | None:
    """The reason of a kernel that needs local memory for ``what``; None for one that needs none."""
    return f"{local_bytes} bytes of local memory: {what} do not fit the registers" if local_bytes else None

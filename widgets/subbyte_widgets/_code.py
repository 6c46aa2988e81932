"""CUDA text beside a picture: what the browser needs of a listing. Drawn by ``code.js``."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from subbyte.families.shared.listing import LineAccess, Listing

Run = list[int | None]
_REGISTERS = re.compile(r"(\w+)\[(\d+)\](?:, \1\[\d+\]){3,}")
"""Four or more consecutive elements of one array, such as the sums of a wgmma: 64 of them would fill the whole pane."""


def example_data(listing: Listing, shown: str, idle: str = "") -> dict[str, Any]:
    """The same for an example, if the picture has no kernel or another kernel; ``shown`` says which example."""
    head = f"Lines of an example kernel, {listing.kernel}, built and run once. The picture is of {shown}."
    return {**code_data(listing, idle), "head": head}


def code_data(listing: Listing, idle: str = "") -> dict[str, Any]:
    """Lines and accesses of the kernel that is drawn; equal accesses are sent once, ``of`` says which one each step
    uses. ``idle`` is shown if the highlighted line does nothing that a trace records."""
    known: dict[LineAccess, int] = {}
    of = [known.setdefault(access, len(known)) for access in listing.accesses]
    accesses = [{**_access(access), "times": of.count(number)} for access, number in known.items()]
    steps = {name: list(lines) for name, lines in listing.steps.items()}
    return {
        "head": f"CUDA text of {listing.kernel}", "numbers": list(listing.numbers),
        "lines": [folded(text) for text in listing.texts], "accesses": accesses, "of": of, "steps": steps, "idle": idle,
    }  # fmt: skip


def folded(line: str) -> str:
    """The line with runs of consecutive registers (``a[0], a[1], a[2], a[3]``) shortened to their ends with dots
    between."""

    def ends(found: re.Match[str]) -> str:
        places = [int(one) for one in re.findall(r"\[(\d+)\]", found[0])]
        if places != list(range(places[0], places[-1] + 1)):
            return found[0]
        return f"{found[1]}[{places[0]}], ..., {found[1]}[{places[-1]}]"

    return _REGISTERS.sub(ends, line)


def _access(access: LineAccess) -> dict[str, Any]:
    return {
        "line": access.line, "kind": access.kind, "bytes": access.bytes, "active": access.active,
        "mask": sum(1 << i for i, lane in enumerate(access.lanes) if lane is not None),
        "global": _runs([lane and lane[0] for lane in access.lanes]),
        "shared": _runs([lane and lane[1] for lane in access.lanes]),
    }  # fmt: skip


def _runs(places: list[int | None]) -> list[Run]:
    """The lanes' bytes as runs: first byte (None: nothing is touched), step from lane to lane, lanes."""
    runs: list[Run] = []
    steps = [None, *(b - a if a is not None and b is not None else None for a, b in pairwise(places))]
    for place, step in zip(places, steps, strict=True):
        last = runs[-1] if runs else None
        if last is not None and place is None and last[0] is None:
            last[2] = (last[2] or 0) + 1
        elif last is not None and step is not None and (last[2] == 1 or last[1] == step):
            last[1], last[2] = step, (last[2] or 0) + 1
        else:
            runs.append([place, 0, 1])
    return runs

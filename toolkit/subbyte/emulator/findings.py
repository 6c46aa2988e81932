"""What a checked run can find wrong with a kernel, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FINDING_DTYPE = np.dtype(
    [
        ("kind", "u4"),
        ("line", "u4"),
        ("other_line", "u4"),
        ("block", "u4"),
        ("thread", "i4"),
        ("other_thread", "i4"),
        ("region", "i4"),
        ("bytes", "u4"),
        ("offset", "i8"),
        ("count", "u8"),
    ]
)
KINDS = (
    "race",
    "pending_copy",
    "uninitialised_shared",
    "out_of_bounds",
    "misaligned",
    "divergent_barrier",
    "divergent_warp",
    "deadlock",
    "step_limit",
    "store_to_input",
    "load_of_unwritten_output",
    "bad_copy",
    "bad_shuffle",
)


@dataclass(frozen=True)
class Finding:
    """One hazard: ``kind`` (one of ``KINDS``), where it happened first, and how often in all."""

    kind: str
    message: str
    line: int
    source: str
    block: int
    thread: int
    count: int

    def __str__(self) -> str:
        """One line for a report."""
        often = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.kind}, CUDA line {self.line}: {self.message}{often}\n    {self.source[:160]}"


def describe(row: np.void, region_name: str, lines: list[str]) -> Finding:
    """The finding of one binary row; ``lines`` is the CUDA text, ``region_name`` the array concerned."""
    kind = KINDS[int(row["kind"])]
    line, other_line = int(row["line"]), int(row["other_line"])
    thread, other = int(row["thread"]), int(row["other_thread"])
    offset, size = int(row["offset"]), int(row["bytes"])
    where = f"thread {thread} of block {int(row['block'])}"
    elsewhere = f"line {other_line}" if other_line else "elsewhere"
    partner = f"thread {other}" if other >= 0 else "several threads"
    missing = f"; thread {other} is not coming ({elsewhere})" if other >= 0 else ""
    meanwhile = f"{partner} waits at {elsewhere}" if other >= 0 else "other threads have returned"
    access = f"{where} accesses {size} bytes at byte {offset} of {region_name}"
    message = {
        "race": f"{where} touches byte {offset} of shared memory that {partner} touched in {elsewhere}, at least "
        "one of them writes, and no barrier lies between",
        "pending_copy": f"{where} touches byte {offset} of shared memory before the asynchronous copy of {elsewhere} "
        "into it was waited for",
        "uninitialised_shared": f"{where} reads {size} bytes at byte {offset} of shared memory that nobody wrote",
        "out_of_bounds": access if row["region"] else f"{where} uses element {offset} of a private array of {size}",
        "misaligned": f"{access}, which is not aligned",
        "divergent_barrier": f"{where} waits here for the block while {meanwhile}",
        "divergent_warp": f"{where} is at this warp instruction while {partner} is at {elsewhere} or not in its mask",
        "deadlock": f"{where} waits here for ever{missing}",
        "step_limit": f"{where} made more steps than max_steps allows; the loop may never end",
        "store_to_input": f"{where} stores {size} bytes at byte {offset} of the input {region_name}",
        "load_of_unwritten_output": f"{where} reads byte {offset} of the output {region_name} before anybody wrote it",
        "bad_copy": f"{where} copies {size} valid bytes, more than the copy is wide",
        "bad_shuffle": f"{where} reads from lane {other}, which does not take part in the shuffle",
    }[kind]
    source = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return Finding(kind, message, line, source, int(row["block"]), thread, int(row["count"]))

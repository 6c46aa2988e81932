"""What a checked run can report about a kernel, in words."""

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
        ("amount", "i8"),
        ("detail", "u4"),
        ("padding", "u4"),
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
    "missing_proxy_fence",
    "missing_wgmma_fence",
    "register_in_flight",
    "bad_wgmma",
    "bad_mbarrier",
    "bad_barrier",
    "bad_cluster",
    "register_budget",
    "unfinished",
    "missing_dependency_wait",
)

_DETAILS = {
    1: "mbarrier", 2: "named barrier", 3: "cluster", 4: "warpgroup", 5: "registers", 10: "wgmma", 11: "bulk copy",
    20: "read", 21: "written", 22: "scope", 23: "operand", 30: "descriptors", 31: "descriptor bits", 32: "shapes",
    33: "no warpgroup", 34: "no register", 35: "metadata", 40: "uninitialised", 41: "arrivals", 42: "count",
    43: "overwritten", 44: "bytes", 45: "twice", 46: "invalidated", 50: "counts", 51: "warps", 52: "number",
    60: "rank", 61: "ended", 62: "no arrival", 63: "two arrivals", 70: "wgmma", 71: "bulk copy",
}  # fmt: skip
"""Meaning of the numbers in ``detail`` (report.h, ``Detail``)."""

_TEXTS = {
    "race": (
        "{where} touches byte {offset} of shared memory that {partner} touched in {elsewhere}, at least one of them "
        "writes, and no barrier lies between"
    ),
    "race: wgmma": (
        "{where} touches byte {offset} of shared memory that the wgmma of {elsewhere} may still be reading, and no "
        "wgmma.wait_group lies between"
    ),
    "race: bulk copy": (
        "{where} touches byte {offset} of shared memory that the bulk copy of {elsewhere} moves, and nothing that "
        "waits for the copy lies between"
    ),
    "pending_copy": (
        "{where} touches byte {offset} of shared memory before the asynchronous copy of {elsewhere} into it was "
        "waited for"
    ),
    "uninitialised_shared": "{where} reads {size} bytes at byte {offset} of shared memory that no thread wrote",
    "misaligned": "{access}, which is not aligned",
    "divergent_barrier": "{where} waits here for the block while {meanwhile}",
    "divergent_warp": "{where} is at this warp instruction while {partner} is at {elsewhere} or not in its mask",
    "deadlock": "{where} waits here for ever{missing}",
    "deadlock: mbarrier": (
        "{where} waits here for ever: the phase of the mbarrier at byte {offset} (initialised in {elsewhere}) still "
        "lacks {size} arrivals and {amount} bytes of copies"
    ),
    "deadlock: named barrier": (
        "{where} waits here for ever: {size} of {amount} threads have come to named barrier {offset}"
    ),
    "deadlock: cluster": "{where} waits here for ever: not every thread of the cluster arrives",
    "deadlock: warpgroup": (
        "{where} waits here for ever: the warp of thread {other} issues fewer wgmma than the others of its warpgroup"
    ),
    "deadlock: registers": (
        "{where} waits here for ever: it asks for {amount} registers per thread in place of {offset}, and the block "
        "has {size} to spare for all 32 lanes; others give back too few, or too late"
    ),
    "step_limit": "{where} made more steps than max_steps allows; the loop may never end",
    "store_to_input": "{where} stores {size} bytes at byte {offset} of the input {region}",
    "load_of_unwritten_output": "{where} reads byte {offset} of the output {region} before anybody wrote it",
    "bad_copy": "{where} copies {size} bytes; cp.async reads at most its width, bulk copies a multiple of 16",
    "bad_shuffle": "{where} reads from lane {other}, which does not take part in the shuffle",
    "missing_proxy_fence": (
        "{where} starts something asynchronous that uses byte {offset} of shared memory, written in {elsewhere}; no "
        "fence.proxy.async (for an mbarrier fence.mbarrier_init) lies between"
    ),
    "missing_wgmma_fence": (
        "{where} gives a wgmma registers that it used itself, or that a wgmma of another shape uses, after the last "
        "wgmma.fence"
    ),
    "register_in_flight: read": "{where} reads an accumulator of the wgmma of {elsewhere} before wgmma.wait_group",
    "register_in_flight: written": "{where} writes a register of the wgmma of {elsewhere} before wgmma.wait_group",
    "register_in_flight: scope": "{where} leaves the block of its registers while the wgmma of {elsewhere} uses them",
    "register_in_flight: operand": (
        "{where} has just been given its operand in registers that the same wgmma of an earlier turn ({elsewhere}) may "
        "still be reading; at most one fragment less than a loop body has may be unfinished"
    ),
    "bad_wgmma: descriptors": (
        "{where} gives a matrix descriptor that differs from that of the other warps or lanes ({elsewhere})"
    ),
    "bad_wgmma: descriptor bits": "{where} gives a matrix descriptor with a base offset or with reserved bits set",
    "bad_wgmma: shapes": "{where} and another warp of its warpgroup ({elsewhere}) issue different wgmma",
    "bad_wgmma: no warpgroup": "{where} belongs to no full warpgroup of 128 threads",
    "bad_wgmma: no register": "{where} gives a wgmma something else than a register as accumulator",
    "bad_wgmma: metadata": (
        "{where} gives a matrix instruction metadata {amount} for group {offset} of its row: of four neighbours two "
        "different places are needed, the lower one first (4, 8, 9, 12, 13 or 14)"
    ),
    "bad_mbarrier: uninitialised": "{where} uses byte {offset} of shared memory as an uninitialised mbarrier",
    "bad_mbarrier: arrivals": (
        "{where} makes {size} arrivals on the mbarrier at byte {offset}, whose phase lacks {amount}"
    ),
    "bad_mbarrier: count": "{where} initialises an mbarrier for {size} arrivals; 1 to 1048575 are possible",
    "bad_mbarrier: overwritten": (
        "{where} overwrites byte {offset} of shared memory, which belongs to an mbarrier in use"
    ),
    "bad_mbarrier: bytes": "{where} lets the mbarrier at byte {offset} expect {amount} bytes; 1048575 are possible",
    "bad_mbarrier: twice": "{where} initialises the mbarrier at byte {offset} again ({elsewhere} did) without inval",
    "bad_barrier: counts": (
        "{where} waits with {size} threads at named barrier {offset}, others with {amount} ({elsewhere})"
    ),
    "bad_barrier: warps": "{where} names {size} threads for barrier {offset}; whole warps of the block are needed",
    "bad_barrier: number": "{where} uses named barrier {offset}; there are 0 to 15",
    "bad_cluster: rank": "{where} names block {amount} of its cluster, which has fewer",
    "bad_cluster: ended": "{where} touches shared memory of block {amount} of its cluster, which has ended",
    "bad_cluster: no arrival": "{where} waits at the cluster barrier without having arrived",
    "bad_cluster: two arrivals": "{where} arrives at the cluster barrier again before it waited",
    "register_budget": (
        "{where} asks for {size} registers per thread in place of {offset}; 24 to 256 in steps of 8, inc upwards and "
        "dec downwards"
    ),
    "unfinished: wgmma": "{where} returns while a wgmma that it did not wait for may still run",
    "missing_dependency_wait": (
        "{where} touches byte {offset} of {region} before griddepcontrol.wait; the launch before, which this one may "
        "overlap, can still be using it"
    ),
    "unfinished: bulk copy": "{where} returns without waiting for the bulk copy of {elsewhere}",
    "bad_mbarrier: invalidated": (
        "{where} invalidates the mbarrier at byte {offset} while {partner} waits for it in {elsewhere}"
    ),
}


@dataclass(frozen=True)
class Finding:
    """One hazard: ``kind`` (one of ``KINDS``), where it first happened, and how many times in all."""

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
    """The finding in one binary row; ``lines`` is the CUDA text, ``region_name`` the array concerned."""
    kind = KINDS[int(row["kind"])]
    line = int(row["line"])
    source = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    message = _template(kind, row).format_map(_words(row, region_name))
    return Finding(kind, message, line, source, int(row["block"]), int(row["thread"]), int(row["count"]))


def _template(kind: str, row: np.void) -> str:
    if kind == "out_of_bounds":
        return "{access}" if row["region"] else "{where} uses element {offset} of a private array of {size}"
    return _TEXTS.get(f"{kind}: {_DETAILS.get(int(row['detail']))}") or _TEXTS[kind]


def _words(row: np.void, region: str) -> dict[str, object]:
    """The values that the texts can insert."""
    other, other_line = int(row["other_thread"]), int(row["other_line"])
    where = f"thread {int(row['thread'])} of block {int(row['block'])}"
    elsewhere = f"line {other_line}" if other_line else "elsewhere"
    partner = f"thread {other}" if other >= 0 else "several threads"
    size, offset = int(row["bytes"]), int(row["offset"])
    return {
        "where": where,
        "elsewhere": elsewhere,
        "partner": partner,
        "other": other,
        "missing": f"; thread {other} is not coming ({elsewhere})" if other >= 0 else "",
        "meanwhile": f"{partner} waits at {elsewhere}" if other >= 0 else "other threads have returned",
        "region": region,
        "offset": offset,
        "size": size,
        "amount": int(row["amount"]),
        "access": f"{where} accesses {size} bytes at byte {offset} of {region}",
    }

"""The CUDA lines for each picture, from kernels that were generated and run on the CPU once.

Register-level packing, packed stores and taps look the same in every kernel of their kind, so their pictures are
drawn without a kernel. Their lines come from the kernels in :data:`EXAMPLES`; ``tools/listings.py`` writes them to
``listings.json`` next to this file, and a test regenerates and compares them. Lines that touch memory or other lanes
are those named by the trace; the lines between them are found by their instruction.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np

from subbyte.emulator import EmulatorRun
from subbyte.emulator.trace import warp_groups
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.families.registry import config_from_key, family_of
from subbyte.families.shared.listing import LineAccess, Listing, Place, listed
from subbyte.kernel.kernel import Kernel
from subbyte.technique.taps import TapAddresses
from subbyte.technique.topics import explained, plan_of

__all__ = ["EXAMPLES", "LineAccess", "Listing", "fresh_listing", "listing"]

FILE = Path(__file__).with_name("listings.json")
EXAMPLES = {
    "packing": ("n8h8w8c32k32r1s1p0", "brw1-bcw1-wrt2-wct2-ch1-ri0-th1", "sm_80"),
    "stores": ("n8h8w8c64k64r3s3p1", "wgp-tw8-tr1-cm1-sg2-st5-sta0", "sm_90a"),
    "taps": ("n8h8w8c64k64r3s3p1", "wgp-tw8-tr1-cm1-sg2-st5-sta0", "sm_90a"),
}
"""For each picture, the workload, configuration and architecture of the kernel that its lines come from."""
Steps = dict[str, tuple[int, ...]]


@cache
def listing(name: str) -> Listing:
    """The recorded lines of ``packing``, ``stores`` or ``taps``. Raises InvalidInput for another name."""
    if name not in EXAMPLES:
        raise InvalidInput(f"unknown listing {name!r}: {did_you_mean(name, EXAMPLES)}")
    found = json.loads(FILE.read_text(encoding="utf-8"))[name]
    accesses = tuple(
        LineAccess(a["line"], a["kind"], a["bytes"], tuple(_place(lane) for lane in a["lanes"]))
        for a in found["accesses"]
    )
    steps = {step: tuple(lines) for step, lines in found["steps"].items()}
    return Listing(found["kernel"], tuple(found["numbers"]), tuple(found["texts"]), accesses, steps)


def _place(lane: list[int | None] | None) -> Place | None:
    return None if lane is None else (lane[0], lane[1])


def fresh_listing(name: str) -> Listing:
    """The same, generated and run now. Raises MissingDependency without a C++ compiler."""
    workload, key, arch = EXAMPLES[name]
    plan = plan_of(workload, config_from_key(key), arch)
    run = Kernel(plan).trace(blocks=(0,))
    if name == "taps":
        steps = _taps(run, [explained(TapAddresses, workload, plan.config, arch, row=row) for row in range(4)])
    else:
        steps = _packing(run) if name == "packing" else _stores(run)
    wanted = {line for lines in steps.values() for line in lines}
    shown = range(min(wanted), max(wanted) + 1) if name == "packing" else sorted(wanted)
    groups = [group for line in sorted(wanted) if (group := _first_group(run, line)) is not None]
    return listed(f"{workload} {family_of(plan.config).name} {key}", run, groups, shown, steps)


def _first_group(run: EmulatorRun, line: int) -> np.ndarray | None:
    """The trace rows of the first access at a line by the lowest warp; None if there is none."""
    assert run.trace is not None
    for kind in ("copy", "shared_load", "shared_store", "global_load", "global_store", "shuffle", "mma", "wgmma"):
        for group in warp_groups(run.trace, kind):
            if int(run.trace[group[group >= 0][0]]["line"]) == line:
                return group
    return None


def _traced(run: EmulatorRun, kind: str, words: str) -> tuple[int, ...]:
    """Lines that contain some words and at which the trace has accesses of a kind."""
    assert run.trace is not None
    text = run.text.split("\n")
    groups = warp_groups(run.trace, kind)
    lines = {int(run.trace[group[group >= 0][0]]["line"]) for group in groups}
    return tuple(sorted(line for line in lines if words in text[line - 1]))


def _between(run: EmulatorRun, words: str, after: int, before: int) -> tuple[int, ...]:
    """Lines between two lines of the text that contain some words."""
    text = run.text.split("\n")
    return tuple(n for n in range(after, before + 1) if words in text[n - 1])


def _packing(run: EmulatorRun) -> Steps:
    first, second = _traced(run, "shuffle", "bfly")
    last_sum = _traced(run, "mma", "mma")[-1]
    (store,) = _traced(run, "global_store", "Out_ptr")
    return {
        "accumulators": (), "pack bytes": _between(run, "cvt_pack", last_sum, first), "exchange 1": (first,),
        "permute 1": _between(run, "prmt", first, second), "exchange 2": (second,),
        "permute 2": _between(run, "prmt", second, store), "store": (store,),
    }  # fmt: skip


def _stores(run: EmulatorRun) -> Steps:
    (shared,) = _traced(run, "shared_store", "stmatrix")
    (read,) = _traced(run, "shared_load", "read_ptr")
    stores = _traced(run, "global_store", "Out_ptr")
    sums = _traced(run, "wgmma", "wgmma")
    return {
        "sums": sums[-1:], "registers": _between(run, "cvt_pack", sums[-1], shared), "shared": (shared,),
        "words": (read, *_between(run, "prmt", read, stores[-1])), "store": stores,
    }  # fmt: skip


def _taps(run: EmulatorRun, records: list[TapAddresses]) -> Steps:
    """The multiplications of each tap, and the stores that put its pixels there.

    A tap's multiplications are at the line that started at its descriptors in all output rows of the block, and nowhere
    else.
    """
    assert run.trace is not None
    begun: dict[int, set[int]] = {}
    for group in warp_groups(run.trace, "wgmma"):
        first = run.trace[group[group >= 0][0]]
        begun.setdefault(int(first["line"]), set()).add(int(first["value"]))
    wanted: dict[str, set[int]] = {}
    for tap in (tap for record in records for tap in record.taps):
        wanted.setdefault(f"{tap.r},{tap.s}", set()).add(tap.descriptor)
    steps = {tap: tuple(sorted(line for line in begun if begun[line] == at)) for tap, at in sorted(wanted.items())}
    return {"stored": _traced(run, "shared_store", "row_words"), **steps}

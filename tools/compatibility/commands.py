"""Old command lines: exit codes, and what ``--json`` prints.

Of an object every path that was there must be there with the same kind of value. Values are compared where they follow
from the input alone; sentences (text with spaces) are not, so that words may become better ones.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compatibility import FOLDER, ROOT, library, read, write

STAGE, SPEC = "resnet50.stage2@8", "n8h14w14c64k64r3s3p1"
SHAPE, VALUES, CODE = "shape", "values", "exit code"
"""What is compared besides the exit code; with ``exit code`` nothing."""
REPLAY = ["tune", STAGE, "--runner", "replay", "--trials", "20"]
COMMANDS: dict[str, list[list[str]]] = {
    VALUES: [
        ["workloads"], ["workloads", "resnet50@16"], ["workloads", "vgg16", "alexnet@1"], ["workloads", STAGE, SPEC],
        ["workloads", "RESNET18@4"], ["workloads", "n8h9w9c64k64r3s3p1u2d2"],
        ["explain", "tiling"], ["explain", "tiling", STAGE, "--set", "warp_col_tiles=2", "--block", "3,1"],
        ["explain", "tiling", "n8h14w14c256k256r3s3p1", "--arch", "sm_80"],
        ["explain", "tiling", STAGE, "--family", "warpgroup"],
        ["explain", "tiling", STAGE, "--family", "warpgroup", "--set", "tile_width=14", "split=1"],
        ["explain", "duplicates"], ["explain", "duplicates", STAGE, "--tile", "2x4", "--at", "0,0"],
        ["explain", "duplicates", STAGE, "--tile", "1x8", "--warp", "1/2"],
        ["explain", "packing"], ["explain", "packing", "--scheme", "width8", "--tiles", "2", "--seed", "3"],
        ["explain", "packing", "--family", "warpgroup"],
        ["explain", "layout"], ["explain", "layout", STAGE, "--layout", "nhwc", "--set", "warp_row_tiles=8"],
        ["explain", "layout", STAGE, "--layout", "hwnc", "--arch", "sm_80"],
        ["explain", "fragments"], ["explain", "fragments", "--instruction", "m16n8k64.s4"],
        ["explain", "fragments", "--instruction", "wgmma.m64n64k32.s8"],
        ["explain", "fragments", "--instruction", "m8n8k128.b1"],
        ["explain", "taps", "--family", "warpgroup"],
        ["explain", "taps", "n8h14w14c256k256r3s3p1", "--row", "3"],
        ["explain", "speed"], ["explain", "speed", "resnet50.stage5@8"], ["explain", "speed", "resnet50.conv1@256"],
        [*REPLAY, "--strategy", "random", "--seed", "1"], [*REPLAY, "--strategy", "genetic", "--seed", "2"],
        [*REPLAY, "--strategy", "exhaustive"], [*REPLAY, "--strategy", "exhaustive:order=descending", "--batch", "3"],
        [*REPLAY, "--strategy", "autotvm"], [*REPLAY, "--strategy", "diverse:measure=random"],
        [*REPLAY, "--strategy", "auto:start=4"],
        [*REPLAY, "--strategy", "random", "--space", "warpgroup"],
        [*REPLAY, "--strategy", "genetic", "--space", "warpgroup-small"],
        [*REPLAY, "--strategy", "random", "--space", "extended", "--finalists", "0"],
        ["tune", "resnet50.stage5@8", "--runner", "replay", "--trials", "20", "--strategy", "random", "--landscape",
         "resnet50.stage5@8.paper.sm_90a"],
        ["race", STAGE, "--strategies", "random,genetic", "--trials", "16", "--seeds", "3", "--workers", "1"],
        ["race", "resnet50.stage3@8.warpgroup-small.sm_90a", "--strategies", "random,exhaustive", "--trials", "16",
         "--seeds", "2", "--workers", "1"],
        ["landscape", "info", STAGE], ["landscape", "info", "resnet50.stage4@8.warpgroup-small.sm_90a"],
        ["landscape", "info", "resnet50.stage2@8.extended.sm_90a"], ["landscape", "list"],
        ["landscape", "export", STAGE, "-o", "{scratch}/stage2.csv"],
        ["landscape", "export", "resnet50.stage3@8.warpgroup-small.sm_90a", "--format", "kernel-tuner"],
        ["landscape", "export", STAGE, "--format", "t4", "-o", "{scratch}/stage2.t4.json"],
        ["bench", "--from", "benchmarks/results/atoms-h200-2026-11-20.json"],
        ["build", SPEC, "--emit", "cuda"], ["build", SPEC, "--emit", "tir", "--arch", "sm_80"],
        ["build", SPEC, "--arch", "sm_75", "--emit", "cuda", "--set", "chunk=2", "layout=nhwc"],
        ["build", SPEC, "--emit", "cuda", "--output", "int32", "--family", "warp"],
        ["build", SPEC, "--emit", "cuda", "--family", "warpgroup"],
        ["build", SPEC, "--emit", "cuda", "--set", "tile_width=14", "ring=3", "segments=14", "stagger=0"],
        ["build", STAGE, "--family", "warp"], ["build", STAGE], ["build", "resnet50.stage4.enter1x1@64"],
    ],
    SHAPE: [
        ["doctor"], ["tune", SPEC, "--runner", "fake", "--trials", "6"],
        ["tune", SPEC, "n8h7w7c64k64r3s3p1", "--runner", "fake", "--trials", "4", "--strategy", "random"],
        ["tune", "n8h7w7c64k64r3s3p1", "--runner", "fake", "--trials", "4", "--space", "warpgroup-small", "--set",
         "layout=nhwc"],
        ["tune", "resnet18@8", "--runner", "fake", "--trials", "20", "--strategy", "random"],
        ["build", SPEC, "--emit", "ptx"], ["build", SPEC, "--emit", "sass", "--arch", "sm_80"],
        ["build", SPEC, "--emit", "cubin", "-o", "{scratch}/kernel.cubin"],
        ["build", SPEC, "--export", "{scratch}/exported"],
        ["run", "n8h6w6c32k32r3s3p1", "--device", "emulator", "--family", "warp"],
    ],
    CODE: [
        ["build", "resnet50.stage2"], ["explain", "fragments", "--instruction", "nonsense"],
    ],
}  # fmt: skip
REFUSED = [
    ["nonsense"], ["workloads", "resnet51"], ["build", SPEC, "--arch", "sm_99"], ["build", "n8h"],
    ["build", SPEC, "--set", "chunk=3"], ["build", SPEC, "--set", "tile_width=14", "chunk=2"],
    ["build", SPEC, "--set", "zzz=1"], ["build", SPEC, "--family", "warpgroup", "--arch", "sm_80"],
    ["explain", "layout", STAGE, "--family", "warpgroup"], ["explain", "taps", STAGE, "--family", "warp"],
    ["explain", "packing", "--family", "warpgroup", "--scheme", "quad"], ["explain", "tiling", STAGE, "--block", "x"],
    ["tune", STAGE, "--runner", "replay", "--strategy", "zzz"], ["tune", STAGE, "--space", "zzz"],
    ["tune", STAGE, "--set", "chunk=2"], ["tune", "alexnet.conv3@8", "--runner", "replay"],
    ["tune", STAGE, "--trials", "0"], ["landscape", "info", "zzz"], ["race", STAGE, "--strategies", "zzz"], ["race"],
    ["landscape", "record", STAGE], ["build", SPEC, "--emit", "cubin"], ["tune", STAGE, "--resume"],
]  # fmt: skip
"""Of these also the kind of error is compared."""
QUICK_SECONDS, QUICK_TOTAL = 0.35, 4.0
MOST_VALUES = 60
"""Values of one object up to which each is kept; of more a digest is."""
_CHANGES = re.compile(r"seconds|created|version|\bfile|date|path|command|reason|notice|\btext$")
"""Paths whose values are of the moment, of the machine, or words. Texts of kernels are kept as digests."""


def record(scratch: Path) -> None:
    """Run every command line and write what came of it."""
    library.has_no_gpu()
    held, quick = [], 0.0
    for how, argv in everything():
        begun = _processor_seconds()
        found = outcome(argv, how, scratch)
        spent = _processor_seconds() - begun
        is_quick = spent < QUICK_SECONDS and quick + spent < QUICK_TOTAL
        quick += spent if is_quick else 0
        held.append({"argv": argv, "how": how, "quick": is_quick, "found": found})
    write("commands", held)


def _processor_seconds() -> float:
    """Of this process and of those that it waited for: other people's work on the machine does not count."""
    return sum(os.times()[:4])


def everything() -> Iterator[tuple[str, list[str]]]:
    """How a command line is compared, and the line."""
    for argv in REFUSED:
        yield VALUES, argv
    for how, lines in COMMANDS.items():
        for argv in lines:
            yield how, argv


def names(quick: bool = False) -> list[dict[str, Any]]:
    """What is held of each command line; with ``quick`` of those that a test run tries."""
    return [one for one in read("commands") if one["quick"] or not quick]


def problems(one: dict[str, Any], scratch: Path) -> Iterator[str]:
    """What is not as it was with one command line."""
    line, before = f"subbyte {' '.join(one['argv'])}", one["found"]
    now = outcome(one["argv"], one["how"], scratch, before)
    for part in ("exit", "error"):
        if now.get(part) != before.get(part):
            yield f"{line}: {part} {now.get(part)}, before {before.get(part)}"
    gone = sorted(set(before.get("shape", ())) - set(now.get("shape", ())))
    if gone:
        yield f"{line}: no longer printed with --json: {', '.join(gone[:8])}"
    for path, value in before.get("values", {}).items():
        if now["values"].get(path) != value:
            yield f"{line}: {path} is {now['values'].get(path)!r}, before {value!r}"


def outcome(argv: list[str], how: str, scratch: Path, before: dict[str, Any] | None = None) -> dict[str, Any]:
    """Exit code, kind of error, paths and values of a command line's object. Values of paths that were not there
    ``before`` are of no account."""
    words = [word.replace("{scratch}", str(scratch)) for word in argv]
    code, out, _ = library.command([*words, "--json"])
    if how == CODE:
        return {"exit": code}
    data = library.printed_before(json.loads(out))
    if "error" in data:
        return {"exit": code, "error": data["error"]["kind"]}
    leaves = list(_leaves(data))
    shape = sorted({f"{_general(path)}: {_kind(value)}" for path, value in leaves})
    known = None if before is None else {text.rpartition(": ")[0] for text in before.get("shape", ())}
    values = {
        path: _held(path, value) for path, value in leaves
        if how == VALUES and _is_held(path, value) and (known is None or _general(path) in known)
    }  # fmt: skip
    if before["values"].keys() <= {"digest"} if before and before.get("values") else len(values) > MOST_VALUES:
        values = {"digest": hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]}
    return {"exit": code, "shape": shape, "values": values}


def _leaves(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(data, dict) and data:
        for name, value in data.items():
            yield from _leaves(value, f"{path}.{name}" if path else str(name))
    elif isinstance(data, list) and data:
        for place, value in enumerate(data):
            yield from _leaves(value, f"{path}[{place}]")
    else:
        yield path, data


def _general(path: str) -> str:
    """The path of a list's elements, whichever; of tables by index or workload too."""
    return re.sub(r"\[\d+\]", "[]", re.sub(r"\.(\d+|resnet[\w.@-]*)(?=\.|$|\[)", ".*", path))


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return "number" if type(value) in (int, float) else "empty" if value in ({}, []) else type(value).__name__


def _is_held(path: str, value: Any) -> bool:
    if path in ("text", "tir"):
        return True
    return not _CHANGES.search(path) and not (isinstance(value, str) and " " in value)


def _held(path: str, value: Any) -> Any:
    if path == "text":
        return hashlib.sha256(str(value).encode()).hexdigest()[:16]
    return float(f"{value:.9g}") if isinstance(value, float) else value


__all__ = ["FOLDER", "ROOT", "everything", "names", "outcome", "problems", "record"]

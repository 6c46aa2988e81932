"""Old record logs: read as before, and resumed with the trials that would have followed."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compatibility import FOLDER, library, read, write

SMALL, SPEC, POINTWISE = "n8h7w7c64k64r3s3p1", "n8h14w14c64k64r3s3p1", "n8h7w7c64k64r1s1p0"
RUNS: dict[str, tuple[list[str], int, int]] = {
    "paper-random": ([SPEC, "--runner", "fake", "--strategy", "random", "--seed", "1"], 12, 6),
    "paper-sm80-nhwc": ([SPEC, "--runner", "fake", "--strategy", "genetic", "--arch", "sm_80", "--set",
                         "layout=nhwc"], 12, 6),
    "extended-genetic": ([SPEC, "--runner", "fake", "--space", "extended", "--strategy", "genetic"], 12, 6),
    "paper-autotvm": (["resnet50.stage2@8", "--runner", "replay", "--strategy", "autotvm"], 40, 8),
    "paper-diverse": (["resnet50.stage3@8", "--runner", "replay", "--strategy", "diverse"], 40, 8),
    "paper-auto": (["resnet50.stage4@8", "--runner", "replay", "--seed", "4"], 24, 8),
    "paper-exhaustive": (["resnet50.stage5@8", "--runner", "replay", "--strategy", "exhaustive"], 10, 6),
    "extended-replayed": (["resnet50.stage5@8", "--runner", "replay", "--space", "extended", "--strategy", "random"],
                          12, 6),
    "small-exhaustive": ([SMALL, "--runner", "fake", "--space", "warpgroup-small", "--strategy",
                          "exhaustive:order=descending"], 12, 6),
    "small-genetic": ([SMALL, "--runner", "fake", "--space", "warpgroup-small", "--strategy", "genetic"], 12, 6),
    "small-replayed": (["resnet50.stage3@8", "--runner", "replay", "--space", "warpgroup", "--strategy", "random"],
                       16, 8),
    "small-replayed-auto": (["resnet50.stage5@8", "--runner", "replay", "--space", "warpgroup"], 16, 8),
    "warpgroup-pointwise": ([POINTWISE, "--runner", "fake", "--space", "warpgroup", "--strategy", "random"], 10, 6),
    "warpgroup-rules-hash": (["resnet50.stage2@8", "--runner", "fake", "--space", "warpgroup", "--strategy", "random",
                              "--seed", "5"], 8, 4),
    "two-layers": ([SPEC, SMALL, "--runner", "fake", "--strategy", "random"], 6, 4),
    "network": (["resnet18@8", "--runner", "fake", "--strategy", "random"], 66, 12),
    "two-layers-small": ([SPEC, SMALL, "--runner", "fake", "--space", "warpgroup-small", "--strategy", "random"], 8, 4),
}  # fmt: skip
"""Name: arguments of ``subbyte tune``, trials that were recorded, and how many more a resumed run makes."""
CUT = ("paper-random", "small-replayed", "warpgroup-pointwise")
"""Of these there is a second log, cut in the middle of its last line."""
RESUMED_BEFORE = ("extended-genetic", "small-genetic")
"""These were themselves stopped half way, and resumed."""
QUICK = ("paper-random", "paper-random.cut", "paper-sm80-nhwc", "paper-exhaustive",
         "small-replayed", "small-replayed.cut", "two-layers")  # fmt: skip
"""Resumed in a test run; all others are read."""


def record(scratch: Path) -> None:
    """Write all logs, and what came of reading and resuming each."""
    library.has_no_gpu()
    shutil.rmtree(FOLDER / "logs", ignore_errors=True)
    (FOLDER / "logs").mkdir(parents=True)
    held: dict[str, Any] = {}
    for name, (arguments, count, _) in RUNS.items():
        log = scratch / f"{name}.jsonl"
        if name in RESUMED_BEFORE:
            _tune(arguments, count // 2, log)
            _tune([*arguments, "--resume"], count, log)
        else:
            _tune(arguments, count, log)
        files = sorted(scratch.glob(f"{name}.jsonl")) or sorted(scratch.glob(f"{name}.*.jsonl"))
        held[name] = {"run": name, "files": [_keep(file) for file in files]}
        if name in CUT:
            cut = scratch / f"{name}.cut.jsonl"
            data = files[0].read_bytes()
            cut.write_bytes(data[: data[:-1].rfind(b"\n") + 200])
            held[f"{name}.cut"] = {"run": name, "files": [_keep(cut)]}
    log = scratch / "failures.jsonl"
    library.log_with_failures(str(log), SMALL, "warpgroup-small", 24)
    held["failures"] = {"run": None, "files": [_keep(log)]}
    for name, one in held.items():
        folder = scratch / f"again-{name}"
        one["trials"] = _read(name, one, folder)
        one["resumed"] = _resumed(name, one, folder) if one["run"] else None
    write("logs", held)


def names(quick: bool = False) -> list[str]:
    """Of the logs; with ``quick`` those that a test run also resumes."""
    return list(QUICK) if quick else list(read("logs"))


def problems(name: str, scratch: Path, resume: bool = True) -> Iterator[str]:
    """What is not as it was with one log."""
    one = read("logs")[name]
    if _read(name, one, scratch) != one["trials"]:
        yield f"log {name}: read with other trials than before"
    if resume and one["resumed"] is not None and (now := _resumed(name, one, scratch)) != one["resumed"]:
        yield f"log {name}: resumed with {now}, before with {one['resumed']}"


def _tune(arguments: list[str], count: int, log: Path) -> None:
    code, _, said = library.command(["tune", *arguments, "--trials", str(count), "--log", str(log)])
    if code:
        raise RuntimeError(f"tune {arguments}: exit {code}: {said}")


def _keep(file: Path) -> str:
    (FOLDER / "logs" / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))
    return file.name


def _unpack(one: dict[str, Any], folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name in one["files"]:
        (folder / name).write_bytes(gzip.decompress((FOLDER / "logs" / f"{name}.gz").read_bytes()))
    return [folder / name for name in one["files"]]


def _read(name: str, one: dict[str, Any], folder: Path) -> dict[str, Any]:
    """By file the number of trials and the digest of what they say."""
    found = {}
    for file in _unpack(one, folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if name.endswith(".cut") else "error")
            trials = library.trials(str(file))
        found[file.name] = [len(trials), hashlib.sha256(json.dumps(trials).encode()).hexdigest()[:16]]
    return found


def _resumed(name: str, one: dict[str, Any], folder: Path) -> dict[str, Any]:
    """By file the trials that follow: index and key. Of made-up times only the first batch is told what it was."""
    arguments, count, more = RUNS[one["run"]]
    files = _unpack(one, folder)
    before = {file: len(gzip.decompress((FOLDER / "logs" / f"{file.name}.gz").read_bytes())) for file in files}
    log = folder / f"{name}.jsonl"
    code, _, said = library.command(["tune", *arguments, "--trials", str(count + more), "--log", str(log), "--resume"])
    if code:
        return {"exit": code, "said": said.strip()[:200]}
    kept = {}
    for file in files:
        trials = library.trials(str(file))
        old = one["trials"][file.name][0] if "trials" in one else count
        follow = trials[old:][:4] if "fake" in arguments else trials[old:]
        kept[file.name] = [row[1:3] for row in follow] if before[file] else []
    return kept

"""What became of each plan of a layer, on disk before the next begins: the next process knows what ended this one."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FATAL = "reads or writes memory that is not its own, which ends the GPU's context"
ENDLESS = "does not end"
PATIENCE = 10.0
"""Seconds that a plan may take, to be built and timed."""


@dataclass(frozen=True)
class Tried:
    """A plan that was tried: its kind, a name, its engine (-1: a listed one), its quick time or why it has none."""

    kind: str
    name: str
    engine: int = -1
    microseconds: float | None = None
    failed: str = ""


class Log:
    """The plans tried of one layer. Every line is written and flushed before anything else happens.

    A line without a result was written before a plan began; where no other line of that plan follows, the plan ended
    the process.
    """

    def __init__(self, path: Path, spec: str) -> None:
        self.path, self.spec = path, spec
        self.known: dict[str, Tried] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            entry: dict[str, Any] = json.loads(line)
            if entry.pop("spec") == spec:
                one = Tried(**entry)
                self.known[one.name] = one
        self.known = {
            name: one if one.microseconds is not None or one.failed else Tried(one.kind, name, one.engine, None, FATAL)
            for name, one in self.known.items()
        }

    def write(self, one: Tried) -> None:
        """Note what is about to begin, or how it ended."""
        self.known[one.name] = one
        entry = {"spec": self.spec, "kind": one.kind, "name": one.name, "engine": one.engine,
                 "microseconds": one.microseconds, "failed": one.failed}  # fmt: skip
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def fatal(self, engine: int) -> int:
        """How many plans of an engine ended the process."""
        return sum(one.engine == engine and one.failed in (FATAL, ENDLESS) for one in self.known.values())

    def of(self, kind: str) -> list[Tried]:
        """The plans of a kind that ran and were right, fastest first."""
        right = [one for one in self.known.values() if one.kind == kind and one.microseconds is not None]
        return sorted(right, key=lambda one: one.microseconds or 0.0)


def watch(process: subprocess.Popen[bytes], path: Path, spec: str, patience: float = PATIENCE) -> int | None:
    """Wait for a process that tries plans: its exit status, or None where a plan did not end, which is noted."""
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(0.5)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        last = json.loads(lines[-1]) if lines else {"spec": ""}
        running = last["spec"] == spec and last["microseconds"] is None and not last["failed"]
        if running and time.time() - path.stat().st_mtime > patience:
            process.kill()
            process.wait()
            Log(path, spec).write(Tried(last["kind"], last["name"], last["engine"], None, ENDLESS))
            return None

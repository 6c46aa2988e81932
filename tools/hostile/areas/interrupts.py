"""Ctrl-C at random moments: exit code 130, one line, nobody left behind; kill -9 of a tuning, which then resumes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hostile.harness import SLOW, TRACEBACK, Case, Failure
from hostile.program import LAYER, environment, must, start, survivors

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "race": ("race", LAYER, "--strategies", "random,genetic,autotvm", "--trials", "200", "--seeds", "50"),
    "tune": ("tune", LAYER, "--runner", "fake", "--trials", "all"),
    "tune with a model": ("tune", LAYER, "--runner", "replay", "--strategy", "autotvm", "--trials", "all"),
    "build": ("build", LAYER, "--arch", "sm_80", "--set", "chunk=2"),
    "run": ("run", "n8h4w4c32k32r1s1", "--arch", "sm_80", "--device", "emulator"),
}
"""What is interrupted; all of them run for seconds."""
LONGEST_S, LIMIT_S = 4.0, 60.0
TRIALS = 120
PROGRESS = ("runs ", "built ")


def cases(rng: random.Random) -> Iterator[Case]:
    """75 interruptions, half of them in the first 0.3 s, and 20 tunings killed twice each."""
    for number in range(75):
        name = list(COMMANDS)[number % len(COMMANDS)]
        delay = rng.uniform(0, 0.3 if number % 2 else LONGEST_S)
        argv = [*COMMANDS[name], *(["--json"] if rng.random() < 0.25 else [])]
        yield Case(f"Ctrl-C after {delay:.3f} s of {name}", partial(interrupt, argv, delay), seconds=60.0)
    for number in range(20):
        lines = sorted(rng.sample(range(1, TRIALS), 2))
        yield Case(f"kill -9 of tune at results {lines}", partial(killed, number, lines), "answer", seconds=120.0)


def interrupt(argv: Sequence[str], delay: float) -> str:
    """Ctrl-C for the whole group of a program, as a terminal sends it. Raises Failure."""
    env, mark = environment()
    process = start(argv, env)
    time.sleep(delay)
    early = process.poll() is None
    if early:
        os.killpg(process.pid, signal.SIGINT)
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Failure(SLOW, f"it went on for {LIMIT_S:g} s") from None
    left = survivors(mark)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    must(not left, f"{len(left)} processes are left")
    if process.returncode == 0:  # it was done, or as good as done
        return out
    said = [line for line in err.splitlines() if not line.startswith(PROGRESS)]
    if process.returncode != 130 or said != ["subbyte: interrupted"]:
        raise Failure(TRACEBACK, f"exit {process.returncode}: {err[-600:]}")
    if "--json" in argv:
        must(isinstance(json.loads(out), dict), f"no object on stdout: {out[:200]}")
    return out


def killed(seed: int, lines: Sequence[int]) -> list[dict[str, Any]]:
    """A tuning that is killed when its log has so many lines, resumed, killed again and resumed equals one that ran
    through. Raises Failure."""
    with tempfile.TemporaryDirectory() as folder:
        whole, cut = Path(folder) / "whole.jsonl", Path(folder) / "cut.jsonl"
        _tune(whole, seed, None)
        for line in lines:
            _tune(cut, seed, line)
        _tune(cut, seed, None)
        one, other = _content(whole), _content(cut)
        must(one == other, f"the logs differ: {len(one)} and {len(other)} results")
        return other


def _tune(log: Path, seed: int, until: int | None) -> None:
    argv = ["tune", LAYER, "--runner", "replay", "--strategy", "genetic", "--trials", str(TRIALS), "--seed", str(seed),
            "--log", str(log), *(["--resume"] if log.exists() else [])]  # fmt: skip
    env, _ = environment()
    process = start(argv, env)
    while until is not None and process.poll() is None:
        if log.exists() and log.read_bytes().count(b"\n") > until:
            process.kill()
            break
        time.sleep(0.002)
    _, err = process.communicate(timeout=100)
    must(until is not None or process.returncode == 0, f"exit {process.returncode}: {err[-300:]}")


def _content(log: Path) -> list[dict[str, Any]]:
    """The results, without when they were made."""
    times = ("started", "finished", "crc")
    trials = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()[1:]]
    return [{name: value for name, value in trial.items() if name not in times} for trial in trials]

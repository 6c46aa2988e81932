"""Every kind of command in every kind of hostile environment, each in a process of its own."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hostile.harness import UNCLEAR, Case, Failure
from hostile.program import LAYER, environment, judge

TINY = "n8h4w4c32k32r1s1"
NOBODY = "import pwd\ndef nobody(_):\n    raise KeyError('uid not found')\npwd.getpwuid = nobody\n"
"""A user without an entry in the password file."""
PROGRAM = "import sys\nfrom subbyte.__main__ import program\nsys.exit(program())\n"
LINES: Sequence[Sequence[str]] = (
    ("workloads",), ("workloads", "alexnet", "--json"), ("workloads", "nope"), ("workloads", "nope", "--json"),
    ("--help",), ("explain", "duplicates"), ("landscape", "info", LAYER, "--json"),
    ("tune", LAYER, "--runner", "fake", "--trials", "2", "--log", "tune.jsonl"),
    ("race", LAYER, "--strategies", "random", "--trials", "2", "--seeds", "2", "-o", "race.json.gz", "--json"),
    ("landscape", "export", LAYER, "-o", "export.csv"),
)  # fmt: skip
SLOW: Sequence[Sequence[str]] = (
    ("build", TINY, "--arch", "sm_80", "--set", "chunk=1", "-o", "kernel.cu"),
    ("run", TINY, "--arch", "sm_80", "--set", "chunk=1", "--device", "emulator", "--save", "run.npz", "--json"),
)


@dataclass(frozen=True)
class Place:
    """An environment: changed variables, redirections in the words of a shell, what runs in the new process."""

    name: str
    variables: Mapping[str, str | None] = field(default_factory=dict)
    shell: str = ""
    before: Callable[[], None] | None = None
    prelude: str = ""
    mute: bool = False
    """Whether what it prints cannot be read. ``prelude`` is Python that runs before the program."""


def _limit(what: int, amount: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(what, (amount, amount))


def _gone() -> None:
    """A current folder that is deleted."""
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)


PLACES = (
    Place("stdout full", shell=">/dev/full", mute=True), Place("stdout closed", shell=">&-", mute=True),
    Place("stderr full", shell="2>/dev/full", mute=True), Place("stderr closed", shell="2>&-", mute=True),
    Place("stdin closed", shell="<&-"), Place("all closed", shell="<&- >&- 2>&-", mute=True),
    Place("both full", shell=">/dev/full 2>&1", mute=True), Place("reader leaves", shell="| head -c 1", mute=True),
    Place("unbuffered and full", {"PYTHONUNBUFFERED": "1"}, ">/dev/full", mute=True),
    Place("no home", {"HOME": None, "SUBBYTE_CACHE": None, "XDG_CACHE_HOME": None}, prelude=NOBODY),
    Place("home a file", {"HOME": "/dev/null", "SUBBYTE_CACHE": None, "XDG_CACHE_HOME": None}),
    Place("home empty", {"HOME": "", "SUBBYTE_CACHE": None}), Place("cache a file", {"SUBBYTE_CACHE": "/etc/passwd"}),
    Place("cache a device", {"SUBBYTE_CACHE": "/dev/full"}), Place("cache in /proc", {"SUBBYTE_CACHE": "/proc/x"}),
    Place("cache with a long name", {"SUBBYTE_CACHE": "/" + "n" * 5000}),
    Place("ASCII", {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}),
    Place("unknown language", {"LANG": "xx_YY.nope", "LC_ALL": "xx_YY.nope"}),
    Place("no columns", {"COLUMNS": "0"}), Place("columns below 0", {"COLUMNS": "-5"}),
    Place("columns no number", {"COLUMNS": "²"}), Place("unknown terminal", {"TERM": "\t\x7f", "FORCE_COLOR": "1"}),
    Place("no PATH", {"PATH": "", "CXX": "/nope"}), Place("no TMPDIR", {"TMPDIR": "/proc/x", "TMP": "/proc/x"}),
    Place("folder deleted", before=_gone), Place("few files", before=_limit(resource.RLIMIT_NOFILE, 20)),
    Place("no file may grow", before=_limit(resource.RLIMIT_FSIZE, 0)),
    Place("files of 1 KiB", before=_limit(resource.RLIMIT_FSIZE, 1024)),
    Place("1 GiB of addresses", {"OPENBLAS_NUM_THREADS": "1"}, before=_limit(resource.RLIMIT_AS, 1 << 30)),
    Place("no permission for anybody", before=lambda: _none(os.umask(0o777))),
    Place("Ctrl-C ignored", before=lambda: _none(signal.signal(signal.SIGINT, signal.SIG_IGN))),
)  # fmt: skip


def _none(_: Any) -> None:
    return None


def cases(rng: random.Random) -> Iterator[Case]:
    """All of LINES in all of PLACES, and of SLOW where a kernel's files are in the way."""
    for place in PLACES:
        for argv in LINES:
            yield Case(f"{place.name}: {' '.join(argv)}", partial(tried, place, argv), seconds=60.0)
    for place in rng.sample(PLACES[9:16], 4):
        for argv in SLOW:
            yield Case(f"{place.name}: {' '.join(argv)}", partial(tried, place, argv), seconds=120.0)


def tried(place: Place, argv: Sequence[str]) -> str:
    """stdout of the program. Raises as :func:`hostile.program.judge`."""
    env, _ = environment(place.variables)
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    program = ["sh", "-c", f'"$@" {place.shell}', "sh", sys.executable, "-P", "-c", place.prelude + PROGRAM, *argv]
    if not place.shell:
        program = program[4:]
    if place.shell.startswith("|"):  # the exit code of the program, which a pipe hides
        program = ["bash", "-c", f'"$@" {place.shell}; exit ${{PIPESTATUS[0]}}', *program[3:]]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        done = subprocess.run(
            program, cwd=folder, env=env, capture_output=True, text=True, errors="replace", preexec_fn=place.before,
            timeout=100, check=False,
        )  # fmt: skip
        left = sorted(path.name for path in Path(folder).rglob("*") if path.suffix in (".partial", ".probe"))
    if left:
        raise Failure(UNCLEAR, f"left behind: {left}")
    out = None if place.shell.startswith((">", "|", "<&- >")) else done.stdout
    err = None if place.mute and "2>" in place.shell else done.stderr
    return judge(done.returncode, out, err, argv)

"""Command lines with wrong arguments of every kind, in this process; each also with ``--json``.

``FLAGS`` says what each command takes and of which kind it is; ``tests/corpus/command_lines.json`` holds values of each
kind that must be refused, and command lines that once ended badly.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from unittest import mock

from hostile.harness import ACCEPTED, Case, Failure, command
from hostile.program import LAYER

CORPUS = Path(__file__).parents[3] / "tests/corpus/command_lines.json"
"""kinds: values to refuse by kind; lines: whole command lines to refuse. ``{long}`` is 5,000 letters, ``{digits}``
5,000 nines, ``{folder}`` a folder, ``{file}`` a small text file."""
_EXPLAIN = {"--family": "choice"}
_SEARCH = {"--space": "choice", "--arch": "choice", "--set": "setting"}
FLAGS: Mapping[tuple[str, ...], Mapping[str, str]] = {
    ("workloads",): {},
    ("explain", "tiling"): {**_EXPLAIN, "--arch": "choice", "--set": "setting", "--block": "pair"},
    ("explain", "duplicates"): {"--tile": "pair", "--at": "pair", "--warp": "warp"},
    ("explain", "packing"): {**_EXPLAIN, "--scheme": "choice", "--tiles": "positive", "--seed": "seed"},
    ("explain", "layout"): {"--layout": "choice", "--arch": "choice", "--set": "setting", "--block": "pair",
                            "--warp": "natural", "--iteration": "natural"},
    ("explain", "fragments"): {"--instruction": "choice"},
    ("explain", "taps"): {**_EXPLAIN, "--row": "natural", "--set": "setting"},
    ("explain", "speed"): {"--gpu": "choice"},
    ("explain", "bits"): {"--at": "pair", "--image": "natural", "--channel": "natural", "--seed": "seed"},
    ("explain", "planes"): {}, ("explain", "thresholds"): {"--step": "seconds"},
    ("build", LAYER): {"--arch": "choice", "--set": "setting", "--family": "choice", "--emit": "choice",
                       "--output": "choice", "-o": "output", "--export": "export"},
    ("run", LAYER): {"--arch": "choice", "--set": "setting", "--family": "choice", "--device": "device",
                     "--seed": "seed", "--save": "output"},
    ("tune", LAYER, "--runner", "fake", "--trials", "1"): {
        **_SEARCH, "--runner": "choice", "--strategy": "strategy", "--trials": "positive", "--seed": "seed",
        "--batch": "positive", "--log": "output", "--landscape": "input", "--device": "device", "--timeout": "seconds",
        "--top-k": "natural", "--report": "output"},
    ("race", LAYER, "--trials", "1", "--seeds", "1", "--workers", "1"): {
        "--strategies": "strategy", "--trials": "positive", "--seeds": "positive", "--workers": "positive",
        "--batch": "positive", "--traces": "input", "--statistics-seed": "seed", "-o": "output", "--load": "input"},
    ("landscape", "info"): {}, ("landscape", "list"): {},
    ("landscape", "export", LAYER): {"--format": "choice", "-o": "output"},
    ("landscape", "import", "{file}"): {"--format": "choice", "--like": "input", "--statistic": "choice"},
    ("landscape", "record", LAYER, "-o", "{folder}/x.json.gz"): {
        **_SEARCH, "-o": "output", "--device": "device", "--limit": "seconds", "--workers": "positive"},
    ("landscape", "measure", "{folder}"): {"--device": "natural", "-o": "output"},
    ("landscape", "assemble", "{folder}"): {"--results": "input", "-o": "output"},
    ("bench", LAYER): {"--bundle": "input", "--device": "natural", "--out": "output", "--from": "input",
                       "--plan-seconds": "seconds"},
    ("lab", "02"): {"--port": "port"},
}  # fmt: skip
"""Command and what makes it a whole one, to its flags and their kinds. No line without a fault is tried for those that
would start a server, a compiler or a measurement."""
WORDS = ("workloads", "explain", "landscape", "lab", "", "²", "--nope", "-", "--json=1", "{long}", "--", "\n", "--set")


def cases(rng: random.Random) -> Iterator[Case]:
    """Every flag with every wrong value of its kind, without a value and unknown; positions; random mixtures."""
    corpus = json.loads(CORPUS.read_text(encoding="utf-8"))
    lines: list[Sequence[str]] = [*corpus["lines"]]
    for words, flags in FLAGS.items():
        for flag, kind in flags.items():
            lines += [[*words, flag, value] for value in corpus["kinds"][kind]]
            lines.append([*words, flag])
        lines += [[*words, "--nope"], [*words, "--nope={long}"], [*words, "--jsno"], [*words, "--Json"]]
    for name in corpus["kinds"]["workload"]:
        lines += [["workloads", name], ["explain", "tiling", name], ["build", name], ["run", name],
                  ["tune", name], ["race", name], ["landscape", "record", name, "-o", "x.json.gz"],
                  ["landscape", "info", name], ["landscape", "export", name], ["landscape", "import", name],
                  ["landscape", "assemble", name], ["bench", name], ["bench", "--from", name], ["lab", name],
                  ["explain", name], ["landscape", name], [name]]  # fmt: skip
    wrong = [(words, line[len(words) :]) for words in FLAGS for line in lines if tuple(line[: len(words)]) == words]
    for _ in range(200):  # two faults at once, or the same flag twice
        words, tail = rng.choice(wrong)
        _, other = rng.choice([pair for pair in wrong if pair[0] == words])
        lines.append([*words, *tail, *other])
    for _ in range(100):
        lines.append([rng.choice(WORDS[4:]), *rng.choices(WORDS, k=rng.randrange(3))])
    for line in lines:
        for extra in ((), ("--json",)):
            argv = [*line, *extra]
            yield Case(" ".join(argv), partial(tried, argv), "refuse")


def tried(argv: Sequence[str]) -> str:
    """The output of a command line. Raises as :func:`hostile.harness.command`."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "file").write_text("no record\n")
        places = {"{long}": "n" * 5000, "{digits}": "9" * 5000, "{folder}": folder, "{file}": f"{folder}/file"}
        words = list(argv)
        for name, value in places.items():
            words = [word.replace(name, value) for word in words]
        os.chdir(folder)  # whatever is written by default is written here
        try:
            with mock.patch("os.execve", side_effect=Failure(ACCEPTED, "a server would have been started")):
                return command(*words)
        finally:
            os.chdir(before)

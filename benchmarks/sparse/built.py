"""Commands of two steps: texts are written where TVM is, and measured where the GPU is."""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Sequence
from pathlib import Path

from benchmarks.shared.command import parser_of
from subbyte.files import write_file

Parsers = tuple[argparse.ArgumentParser, argparse.ArgumentParser, argparse.ArgumentParser]


def two_steps(name: str, text: str | None, more: str = "") -> Parsers:
    """The parser of a command, and those of its parts ``build FILE`` and ``measure FILE OUT``; ``more`` names another
    part, ``PART RECORD``, with its meaning behind a colon."""
    parser = parser_of(name, text)
    commands = parser.add_subparsers(dest="what", required=True)
    writing = commands.add_parser("build", help="write the texts")
    writing.add_argument("out", type=Path, help="a file of JSON lines, FILE.jsonl or FILE.jsonl.gz")
    running = commands.add_parser("measure", help="compile, verify and time them")
    running.add_argument("texts", type=Path)
    running.add_argument("out", type=Path)
    if more:
        part, _, meaning = more.partition(": ")
        commands.add_parser(part, help=meaning).add_argument("record", type=Path)
    return parser, writing, running


def write_lines(out: Path, lines: Sequence[str]) -> None:
    """A file of lines, compressed where its name ends in .gz."""
    text = "".join(f"{one}\n" for one in lines).encode()
    write_file(out, gzip.compress(text, mtime=0) if out.suffix == ".gz" else text)

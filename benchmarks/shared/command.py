"""What all programs of the benchmarks share: finding their part, reading its arguments, reporting bad input.

A folder is a command (``python benchmarks/network``). Its parts are modules with a function ``main`` that takes the
arguments after the part's name and returns an exit code: 0 done, 1 wrong or not finished, 2 bad input, 3 the machine
lacks something.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from subbyte.errors import InvalidInput, SubbyteError

FOLDER = Path(__file__).resolve().parents[1]
ROOT = FOLDER.parent
RESULTS = FOLDER / "results"

Main = Callable[[Sequence[str]], int]


class Parser(argparse.ArgumentParser):
    """Refuses wrong words with one sentence."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end."""
        self.exit(2, f"error: {message}; see `{self.prog} --help`\n")


def parser_of(command: str, about: str | None) -> Parser:
    """The parser of ``python benchmarks/COMMAND``, which shows a module's own text as help."""
    shown = argparse.RawDescriptionHelpFormatter
    return Parser(prog=f"python benchmarks/{command}", description=(about or "").strip(), formatter_class=shown)


def add_search(parser: Parser) -> None:
    """The options of searches that are dealt out to the GPUs: a process for each ``--part``."""
    parser.add_argument("out", type=Path, help="folder for the logs")
    parser.add_argument("--gpus", type=int, default=1, help="how many GPUs share the work (default 1)")
    parser.add_argument("--seconds", type=float, default=440.0, help="stop searching after this time (default 440)")
    parser.add_argument("--trials", type=int, default=500, help="trials of each search (default 500)")
    parser.add_argument("--strategy", default="autotvm", help="search strategy (default autotvm)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the strategy (default 0)")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--deadline", type=float, help=argparse.SUPPRESS)


def refuse(error: SubbyteError) -> int:
    """Say why there is nothing to do; the exit code."""
    print(f"error: {error}", file=sys.stderr)
    return error.exit_code


def answering(main: Main) -> Main:
    """``main`` that ends with one sentence and an exit code where an error is known."""

    @wraps(main)
    def answered(arguments: Sequence[str]) -> int:
        try:
            return main(arguments)
        except SubbyteError as error:
            return refuse(error)

    return answered


def again(command: str, arguments: Sequence[str], *more: str) -> list[str]:
    """The words that start a part (``network tune``) once more, in a process of its own."""
    folder, *part = command.split()
    return [sys.executable, str(FOLDER / folder), *part, *arguments, *more]


@answering
def _unknown(words: Sequence[str]) -> int:
    folder, word, *parts = words
    close = difflib.get_close_matches(word, parts, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise InvalidInput(f"{word!r} is not a part of benchmarks/{folder}: {', '.join(parts)}{hint}")


def program(folder: str, about: str | None, parts: Sequence[str], words: Sequence[str] | None = None) -> int:
    """Do the part that the first word names, or show all of them."""
    words = sys.argv[1:] if words is None else words
    command = f"python benchmarks/{folder}"
    if not words:
        print(f"error: name what to do: {', '.join(parts)}; see `{command} --help`", file=sys.stderr)
        return 2
    if words[0] in ("-h", "--help"):
        lines = "\n".join(_wrapped(part, first_sentence(folder, part)) for part in parts)
        print(f"usage: {command} PART ...\n\n{(about or '').strip()}\n\nparts (each with --help):\n{lines}")
        return 0
    if words[0] not in parts:
        return _unknown([folder, words[0], *parts])
    main: Main = import_module(f"benchmarks.{folder}.{module_of(words[0])}").main
    return main(words[1:])


def module_of(part: str) -> str:
    """The module of a part."""
    return part.replace("-", "_")


def first_sentence(folder: str, part: str) -> str:
    """The first sentence of a part's own text; the module is not loaded for it."""
    text = (FOLDER / folder / f"{module_of(part)}.py").read_text(encoding="utf-8")
    paragraph = " ".join((ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".").replace("``", "`")


def _wrapped(part: str, text: str) -> str:
    width = shutil.get_terminal_size().columns - 2
    return textwrap.fill(text, width, initial_indent=f"  {part:16} ", subsequent_indent=" " * 19)

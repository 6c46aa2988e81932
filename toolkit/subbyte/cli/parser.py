"""The argument parser of the command line, and how it prints help."""

from __future__ import annotations

import argparse
import sys
import textwrap
from typing import Any, NoReturn

from subbyte.errors import InvalidInput
from subbyte.streams import put, say


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps long lines but keeps line breaks, and leaves room for the longest command name, which argparse misjudges by
    its indentation."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)
        self._action_max_length = 15

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(_wrapped(f"{indent}{line}", width) for line in text.splitlines())


def _wrapped(line: str, width: int) -> str:
    """A line of a description, wrapped with a hanging indent; an example of a command stays on one line."""
    margin = " " * (len(line) - len(line.lstrip()))
    if line.startswith("  subbyte "):
        return line
    return textwrap.fill(line, width, subsequent_indent=f"{margin}  " if margin else "", break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """An argument parser that keeps line breaks in its help, rejects abbreviated flags and raises InvalidInput."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", _HelpFormatter)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        """Raise InvalidInput, which the command line prints as one message."""
        raise InvalidInput(f"{message}; see `{self.prog} --help`")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help and version like all other output; argparse would silently ignore write errors."""
        (say if file is sys.stderr else put)(message, end="")

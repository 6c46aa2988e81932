"""Tables in a document: Markdown, and what stands between two markers of a file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def update(file: Path, make: Callable[[], str], markers: tuple[str, str], check: bool) -> int:
    """Replace the table in ``file`` with what ``make`` gives, or only compare; the exit code."""
    text = file.read_text(encoding="utf-8")
    try:
        wanted = replace_table(text, make(), *markers)
    except ValueError as error:
        print(f"error: {file}: {error}", file=sys.stderr)
        return 2
    if wanted == text:
        return 0
    if check:
        print(f"{file} is stale: run `make table`", file=sys.stderr)
        return 1
    file.write_text(wanted, encoding="utf-8")
    return 0


def replace_table(text: str, table: str, start: str, end: str) -> str:
    """``text`` with what stands between the two markers replaced. Raises ValueError unless each stands there once."""
    if text.count(start) != 1 or text.count(end) != 1 or text.index(start) > text.index(end):
        raise ValueError(f"must hold {start} and, after it, {end}, once each")
    before, _, rest = text.partition(start)
    return f"{before}{start}\n{table}\n{end}{rest.partition(end)[2]}"


def markdown(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]], text_columns: int = 1) -> str:
    """A table with a title; the first columns hold text, the others numbers."""
    rule = "| " + " | ".join(["---"] * text_columns + ["---:"] * (len(head) - text_columns)) + " |"
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([title, "", lines[0], rule, *lines[1:]])

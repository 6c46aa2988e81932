"""The notebooks as students get them: no solutions, exercises unanswered and graded as before.

``python tools/student.py [NAME ...] [--to FOLDER]`` writes them to build/student. To work in them, copy them over the
notebooks of a checkout: they read the records beside that folder.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import nbformat
from notebooks import FOLDER, find

from subbyte.errors import InvalidInput

ROOT = Path(__file__).resolve().parent.parent
HEAD, TAIL = "<details><summary>Solutions</summary>\n", "</details>"
EXERCISE = re.compile(r"^\*\*Exercise \d+\.\*\*", re.MULTILINE)
LEFT = re.compile(r"\bsolutions?\b", re.IGNORECASE)


def for_students(notebook: nbformat.NotebookNode, name: str) -> nbformat.NotebookNode:
    """A copy without the cell of the solutions and without what the cells of the exercises showed.

    ``name`` is what an error calls it. Raises InvalidInput where the solutions have another form than one folded cell.
    """
    found = nbformat.from_dict(notebook)
    folded = [cell for cell in found.cells if is_folded(cell)]
    found.cells = [cell for cell in found.cells if not is_folded(cell)]
    asked = [cell for cell in found.cells if cell.cell_type == "markdown" and EXERCISE.search(cell.source)]
    if len(folded) != bool(asked) or any(LEFT.search(cell.source) for cell in found.cells):
        raise InvalidInput(
            f"{name}: the solutions cannot be told from the lesson; put all of them into one markdown cell that begins "
            f"with {HEAD.strip()!r} and ends with {TAIL!r}, and use the word nowhere else"
        )
    exercise = False
    for cell in found.cells:
        if cell.cell_type == "markdown":
            exercise = bool(EXERCISE.search(cell.source))
        elif exercise:
            cell.outputs, cell.execution_count = [], None
    return found


def is_folded(cell: nbformat.NotebookNode) -> bool:
    """Whether this cell is the solutions."""
    text = cell.source.strip()
    return cell.cell_type == "markdown" and text.startswith(HEAD) and text.endswith(TAIL)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of file names; default: every notebook")
    parser.add_argument("--to", type=Path, default=ROOT / "build/student", metavar="FOLDER")
    given = parser.parse_args()
    try:  # all of them before the first is written: a refusal leaves no half of a set
        made = {path.name: for_students(nbformat.read(path, as_version=4), path.name) for path in find(given.names)}
    except InvalidInput as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    given.to.mkdir(parents=True, exist_ok=True)
    for name, notebook in made.items():
        (given.to / name).write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    print(f"{given.to}: notebooks without solutions: {len(made)}; they run in {FOLDER.name}/ of a checkout")
    return 0


if __name__ == "__main__":
    sys.exit(main())

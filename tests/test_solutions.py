"""The solutions at the end of every notebook, as a reader copies them: the library calls each of them right.

A notebook shows them in its last cell, which Run All does not run. Each runs here with the few statements of the
notebook that it needs, such as an import or the layer of the exercise, and not with the rest of the notebook.
"""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from notebooks import FOLDER, find

from subbyte.exercises.feedback import Feedback

HEAD, TAIL = "<details><summary>Solutions</summary>\n", "</details>"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXERCISE = re.compile(r"^\*\*Exercise \d\.\*\*", re.MULTILINE)
NOTEBOOKS = [path for path in find([])[1:] if path.stem != "15_workbench"]
"""All lessons but the first, whose solutions are numbers; the workbench is a tool and asks nothing."""


def solutions(notebook: nbformat.NotebookNode) -> list[str]:
    """The code of each solution in the last cell."""
    last = notebook.cells[-1]
    assert last.cell_type == "markdown", "the solutions are a cell of text, which Run All does not run"
    assert last.source.startswith(HEAD), f"the last cell begins with {HEAD!r}"
    assert last.source.endswith(TAIL)
    return FENCE.findall(last.source)


def names(statement: ast.stmt) -> set[str]:
    """What a statement reads from outside itself, inside its functions too."""
    parts = list(ast.walk(statement))
    loops = [part.target for part in parts if isinstance(part, ast.comprehension)]
    inside = [statement] if isinstance(statement, ast.FunctionDef) else loops
    own = {one.id for part in inside for one in ast.walk(part) if isinstance(one, ast.Name) and stored(one)}
    own |= {part.arg for part in parts if isinstance(part, ast.arg)}
    read = {part.id for part in parts if isinstance(part, ast.Name) and not stored(part)}
    return {name for name in read - own if not hasattr(builtins, name)}


def stored(name: ast.Name) -> bool:
    """Whether a name is written here."""
    return isinstance(name.ctx, ast.Store)


def makes(statement: ast.stmt) -> set[str]:
    """What a statement defines."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(one.asname or one.name).partition(".")[0] for one in statement.names}
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return {one.id for one in ast.walk(statement) if isinstance(one, ast.Name) and stored(one)}
    return set()


def needed(source: str, before: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of the notebook that define what some code reads, in their order."""
    parsed = ast.parse(source).body
    own = {name for statement in parsed for name in makes(statement)}
    wanted = [(name, len(before)) for statement in parsed for name in names(statement) - own]
    chosen: set[int] = set()
    while wanted:
        name, end = wanted.pop()
        place = next((place for place in reversed(range(end)) if name in makes(before[place])), None)
        if place is None or place in chosen:
            continue
        chosen.add(place)
        wanted += [(other, place) for other in names(before[place])]
    return [before[place] for place in sorted(chosen)]


def verdict(source: str, notebook: nbformat.NotebookNode) -> Feedback:
    """What the library says of a solution, whose last line asks it."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    before = [statement for cell in cells for statement in ast.parse(cell).body]
    *body, last = ast.parse(source).body
    assert isinstance(last, ast.Expr), "a solution ends by asking the library"
    space: dict[str, Any] = {}
    for statements in (needed(source, before), body):
        exec(compile(ast.Module(statements, []), "solution", "exec"), space)
    said = eval(compile(ast.Expression(last.value), "solution", "eval"), space)
    assert isinstance(said, Feedback)
    return said


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_library_calls_every_solution_right(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    notebook = nbformat.read(path, as_version=4)
    found = solutions(notebook)
    asked = "\n".join(cell.source for cell in notebook.cells[:-1] if cell.cell_type == "markdown")
    assert len(found) == len(EXERCISE.findall(asked)) > 1, "one solution for each exercise"
    for number, source in enumerate(found, 1):
        said = verdict(source, notebook)
        assert said, f"exercise {number}: {said}"


def test_a_wrong_solution_is_noticed() -> None:
    cells = ["from subbyte import exercises", "layer = 'no layer'", "layer = 'n8h56w56c64k64r3s3p1u2'", "1 / 0"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    ask = "pixels = {}\nexercises.check_pixels(pixels, layer, (2, 4))"
    assert verdict(ask.format(45), notebook)
    assert not verdict(ask.format(60), notebook)
    with pytest.raises(AssertionError, match="ends by asking"):
        verdict("pixels = 45", notebook)
    told = "1. It is so.\n\n```python\nf(1)\n```\n\n2. No.\n\n```python\nf(2)\n```\n\n"
    notebook.cells.append(nbformat.v4.new_markdown_cell(f"{HEAD}\n{told}{TAIL}"))
    assert solutions(notebook) == ["f(1)\n", "f(2)\n"]
    notebook.cells.append(nbformat.v4.new_code_cell("f(1)"))
    with pytest.raises(AssertionError, match="a cell of text"):
        solutions(notebook)

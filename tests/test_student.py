"""The students' notebooks hold no solution, and all that a reader needs to find one."""

from __future__ import annotations

from pathlib import Path

import nbformat
import notebooks
import pytest
import student
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from subbyte.errors import InvalidInput

TASK = new_markdown_cell("**Exercise 1.** How many?")
FOLDED = new_markdown_cell(f"{student.HEAD}\n**Exercise 1.** It is 45.\n\n```python\ncheck(45)\n```\n\n{student.TAIL}")


def graded() -> nbformat.NotebookNode:
    return new_code_cell(
        "check(...)", outputs=[new_output("display_data", {"text/html": "Not yet"})], execution_count=3
    )


def shown() -> nbformat.NotebookNode:
    return new_code_cell("print(1)", outputs=[new_output("stream", text="1\n")], execution_count=1)


@pytest.mark.parametrize("path", notebooks.find([]), ids=lambda path: path.stem)
def test_no_solution_is_left_and_every_exercise_is(path: Path) -> None:
    whole = nbformat.read(path, as_version=4)
    made = student.for_students(whole, path.name)
    gone = [cell for cell in whole.cells if "<summary>Solutions" in cell.source]
    assert len(gone) == (path.stem != "15_workbench"), "it is a tool and asks nothing"
    assert [cell.source for cell in made.cells] == [cell.source for cell in whole.cells if cell not in gone]
    assert not student.LEFT.search("\n".join(cell.source for cell in made.cells))
    assert "Not yet" not in nbformat.writes(made)
    assert [c.outputs for c in made.cells if "outputs" in c and c.outputs], "what the lesson shows stays"
    nbformat.validate(made)


def test_the_cells_of_exercises_alone_are_cleared() -> None:
    whole = new_notebook(cells=[shown(), TASK, graded(), new_markdown_cell("## Next"), shown(), FOLDED])
    made = student.for_students(whole, "n")
    assert [len(cell.outputs) for cell in made.cells if cell.cell_type == "code"] == [1, 0, 1]
    assert len(whole.cells) == 6
    assert len(whole.cells[2].outputs) == 1, "the notebook itself stays as it is"
    assert len(student.for_students(new_notebook(cells=[shown()]), "n").cells) == 1


OTHER_FORMS = {
    "a heading": [TASK, graded(), new_markdown_cell("## Solutions\n\n45")],
    "code": [TASK, graded(), new_code_cell("# Solution of exercise 1\ncheck(45)")],
    "another cell": [TASK, graded(), FOLDED, new_markdown_cell("Solution: 45")],
    "words behind": [TASK, graded(), new_markdown_cell(f"{FOLDED.source}\n\nAnd more.")],
    "twice": [TASK, graded(), FOLDED, new_markdown_cell(FOLDED.source)],
    "none": [TASK, graded()],
}


@pytest.mark.parametrize("cells", OTHER_FORMS.values(), ids=OTHER_FORMS)
def test_solutions_of_another_form_are_refused(
    cells: list[nbformat.NotebookNode],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(InvalidInput, match=r"n\.ipynb: the solutions cannot be told from the lesson"):
        student.for_students(new_notebook(cells=cells), "n.ipynb")
    nbformat.write(new_notebook(cells=cells), tmp_path / "n.ipynb")
    monkeypatch.setattr(student, "find", lambda names: [tmp_path / "n.ipynb"])
    monkeypatch.setattr("sys.argv", ["student.py", "--to", str(tmp_path / "made")])
    assert student.main() == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "made").exists()


def test_the_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["student.py", "02", "--to", str(tmp_path / "a/b")])
    assert student.main() == 0
    (path,) = (tmp_path / "a/b").iterdir()
    assert path.name == "02_duplicate_aware_load.ipynb"
    assert capsys.readouterr().out.endswith("notebooks without solutions: 1; they run in notebooks/ of a checkout\n")
    assert "<summary>Solutions" not in path.read_text(encoding="utf-8")

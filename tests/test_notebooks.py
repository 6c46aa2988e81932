"""Every notebook runs from top to bottom in a fresh kernel, without a GPU and without an error."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run all cells in a kernel of this environment. Raises CellExecutionError."""
    NotebookClient(
        notebook,
        timeout=240,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=False,
    ).execute()


ELSEWHERE = ("05_search", "08_on_your_gpu")
"""Notebooks whose numbers are those of a trained model or of one GPU; what the others print is the same everywhere."""


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """The lines that the cells print."""
    outputs = [one for cell in notebook.cells if cell.cell_type == "code" for one in cell.outputs]
    text = "".join(one["text"] for one in outputs if one.get("name") == "stdout")
    return [line for line in text.splitlines() if not line.startswith("not timed here")]


@pytest.mark.notebook
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    committed = printed(notebook)
    execute(notebook, FOLDER)
    if path.stem not in ELSEWHERE and not has_gpu():
        gone = [line for line in committed if line not in printed(notebook)]
        assert not gone, (
            f"printed no longer, so the words around it may be wrong: `make notebooks NOTEBOOK={path.stem}`"
        )


def has_gpu() -> bool:
    """Whether the notebooks would use this machine's GPU."""
    from subbyte.errors import MissingDependency
    from subbyte.measure.driver import detect

    try:
        return bool(detect())
    except MissingDependency:
        return False


@pytest.mark.notebook
def test_there_are_notebooks_and_the_first_is_where_everybody_starts() -> None:
    assert NOTEBOOKS
    assert NOTEBOOKS[0].stem == "00_start_here"


@pytest.mark.notebook
def test_what_a_notebook_prints_is_compared() -> None:
    cells = [nbformat.v4.new_code_cell("print('loads', 18)"), nbformat.v4.new_code_cell("print('not timed here: x')")]
    ran = nbformat.v4.new_notebook(cells=cells)
    execute(ran, FOLDER)
    assert printed(ran) == ["loads 18"]


@pytest.mark.notebook
def test_a_failing_cell_is_noticed(tmp_path: Path) -> None:
    broken = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("assert 1 == 2, 'no'")])
    with pytest.raises(CellExecutionError, match="AssertionError"):
        execute(broken, tmp_path)

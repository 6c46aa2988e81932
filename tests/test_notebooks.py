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


@pytest.mark.notebook
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path) -> None:
    execute(nbformat.read(path, as_version=4), FOLDER)


@pytest.mark.notebook
def test_there_are_notebooks_and_the_first_is_where_everybody_starts() -> None:
    assert NOTEBOOKS
    assert NOTEBOOKS[0].stem == "00_start_here"


@pytest.mark.notebook
def test_a_failing_cell_is_noticed(tmp_path: Path) -> None:
    broken = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("assert 1 == 2, 'no'")])
    with pytest.raises(CellExecutionError, match="AssertionError"):
        execute(broken, tmp_path)

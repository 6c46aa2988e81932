"""Every notebook runs from top to bottom in a fresh kernel, without a GPU and without an error."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import nbformat
import notebooks
import pytest
from notebooks import FROM_A_GPU, execute, has_gpu, printed

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


ELSEWHERE = ("05_search", *FROM_A_GPU)
"""Notebooks whose numbers are those of a trained model or of one GPU; what the others print is the same everywhere."""


EXERCISES = {
    **dict.fromkeys(("00", "08"), 2),
    **dict.fromkeys(("01", "02", "03", "04", "05", "06", "07", "11", "12"), 3),
    **dict.fromkeys(("09", "10", "13", "14"), 4),
    "15": 0,  # a tool, no lesson
}
"""Of each notebook how many exercises wait for an answer. Their solutions are text (test_solutions.py): none runs."""


def answers(notebook: nbformat.NotebookNode) -> tuple[int, int]:
    """How many answers of exercises are shown as not yet right, and how many as right."""
    outputs = [one for cell in notebook.cells if cell.cell_type == "code" for one in cell.outputs]
    shown = "".join(one.get("data", {}).get("text/html", "") for one in outputs)
    wrong, right = (len(re.findall(rf"<b[^>]*>[^<]*{word}", shown)) for word in ("Not yet", "Right"))
    return wrong, right


# The first one runs in JupyterLab (browser/test_start_here.py), which compares what it prints.
IN_JUPYTERLAB = pytest.param(NOTEBOOKS[0], marks=pytest.mark.deep)


@pytest.mark.notebook
@pytest.mark.xdist_group("notebooks")
@pytest.mark.parametrize("path", [IN_JUPYTERLAB, *NOTEBOOKS[1:]], ids=lambda path: path.stem)
def test_notebook_runs(path: Path, executed: Callable[[Path], Path]) -> None:
    notebook = nbformat.read(executed(path), as_version=4)
    assert answers(notebook) == (EXERCISES[path.stem[:2]], 0)
    ran = printed(notebook)
    if path.stem not in ELSEWHERE and not has_gpu():
        gone = [line for line in printed(nbformat.read(path, as_version=4)) if line not in ran]
        assert not gone, (
            f"printed no longer, so the words around it may be wrong: `make notebooks NOTEBOOK={path.stem}`"
        )


@pytest.mark.notebook
def test_there_are_notebooks_and_the_first_is_where_everybody_starts() -> None:
    assert NOTEBOOKS
    assert NOTEBOOKS[0].stem == "00_start_here"


LESSONS = [path for path in NOTEBOOKS[1:] if EXERCISES[path.stem[:2]]]
WORDS_A_MINUTE, MINUTES_AN_EXERCISE = 200, 4
AMOUNT = re.compile(r"^\*\*About (\d+) minutes\*\*", re.MULTILINE)


def least_minutes(notebook: nbformat.NotebookNode, exercises: int) -> float:
    """What reading the text and the code takes, without the solutions, and answering the exercises."""
    words = sum(len(cell.source.split()) for cell in notebook.cells[:-1])
    return words / WORDS_A_MINUTE + MINUTES_AN_EXERCISE * exercises


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_says_how_long_it_takes_and_ends_with_what_was_learned(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    said = AMOUNT.search(notebook.cells[0].source)
    assert said, "the first cell begins: **About 30 minutes**"
    least = least_minutes(notebook, EXERCISES[path.stem[:2]])
    assert least <= int(said[1]) <= 2.5 * least, f"{least:.0f} minutes of words and exercises alone"
    _, learned, after = notebook.cells[-2].source.partition("## You can now explain")
    bullets, _, _ = after.partition("**Next:**" if "**Next:**" in after else "**Back to:**")
    assert learned
    assert 3 <= bullets.count("\n* ") <= 5


def test_too_short_a_time_is_noticed() -> None:
    cells = [nbformat.v4.new_markdown_cell("word " * 4000), nbformat.v4.new_markdown_cell("solution " * 900)]
    assert least_minutes(nbformat.v4.new_notebook(cells=cells), 2) == 28


def test_answers_are_counted() -> None:
    shown = [nbformat.v4.new_output("display_data", {"text/html": f"<div><b>{word}.</b> So.</div>"})
             for word in ("Not yet", "Right", "Not yet")]  # fmt: skip
    assert answers(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=shown)])) == (2, 1)


def test_what_a_notebook_prints_is_compared() -> None:
    said = [
        nbformat.v4.new_output("stream", name="stdout", text=text) for text in ("loads 18\n", "not timed here: x\n")
    ]
    said.append(nbformat.v4.new_output("stream", name="stderr", text="a warning\n"))
    ran = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=said)])
    assert printed(ran) == ["loads 18"]


@pytest.mark.notebook
def test_a_failing_cell_is_noticed(tmp_path: Path) -> None:
    from nbclient.exceptions import CellExecutionError

    broken = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("assert 1 == 2, 'no'")])
    with pytest.raises(CellExecutionError, match="AssertionError"):
        execute(broken, tmp_path)


def test_outputs_from_a_gpu_survive_a_machine_without_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (path,) = (path for path in NOTEBOOKS if path.stem in FROM_A_GPU)
    assert "NVIDIA" in printed(nbformat.read(path, as_version=4))[0]
    ran: list[str] = []
    monkeypatch.setattr(notebooks, "has_gpu", lambda: False)
    monkeypatch.setattr(notebooks, "execute", lambda notebook: ran.append("ran"))
    monkeypatch.setattr(notebooks, "find", lambda names: [Path(shutil.copy(path, tmp_path))])
    monkeypatch.setattr("sys.argv", ["notebooks.py"])
    assert notebooks.main() == 0
    assert "left as it is" in capsys.readouterr().out
    assert not ran
    monkeypatch.setattr("sys.argv", ["notebooks.py", "08"])
    assert notebooks.main() == 0
    assert ran == ["ran"]


def test_the_site_shows_outputs_from_a_gpu_where_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import site_builder

    (path,) = (path for path in NOTEBOOKS if path.stem in FROM_A_GPU)
    monkeypatch.setattr(site_builder, "has_gpu", lambda: False)
    assert site_builder.execute(path, tmp_path) == nbformat.read(path, as_version=4)


def test_a_notebook_is_announced_with_its_claim() -> None:
    import site_sources

    text = "# Title\n\nTwenty minutes. The **claim**:\n\n> It *is*\n> fast.\n\nMore."
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    assert site_sources.heading(notebook) == ("Title", "Twenty minutes. The claim: It is fast.")

"""Run notebooks and bring them into the form that is committed: outputs kept, everything of one machine gone.

``python tools/notebooks.py [NAME ...]`` executes (default: all of them) and writes the normal form; with ``--strip``
it only writes the normal form, with ``--check`` it only says which files are not in it.
"""

import argparse
import base64
import re
import sys
from pathlib import Path
from typing import Any

import nbformat

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
CHART = "application/vnd.plotly.v1+json"
NAMED = 'class="sb-named"'
POINT = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
"""A transparent picture of one pixel."""
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3}, "file_extension": ".py", "mimetype": "text/x-python",
        "name": "python", "nbconvert_exporter": "python", "pygments_lexer": "ipython3", "version": "3.11.7",
    },
}  # fmt: skip
"""What JupyterLab writes there once the kernel has started: a notebook that has it already opens as saved. Of Python's
versions the file can name one alone; ``subbyte lab`` shows the one that runs (subbyte/cli/lessons.py)."""
FROM_A_GPU = ("08_on_your_gpu",)
"""Notebooks whose committed outputs come from a GPU, as they say; a machine without one leaves them as they are."""
KEPT_BY_CELL = ("tags", "jp-MarkdownHeadingCollapsed")


def normal_form(notebook: dict[str, Any], *, charts: bool = True) -> dict[str, Any]:
    """The notebook (parsed JSON) without widget state, timings and random cell ids; everything shown is kept.

    A live view is dropped where its static picture stands beside it: without a kernel it could not be drawn anyway.
    ``charts``: whether those of plotly stay and need a name before them.
    """
    cells = [_normal_cell(cell, number, charts) for number, cell in enumerate(notebook["cells"])]
    return {**notebook, "cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


def _normal_cell(cell: dict[str, Any], number: int, charts: bool) -> dict[str, Any]:
    kept = {key: value for key, value in cell["metadata"].items() if key in KEPT_BY_CELL}
    normal = {**cell, "id": f"cell-{number:02}", "metadata": kept}
    if cell["cell_type"] == "code":
        outputs = _joined([_normal_output(output) for output in cell["outputs"]])
        normal["outputs"] = _named(outputs) if charts else outputs
    return normal


def _normal_output(output: dict[str, Any]) -> dict[str, Any]:
    normal = dict(output)
    normal.pop("transient", None)
    if "data" in output:
        data = with_svg(output["data"])
        drawn = "text/html" in data or "image/svg+xml" in data
        normal["data"] = {kind: data[kind] for kind in sorted(data) if not (drawn and kind == WIDGET_VIEW)}
        normal["metadata"] = {}
    return normal


def _named(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outputs with a name before each chart of plotly.

    JupyterLab draws a chart of a notebook that is opened, not run, without a name, and runs no script there that could
    give it one: screen readers find the chart's name and words in a picture of one pixel.
    """
    named: list[dict[str, Any]] = []
    for output in outputs:
        data = output.get("data", {})
        if CHART in data:
            named.append({"output_type": "display_data", "data": {"text/html": _name(data)}, "metadata": {}})
        if NAMED not in "".join(data.get("text/html", "")):
            named.append(output)
    return named


def _name(data: dict[str, Any]) -> str:
    from subbyte.html import attribute
    from subbyte_widgets.charts.spoken import spoken

    finding = "".join(data["text/plain"]).removeprefix("<Chart: ").removesuffix(">")
    words = attribute("alt", f"{finding}. {spoken(data[CHART])}")
    return f'<img {NAMED}{words} src="{POINT}" style="display: block; width: 1px; height: 1px">'


def with_svg(data: dict[str, Any]) -> dict[str, Any]:
    """The data of an output; a picture inside its HTML is there as SVG too, for pages that clean HTML away."""
    found = re.search(r'src="data:image/svg\+xml;base64,([^"]*)"', "".join(data.get("text/html", "")))
    if not found or "image/svg+xml" in data:
        return data
    return {**data, "image/svg+xml": base64.b64decode(found[1]).decode()}


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbouring pieces of one stream as one: where a stream is cut depends on timing."""
    joined: list[dict[str, Any]] = []
    for output in outputs:
        if joined and output.get("name") and joined[-1].get("name") == output["name"]:
            joined[-1] = {**joined[-1], "text": "".join([*joined[-1]["text"], *output["text"]])}
        else:
            joined.append(output)
    return joined


def execute(notebook: nbformat.NotebookNode, folder: Path = FOLDER, *, live: bool = False) -> None:
    """Run all cells from top to bottom in a fresh kernel that works in ``folder``; with ``live`` the notebook keeps the
    state of its views, which JupyterLab then shows without running a cell. Raises CellExecutionError."""
    from nbclient import NotebookClient
    from traitlets.config import Config

    # Else each kernel warns that it speaks without encryption, on a connection that never leaves this machine.
    quiet = Config({"KernelManager": {"transport_encryption": "auto"}})
    resources = {"metadata": {"path": str(folder)}}
    options = {"timeout": 300, "kernel_name": "python3", "resources": resources, "store_widget_state": live}
    NotebookClient(notebook, config=quiet, **options).execute()


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """The lines that the cells print, but for those that depend on what is installed."""
    outputs = [one for cell in notebook.cells if cell.cell_type == "code" for one in cell.outputs]
    text = "".join(one["text"] for one in outputs if one.get("name") == "stdout")
    return [line for line in text.splitlines() if not line.startswith(("not timed here", "in PyTorch:"))]


def has_gpu() -> bool:
    """Whether the notebooks would use this machine's GPU."""
    from subbyte.errors import MissingDependency
    from subbyte.gpu.driver import detect

    try:
        return bool(detect())
    except MissingDependency:
        return False


def find(names: list[str]) -> list[Path]:
    """The notebooks whose file name begins with one of ``names``; all when none is given."""
    paths = [path for path in sorted(FOLDER.glob("*.ipynb")) if ".backup-" not in path.name]  # subbyte lab --reset
    chosen = [path for path in paths if not names or any(path.name.startswith(Path(name).name) for name in names)]
    if not chosen:
        sys.exit(f"no notebook matches {', '.join(names)}; there are: {', '.join(path.stem for path in paths)}")
    return chosen


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--strip", action="store_true", help="do not execute")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when a file is not in normal form")
    options = parser.parse_args()
    stale = []
    for path in find(options.names):
        notebook = nbformat.read(path, as_version=4)
        if not (options.strip or options.check):
            if path.stem in FROM_A_GPU and not options.names and not has_gpu():
                print(f"{path.name}: left as it is, its outputs come from a GPU; name it to run it all the same")
                continue
            execute(notebook)
        normal = nbformat.from_dict(normal_form(notebook))
        text = nbformat.writes(normal) + "\n"
        if options.check:
            stale += [path.name] if path.read_text(encoding="utf-8") != text else []
        else:
            path.write_text(text, encoding="utf-8")
            print(f"{path.name}: {len(text) / 1000:.0f} kB")
    for name in stale:
        print(f"{name} is not in the normal form: run `python tools/notebooks.py --strip {name}`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
